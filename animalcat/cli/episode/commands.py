"""`animalcat episode`: list recorded episodes, explain them, play them again, and export them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from animalcat.cli.episode.export import Asked, export_as, forms
from animalcat.cli.shared.output import print_rows, some
from animalcat.cli.shared.remote import (
    EpisodeArgument,
    Every,
    Limit,
    client_for,
    episode_row,
)
from animalcat.cli.shared.table import Column

Backend = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="What plays it again: sim, unity:auto or unity:PATH.",
        show_default="as recorded, and sim for a Unity build",
    ),
]
app = typer.Typer(help="List, explain, replay and export recorded episodes.", no_args_is_help=True)


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
    every: Every = False,
    limit: Limit = None,
) -> None:
    """List the episodes of a session in the order they were played.

    An episode that was repeated has several attempts, and all are listed. What a person played has
    the reason "person".
    """
    columns = [
        Column("session", 9 if session else 0),
        "episode",
        Column("attempt", 4),
        "instance",
        Column("outcome", 1),
        Column("return", 2),
        Column("steps", 5),
        Column("ended_by", 3),
        Column("reason", 6),
    ]
    with client_for() as client:
        listed = some(lambda most: client.iter_episodes(session or None, limit=most), every, limit)
        print_rows(map(episode_row, listed), columns)


Recorded = Annotated[
    str,
    typer.Argument(
        metavar="SESSION|FILE.mcap", help="The id of a session, or the file of one recording."
    ),
]
OneEpisode = Annotated[
    str,
    typer.Argument(
        metavar="NUMBER[-ATTEMPT]",
        help="Only this episode of the session; its last attempt if none is named.",
        show_default="every episode",
    ),
]


@app.command()
def explain(
    episode: EpisodeArgument,
) -> None:
    """Explain why an episode was failed or passed.

    What its arena asked for stands beside what the agent has, with what most likely decided. It
    predicts how the same arena without that demand would end, and names the arena that best
    distinguishes the explanations. The posterior uses all outcomes of the session.
    """
    from animalcat.cli.episode.explaining import explain_one

    explain_one(episode)


@app.command()
def replay(
    what: Recorded,
    episode: OneEpisode = "",
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
    video: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw one episode as a video, .mp4 or .gif: what the agent saw, and a map with "
            "its path.",
        ),
    ] = None,
    speed: Annotated[
        float,
        typer.Option(metavar="FACTOR", min=0.01, max=100.0, help="How fast the video plays."),
    ] = 1.0,
    play: Annotated[
        bool,
        typer.Option(
            "--play", help="Show one episode in the browser, with a time line to move along."
        ),
    ] = False,
    port: Annotated[
        int,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65535,
            help="With --play: the port of the page on this machine. 0 takes any free one.",
        ),
    ] = 0,
    browser: Annotated[bool, typer.Option(help="With --play: open the page in a browser.")] = True,
    resolution: Annotated[
        int | None,
        typer.Option(
            metavar="PIXELS",
            min=4,
            max=512,
            help="Width and height of the pictures, in pixels.",
            show_default="84, and 256 with --play",
        ),
    ] = None,
    backend: Backend = "",
) -> None:
    """Show recorded episodes, and play them again.

    They are played again to verify them (--verify) or to draw them (--frames, --video, --play). The
    exit code is 1 when a recording is damaged, or when it differs under
    --verify, which compares backends too (--backend).
    """
    # Lists need neither recordings nor a simulator, which come with the server extra.
    from animalcat.cli.episode.replay import Page, play_again

    play_again(
        what,
        episode,
        check=check,
        pictures=pictures,
        video=video,
        speed=speed,
        page=Page(port, browser) if play else None,
        resolution=resolution,
        backend=backend,
    )


@app.command()
def export(
    what: Recorded,
    episode: OneEpisode = "",
    form: Annotated[
        str, typer.Option("--format", metavar="NAME", help=f"In which form. {forms()}")
    ] = "minari",
    name: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="With minari: what to call the dataset, such as animalcat/mine-v0.",
            show_default="animalcat/ and the session, and -v0",
        ),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER|FILE",
            help="With minari: the folder of datasets, which MINARI_DATASETS_PATH names to Minari. "
            "Else the folder of the files, or of one episode the .rrd file.",
            show_default="Minari's own folder; else this one",
        ),
    ] = None,
    resolution: Annotated[
        int,
        typer.Option(
            metavar="PIXELS",
            min=4,
            max=512,
            help="With rerun: width and height of images that were not recorded, in pixels.",
        ),
    ] = 84,
    backend: Backend = "",
) -> None:
    """Write recorded episodes as a dataset for learning, or as files for a viewer.

    Images are kept losslessly; those that were not recorded are drawn again.
    """
    export_as(form, Asked(what, episode, name, output, resolution, backend))
