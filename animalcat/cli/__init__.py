"""The command line: a package or module per noun; `main` imports the one that is used.

`shared` holds what several of them need.
"""
