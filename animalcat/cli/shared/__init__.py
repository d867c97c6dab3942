"""What several commands need.

`output` prints, complains and ends with the right `codes`; `tables`, `outcome_table` and
`agent_comparison` are tables, `operation_progress` is progress; `remote` finds or starts the
server, `agent_process` runs an agent beside the command.
"""
