"""People take part: in studies as agents, and whoever plays an arena for themselves.

`game` is what a person plays alone: `play_page` shows it, and `arena_play` is
`animalcat arena play`. `unity_person` plays in place of a client of a
Unity build. `realtime` is the beat, the keys and the times of all play in a browser.

Studies have consent, instructions, practice and play, and keep what happened. `command` is
`animalcat study`, and `looking` looks whether what was kept is whole.
`file` reads a study and `words` has those of its pages. `participant` says what comes next for a
person, `store` keeps what happened, and `arrivals` counts who comes from where. `playing` lets them
play in real time and `rounds` keeps what is open, `pages` are what they see, and `running`
offers those. `export` writes results in the columns of `codebook`, and `rehearsal` lets simulated
people take part beforehand.
"""
