"""Runs the command line as `python -m animalcat`."""

from animalcat.cli.main import main

if __name__ == "__main__":
    main()
