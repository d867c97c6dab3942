"""What several commands need.

`output` prints, complains and ends with the right `codes`; `tables`, `outcome_table` and
`agent_comparison` are tables, `progress` says how far it is; `remote` finds or starts the
server, `agent_process` runs an agent beside the command.
"""
