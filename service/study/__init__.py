"""Studies in which people are the agents: consent, instructions, practice, play, and what is kept.

`file` reads a study and `words` has those of its pages. `participant` says what comes next for a
person, and `store` keeps what happened. `playing` lets them play in real time and `rounds` keeps
what is open, `pages` are what they see, and `running` offers those. `export` writes results, and
`rehearsal` lets simulated people take part beforehand.
"""
