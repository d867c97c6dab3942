"""The command line in the process of a test."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from animalcat.cli.main import build


def call(*words: object) -> Result:
    """Run a command, and return what came of it."""
    given = [str(word) for word in words]
    return CliRunner().invoke(build(given), given)
