"""What a user means by files of arenas and by a battery, the same for client, service and commands.

`arena_files` finds the arena files of a folder, and `battery_reference` decides what a reference to
a battery means.
"""
