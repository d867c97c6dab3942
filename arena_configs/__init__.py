"""The arena model: loading, writing, placing, checking and measuring Animal-AI arenas.

`model` is an arena configuration as data; `loader` reads it from YAML (by `nodes`, numbers by
`scalars`) and `writer` writes it. `catalogue` has the constants of every object, `tags` what rays
call them, `signs` what sign boards show, and `looks` the appearance of objects that are meshes in
the real build. `placement` works out where everything stands at the start, with `geometry` for the
solids; `draws` are Unity's random numbers, and `orders` the order in which a Unity build draws
them; `builds` has the names of builds. From a placement, `features` measures meta-features: by
`ground`, which tells where the body can be, `routes` over it, `sightlines`, and `rewarding`, which
orders rewards. `reach` finds goals that certainly cannot be reached, `returns` bounds what an
episode can return, `quickest` does so by the way to its reward, and `checks` reports problems;
`reading` reads an arena for who plays it, and says what they found. `sequence` decides which arena
comes next, `outcome` defines what is observed of an episode, and `families` draws arenas from files
of parameters; `batteries` has the recipes of batteries, which say how many of which family;
`instance` is one arena of a battery, `origin` says where it comes from, and `taken` has words for
what a control takes away. `bounds` finds numbers that are too large, and `chance` what an arena
leaves to chance.
"""
