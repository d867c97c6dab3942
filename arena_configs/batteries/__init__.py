"""Recipes of batteries: files that say which families give how many arenas, and what is drawn.

`language` defines what a recipe is, `reader` reads its file, and `library` finds it. `sizing`
scales its counts, and `drawing` draws its instances.
"""
