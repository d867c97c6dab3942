"""Options of commands that read outcomes from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

As: TypeAlias = Literal["successes", "returns"]
"""What numbers in a table of outcomes are."""
AsOption = Annotated[
    As | None,
    typer.Option(
        "--as",
        help="What the numbers of the table of outcomes are: successes (1) and failures (0), or "
        "returns, which pass where they are above the pass mark.",
        show_default="returns, where they cannot be successes",
        rich_help_panel="Outcomes",
    ),
]
KeepDrawn = Annotated[
    bool,
    typer.Option(
        "--keep-drawn",
        help="Count outcomes on arenas that leave positions, rotations or sizes to chance, by the "
        "demands of our own draw, which are not those of what was played.",
        rich_help_panel="Outcomes",
    ),
]
PassMarks = Annotated[
    Path | None,
    typer.Option(
        metavar="TABLE.csv",
        help="With final rewards: the reward above which an arena or item is passed, in columns "
        "`instance` and `pass_mark`.",
        show_default="what arena files say, where there are any",
        rich_help_panel="Outcomes",
    ),
]
Seed = Annotated[
    int,
    typer.Option(metavar="NUMBER", min=0, help="The seed of everything that is left to chance."),
]
