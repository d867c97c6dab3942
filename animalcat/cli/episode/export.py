"""`animalcat episode export`: recorded episodes in the form that a door writes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from animalcat.cli.shared.output import BAD_INPUT, MISSING, UNREACHABLE, fail, status
from animalcat.errors import AnimalcatError
from animalcat.extending.doorways import entries

if TYPE_CHECKING:
    from animalcat.cli.episode.sources import Source


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be exported, and how: the options of the command."""

    what: str
    episode: str
    name: str
    output: Path | None
    resolution: int
    backend: str

    def read(self) -> list[Source]:
        """Read the recordings that are meant."""
        from animalcat.cli.episode.sources import sources_of  # with the server extra alone

        with status("reading recordings"):
            return list(sources_of(self.what, self.episode))


def forms() -> str:
    """Return what doors write, in words."""
    return " ".join(f"{name} is {way.help}." for name, way in entries("exports").items())


def export_as(form: str, asked: Asked) -> None:
    """Have recordings written in a form; ends the command where that fails."""
    ways = entries("exports")
    if form not in ways:
        fail(f"--format {form}: there is no such form; there are: {', '.join(ways) or 'none'}")
    with _explain_errors():
        ways[form].load()(asked)


@contextmanager
def _explain_errors() -> Generator[None]:
    """End the command with a sentence where something goes wrong that a user can mend."""
    try:
        yield
    except ImportError as error:
        fail(str(error), MISSING)
    except AnimalcatError as error:
        fail(str(error), UNREACHABLE if error.code == "UNAVAILABLE" else BAD_INPUT)
    except ValueError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
