"""Agents whose abilities are known, to see what a layout makes of them.

`simulate` draws agents from a layout's prior and lets them play; `synthetic` is the thirty agents
and the battery of Burden et al. (2023).
"""
