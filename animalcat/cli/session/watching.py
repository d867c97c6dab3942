"""`animalcat session show --follow`: follow a session that runs elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable

import typer

from animalcat.cli.session.live import LiveSession
from animalcat.cli.shared.common import common
from animalcat.cli.shared.output import FAILED, UNREACHABLE, console, fail, say
from animalcat.cli.shared.remote import (
    client_for,
    data_folder,
    episode_row,
    session_row,
)
from animalcat.cli.shared.unplayable import fail_if_unplayable
from animalcat.client import Client
from animalcat.values import Session, SessionEvent


def watch(session: str) -> None:
    """Follow a session that somebody else runs, until it is over; exit code 1 if it fails."""
    if not common().server:
        from animalcat.service.host.lock import running_server

        home = data_folder().absolute()
        if running_server(home) is None:
            fail(
                f"no server works on {home}, so nothing is played there. Name one with --server, "
                f"or see how far it is: animalcat session show {session}",
                UNREACHABLE,
            )
    with client_for() as client:
        watched = client.get_session(session)
        try:
            watched = _follow(client, watched)
        except KeyboardInterrupt:
            say("stopped watching; the session goes on", err=True)
            return
        if not common().as_json:
            console().print(
                f"{watched.id}: {watched.state}: {watched.reason}; {watched.successes} of "
                f"{watched.episodes} episodes passed",
                highlight=False,
            )
        if watched.state == "finished":
            fail_if_unplayable(client, [watched])
    if watched.state != "finished":
        raise typer.Exit(FAILED)


def _follow(client: Client, session: Session) -> Session:
    """Show every event until the session is over; the session then."""
    last = session

    async def follow(tell: Callable[[SessionEvent], None]) -> None:
        nonlocal last
        async for event in client.aio.watch_session(session):
            last = event.session
            tell(event)

    if common().as_json:
        client.run(follow(_print_event))
        return last
    with LiveSession(session) as shown:
        client.run(follow(shown.tell))
    return last


def _print_event(event: SessionEvent) -> None:
    """Print a line of JSON."""
    ended = None if event.episode is None else episode_row(event.episode)
    line = {"session": session_row(event.session), "ended": ended}
    say(json.dumps(line, ensure_ascii=False))
