"""Batteries: banks of arenas with their meta-features, kept on disk.

`battery` makes, writes and reads batteries, `instance` describes one arena of a battery,
`readings` keeps what was measured of arenas, and `feature_table` reads a user's own columns of
meta-features.
"""
