"""Options of commands that read outcomes on arenas from a file."""

from __future__ import annotations

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
