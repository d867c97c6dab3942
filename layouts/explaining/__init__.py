"""What a posterior means in words: the verdict on an agent, and why an episode failed.

`limits` says what each node costs, `kinds` what kind of agent this is, `wording` how values are
read, `notes` what else must be known of a node, `verdict` makes the sentences, `session`
takes what it needs from a learner, and `episode` explains one episode. `prediction` tells whether
the layout predicts the agent, beside a `regression` on its demands, `judgement` whether the layout
describes it, `flat` what flat priors say of limits, and `controls` sets arenas against their
controls. `readings` converts draws to the units in which nodes are read. `asking` counts which
arenas ask for each capability, and `faked` finds those that a cue may fake.
"""
