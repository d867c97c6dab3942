"""Text that every room reads or writes by the same rules; it imports none of them.

`names` builds and parses names of resources, `formulas` is the grammar of layouts and families, and
`ranges` says which numbers a field takes. `counts` puts numbers before nouns. `marked_yaml` reads
all YAML, and `guesses` tells what was meant by what it cannot read. `json_text` reads JSON of
others. `terminals` and `plain_console` make strangers' text safe to print, and `showing` draws
tables at the end of a notebook's cell.
"""
