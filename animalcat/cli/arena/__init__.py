"""`animalcat arena`: `commands` are its verbs; `map` draws, `play` lets a person play."""
