"""An agent that maps what it senses, remembers goals and searches; it never sees the state.

`settings` says what it can do, `pose` where it is, `chart` is its map with the ways on it, `eyes`
what the camera shows, and `memory` the goals that it remembers. `survey` keeps these by what is
observed, and `agent` decides by them.
"""
