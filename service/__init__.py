"""The session service: from an agent's connection to its profile.

`rpc` is the server with its calls, and `access` decides who may make them. `session` plays
episodes, and `measuring` chooses instances and judges outcomes. `batteries` and `library` hold what
sessions are made of, and `reporting` tells what a battery measures. `storage` and `recording` hold
what sessions leave behind, and `upkeep` copies, checks and removes it. `web` has the pages of
browsers, and `host` deals with the machine that a server runs on. `model` defines what the store
alone knows beside `animalcat.values`, `texts` checks those of messages, `ids` names sessions and
campaigns, `errors` lists what can go wrong, `refusals` counts what is refused, `logs` writes the
log, `calls` says what the present call is, `own_calls` are those of a process to itself, `versions`
tells what could change a result, `operations` are calls that take long, and `memory` says how much
there is.
"""
