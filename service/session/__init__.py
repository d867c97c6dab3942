"""Playing a session: one engine, its only writer.

`engines` gives out engines. An `engine` is put together of four parts: `admission` (which agents
play), `scheduling` (what they play next), `ending` (with which profile the session is left) and
`record` (how the session stands). `play` plays one attempt: it relays between the `link` to an
agent and one of the `workers`, the processes that simulate, and records. `evidence` is what follows
from what is stored: the `ledger` of attempts and the measurement. `final_fits` makes the fits at
the end. `parts` is what all engines of a server share, and `events` tells others what happens.
"""
