"""The gRPC server, with one servicer for each service of the wire contract.

`server` starts and stops all of it. Agents connect to `gateway`; clients call `sessions`,
`batteries`, `layouts`, `campaigns`, `episodes`, `profiles` and `operations`. `paging` splits lists
into pages, `requests` has repeated calls done only once, and `exports` writes a profile in its
various forms.
"""
