"""The command line: a module or a package for each noun, and `main`, which imports the one in use.

`agent` needs nothing but the base install. `battery`, `session`, `campaign`, `profile`, `outcomes`
and `episode` work with a server, `serve` is one, `config` looks at its settings, and `server` says
how one is. `token` makes what callers show to one, `share` says to whom things belong there, and
`audit` who did what. `data` looks after its store, and `delete` deletes by name.
`campaign_tables` shows campaigns. `battery_contents` is what `battery show` and `battery export`
load, and `battery_features` what `battery features` writes. `calibrate` is `battery calibrate`, and
`profile_prediction` and `profile_controls` are what `profile predict` and `profile controls` load;
`controls` sets arenas against their controls.
`arena` and `layout` work on files. `unity` makes real builds ready and holds the stand-in for one.
`plugins` lists what other packages add. `demo` does the main job once, `doctor` says what is
missing. `shared` holds what several of them need.
"""
