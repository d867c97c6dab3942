"""The laboratory: what measures animalcat itself, and is in its source only; see `__main__`."""
