"""Simulated agents of known ability, to see what a layout makes of them.

`simulate` draws agents from a layout's prior and lets them play; `planning` lets agents take an
adaptive test beforehand.
"""
