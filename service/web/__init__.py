"""The web pages of a server: sessions to watch and steer, batteries, recordings, arenas to play.

One application (`application`) serves parts (`parts`). A part is a module with a function that
takes the `Site` and returns a `Part`: its routes, the folder of its templates, and what stands in
the bar at the top. What guards every request (hosts, origins, forged forms, headers) is in
`guard`, and who looks is in `visits`. No part has to care for them.
"""
