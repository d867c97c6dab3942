"""Entry point of the command line: a noun's module is imported only when it is used."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Annotated, Final

import typer

from animalcat.cli.shared.output import MISSING, complain
from animalcat.protocol import version

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "demo": ("animalcat.cli.demo", "The main job, end to end, on this machine."),
    "doctor": ("animalcat.cli.doctor", "What is there, what is missing, and how to get it."),
    "serve": ("animalcat.cli.serve", "Start the gRPC server."),
    "session": (
        "animalcat.cli.session.commands",
        "Run, create, list, show, resume and cancel test sessions.",
    ),
    "campaign": ("animalcat.cli.campaign", "Measure several agents and compare them."),
    "profile": ("animalcat.cli.profile", "Show and export cognitive profiles."),
    "episode": ("animalcat.cli.episode.commands", "List and replay recorded episodes."),
    "agent": ("animalcat.cli.agent", "Run an agent against a server."),
    "arena": ("animalcat.cli.arena.commands", "Check, measure, draw and play arena files."),
    "battery": ("animalcat.cli.battery", "List, build and import batteries."),
    "layout": (
        "animalcat.cli.layout.commands",
        "Show, fit, check and compare measurement layouts.",
    ),
    "unity": ("animalcat.cli.unity.commands", "Set up, show and try the Unity backend."),
    "bench": ("animalcat.cli.bench", "Measure speed."),
}
"""Command -> its module, which holds a Typer `app` of verbs or one `command`; and its help line."""


def build(argv: list[str]) -> typer.Typer:
    """The command line for one call: the noun that it names is real, the others are help lines.

    Args:
        argv: Arguments after the program's name.
    """
    app = typer.Typer(
        help="Computerised adaptive testing for agents in Animal-AI.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    wanted = next((word for word in argv if not word.startswith("-")), None)
    for name, (path, text) in COMMANDS.items():
        module = _load(name, path) if name == wanted else None
        if module is not None and hasattr(module, "app"):
            app.add_typer(module.app, name=name, help=text)
        else:
            app.command(name, help=text)(module.command if module is not None else _unused)
    return app


def main() -> None:
    """Run the command line."""
    # A shell that asks for completions hands the words over in the environment.
    words = os.environ.get("COMP_WORDS", "").split() or sys.argv
    try:
        build(words[1:])(prog_name="animalcat")
    except ModuleNotFoundError as error:
        raise SystemExit(_missing("this command", error)) from None


def _load(name: str, path: str) -> ModuleType:
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        raise SystemExit(_missing(f"`animalcat {name}`", error)) from None


def _missing(what: str, error: ModuleNotFoundError) -> int:
    """Complain of a package that is not installed; the exit code. Our own are no such matter."""
    package = (error.name or "").split(".")[0]
    if package in ("", "animalcat"):
        raise error
    complain(
        f"{what} needs the package {package}, which is not installed. Install the server extra: "
        "pip install 'animalcat[server]'; or let a server do it, if the command has --server"
    )
    return MISSING


def _version(wanted: bool) -> None:
    if wanted:
        print(f"animalcat {version()}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_version, help="Show the version."),
    ] = False,
) -> None:
    """Computerised adaptive testing for agents in Animal-AI."""


def _unused() -> None:
    """Stands for a noun that this call does not name."""
