"""A door for clients of the Model Context Protocol, such as Claude Code and Codex.

`playing` is a server whose client plays a session as its agent, and knows nothing else of it.
`looking` is another one, read-only, by which an operator's client reads sessions and profiles.
`command` is `animalcat mcp`, which runs either, over standard input and output or over HTTP.
"""
