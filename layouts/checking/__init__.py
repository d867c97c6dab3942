"""Whether a layout holds, how well it predicts, and how agents differ.

`checks` compares what was seen with what the posterior expects; `calibration` tests whether
intervals cover as often as they claim. `predict` and `scores` measure held-out
predictions, and `forecast` predicts what was not played. `screening` says whether a profile
predicts well enough to be read, and `compare` compares agents.
"""
