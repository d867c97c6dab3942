"""Suites that any implementation of a service contract can be held against."""
