"""`animalcat session`: `commands` are its verbs; `options` and `plan` define a session."""
