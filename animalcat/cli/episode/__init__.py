"""`animalcat episode`: list recorded episodes, explain them, play them again, and export them.

`commands` are its verbs. `explaining` says why an episode ended as it did, `sources` finds
recordings, `replay` plays them again, and `export` makes datasets of them.
"""
