"""`animalcat layout`: `commands` gathers its verbs, each in a module of its own."""
