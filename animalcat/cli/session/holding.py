"""`animalcat session pause` and `invalidate`: hold a session, and take an outcome back."""

from __future__ import annotations

from typing import Annotated

import typer

from animalcat.cli.shared.output import print_json
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
)


def pause(
    session: SessionArgument, server: Server = None, data: Data = None, as_json: AsJson = False
) -> None:
    """Let a session begin nothing more until it is resumed.

    What is being played is played to its end.
    """
    with client_for(server, data) as client:
        found = client.pause_session(session)
    if as_json:
        print_json(session_row(found))
    else:
        typer.echo(f"{found.id} is paused; go on with: animalcat session resume {found.id}")


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
        found = client.invalidate_episode(session, number, reason, attempt)
    if as_json:
        print_json(episode_row(found))
    else:
        typer.echo(f"{session}/{found.number}-{found.attempt} no longer counts: {found.invalid}")
