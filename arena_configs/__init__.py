"""The arena model: loading, writing, placing, checking and measuring Animal-AI arenas.

`model` is an arena configuration as data; `loader` reads it from YAML (by `nodes`) and `writer`
writes it. `catalogue` has the constants of every object, `signs` what sign boards show, and `looks`
the appearance of objects that are meshes in the real build. `placement` works out where everything
stands at the start, with `geometry` for the solids; `draws` are Unity's random numbers, and
`orders` the order in which a Unity build draws them. From a placement, `features` measures
meta-features: `ground` finds where the body can stand, `routes` the ways over it, `sightlines` what
can be seen, and `rewarding` the order of rewards that gives most. `reach` finds goals that cannot
be reached, `returns` bounds what an episode can return, and `checks` reports problems. `sequence`
decides which arena comes next, `outcome` defines what is observed of an episode, and `families`
generates arenas from templates.
"""
