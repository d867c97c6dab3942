"""`animalcat session export`: a session as a log of inspect_ai."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from animalcat.cli.shared.common import without
from animalcat.cli.shared.output import MISSING, fail, status, wrote
from animalcat.cli.shared.remote import SessionArgument, client_for
from animalcat.client import Client
from animalcat.doors.inspect.session_log import Form, inspect_log
from animalcat.errors import AnimalcatError
from animalcat.machine.files import write_whole
from animalcat.values import Episode, RecordedStep


@without("--json")
def export(
    session: SessionArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to: .eval is inspect_ai's compressed form, .json its plain one.",
            show_default="SESSION.eval",
        ),
    ] = None,
    remarks: Annotated[
        bool,
        typer.Option(help="Write what the agent remarked as messages; recordings are read for it."),
    ] = True,
) -> None:
    """Write a session as a log of inspect_ai, which `inspect view` opens.

    Each attempt at an episode is a sample with its demands, its outcome and what was predicted. The
    profile is in the log's metadata. It needs the extra `inspect`.
    """
    path = output or Path(f"{session.rpartition('/')[2]}.eval")
    kinds: dict[str, Form] = {".eval": "eval", ".json": "json"}
    if path.suffix not in kinds:
        fail(f"{path}: call it .eval or .json, which says the form")
    with client_for() as client, status("reading the session") as say:
        exported = client.get_session(session)
        profile = client.profile(session)
        outcomes = client.export_profile(session, "csv")
        episodes = client.episodes(session)
        said = _remarks(client, episodes) if remarks else {}
        seconds = {_key(episode): episode.seconds for episode in episodes}
        say("writing the log")
        try:
            content = inspect_log(exported, profile, outcomes, said, seconds, kinds[path.suffix])
        except ImportError as error:
            fail(str(error), MISSING)
        write_whole(path, content)
    wrote("log", path)


def _key(episode: Episode) -> str:
    return f"{episode.number}-{episode.attempt}"


def _remarks(client: Client, episodes: Sequence[Episode]) -> dict[str, list[str]]:
    """What the agent remarked in each attempt; an attempt without a recording has none."""
    remarks: dict[str, list[str]] = {}
    for episode in episodes:
        words = remarks.setdefault(_key(episode), [])
        try:
            for part in client.stream_episode(episode.session, episode.number, episode.attempt):
                if isinstance(part, RecordedStep):
                    words += [f"step {part.step}: {note.text}" for note in part.notes if note.text]
        except AnimalcatError as error:
            if error.code not in ("UNKNOWN_EPISODE", "RECORDING_DAMAGED"):
                raise
    return remarks
