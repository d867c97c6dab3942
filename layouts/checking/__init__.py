"""Whether a layout holds, how well it predicts, and who differs from whom.

`checks` compares what was seen with what the posterior expects; `calibration` says whether
intervals hold what they say; `predict`, `scores` and `baselines` measure held-out predictions
beside those of simpler methods, `loo` compares layouts, `compare` agents. `screening` looks which
demands tell anything; `population` describes many agents; `reanalysis` estimates success by
propensities.
"""
