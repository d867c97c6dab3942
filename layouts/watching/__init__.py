"""Watching a layout: whether it describes the agent, asked and answered while a test goes on.

`watch` has the six questions that a learner asks, and the answers that are shipped. `strata`
divides instances, and `alarm` notices agents that the layout does not describe, by bets of which
some are `settled`. `hindsight` confirms it, and `beyond` knows agents that are only abler than the
ranges reach. `rivals` are fitted
beside the layout before a test ends as precise, `sums` among them, and `cues` are what an agent may
go by that lacks a capability.
"""
