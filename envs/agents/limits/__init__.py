"""Limits of known strength, which compose: `builtin:scout+sight=8+memory=2+lapses=.1`.

`reference` reads and checks references, `catalogue` lists the limits, `seeing` and `acting` hold
those that are possible with any agent, `context` those by the apparatus, and `limited` puts an
agent together. Everything that a limit draws follows from the agent's seed of the episode.
"""
