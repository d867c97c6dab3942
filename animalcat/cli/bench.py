"""`animalcat bench`: measure this machine, a server on it, or what is saved on a battery."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from animalcat.cli.shared.output import fail, print_json, print_rows, status
from animalcat.cli.shared.remote import Data, client_for, place

SPEED: Final = ("simulator", "sensors", "recording", "layouts", "service")
"""Parts of this machine that are measured where none is named."""
PARTS: Final = (*SPEED, "start", "scaling", "adaptive", "retest")
GIVEN: Final = ("adaptive", "retest")
"""Parts that measure a battery or recorded outcomes."""
COLUMNS: Final = (
    *("name", "cold", "warm", "median", "p99", "unit", "baseline", "ratio"),
    *("value", "low", "high", "target", "aim", "met", "note"),
)


def command(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PART",
            help=f"What to measure: {', '.join(PARTS)}. Without a name, all but the last four are "
            "measured. start, what starting costs, takes a minute or two; scaling, with more and "
            "more agents and with Ray, some minutes; adaptive, what choosing saves, with --battery "
            "or --outcomes, ten; retest, whether two sessions of one agent agree, with one of "
            "these as well, some.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Repeat less often, and so be less precise.")
    ] = False,
    outcomes: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE.csv",
            help="With the part adaptive or retest: use these recorded outcomes, 0 and 1, instead "
            "of simulated agents. The table has one row for each arena, its meta-features, and one "
            "column of outcomes for each agent.",
        ),
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="With --outcomes: the column of an agent's outcomes. Repeat it for several.",
        ),
    ] = None,
    battery: Annotated[
        str | None,
        typer.Option(
            metavar="NAME_OR_PATH",
            help="With the part adaptive or retest: measure on this battery. It is a name from "
            "`battery list`, the folder of a stored battery, or a table that `battery features -o` "
            "wrote.",
        ),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            metavar="NAME_OR_FILE",
            help="With --outcomes or --battery: the measurement layout.",
            show_default="aaio with --outcomes, object-permanence with --battery",
        ),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --battery: the variant of the layout.",
            show_default="the battery's, else the one that covers most of it",
        ),
    ] = None,
    data: Data = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="With --battery: write all rows, seeds and curves to this folder.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Measure this machine, a server on it, or what adaptive sessions on a battery are worth.

    Each figure stands beside what it is compared with. What measures animalcat itself comes with
    its source: python -m benchmarks.
    """
    unknown = set(parts or ()) - set(PARTS)
    if unknown:
        fail(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    given = [part for part in parts or () if part in GIVEN]
    if given and (battery is None) == (outcomes is None):
        fail(f"{given[0]} measures what you give it: --battery or --outcomes, one of the two")
    if (battery is not None or outcomes is not None) and (parts != given or len(given) != 1):
        fail("--outcomes and --battery go with `bench adaptive` and `bench retest`")
    if keep is not None and (battery is None or parts != ["adaptive"]):
        fail("--keep goes with `bench adaptive --battery`")
    results: dict[str, list[dict[str, Any]]] = {}
    for part in SPEED if parts is None else parts:
        if battery is not None:
            results[part] = _built(part, battery, layout, variant, data, quick, keep)
        elif outcomes is not None:
            results[part] = _recorded(part, outcomes, agent or [], layout or "aaio", quick)
        else:
            with status(f"measuring {part}"):
                results[part] = importlib.import_module(f"animalcat.bench.{part}").run(quick)
        if not as_json:
            print_part(part, results[part])
    if as_json:
        print_json(results)


def _recorded(
    part: str, outcomes: Path, agents: list[str], layout: str, quick: bool
) -> list[dict[str, Any]]:
    from animalcat.bench import retest
    from animalcat.bench.recorded import recorded
    from animalcat.cli.layout.outcomes import read_meant

    found, (taken,) = read_meant(outcomes, agents, [(layout, "")])
    table = found.table
    try:
        if part == "retest":
            return retest.recorded(outcomes.stem, taken, table)
        return recorded(table, outcomes.stem, taken, quick)
    except ValueError as error:
        fail(f"{outcomes}: {error}")


def _built(
    part: str,
    battery: str,
    layout: str | None,
    variant: str | None,
    data: Path | None,
    quick: bool,
    keep: Path | None,
) -> list[dict[str, Any]]:
    from animalcat.bench import retest
    from animalcat.bench.saving import built, of_battery, stored
    from animalcat.cli.shared.batteries import find_battery
    from animalcat.lab.received import received
    from animalcat.service.errors import ServiceError
    from animalcat.service.library.layouts import layout_on

    name = layout or "object-permanence"
    path = Path(battery)
    try:
        if path.suffix == ".csv" or (path / "battery.parquet").is_file():
            title, whole = path.stem, stored(path)
        else:
            with client_for(None, data) as client:
                title = find_battery(client, battery, where=place(None, data))
                whole = received(client, title)
        measured = built(title, whole, layout_on(whole, name, variant or ""))
        if part == "retest":
            return retest.of_battery(measured, quick)
        return of_battery(measured, quick, keep)
    except (OSError, ValueError, ServiceError) as error:
        fail(f"{battery}: {error}")


def print_part(part: str, rows: list[dict[str, Any]]) -> None:
    """Print what was measured of a part: the columns that it has."""
    used = [c for c in COLUMNS if any(c in row for row in rows)]
    print_rows(rows, used, as_json=False, title=part)
