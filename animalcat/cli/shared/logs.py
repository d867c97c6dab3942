"""Finds the door that reads a log, where commands take sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from animalcat.extending.doorways import entries

if TYPE_CHECKING:
    from animalcat.plots.results import Results


class Logs(Protocol):
    """Reads logs of one kind; each call ends the command where there is no profile in one."""

    def read_log_profile(self, name: str) -> dict[str, Any]:
        """Return the profile of a log."""
        ...

    def export_log(self, name: str, form: str, output: Path | None) -> None:
        """Write a log in another form, to a file or to standard output."""
        ...

    def read_log(self, name: str) -> Results | dict[str, Any]:
        """Return what a log holds, with draws, or its profile where it has none."""
        ...


def logs_of(name: str) -> Logs | None:
    """Return what reads a log, by the ending of its name; None for what is no log."""
    way = entries("logs").get(Path(name).suffix)
    return None if way is None else way.load()
