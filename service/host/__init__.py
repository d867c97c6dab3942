"""What a server needs of its machine.

`settings` are its settings, `lock` lets a data directory have one server, `private` starts a server
for one command, `warming` compiles ahead.
"""
