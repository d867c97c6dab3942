"""`animalcat session`: `commands` are its verbs; `options` and `plan` define a session.

`live` is the table that changes while a session runs, and `watching` shows it for sessions that
somebody else runs.
"""
