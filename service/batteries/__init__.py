"""Batteries: banks of arenas with their meta-features, kept on disk.

`battery` makes, writes and reads batteries, `instance` describes one arena of a battery, `drafts`
makes instances of arenas and measures them, `validity` lets the planner solve them, `readings`
keeps what was found out, `naming` says what kind of task an instance is and which are variants of
one another, `feature_table` reads a user's own columns, and `piaagets` the table of O-PIAAGETS.
`file_features` measures many arena files, and `spool` keeps on disk what is uploaded. `marks` finds
arenas that nobody can pass or fail, and `findings` tells what checks of files find. `recipes`
builds batteries from recipes, `built` keeps them, `writing` writes them, whose instances `columns`
has on disk and in memory, and `estimate` says how long it will take. `packed` holds many drafts in
little memory. `selection` picks instances among which demands do not go together, and `impostors`
says by which cues an agent could pass without what arenas ask for.
"""
