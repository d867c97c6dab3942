"""Who may do what on a server.

`callers` are those who call. `tokens` keeps the tokens that prove who they are, `oidc` takes those
of an identity provider, `tickets` makes what an agent's process shows for one session, and `rates`
says how often a caller may call. `rules` is the table of what each role may call of whose, `gate`
holds every call against it, and `belongings` knows to whom things belong. `audit` writes who did
what. `certificates` makes that of `--self-signed`,
`made` remembers which sessions a token has made, `secret` gives sessions what no agent can guess,
and `private_files` are those that their owner alone can read.
"""
