"""The embedded simulator: Animal-AI's physics and rules on PhysX, without Unity.

`environment` is the environment, and `world` one episode in play. `builder` turns a placed arena
into what `stage` holds: bodies (`physics`, through `engine`), goals, `zones`, and rows of the
`scene` that sensors see, which `tracking` keeps up to date. `movement` moves the agent, `ground`
finds what nothing can move, and `rules` keep health and reward; a `journal` is told what happens,
and `state` describes what is there for privileged agents. `changing`, `spawners`, `triggers` and
`operations` are objects that act. `camera` draws what the agent sees by `sight`,
`primitives`, `looks` and `surroundings`; `rays` casts the ray sensor, with `grazing` where rounding
decides, and `visibility` tells how much of a ball can be seen. `builds` has the differences between
Unity builds, and `vector` the type of a vector.
"""
