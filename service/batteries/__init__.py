"""Item banks: arenas with their meta-features.

`battery` makes, reads and writes them; `feature_table` reads columns of one's own.
"""
