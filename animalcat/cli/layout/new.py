"""`animalcat layout new`: writes a layout for a table of items whose demands are levels."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from animalcat.cli.layout.show import Json
from animalcat.cli.shared.output import fail, print_json, print_rows, remark, wrote
from animalcat.layouts.library.levels import FEW, OUTCOMES, SLOPE, DemandLayout, demand_layout
from animalcat.layouts.model.codec import SpecificationError
from animalcat.layouts.model.tables import TableError


def command(
    demands: Annotated[
        Path,
        typer.Option(
            metavar="TABLE.csv",
            help="The items: one row for each, and a column of levels, 0 and up, for each scale. "
            "Level 0 asks for nothing. A cell is empty where the level is not known.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.yaml",
            help="Write the layout to this file.",
            show_default="standard output",
        ),
    ] = None,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="What to call it.", show_default="as the file")
    ] = "",
    scale: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A column of levels. Repeat it for several.",
            show_default="every column of numbers that does not name items",
        ),
    ] = None,
    item: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="A column that names items. Repeat it where only several together do.",
            show_default="those that are called so, as `sample id`, `item` or `dataset`",
        ),
    ] = None,
    slope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NUMBER",
            help="How sharp limits are, in logits per level. COLUMN=NUMBER says it of one scale; "
            "repeat it for several.",
            show_default=f"{SLOPE:g}: 19 of 20 pass one level below the limit",
        ),
    ] = None,
    chance: Annotated[
        str,
        typer.Option(
            metavar="NUMBER",
            help="The chance to pass an item by guessing, as 0.25 for four options; or the column "
            "that has it.",
            show_default="the column `chance`, or 0",
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Write a layout for items whose demands are levels of scales, and say what they can tell.

    Each scale becomes a capability. A scale for which all items ask the same, or none asks, is left
    out; scales that go together become one; thin scales, and those that are much alike, are named.
    All this is in the comments of the file too. The file is a start: change it as you like.
    """
    named = name or demands.stem.lower().replace(" ", "-")
    try:
        made = demand_layout(
            demands,
            named,
            scales=scale or (),
            ids=item or (),
            slope=_slopes(slope or []),
            chance=_chance(chance),
        )
    except (TableError, SpecificationError, ValueError) as error:
        fail(f"{demands}: {error}")
    if output is not None:
        try:
            output.write_text(made.text, encoding="utf-8")
        except OSError as error:
            fail(f"{output}: {error.strerror or 'cannot be written'}")
        wrote(f"layout {named} of {len(made.scales)} abilities", output)
    if as_json:
        print_json(_as_json(made, named))
    elif output is None:
        typer.echo(made.text, nl=False)
        for told in made.told:
            remark(told)
    else:
        _say(made)


def _say(made: DemandLayout) -> None:
    rows = [
        {
            "scale": " or ".join(one.columns),
            "items": one.items,
            "hardest": one.hardest,
            "left": f"{one.left:.2f}",
            "told apart": "yes" if one.told_apart else "no",
        }
        for one in made.scales
    ]
    title = f"{made.items - made.left_out} items, {made.distinct} different"
    print_rows(rows, list(rows[0]), as_json=False, title=title)
    typer.echo(
        f"hardest: what {FEW} items ask for, or more. left: share of the prior's standard "
        f"deviation that {OUTCOMES} well-chosen outcomes leave."
    )
    for told in made.told:
        typer.echo(f"- {told}.")


def _as_json(made: DemandLayout, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "digest": made.layout.digest,
        "scales": [{**asdict(one), "told_apart": one.told_apart} for one in made.scales],
        "items": made.items,
        "distinct": made.distinct,
        "left_out": made.left_out,
        "incomplete": dict(made.incomplete),
        "dropped": dict(made.dropped),
        "notes": list(made.notes),
        "ignored": list(made.ignored),
        "text": made.text,
    }


def _slopes(given: list[str]) -> float | dict[str, float]:
    """One slope for all scales, or slopes by column; the last one without a column is for all."""
    slopes: dict[str, float] = {}
    for text in given:
        column, _, number = text.rpartition("=")
        try:
            slopes[column] = float(number)
        except ValueError:
            fail(f"--slope {text}: {number!r} is no number; give NUMBER or COLUMN=NUMBER")
    whole = slopes.pop("", None)
    if not slopes:
        return SLOPE if whole is None else whole
    if whole is not None:
        fail("--slope: give one number for all scales, or COLUMN=NUMBER for some")
    return slopes


def _chance(given: str) -> float | str:
    try:
        return float(given or 0.0)
    except ValueError:
        return given
