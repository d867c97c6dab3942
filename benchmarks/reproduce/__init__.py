"""Published results on measurement layouts, and the same results computed here.

`printed` has the papers' numbers. `olympics` and `permanence` reproduce Burden et al. (2023), and
`cooperation` Tesic et al. (2025). `ceiling` computes how well anyone could predict, and `chance`
the papers' chance level. `testbed` holds out tasks and categories of the whole testbed, and
`verdicts` compares kinds of agents with what they are.

`python -m benchmarks.reproduce PAPER` is `command`, which prints them, with `contest`,
`testbed_report` and `calibrated` for what is no paper's table.
"""
