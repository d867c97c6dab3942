"""Computerised adaptive testing for agents in Animal-AI."""
