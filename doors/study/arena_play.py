"""`animalcat arena play`: a person plays arenas, in the browser."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Annotated

import typer

from animalcat.arena_configs.builds import NEWEST, Build
from animalcat.arena_configs.draws import OWN, UNITY, UnityDraws
from animalcat.arena_configs.model import Arena, ArenaError
from animalcat.cli.arena.commands import BuildName, Number, Rng, Seed, chance_of, episodes_of
from animalcat.cli.arena.files import named_files
from animalcat.cli.shared.common import without
from animalcat.cli.shared.output import fail, say
from animalcat.cli.shared.page import serve_page
from animalcat.cli.shared.remote import data_folder, same_place
from animalcat.doors.study.game import Game, GameShow
from animalcat.doors.study.play_page import person_session, playing_alone


@without("--server", "--json")
def play(
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="An arena file, or a folder.", show_default=False),
    ],
    number: Number = None,
    seed: Seed = 0,
    rng: Rng = OWN,
    build: BuildName = NEWEST,
    resolution: Annotated[
        int,
        typer.Option(
            metavar="PIXELS", min=8, max=512, help="Width and height of the picture, in pixels."
        ),
    ] = 256,
    port: Annotated[
        int,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65535,
            help="The port of the page on this machine. 0 takes any free one.",
        ),
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Play arenas yourself, with the keyboard.

    Several arenas, of a file or of a folder, come one after another: R goes on to the next one when
    an episode is over, and begins the same one again before that. Every episode is recorded. With
    --rng unity each draws on where the one before ended, as the episodes of a build's process do;
    otherwise each takes the next seed.
    """
    chance = chance_of(rng, seed, build)
    if number is not None and path.is_dir():
        fail(f"--arena {number}: {path} is a folder; name one of its files")
    arenas = [
        episode
        for file, name in named_files([path])
        for episode in episodes_of(file, PurePosixPath(name).name, number, chance.build)
    ]
    if len(arenas) > 1:
        say(f"{len(arenas)} arenas, one after another")
    play_arena(
        arenas,
        path.resolve().name if path.is_dir() else arenas[0][0],
        seed=seed,
        build=chance.build,
        draws=UnityDraws(seed, chance.build) if rng == UNITY else None,
        resolution=resolution,
        port=port,
        browser=browser,
        now=datetime.now(UTC),
    )


def play_arena(
    arenas: Sequence[tuple[str, Arena]],
    title: str,
    *,
    seed: int,
    build: Build,
    draws: UnityDraws | None,
    resolution: int,
    port: int,
    browser: bool,
    now: datetime,
) -> None:
    """Let a person play until they leave, and say where the recordings are."""
    home = data_folder().absolute()
    session = person_session(title, now)
    (instance, arena), *others = arenas

    def game() -> Game:
        return Game(
            arena,
            seed,
            session=session,
            instance=instance,
            data=home,
            others=others,
            resolution=resolution,
            build=build,
            draws=draws,
        )

    try:
        show = GameShow(game())  # what cannot be built is said before the page is opened
        serve_page(playing_alone(lambda: show, title), "play", port, browser)
    except ArenaError as error:
        fail(f"{title}: {error}")
    except OSError as error:
        place = f"127.0.0.1:{port}" if error.filename is None else error.filename
        fail(f"{place}: {error.strerror or error}")
    folder = home / "recordings" / session
    if folder.is_dir():
        say(f"recordings: {folder}")
        where = same_place()
        say(f"again:      animalcat episode replay {session} --verify{where}")
    else:
        say("nothing was played, so nothing is recorded")
