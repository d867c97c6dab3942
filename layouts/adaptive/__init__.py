"""Adaptive testing: what to play next, and when it is enough.

`learner` is asked and told, and is what a session drives; `plan` says how to choose and when to
stop. It chooses among a `bank` of instances and `offers` of what could be made: `information` is
what each would tell, `selectors` turn that into probabilities, `policy` puts them together,
`peers` is what stood beside a choice. `outcomes` weighs what was told, repeats by `retest`.
`stopping` gives the verdict, `bound` what a battery can tell at most. `alarm` notices agents that
the layout does not describe, `hindsight` whether that stands, `widening` what else may be there.
`campaign` shares episodes among several agents.
"""
