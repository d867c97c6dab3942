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
        str,
        typer.Argument(
            metavar="SESSION",
            help="The id of a session, or of one that `arena play` recorded.",
            show_default="every session",
        ),
    ] = "",
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List the episodes of a session in the order they were played.

    An episode that was repeated has several attempts, and all are listed. What a person played has
    the reason "person".
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
    what: Annotated[
        str,
        typer.Argument(
            metavar="SESSION|FILE.mcap", help="The id of a session, or the file of one recording."
        ),
    ],
    episode: Annotated[
        str,
        typer.Argument(
            metavar="NUMBER[-ATTEMPT]",
            help="Only this episode of the session; its last attempt if none is named.",
            show_default="every episode",
        ),
    ] = "",
    check: Annotated[
        bool, typer.Option("--verify", help="Play it again and compare every recorded number.")
    ] = False,
    pictures: Annotated[
        Path | None,
        typer.Option(
            "--frames",
            metavar="FOLDER",
            help="Draw what the agent saw, as PNG files in this folder.",
        ),
    ] = None,
    resolution: Annotated[
        int,
        typer.Option(
            metavar="PIXELS", min=4, max=512, help="How long the sides of the pictures are."
        ),
    ] = 84,
    backend: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What plays it again: sim, unity:auto or unity:PATH.",
            show_default="as recorded, and sim for a Unity build",
        ),
    ] = "",
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show recorded episodes, and play them again.

    They are played again to verify them (--verify) or to draw pictures (--frames). The exit code is
    1 when a recording is damaged, or when it does not come out the same under --verify.
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
