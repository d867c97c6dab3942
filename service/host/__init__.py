"""Runs servers on a machine.

`settings` are the settings of a server, and `limits` holds it within them. `readiness` looks
whether it takes work, and `standing` knows how it is as a whole. `serving` reads the certificate
that it shows. `listeners` guards all ports. `local` is where agents without a network reach it.
`lock` makes sure that a data directory has only one server, `owning` that it is one user's,
`private` starts a server for a single command, and `warming` compiles code ahead of its first use.
"""
