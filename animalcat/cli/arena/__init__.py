"""`animalcat arena`: `commands` are its verbs.

`solve` lets the planner play, `files` finds the files that a command is about, and `options` has
the options that commands share.
`families` makes arenas from families and lists these, and `family` shows one.
"""
