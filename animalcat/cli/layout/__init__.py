"""`animalcat layout`: `commands` gathers its verbs, each in a module of its own.

`show` lists layouts and shows one. `fit` makes profiles from `outcomes`, and `table` makes the
table of instances that it needs. `check` looks at how well a layout describes outcomes, with
`calibration` by simulated agents.
"""
