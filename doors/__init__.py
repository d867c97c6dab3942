"""The doors: everything by which others come in, or look out.

Each is a folder with a `door.toml`, which says what it adds: `animalcat.doorways` reads it, and
nothing outside this folder imports a door. Any of them may be taken away.

- `mcp`: clients of the Model Context Protocol play, or read profiles.
"""
