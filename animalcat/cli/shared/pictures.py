"""Draws pictures of profiles for commands."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from animalcat import plots
from animalcat.cli.shared.logs import logs_of
from animalcat.cli.shared.output import fail, status, wrote
from animalcat.cli.shared.profile_files import read_profiles
from animalcat.cli.shared.remote import client_for
from animalcat.client import Client
from animalcat.layouts.model.tables import guess
from animalcat.plots.given import number_agents
from animalcat.plots.results import Results, read_results, received_results
from animalcat.plots.style import FORMATS

PROFILES: Final = ".json"
"""How the names of files of profiles end."""
FROM_PROFILES: Final = ("forest", "comparison")
"""Kinds of pictures that take no draws and no episodes."""


def draw_profiles(
    given: Sequence[str],
    kind: str,
    output: Path,
    *,
    agents: Sequence[str],
) -> None:
    """Draw sessions or profiles and write the picture; ends the command where that fails.

    Args:
        given: Ids of sessions, files of exported posteriors, and files of profiles.
        kind: Name of a function of `animalcat.plots`.
        output: Where to; its ending says which form.
        agents: Agents that are to be drawn; empty for all.
    """
    if output.suffix.lower() not in FORMATS:
        fail(f"{output}: call it {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    if kind not in FROM_PROFILES and any(name.endswith(PROFILES) for name in given):
        fail(
            f"--kind {kind} takes draws and episodes: a session, or a file of `profile export "
            f"--format netcdf`. Profiles alone give {' and '.join(FROM_PROFILES)}"
        )
    subjects = _choose(_subjects(given), agents)
    try:
        with status("drawing"):
            draw = getattr(plots, kind)
            figure = draw(subjects if kind == "comparison" else _single(subjects))
            files = [name for name in given if name.endswith(PROFILES)]
            results = [one for one in subjects.values() if isinstance(one, Results)]
            about = "; ".join(filter(None, (sources(results), ", ".join(files))))
            plots.save(figure, output, about)
    except (ValueError, TypeError) as error:
        fail(f"{kind}: {str(error).removeprefix(f'{kind}: ')}")
    except OSError as error:
        fail(f"{error.filename or output}: cannot be written: {error.strerror}")
    wrote(kind, output)


def _subjects(given: Sequence[str]) -> dict[str, Any]:
    """What is drawn, by the names of the agents."""
    held = [name for name in given if not name.endswith(PROFILES)]
    results = iter(read_sessions(held))
    found: list[tuple[str, str, Any]] = []
    for name in given:
        if name.endswith(PROFILES):
            found += [(agent, name, profile) for agent, profile in read_profiles(Path(name))]
        else:
            result = next(results)
            found.append((result.agent, name, result))
    agents, sources, subjects = zip(*found, strict=True) if found else ((), (), ())
    return dict(zip(number_agents(agents, sources), subjects, strict=True))


def _choose(subjects: Mapping[str, Any], agents: Sequence[str]) -> Mapping[str, Any]:
    if unknown := [name for name in agents if name not in subjects]:
        known = ", ".join(subjects)
        hint = guess(unknown[0], list(subjects))
        fail(f"--agent {unknown[0]!r}: there is none; agents: {known}.{hint}")
    return {name: subjects[name] for name in agents} if agents else subjects


def _single(subjects: Mapping[str, Any]) -> Any:
    if len(subjects) > 1:
        raise ValueError(
            f"this picture is of one agent; {len(subjects)} are given. --agent NAME takes one"
        )
    (single,) = subjects.values()
    return single


def sources(results: Sequence[Results]) -> str:
    """Where the numbers of a picture come from, which its file keeps."""
    from animalcat.service.reporting.session_report import words_of_backend

    return "; ".join(
        f"{result.agent}: {result.profile.get('provenance', {}).get('session', '')} on "
        f"{words_of_backend(result.profile)}"
        for result in results
    )


def read_sessions(sessions: Sequence[str]) -> list[Results]:
    """What files and sessions hold; a server is asked only where there is a session."""
    read: dict[str, Results] = {}
    for name in sessions:
        if name.endswith(".nc"):
            read[name] = _read(name, Path(name))
        elif (logs := logs_of(name)) is not None:
            result = logs.read_log(name)
            if not isinstance(result, Results):
                fail(f"{name}: a log of arenas has no draws; its session has them")
            read[name] = result
        elif name.endswith(PROFILES):
            fail(f"{name}: this takes draws: a session, or a file of `--format netcdf`")
    asked = [name for name in sessions if name not in read]
    if asked:
        with client_for() as client:
            read |= dict(zip(asked, read_from(client, asked), strict=True))
    return [read[name] for name in sessions]


def read_from(client: Client, sessions: Sequence[str]) -> list[Results]:
    """What sessions hold, from the server of a client."""
    with status("reading the posterior"):
        return [_receive(client, name) for name in sessions]


def _receive(client: Client, session: str) -> Results:
    try:
        return received_results(client, session)
    except ValueError as error:
        fail(f"{session}: {error}")
    except OSError as error:  # it is opened as a copy in the folder for temporary files
        fail(f"{session}: cannot be opened in {tempfile.gettempdir()}: {error.strerror}")


def _read(name: str, path: Path) -> Results:
    try:
        return read_results(path)
    except ValueError as error:
        fail(f"{name}: {error}")
    except OSError as error:
        fail(f"{name}: {error.strerror or 'cannot be read'}")
