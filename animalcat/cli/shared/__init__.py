"""What several commands need.

`output` prints, reports errors and ends with the right exit codes. `table` lays out any table,
`tables` and `outcome_table` are tables, and `unplayable` tells of arenas that could not be played.
`arena_outcomes` joins outcomes with arenas,
`earlier_outcomes` reads what earlier agents did, `outcome_options` are the options of tables,
`option_table` makes those of sessions and campaigns, `progress` says how far a command is, `common`
is what the options of all commands say, and `command_help` lays out help pages. `remote` finds or
starts the server, and `agent_options` has the options of commands that run an agent
(`animalcat.apart`) beside them. `same_agent` sees whether an
agent is what it was. `pictures` draws profiles, `profile_files` reads those of files,
`profile_references` those that are shipped, `logs` finds what reads logs, `comparing` puts agents
side by side, `page` shows a page in the browser, `batteries` finds the battery that is meant, and
`calibrations` calibrated layouts, and `plugin_problems` what plugins there are. `whose` has the
options of lists that say whose things they show.
"""
