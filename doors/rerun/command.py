"""`animalcat episode export --format rerun`: a file of Rerun's viewer for each episode."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from animalcat.cli.episode.export import Asked
from animalcat.cli.episode.sources import Source
from animalcat.cli.shared.common import common
from animalcat.cli.shared.output import FAILED, complain, fail, print_json, say
from animalcat.cli.shared.progress import progress
from animalcat.cli.shared.remote import client_for
from animalcat.doors.rerun import rerun_file
from animalcat.errors import AnimalcatError
from animalcat.machine.files import write_whole
from animalcat.text import names


def export(asked: Asked) -> None:
    """Write each recording as a file.

    What is right of a damaged recording is written and labelled; the exit code is then 1.
    """
    if asked.name:
        fail("--name goes with --format minari; --output names files")
    what, output, rows = asked.what, asked.output, list[dict[str, Any]]()
    sources = asked.read()
    alone = output is not None and output.suffix == rerun_file.SUFFIX
    if alone and len(sources) > 1:
        fail(
            f"{output}: {len(sources)} episodes are meant, and a file holds one. Name a folder "
            f"with --output, or one episode, as in `episode export {what} 0`"
        )
    nodes = None if what.endswith(".mcap") else _nodes(what)
    with progress("exporting") as tell:
        for number, source in enumerate(sources):
            tell(f"exporting {source.label}", number, len(sources))
            folder = output or Path()
            path = folder if alone else folder / f"{_stem(source)}{rerun_file.SUFFIX}"
            try:
                content = rerun_file.rerun_bytes(
                    source.recording, asked.resolution, asked.backend, nodes
                )
            except ValueError as error:
                raise ValueError(f"{source.label}: {error}") from error
            write_whole(path, content)
            rows.append(
                {
                    "recording": source.label,
                    "file": str(path),
                    "format": "rerun",
                    "steps": max(0, len(source.recording.steps) - 1),
                    "bytes": len(content),
                    "posterior": nodes is not None,
                    "damage": source.recording.damage,
                }
            )
    if common().as_json:
        print_json(rows)
    for row in rows:
        if not common().as_json:
            say(f"{row['recording']}: {row['steps']} decisions -> {row['file']}")
        if row["damage"]:
            complain(f"{row['recording']} is damaged: {row['damage']}")
    if any(row["damage"] for row in rows):
        raise typer.Exit(FAILED)


def _nodes(what: str) -> Mapping[str, Any] | None:
    """The nodes of the session's profile; None where no session is kept, as of a person's."""
    session = names.parse_session(what) if "/" in what else what
    with client_for() as client:
        try:
            return client.profile(session)["nodes"]
        except AnimalcatError as error:
            if error.code != "UNKNOWN_SESSION":
                raise
            return None


def _stem(source: Source) -> str:
    """What to call a recording's file: the session with number and attempt, or the file's name."""
    label = source.label
    return Path(label).stem if label.endswith(".mcap") else label.replace("/", "-")
