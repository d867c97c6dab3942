"""Keeps house in stores: what takes room, what is whole, copies of all of it, and what may go.

`place` opens a store with its files, and says in words what goes wrong there. `sizes` adds up what
takes how much, and `verifying` looks through all of it. `bundle` is the form of a backup, which
`backup` writes and `restore` reads. `pruning` removes what is not wanted any more, and `moving`
takes a session from one store to another. `animalcat.data` offers them.
"""
