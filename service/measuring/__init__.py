"""What a session measures, independent of the agent that plays it.

`measurement` connects the learner of `layouts.adaptive` to a battery and its episodes. `coverage`
tells which instances a layout describes, and why it leaves out the others. `generation` makes
arenas on demand. `certificates` checks the live posterior by refits with NUTS, `gate` checks
whether scores can be predicted, and `report` writes the profile.
"""
