"""The engine that plays a session, and everything it needs to do so.

`engines` holds one engine per session; an `engine` is the only writer of its session, and admits
its agents. `identity` sees that they are the session's, `scheduling` picks the next attempt, and
`ending` leaves a profile.

`play` has one attempt played and judges it. The turns are taken by the `player`, in a simulating
process (`workers`, for which there is `room`). The agent (`link`) comes to it by itself (`direct`),
or the server relays (`relay`). `turns` reads the agent's answers for both, `notes` keeps its notes
within budgets, `spending` adds up what they cost, and `playthrough` how the attempt has gone.

`evidence` holds what is known: the attempts, the measurement and its certificates. `final_fits`
makes the last fits by NUTS. `disk` says whether there is room for outcomes. `intact` looks whether
all is as it was stored, and `unused` keeps in memory what may be used again. `record` keeps the
session's row, `events` tells watchers of changes, `glimpse` shows them what an agent sees just now,
and `parts` is what all engines of a server share.
"""
