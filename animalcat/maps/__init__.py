"""Maps of arenas from above.

`shapes` says what a map shows: one list of discs and polygons, from a placed arena or from what the
simulator tells of a step. Three modules draw it: `figure` with matplotlib and with words, `small`
as SVG without them, and `moving` step by step, as the agent plays.
"""
