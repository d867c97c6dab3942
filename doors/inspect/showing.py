"""Shows and exports logs of adaptive tasks of inspect_ai, where commands take sessions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from animalcat.cli.shared.output import (
    fail,
    insist_no_terminal,
    status,
    to_standard_output,
    wrote,
)
from animalcat.extending.installing import needing
from animalcat.machine.files import write_whole

if TYPE_CHECKING:
    from animalcat.plots.results import Results

_T = TypeVar("_T")


def read_log_profile(name: str) -> dict[str, Any]:
    """The profile of a log; ends the command where there is none.

    Args:
        name: The log.
    """

    def read() -> dict[str, Any]:
        from animalcat.doors.inspect.results import read_profile

        return read_profile(name)

    return _read("reading the log", read)


def export_log(name: str, form: str, output: Path | None) -> None:
    """Write a log in another form; ends the command where that fails.

    Args:
        name: The log.
        form: As `animalcat.doors.inspect.results.export` takes it.
        output: Where to; None for standard output.
    """

    def make_export() -> bytes:
        from animalcat.doors.inspect.results import export

        return export(name, form)

    if output is None:
        insist_no_terminal(form)
    content = _read("fitting what the log has", make_export)
    if output is None:
        to_standard_output(content, form)
        return
    try:
        write_whole(output, content)
    except OSError as error:
        fail(f"{error.filename or output}: cannot be written: {error.strerror}")
    wrote("posterior" if form in ("netcdf", "draws") else "export", output)


def read_log(name: str) -> Results | dict[str, Any]:
    """What a log holds, with draws where it has them; ends the command where it cannot be read.

    Args:
        name: The log.
    """

    def read() -> Results | dict[str, Any]:
        from animalcat.doors.inspect.results import read_results

        return read_results(name)

    return _read("fitting what the log has", read)


def _read(doing: str, read: Callable[[], _T]) -> _T:
    try:
        with status(doing), needing("a log of inspect_ai", "inspect"):
            return read()
    except (ValueError, ImportError) as error:
        fail(str(error))
