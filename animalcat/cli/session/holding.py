"""`animalcat session pause`, `judge` and `invalidate`: hold a session, and say what counts."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from animalcat.cli.shared.output import print_json, print_rows
from animalcat.cli.shared.remote import (
    AsJson,
    Data,
    EpisodeArgument,
    Server,
    SessionArgument,
    client_for,
    episode_row,
    parse_episode,
    session_row,
    timestamp,
)


def pause(
    session: SessionArgument, server: Server = None, data: Data = None, as_json: AsJson = False
) -> None:
    """Let a session begin nothing more until it is resumed.

    What is being played is played to its end.
    """
    with client_for(server, data) as client:
        paused = client.pause_session(session)
    if as_json:
        print_json(session_row(paused))
    else:
        typer.echo(f"{paused.id} is paused; go on with: animalcat session resume {paused.id}")


def note(
    session: SessionArgument,
    text: Annotated[
        str, typer.Argument(metavar="NOTE", help="The note. Without it, notes are shown.")
    ] = "",
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Take a note on a session, or show the notes that were taken.

    Notes are kept in the audit log, and change nothing else.
    """
    with client_for(server, data) as client:
        if text:
            client.note_session(session, text)
        notes = client.session_notes(session)
    rows = [
        {"when": timestamp(one.created), "subject": one.subject, "note": one.text} for one in notes
    ]
    print_rows(rows, ["when", "subject", "note"], as_json=as_json)


class RulingName(StrEnum):
    """What an episode counts as at which the agent's code failed."""

    repeat = "repeat"
    failure = "failure"
    fault = "fault"


def judge(
    session: SessionArgument,
    said: Annotated[
        RulingName,
        typer.Option(
            "--as",
            help="repeat: the same arena is played again, though the agent has seen it. failure: "
            "the episode counts as a failure. fault: it was no doing of the agent's, such as a "
            "full disk, and the arena is played again.",
        ),
    ],
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Say what the episode counts as in which the agent's code failed.

    The session is paused there until then. The profile counts what was said.
    """
    with client_for(server, data) as client:
        waits = client.get_session(session).unjudged
        judged = client.judge_failure(session, said.value)
    if as_json:
        print_json(session_row(judged))
    else:
        numbers = " and ".join(map(str, waits))
        typer.echo(
            f"episode {numbers} of {judged.id}: {said.value}; go on with: animalcat session resume "
            f"{judged.id}, or with its campaign"
        )


def invalidate(
    episode: EpisodeArgument,
    reason: Annotated[
        str, typer.Option(metavar="WORDS", help="Why the outcome does not hold; it is kept.")
    ],
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Declare the outcome of an episode invalid, and measure as if it had never been told.

    Its arena may be played again. No agent may be playing the session, and no certificate may rest
    on the outcome.
    """
    session, number, attempt = parse_episode(episode)
    with client_for(server, data) as client:
        invalid = client.invalidate_episode(session, number, reason, attempt)
    if as_json:
        print_json(episode_row(invalid))
    else:
        where = f"{session}/{invalid.number}-{invalid.attempt}"
        typer.echo(f"{where} no longer counts: {invalid.invalid}")
