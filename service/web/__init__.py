"""The web pages of a server: sessions to watch and steer, batteries, recordings, arenas to play.

One application (`application`), which `serving` offers, has parts (`parts`). A part is a module
with a function that takes the `Site` (`site`) and returns a `Part`: its routes, the folder of its
templates, and what stands in the bar at the top. What guards every request (hosts, origins, forged
forms, headers) is in `guard`, and who looks is in `visits`. No part has to care for them.

`watching` lists, shows and steers sessions and campaigns, of which `feed` tells all who watch;
`batteries` shows batteries, and `filming` plays recorded episodes, drawn ahead by `replaying`.
`stage` runs what is played or shown on a thread or in a process of its own.
"""
