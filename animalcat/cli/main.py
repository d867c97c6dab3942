"""Entry point of the command line: a noun's module is imported only when it is used."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from traceback import format_exception
from typing import Annotated, Any, Final

import typer

from animalcat.cli.shared.command_help import (
    CA,
    TOKEN,
    GroupedCommand,
    WholeCommandLine,
    keep_in,
    split_words,
    stand_in,
)
from animalcat.cli.shared.common import Common, keep_common
from animalcat.cli.shared.output import BAD_INPUT, FAILED, MISSING, complain, say, spinner
from animalcat.extending.doorways import entries
from animalcat.extending.installing import install
from animalcat.wire.protocol import version

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "demo": (
        "animalcat.cli.demo",
        "Measure an agent whose limit is known, as a first look.",
    ),
    "doctor": (
        "animalcat.cli.doctor",
        "Look for everything that animalcat needs, and say how to get it.",
    ),
    "serve": ("animalcat.cli.serve", "Serve a data directory to agents, operators and viewers."),
    "server": ("animalcat.cli.server", "Show the state of a server."),
    "data": (
        "animalcat.cli.data",
        "Show how large a store is, check it, back it up, and make room.",
    ),
    "token": (
        "animalcat.cli.token",
        "Make, list and revoke tokens, with which callers of a server prove who they are.",
    ),
    "delete": ("animalcat.cli.delete", "Show what deleting something would lose, and delete it."),
    "audit": ("animalcat.cli.audit", "Show who did what on a server."),
    "session": (
        "animalcat.cli.session.commands",
        "Measure an agent, and list, show, resume and cancel sessions.",
    ),
    "campaign": (
        "animalcat.cli.campaign",
        "Measure several agents on one battery and compare them.",
    ),
    "profile": ("animalcat.cli.profile", "Show, draw and export profiles and outcomes."),
    "episode": (
        "animalcat.cli.episode.commands",
        "List, explain, replay and export recorded episodes.",
    ),
    "agent": (
        "animalcat.cli.agent",
        "Run an agent on a server elsewhere, and list agents and their limits.",
    ),
    "arena": ("animalcat.cli.arena.commands", "Make, check, measure, draw and play arenas."),
    "battery": (
        "animalcat.cli.battery",
        "Show, build and import batteries, which are sets of arenas.",
    ),
    "layout": (
        "animalcat.cli.layout.commands",
        "List, show, fit and check measurement layouts.",
    ),
    "unity": ("animalcat.cli.unity.commands", "Set up and try real Unity builds."),
}
"""The core's commands -> their modules, and their help lines.

