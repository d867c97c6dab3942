"""Reference agents, and loading an agent from `builtin:NAME` or `path.py:Class`, with limits.

`base` is the contract of an agent and `load` loads one. `simple` has two agents that ignore
observations, `braitenberg` one that steers by its rays, `scout` one with a map and a memory, and
`planner` one that is shown the arena's true state. `limits` takes abilities away from any of them.
`fingerprint` is what an agent is beside its name; `watching` finds it out in its process, and
`objects` of an object of a notebook.
"""
