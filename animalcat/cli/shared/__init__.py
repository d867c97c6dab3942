"""What several commands need.

`output` prints, reports errors and ends with the right `codes`. `tables`, `outcome_table` and
`agent_comparison` are tables, `arena_outcomes` joins outcomes with arenas, `evidence` says which
rows of a table count, `earlier_outcomes` reads what earlier agents did, `outcome_options` are the
options of tables, `progress` says how far a command is, and `command_help` lays out help pages.
`remote` finds or starts the server, and `agent_process` runs an agent beside the command, `apart`
says what it must not see, `confine` sees to that, and `hidden` remembers it for the next time.
`same_agent` sees whether an agent is what it was. `pictures` draws profiles, `comparing` compares
them, `page` shows a page in the browser, `batteries` finds the battery that is meant, and
`calibrations` calibrated layouts. `campaign_file` reads the file of a campaign, and `ray_agents`
runs its agents on Ray. `unplayable` tells of arenas that a session could not play.
"""
