"""Where sessions, decisions, outcomes, certificates and profiles are kept.

`base` states the duties of a store, `sql` does them, with the tables of `schema` and the
`records` that stand in them. `listing` is for lists. `migrate` brings an older database up to
date, by the steps in `migrations`.
"""
