"""Test suites that any implementation of a service contract must pass.

`storage_suite` is the suite for stores, and `artefacts_suite` that for files.
"""
