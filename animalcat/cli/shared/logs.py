"""Finds the door that reads a log, where commands take sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from animalcat.extending.doorways import entries

if TYPE_CHECKING:
    from animalcat.plots.results import Results


class Logs(Protocol):
    """Reads logs of one kind; each call ends the command where there is no profile in one."""

    def show_log(self, name: str) -> None:
        """Print the profile of a log."""
        ...

    def export_log(self, name: str, form: str, output: Path | None) -> None:
        """Write a log in another form, to a file or to standard output."""
        ...

    def read_log(self, name: str) -> Results:
        """Return what a log holds, with draws."""
        ...


def logs_of(name: str) -> Logs | None:
    """Return what reads a log, by the ending of its name; None for what is no log."""
    way = entries("logs").get(Path(name).suffix)
    return None if way is None else way.load()
