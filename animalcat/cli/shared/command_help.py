"""How the help page of a command looks: options in groups where there are many."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

PLAYED: Final = "What is played"
AGENT: Final = "Agent"
CHOICE: Final = "How arenas are chosen"
END: Final = "When it ends"
RUNNING: Final = "How it is played and checked"
OUTPUT: Final = "Server and output"
"""Groups of options, in the order of their first; for `rich_help_panel`."""
FEW: Final = 8
"""So many options, --help not counted, are one list."""
_REST: Final = "Options"


class GroupedCommand(TyperCommand):
    """A command whose many options are listed in groups, by their `rich_help_panel`.

    Rich would draw boxes, in which long names leave some twenty columns of a terminal to the words.
    A command that takes a server's address takes also what that server has to be shown.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        if any(_SERVER & {*parameter.opts} for parameter in self.params):
            self.params += _credentials()

    def collect_usage_pieces(self, ctx: typer.Context) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """What follows the command's name; what must be given is not put in braces."""
        return [
            piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)
        ]

    def format_options(self, ctx: typer.Context, formatter: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Write what the command takes, in the order of its parameters; --help comes last."""
        groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
        options = [p for p in self.params if p.param_type_name == "option"]
        grouped = len(options) > FEW
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is None:
                continue
            group = getattr(parameter, "rich_help_panel", None) if grouped else None
            names, words = record
            if parameter.param_type_name == "argument":
                group, names = "Arguments", _TYPE.sub("", names)
            groups[group or _REST].append((names, _DEFAULT.sub(r"\1", words)))
        for group, records in sorted(groups.items(), key=lambda item: item[0] == _REST):
            with formatter.section(group):
                formatter.write_dl(records)


_TYPE: Final = re.compile(r" <[^>]*>$")
"""A type after the name of an argument, which says nothing that the name does not."""
_DEFAULT: Final = re.compile(r"(?<=\[default: )\((.*?)\)(?=[;\]])")
"""A default in words, which typer puts into brackets of its own."""


def unused() -> None:
    """Stands for a command that this call does not name, so that its module is not imported."""


_SERVER: Final = {"--server", "--connect"}
"""Options that name a server."""
TOKEN: Final = "ANIMALCAT_TOKEN"
CA: Final = "ANIMALCAT_CA"
"""Environment variables from which every client takes what it shows to a server."""


def _keep(variable: str) -> Callable[[str | None], None]:
    def keep(value: str | None) -> None:
        if value is not None:
            os.environ[variable] = value

    return keep


def _shown(
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            help="What proves to the server who you are, or @FILE to read it from a file, so that "
            f"others on this machine do not see it; {TOKEN} says the same. A server of this "
            "machine needs none as a rule.",
            expose_value=False,
            callback=_keep(TOKEN),
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    ca: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="How to know a server that speaks TLS: a file with its certificate, or the "
            f"fingerprint sha256:... that it prints; {CA} says the same.",
            expose_value=False,
            callback=_keep(CA),
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> None:
    """Stands for every command that names a server."""


@cache
def _credentials() -> list[Any]:
    """The options of `_shown`, as typer makes them."""
    app = typer.Typer(add_completion=False)
    app.command()(_shown)
    return [p for p in typer.main.get_command(app).params if p.name in ("token", "ca")]


SameAgent = Annotated[
    bool,
    typer.Option(
        "--same-agent",
        help="Go on although the agent is not what it was when the session began, or nobody can "
        "tell: you say that it is the same one, and the profile states it.",
        rich_help_panel=AGENT,
    ),
]
