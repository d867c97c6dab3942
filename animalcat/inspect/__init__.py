"""Adaptive evaluation of tasks of inspect_ai, whose samples have demands."""
