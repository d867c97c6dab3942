"""How the help page of a command looks: options in groups where there are many."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer
from typer.core import TyperCommand, TyperGroup

from animalcat.cli.shared.common import common, lacks
from animalcat.cli.shared.output import fail, say

PLAYED: Final = "What is played"
AGENT: Final = "Agent"
CHOICE: Final = "How arenas are chosen"
END: Final = "When it ends"
RUNNING: Final = "How it is played and checked"
OUTPUT: Final = "Output"
"""Groups of options, in the order of their first; for `rich_help_panel`."""
FEW: Final = 8
"""So many options, --help not counted, are one list."""
_REST: Final = "Options"
_WRITTEN: Final = ("output", "out")
"""Parameters that name what a command writes."""


class GroupedCommand(TyperCommand):
    """A command whose many options are listed in groups, by their `rich_help_panel`.

    Rich would draw boxes, in which long names leave some twenty columns of a terminal to the words.
    Where some options are hidden, --help-all shows them too.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        if any(getattr(parameter, "hidden", False) for parameter in self.params):
            self.params.append(_help_all())

    def collect_usage_pieces(self, ctx: typer.Context) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """What follows the command's name; what must be given is not put in braces."""
        return [
            piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)
        ]

    def invoke(self, ctx: typer.Context) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Run the command, unless it is given a common option that means nothing to it."""
        for name in common().given():
            if name in lacks(self.callback):
                fail(f"{name} means nothing to `{ctx.command_path}`; leave it out")
        _insist_output_is_not_read(ctx.params)
        return super().invoke(ctx)

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
        taken = ", ".join(name for name in ANYWHERE if name not in lacks(self.callback))
        formatter.write_paragraph()
        formatter.write_text(f"Besides: {taken} (`animalcat --help` says what they do).")


_TYPE: Final = re.compile(r" <[^>]*>$")
"""A type after the name of an argument, which says nothing that the name does not."""
_DEFAULT: Final = re.compile(r"(?<=\[default: )\((.*?)\)(?=[;\]])")
"""A default in words, which typer puts into brackets of its own."""


def _show_all(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        for parameter in ctx.command.params:
            vars(parameter)["hidden"] = False
        say(ctx.get_help())
        ctx.exit()


def _takes_help_all(
    wanted: Annotated[
        bool,
        typer.Option(
            "--help-all",
            is_eager=True,
            expose_value=False,
            callback=_show_all,
            help="Show this page with all options, including rare ones.",
        ),
    ] = False,
) -> None:
    """Stands for every command that has rarer options."""


def _help_all() -> Any:
    """The option of `_takes_help_all`, as typer makes it."""
    app = typer.Typer(add_completion=False)
    app.command()(_takes_help_all)
    return typer.main.get_command(app).params[0]


def stand_in() -> None:
    """Stands for a command that this call does not name, so that its module is not imported."""


TOKEN: Final = "ANIMALCAT_TOKEN"
CA: Final = "ANIMALCAT_CA"
"""Environment variables from which every client takes what it shows to a server."""
ANYWHERE: Final = {"--server": 1, "--data": 1, "--json": 0, "--token": 1, "--ca": 1}
"""Options of the whole command line, which may stand behind its commands, and their values."""


def split_words(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options of the whole command line with their values, and all other words."""
    own, others, left = list[str](), list[str](), iter(words)
    for word in left:
        if word == "--":
            return own, [*others, word, *left]
        name, assigned, _ = word.partition("=")
        if name not in ANYWHERE:
            others.append(word)
        else:
            own += [word, *islice(left, 0 if assigned else ANYWHERE[name])]
    return own, others


class WholeCommandLine(TyperGroup):
    """All commands, whose common options may stand anywhere."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Read the common options first, wherever they stand."""
        own, others = split_words(args)
        return super().parse_args(ctx, [*own, *others])


def keep_in(variable: str) -> Callable[[str | None], None]:
    """A callback that keeps the value of an option in a variable of the environment."""

    def keep(value: str | None) -> None:
        if value is not None:
            os.environ[variable] = value

    return keep


PlayedSession = Annotated[
    str,
    typer.Option(
        metavar="SESSION",
        help="The session to play. It may be left out when only one session waits for an agent.",
    ),
]
SameAgent = Annotated[
    bool,
    typer.Option(
        "--same-agent",
        help="Go on although the agent has changed since the session began, or may have: "
        "you declare it the same agent, and the profile states it.",
        rich_help_panel=AGENT,
    ),
]


def _insist_output_is_not_read(given: Mapping[str, Any]) -> None:
    """End the command where it would write over a file that it is to read."""
    read = [v for name, value in given.items() if name not in _WRITTEN for v in _each(value)]
    for written in filter(None, map(given.get, _WRITTEN)):
        for path in read:
            if os.path.isfile(path) and os.path.exists(written) and os.path.samefile(path, written):
                fail(f"-o {written} is what the command reads; name another file")


def _each(value: Any) -> list[str | Path]:
    """A parameter's values, as far as they may name files."""
    several = isinstance(value, list | tuple)
    values: Sequence[Any] = cast("Sequence[Any]", value) if several else [value]
    return [one for one in values if isinstance(one, str | Path)]
