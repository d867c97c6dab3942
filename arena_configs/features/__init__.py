"""Meta-features: what arenas demand and contain, measured from a placement and by playing.

`registry` has them all as `FEATURES`, from one module for each group: `start`, `way`, `sight`,
`rewards`, `look`, `permanence` and `hiding`. To add a feature, add one row to a group; batteries
then store it, tables and commands show it, and layouts may use it. `definition` says what a row
holds. A row without a function is measured by playing: `measure_features` takes its reading from
who played the arena. `survey` keeps what several features need, and `chains` says how the readings
of arenas that merge into one episode add up.
"""
