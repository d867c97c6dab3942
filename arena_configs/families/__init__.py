"""Families of arenas: files with parameters and formulas, and the instances drawn from them.

`language` defines what a family is, with `ranges` for its parameters and `scope` for its formulas;
`reader` reads its file, with `arena_reader` for the arena and `part_reader` for keys, formulas and
ranges, and `library` finds the file. `build` makes an arena for given values, with the colours of
`palette`, `variants` mirrors and turns it, `sampling` draws parameters, and `generate` draws
instances, which `instance` describes. `claims` compares what a family says of its arenas with what
is measured, and `search` finds an instance for given demands, of which `aims` sets those that are
parameters and `grid` combines them.
"""
