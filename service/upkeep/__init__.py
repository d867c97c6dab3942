"""Keeps house in stores: whether they are whole, copies of all of them, and what may go.

`place` opens a store with its files, and says in words what goes wrong there. `verifying` looks
through all of it. `backup` copies it into a tar, and `restore` reads that. `pruning` removes what
is old, or somebody's. `animalcat.data` offers them.
"""
