"""`animalcat session`: `commands` are its verbs; `options` and `plan` define a session.

`reanalysis` says what a session tells of the whole battery.
"""
