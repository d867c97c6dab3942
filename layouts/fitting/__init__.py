"""A layout fitted to somebody's own table, in a call.

`fits` has `fit`, what it gives, and `predict`. `exports` reads tables in the form of
`profile export --format csv`, by `evidence`, which says which rows count and for how much.
`estimates` has the table of nodes as readers read them, and shows it.
"""
