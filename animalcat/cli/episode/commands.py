"""`animalcat episode`: list recorded episodes, and play them again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from animalcat.cli.shared.output import print_rows
from animalcat.cli.shared.remote import AsJson, Data, Server, client_for
from animalcat.client.values import Episode

app = typer.Typer(help="List and replay recorded episodes.", no_args_is_help=True)


@app.command("list")
def list_(
    session: Annotated[
        str, typer.Argument(help="Session, also one of `arena play`; all where left out.")
    ] = "",
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List the episodes of a session in the order they were played, all attempts.

    What a person played has the reason "person".
    """
    with client_for(server, data) as client:
        rows = [_row(episode) for episode in client.episodes(session or None)]
    columns = [
        "session",
        "episode",
        "attempt",
        "instance",
        "outcome",
        "return",
        "steps",
        "ended_by",
        "reason",
    ]
    print_rows(rows, columns, as_json=as_json)


@app.command()
def replay(
    what: Annotated[str, typer.Argument(metavar="FILE.mcap|SESSION", help="What to play again.")],
    episode: Annotated[
        str, typer.Argument(help="NUMBER, or NUMBER-ATTEMPT; all of the session where left out.")
    ] = "",
    check: Annotated[
        bool, typer.Option("--verify", help="Compare every recorded number; 1 if one differs.")
    ] = False,
    pictures: Annotated[
        Path | None, typer.Option("--frames", help="Folder for what the agent saw, as PNG.")
    ] = None,
    resolution: Annotated[
        int, typer.Option(min=4, max=512, help="Side of the pictures in pixels.")
    ] = 84,
    backend: Annotated[
        str,
        typer.Option(help="What plays it again; by default its own, and sim for a Unity build's."),
    ] = "",
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show recorded episodes; verify them or render them by playing them again.

    Exits with 1 where a recording is damaged, or does not come out again under --verify.
    """
    # Lists need neither recordings nor a simulator, which come with the server extra.
    from animalcat.cli.episode.replay import play_again

    play_again(
        what,
        episode,
        check=check,
        pictures=pictures,
        resolution=resolution,
        backend=backend,
        server=server,
        data=data,
        as_json=as_json,
    )


def _row(episode: Episode) -> dict[str, Any]:
    return {
        "session": episode.session,
        "episode": episode.number,
        "attempt": episode.attempt,
        "instance": episode.instance,
        "outcome": episode.outcome or "open",
        "return": episode.episode_return,
        "steps": episode.steps,
        "ended_by": episode.ended_by or "",
        "reason": episode.decision.reason or "",
        "score": episode.decision.score,
        "propensity": episode.decision.propensity,
        "predicted": episode.decision.predicted,
        "margins": dict(episode.decision.margins),
        "cause": episode.cause,
    }
