"""Suites that any implementation of a service contract can be held against.

`storage_suite` is that of stores.
"""
