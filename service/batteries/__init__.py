"""Item banks: arenas with their meta-features.

`battery` makes, reads and writes them, an `instance` is one arena of one; `feature_table` reads
columns of one's own.
"""
