"""Who may do what on a server.

`callers` are those who call. `tokens` keeps the tokens that prove who they are, `tickets` makes
what an agent's process shows for one session, and `rates` says how often a caller may call. `rules`
is the table of what each role may call, and `gate` holds every call against it. `certificates`
makes certificates for TLS, `made` remembers which sessions a token has made, and `secret` gives
sessions what no agent can guess. `forwarded` sees that calls come by a proxy.
"""
