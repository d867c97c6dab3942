"""Draws pictures of profiles for commands."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from animalcat import plots
from animalcat.cli.shared.output import fail, status, wrote
from animalcat.cli.shared.remote import client_for
from animalcat.client import Client
from animalcat.plots.results import Results, read_results
from animalcat.plots.style import FORMATS

SEVERAL: Final = (
    *("comparison", "population", "heat"),
    *("brier", "generality", "categories", "radar"),
)
"""Kinds of pictures that are of several agents."""


def draw_profiles(
    sessions: Sequence[str],
    kind: str,
    output: Path,
    demands: Sequence[str],
    *,
    server: str | None,
    data: Path | None,
) -> None:
    """Draw sessions and write the picture; ends the command where that fails.

    Args:
        sessions: Ids of sessions, or files of exported posteriors.
        kind: Name of a function of `animalcat.plots`.
        output: Where to; its ending says which form.
        demands: Demands of a grid; empty for its default.
        server: Host and port, if one was given.
        data: The data directory, if one was given.
    """
    if output.suffix.lower() not in FORMATS:
        fail(f"{output}: call it {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    results = read_sessions(sessions, server, data)
    try:
        with status("drawing"):
            plots.save(_draw(kind, results, demands), output, sources(results))
    except ValueError as error:
        fail(f"{kind}: {error}")
    except OSError as error:
        fail(f"{error.filename or output}: cannot be written: {error.strerror}")
    wrote(kind, output)


def _draw(kind: str, results: Sequence[Results], demands: Sequence[str]) -> Any:
    draw = getattr(plots, kind)
    if kind in SEVERAL:
        return draw(results)
    if len(results) > 1:
        raise ValueError(f"this picture is of one agent; {len(results)} sessions are given")
    (single,) = results
    return draw(single, demands) if kind == "grid" else draw(single)


def sources(results: Sequence[Results]) -> str:
    """Where the numbers of a picture come from, which its file keeps."""
    from animalcat.service.reporting.session_report import played_on

    return "; ".join(
        f"{result.agent}: {result.profile.get('provenance', {}).get('session', '')} on "
        f"{played_on(result.profile)}"
        for result in results
    )


def read_sessions(sessions: Sequence[str], server: str | None, data: Path | None) -> list[Results]:
    """What files and sessions hold; a server is asked only where there is a session."""
    contents: dict[str, bytes] = {}
    for name in sessions:
        if name.endswith(".nc"):
            try:
                contents[name] = Path(name).read_bytes()
            except OSError as error:
                fail(f"{name}: {error.strerror or 'cannot be read'}")
    asked = [name for name in sessions if name not in contents]
    known: dict[str, Results] = {}
    if asked:
        with client_for(server, data) as client:
            known = dict(zip(asked, read_from(client, asked), strict=True))
    return [known[name] if name in known else _read(name, contents[name]) for name in sessions]


def read_from(client: Client, sessions: Sequence[str]) -> list[Results]:
    """What sessions hold, from the server of a client."""
    with status("reading the posterior"):
        contents = [client.export_profile(name, "netcdf") for name in sessions]
    return [_read(name, content) for name, content in zip(sessions, contents, strict=True)]


def _read(name: str, content: bytes) -> Results:
    try:
        return read_results(content)
    except ValueError as error:
        fail(f"{name}: {error}")
    except OSError as error:  # it is opened as a copy in the folder for temporary files
        fail(f"{name}: cannot be opened in {tempfile.gettempdir()}: {error.strerror}")
