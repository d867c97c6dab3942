"""The gRPC server, with one servicer for each service of the wire contract.

`server` starts and stops all of it, and `within` answers calls of its own process without it.
Agents connect to `gateway`, which talks to each over an `agent_link`; `leases` knows who may come
back. Clients call `sessions`, `batteries`, `layouts`, `campaigns`, `episodes`, `profiles`,
`operations` and `access`. `asked` reads what they ask for, `paging` splits lists into pages,
`health` tells whether all is well, `requests` has repeated calls done only once, `persons` lists
what people have played, and `posterior` makes the netCDF file of a profile.
"""
