"""Options of lists that say whose things they show, and the column that says it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from animalcat.cli.shared.command_help import OUTPUT
from animalcat.cli.shared.table import Column

if TYPE_CHECKING:
    from animalcat.values import OwnerFilter

Everybodys = Annotated[
    bool,
    typer.Option(
        "--everybody",
        help="Show all that you may see, and not only what is yours. On a server that asks for no "
        "token, everything is shown in any case.",
        rich_help_panel=OUTPUT,
    ),
]
OfOwner = Annotated[
    str,
    typer.Option(
        "--owner",
        metavar="SUBJECT",
        help="Show what belongs to this subject.",
        show_default="",
        rich_help_panel=OUTPUT,
    ),
]


def whose(everybodys: bool, owner: str) -> OwnerFilter:
    """What the options mean: one's own if none is given."""
    from animalcat.values import OwnerFilter

    return OwnerFilter(owner, mine=not (everybodys or owner))


def owner_column(goes: int) -> Column:
    """The column of owners, where anything belongs to anybody.

    Args:
        goes: When it goes; see `Column`.
    """
    return Column("owner", goes, filled=True)
