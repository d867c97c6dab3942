"""Adaptive testing: what to play next, and when to stop.

A session drives the ask/tell object in `learner`; `plan` holds its policy and stopping rule. It
chooses from a `bank` of instances and `offers` that could be made. `information` computes what each
instance would tell, `selectors` turn that into probabilities, `policy` combines selectors, and
`peers` records the alternatives to a choice. `telling` reads what is told, and `outcomes` weights
it, with repeats weighted by `retest`; `pooling` weighs those of a table, and `seen` sums up what
they show of each node. `signs` notices what is the wrong way round. `stopping` gives the verdict,
whose words `statuses` decides, and `bound` how much a battery can tell at most. `campaign` draws
what several agents play in common, and `paired` tells two of them apart. `battery_rate` bounds the
success rate of the whole battery, by what is staked on each choice. Whether the layout describes
the agent is asked of `layouts.watching`.
"""
