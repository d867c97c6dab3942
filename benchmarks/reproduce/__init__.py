"""Published results on measurement layouts, and the same results computed here.

`printed` has the papers' numbers. `burden` is Burden et al. (2023), by `olympics`, `bias`,
`sessions`, `permanence` and `counts`. `crosby` is Crosby et al. (2020). `contest` is Tesic et al.
(2025), by `contest_table`, `cooperation`, `mixed`, `rankings` and `wider_contest`. `entrants` reads
published outcomes, and `pictures` draws figures. `ceiling` computes how well anyone could predict,
and `chance` the papers' chance level. `testbed` holds out tasks and categories of the whole
testbed, and `verdicts` compares kinds of agents with what they are.

`python -m benchmarks.reproduce PAPER` is `command`, which prints them, with `testbed_report` and
`calibrated` for what is no paper's table.
"""
