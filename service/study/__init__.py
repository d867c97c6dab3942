"""Studies in which people are the agents: consent, instructions, practice, play, and what is kept.

`file` reads a study, `participant` says what comes next for a person, `store` keeps what happened.
"""
