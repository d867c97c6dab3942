"""Playing a session: one engine, its only writer.

`engines` gives out engines; `engine` admits agents, has episodes played and ends the session.
`link` is the way to one agent, `workers` are the processes that simulate, `play` relays between
the two and records. `evidence` is what follows from what is stored: the `ledger` of attempts and
the measurement. `final_fits` makes the fits at the end. `parts` is what all engines of a server
share, `events` how others are told.
"""