A module holds one `command`, or a Typer `app` of verbs, or `app_for` that makes one for a verb.
"""
_WITHOUT_SERVER: Final = frozenset({"layout", "profile"})
"""Commands that work with files alone."""
_LEARNERS: Final = frozenset(
    {
        *("arviz", "h5netcdf", "matplotlib", "numba", "nutpie", "pandas", "pyarrow", "pymc"),
        *("scipy", "xarray", "yaml"),
    }
)
"""Packages that the extra `learner` brings."""


def build(argv: list[str]) -> typer.Typer:
    """The command line for one call: the noun that it names is real, the others are help lines.

    Args:
        argv: Arguments after the program's name.
    """
    app = typer.Typer(
        help="Measure what agents can do in Animal-AI, by computerised adaptive testing.",
        no_args_is_help=True,
        cls=WholeCommandLine,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    noun, verb = [*(word for word in split_words(argv)[1] if not word.startswith("-")), "", ""][:2]
    for name, text in nouns().items():
        if name != noun:
            app.command(name, help=text)(stand_in)
            continue
        command = _command(name, verb)
        if isinstance(command, typer.Typer):
            for one in command.registered_commands:
                one.cls = GroupedCommand
            app.add_typer(command, name=name, help=text)
        else:
            app.command(name, cls=GroupedCommand)(command)
    return app


def nouns() -> dict[str, str]:
    """The first words of all commands, those of doors too -> their help lines, in order."""
    of_doors = {name: way.help for name, way in entries("commands").items() if not way.verb}
    return {name: text for name, (_, text) in COMMANDS.items()} | of_doors


def _command(noun: str, verb: str) -> typer.Typer | Callable[..., None]:
    """The command of a noun, or its verbs, of which doors may add some."""
    ways = entries("commands")
    if noun not in COMMANDS:
        return _load(noun, ways[noun].load)
    module: Any = _load(noun, partial(importlib.import_module, COMMANDS[noun][0]))
    if hasattr(module, "command"):
        return module.command
    verbs: typer.Typer = module.app_for(verb) if hasattr(module, "app_for") else module.app
    added = {way.verb: way for way in ways.values() if way.noun == noun}
    kept = [one for one in verbs.registered_commands if one.name not in added]
    verbs.registered_commands = kept  # those of a call before, in this process, too
    for name, way in added.items():
        if name == verb:
            verbs.command(name)(_load(f"{noun} {name}", way.load))
        else:
            verbs.command(name, help=way.help)(stand_in)
    return verbs


def main() -> None:
    """Run the command line."""
    if _completes():  # shells take a line for each word, and rich would break what is said of it
        os.environ["COLUMNS"] = "10000"
    try:
        with nullcontext() if _completes() else spinner("loading animalcat"):  # imports take long
            app = build(_words())
        app(prog_name="animalcat")
    except ModuleNotFoundError as error:
        raise SystemExit(_missing("this command", error)) from None
    except Exception as error:  # noqa: BLE001  a traceback has words of strangers too
        from animalcat.errors import AnimalcatError

        if not isinstance(error, AnimalcatError):
            say("".join(format_exception(error)), err=True, nl=False)
            raise SystemExit(FAILED) from None
        complain(str(error))  # of the settings, say, which nearly every command reads
        raise SystemExit(BAD_INPUT) from None


def _words() -> list[str]:
    """Arguments of this call, or those that a shell wants to have completed.

    Bash hands them over in a variable of its own, zsh, fish and PowerShell in one of typer's.
    """
    if not _completes():
        return sys.argv[1:]
    asked = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    return asked.split()[1:]


def _completes() -> bool:
    return "_ANIMALCAT_COMPLETE" in os.environ


def _load(name: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except ModuleNotFoundError as error:
        raise SystemExit(_missing(f"`animalcat {name}`", error)) from None


def _missing(what: str, error: ModuleNotFoundError) -> int:
    """Complain of a package that is not installed; the exit code. Our own are no such matter."""
    package = (error.name or "").split(".")[0]
    if package in ("", "animalcat"):
        raise error
    light = set(_words()[:1]) & _WITHOUT_SERVER and package in _LEARNERS
    extra = "learner" if light else "server"
    complain(
        f"{what} needs the package {package}, which is not installed. Install the {extra} extra: "
        f"{install(extra)}; or let a server do it, if the command has --server"
    )
    return MISSING


def _version(wanted: bool) -> None:
    if wanted:
        say(f"animalcat {version()}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_version, help="Show the version."),
    ] = False,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Ask this server. Without it, the server that works on the data directory is "
            "asked, or a private one that ends with the last command that uses it.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The data directory. Without it, ANIMALCAT_HOME names it, and otherwise it is "
            ".animalcat.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            help="Your token for a server, or @FILE to read it from a file, so that "
            f"others on this machine do not see it; {TOKEN} does the same. A server of "
            "this machine usually needs none.",
            callback=keep_in(TOKEN),
        ),
    ] = None,
    ca: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="How to recognise a server that speaks TLS: a file with its certificate, or the "
            f"fingerprint sha256:... that it prints; {CA} says the same.",
            callback=keep_in(CA),
        ),
    ] = None,
) -> None:
    """Options of all commands, which stand before or behind them."""
    keep_common(Common(server, data, as_json))
