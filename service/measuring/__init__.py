"""What a session measures, independent of the agent that plays it.

`measurement` connects the learner of `layouts.adaptive` to a battery and its episodes. `coverage`
tells which instances a layout describes, and why it leaves out the others. `generation` makes
arenas on demand, and `twins` makes those of fresh sessions. `certificates` checks the live
posterior by refits with NUTS, `gate` checks whether scores can be predicted, `report` writes the
profile with `next_steps`, `voids` counts what the agent voided, and `explaining` explains episodes.
`kept_fits` keeps the draws that the profile rests on, `profile_words` has the words that commands
and pages say of it, `controls` sets what was played against its controls, `faults` tells which
arenas could not be played, `against` compares with another agent's session, and `earlier` goes on
from a session of the same agent.
"""
