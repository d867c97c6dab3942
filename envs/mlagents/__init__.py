"""Unity's side of the ML-Agents protocol, played over the simulator.

`arguments` reads the command line that a client gives to a build. `link` is the connection to the
client, `handshake` the first exchange, and `peer` the rest of the conversation. `source` provides
the episodes, `encoding` the observations, and `channels` the side channels. `observation_log`
writes the log that a build keeps. `v1` has the protocol's messages, as `make proto` makes them.
"""
