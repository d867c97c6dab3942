"""`animalcat unity`: make ready what plays arenas on real Unity builds, and try it."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from animalcat.arena_configs.model import Arena, Item, Vector3
from animalcat.cli.shared.common import common, without
from animalcat.cli.shared.output import (
    BAD_INPUT,
    FAILED,
    MISSING,
    complain,
    fail,
    print_json,
    say,
    status,
)
from animalcat.envs.backends import AUTOMATIC, make_environment
from animalcat.envs.types import ObservationSpec, Phase
from animalcat.envs.unity.environment import UnityEnvironment
from animalcat.envs.unity.process import UnityFault
from animalcat.envs.unity.settings import (
    UnityError,
    UnitySettings,
    executable,
    settings_file,
    store,
)
from animalcat.envs.unity.setup import client_versions, download_build, make_interpreter

app = typer.Typer(help="Set up and try real Unity builds.", no_args_is_help=True)

FORWARD = 3


@app.command()
@without("--server", "--data")
def setup(
    python: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="The Python interpreter that the environment is made from.",
            show_default="this one",
        ),
    ] = None,
    animalai: Annotated[
        str,
        typer.Option(
            metavar="VERSION",
            help="The version of the package animalai.",
            show_default="the newest that the interpreter runs",
        ),
    ] = "",
    build: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="The Unity build that unity:auto stands for from now on."
        ),
    ] = None,
    download: Annotated[
        bool, typer.Option(help="Download a build of some 400 MB where none is found.")
    ] = True,
    check: Annotated[
        str,
        typer.Option(
            metavar="BACKEND",
            help="Only play one small arena on this build, unity:auto or unity:PATH, and say "
            "whether it works, and how fast.",
            show_default="none",
        ),
    ] = "",
) -> None:
    """Set up what plays arenas on Unity builds.

    That is a Python environment that drives builds, and a build, which is found or downloaded.
    """
    if check:
        _try(check)
        return
    try:
        given = None if build is None else executable(build)
        with status("animalcat unity setup") as tell:
            interpreter = make_interpreter(python or Path(sys.executable), animalai, tell)
            store(python=str(interpreter))
            tell("looking for a build")
            note = ""
            try:
                player = given or _find_build(interpreter, download)
            except UnityError as error:
                player, note = None, str(error)
        if player is not None:
            store(build=str(player))
    except UnityError as error:
        fail(str(error), BAD_INPUT)
    _report(UnitySettings())
    if note:
        complain(note)
        raise typer.Exit(MISSING)


def _try(backend: str) -> None:
    """Play one small arena on a Unity build, and print how fast it is."""
    if backend == "sim":
        fail(f"sim is not a Unity build; name one: {AUTOMATIC} or unity:PATH")
    began = time.perf_counter()
    try:
        with status(f"starting {backend}"):
            environment = make_environment(backend, ObservationSpec(None))
            assert isinstance(environment, UnityEnvironment)
            try:
                step = environment.load(_arena(), 0)
                started = time.perf_counter()
                decisions = 0
                while step.phase is not Phase.LAST:
                    step = environment.step(FORWARD)
                    decisions += 1
                ended = time.perf_counter()
                versions = environment.versions
            finally:
                environment.close()
    except ValueError as error:
        fail(str(error), BAD_INPUT)
    except UnityFault as fault:
        fail(str(fault), FAILED)
    assert step.ended_by is not None
    result: dict[str, Any] = {
        "backend": backend,
        "start_seconds": round(started - began, 2),
        "decisions": decisions,
        "decisions_per_second": round(decisions / (ended - started), 1),
        "ended_by": step.ended_by.name.lower(),
        "versions": versions,
    }
    _print(result)


def _arena() -> Arena:
    """A goal straight ahead."""
    agent = Item(name="Agent", positions=(Vector3(x=20, z=5),), rotations=(0.0,))
    size = Vector3(x=2, y=2, z=2)
    goal = Item(name="GoodGoal", positions=(Vector3(x=20, z=25),), rotations=(0.0,), sizes=(size,))
    return Arena(time_limit=100, items=(agent, goal))


def _find_build(python: Path, download: bool) -> Path | None:
    """A build that is there, or one that is downloaded."""
    try:
        return UnitySettings().find_build()
    except UnityError:
        return executable(download_build(python)) if download else None


def _report(settings: UnitySettings) -> None:
    build, why = None, ""
    try:
        build = settings.find_build()
    except UnityError as error:
        why = str(error)
    interpreter = settings.interpreter()
    result: dict[str, Any] = {
        "python": str(interpreter),
        "versions": client_versions(interpreter),
        AUTOMATIC: build and str(build),
        "logs": str(settings.log_folder),
        "settings": str(settings_file()),
    }
    if why and not common().as_json:
        result[AUTOMATIC] = why
    _print(result)


def _print(result: dict[str, Any]) -> None:
    if common().as_json:
        print_json(result)
        return
    for key, value in result.items():
        shown = ", ".join(f"{k} {v}" for k, v in value.items()) if key == "versions" else value
        say(f"{key:21} {shown}")
