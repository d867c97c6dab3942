"""The command line: a module or a package for each noun, and `main`, which imports the one in use.

`agent` needs nothing but the base install. `battery`, `session`, `campaign`, `profile`, `outcomes`
and `episode` work with a server, `serve` is one, and `server` says how one is; `server_settings`
checks its configuration. `token` makes what callers show to one, and `audit` says who did what.
`data` looks after its store, and `delete` deletes by name. `campaign_tables` shows campaigns.
`battery_contents` is what `battery show` and `battery export` load, and `calibrate` is `battery
calibrate`. `arena` and `layout` work on files. `unity` makes real builds ready and holds the stand-
in for one. `demo` does the main job once, `doctor` says what is missing. `shared` holds what
several of them need.
"""
