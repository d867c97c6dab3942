"""`animalcat episode`: `commands` are its verbs; `replay` plays recordings again.

`words` puts outcomes and ends of episodes into words.
"""
