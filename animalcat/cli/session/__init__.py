"""`animalcat session`: `commands` are its verbs; `options` and `plan` define a session.

`live` is the table that changes while a session runs, and `watching` shows it for sessions that
somebody else runs. `planning` says beforehand what a session would find out, as `expected` works it
out. `holding` pauses sessions and takes episodes out. `reanalysis` says what a
session tells of the whole battery.
"""
