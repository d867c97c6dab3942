"""`animalcat bench`: measure speed, part by part, in one run."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from animalcat.cli.shared.output import fail, print_json, print_rows, status
from animalcat.cli.shared.remote import Data, client_for, place

SPEED: Final = ("simulator", "sensors", "recording", "layouts", "service", "commands", "unity")
PARTS: Final = (
    *SPEED,
    *("start", "slots", "scaling", "against", "report", "twin", "agents", "verdicts"),
    *("fresh", "demands", "adaptive", "recovery", "alarms", "trust", "kill", "fuzz", "soak"),
)
KEPT: Final = ("adaptive", "recovery", "alarms", "trust")
"""Parts that can write what they found to a folder."""
COLUMNS: Final = (
    *("name", "cold", "warm", "median", "p99", "unit", "baseline", "ratio"),
    *("value", "low", "high", "target", "aim", "met", "note"),
)


def command(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PART",
            help=f"What to measure: {', '.join(PARTS)}. Without a name, all but the last "
            "seventeen are measured: start and report take a minute or two; slots, scaling, "
            "against, twin, agents and verdicts some minutes; fresh and demands ten; and adaptive, "
            "recovery, alarms, trust, kill, fuzz and soak half an hour or more each (3 minutes "
            "with --quick).",
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
            help="With the part adaptive: use these recorded outcomes, 0 and 1, instead of "
            "simulated agents. The table has one row for each arena, its meta-features, and one "
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
            help="With the part adaptive: measure what is saved on this battery, beside the demand "
            "vectors of the paper. It is a name from `battery list`, the folder of a stored "
            "battery, or a table that `battery features -o` wrote.",
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
            show_default="measured for object-permanence, else the first",
        ),
    ] = None,
    data: Data = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="With the parts adaptive, recovery, alarms and trust: write all rows, seeds, and "
            "curves or sessions to this folder.",
        ),
    ] = None,
    inputs: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=100,
            help="With the part fuzz: how many damaged inputs to throw.",
            show_default="100000, or 1500 with --quick",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Measure how fast each part is, or how well it does, beside what it is compared with."""
    unknown = set(parts or ()) - set(PARTS)
    if unknown:
        fail(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if keep is not None and (outcomes is not None or not {*KEPT} & {*(parts or ())}):
        fail("--keep goes with the parts adaptive, recovery, alarms and trust, without --outcomes")
    results: dict[str, list[dict[str, Any]]] = {}
    if outcomes is not None or battery is not None:
        if parts != ["adaptive"] or (outcomes is not None and battery is not None):
            fail("--outcomes and --battery go with `bench adaptive`, one of the two")
        if battery is not None:
            results["adaptive"] = _built(battery, layout, variant, data, quick, keep)
        elif outcomes is not None:
            results["adaptive"] = _recorded(outcomes, agent or [], layout or "aaio", quick)
        parts = []
        if not as_json:
            _print("adaptive", results["adaptive"])
    for part in SPEED if parts is None else parts:
        with status(f"measuring {part}"):
            run: Callable[..., list[dict[str, Any]]] = importlib.import_module(
                f"animalcat.benchmarks.{part}"
            ).run
            more = [keep] if part in KEPT else [inputs] if part == "fuzz" else []
            results[part] = run(quick, *more)
        if not as_json:
            _print(part, results[part])
    if as_json:
        print_json(results)


def _recorded(outcomes: Path, agents: list[str], layout: str, quick: bool) -> list[dict[str, Any]]:
    from animalcat.benchmarks.adaptive import recorded
    from animalcat.cli.layout.outcomes import read_covered
    from animalcat.cli.layout.show import load

    table = read_covered(outcomes, agents, [load(layout)]).table
    try:
        return recorded(table, outcomes.stem, layout, quick)
    except ValueError as error:
        fail(f"{outcomes}: {error}")


def _built(
    battery: str,
    layout: str | None,
    variant: str | None,
    data: Path | None,
    quick: bool,
    keep: Path | None,
) -> list[dict[str, Any]]:
    from animalcat.benchmarks.adaptive import of_battery
    from animalcat.benchmarks.adaptive_built import built, stored
    from animalcat.cli.battery_report import received
    from animalcat.cli.shared.batteries import find_battery
    from animalcat.layouts.library import load_layout
    from animalcat.service.errors import ServiceError

    name = layout or "object-permanence"
    if variant is None:
        variant = "measured" if name == "object-permanence" else ""
    path = Path(battery)
    try:
        chosen = load_layout(name, variant)
        if path.suffix == ".csv" or (path / "battery.json").is_file():
            title, found = path.stem, stored(path)
        else:
            with client_for(None, data) as client:
                title = find_battery(client, battery, where=place(None, data))
                found = received(client, title)
        return of_battery(built(title, found, chosen), quick, keep)
    except (OSError, ValueError, ServiceError) as error:
        fail(f"{battery}: {error}")


def _print(part: str, rows: list[dict[str, Any]]) -> None:
    used = [c for c in COLUMNS if any(c in row for row in rows)]
    print_rows(rows, used, as_json=False, title=part)
