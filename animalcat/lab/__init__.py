"""A whole study from Python: make batteries, measure agents, and look at what was found.

`lab` has `local` and `connect`, which give a `Lab`. `arena` makes arenas and `batteries` batteries
of them; `agents` reads what an agent may be given as. `result` is what a session found out, with
its `profile`, `episodes` and `pictures`; `campaigns` are of several agents, `comparison` puts
several side by side, and `forecast` predicts a battery. `recordings`, `path` and `received` read
what they need from the server. `progress` shows how far a session is, and `running` is one that
goes on in the background. `within` measures in this process, without a server; `policies` makes
agents of what was trained, and `training` measures what is being trained.
"""
