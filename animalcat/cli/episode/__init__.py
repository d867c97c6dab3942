"""`animalcat episode`: `commands` are its verbs; `replay` plays recordings again."""
