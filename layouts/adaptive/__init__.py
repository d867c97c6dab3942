"""Adaptive testing: what to play next, and when it is enough."""
