"""Whether a layout holds, how well it predicts, and how agents differ.

`checks` compares what was seen with what the posterior expects; `calibration` tests whether
intervals cover as often as they claim. `predict`, `scores` and `baselines` measure held-out
predictions against those of simpler methods, and `forecast` predicts what was not played.
`compare` compares agents. `screening` finds which demands are informative,
`population` is a model of many agents, `assess` puts a layout beside simpler methods on one table,
and `reanalysis` estimates success on the whole battery by propensity weighting.
"""
