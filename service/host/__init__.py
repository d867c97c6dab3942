"""Runs servers on a machine.

`settings` are the settings of a server, and `limits` holds it within them. `doorman`
ends connections of strangers. `local` is where agents
without a network reach it. `lock` makes sure that a data directory has only one
server, `private` starts a server for a single command, and `warming` compiles code ahead of its
first use.
"""
