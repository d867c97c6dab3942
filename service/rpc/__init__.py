"""The server, and a servicer for each service of the wire.

`server` starts and stops all of it. `gateway` is where agents connect; `sessions`, `batteries`,
`layouts`, `campaigns`, `episodes`, `profiles` and `operations` are called by clients. `paging` is
for lists, `requests` for calls that are done once, `exports` for the forms of a profile.
"""
