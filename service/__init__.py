"""The session service: from an agent's connection to its profile.

`rpc` is the server and its calls, `session` plays, `measuring` chooses and judges, `campaigns`
conducts several sessions on one budget. `batteries` and `library` hold what sessions are made of,
`storage` and `recording` what is kept, `person` lets a person play, and `host` is what a server
needs of its machine. Beside them: `model`, the values of the domain; `ids`, `errors`, `versions`;
`operations`, what takes long; `converters`, the border to the wire; `testing`, suites for whoever
writes another store.
"""
