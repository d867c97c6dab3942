"""`animalcat bench`: measure speed, part by part, in one run."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from animalcat.cli.shared.output import fail, print_json, print_rows, status

SPEED: Final = ("simulator", "sensors", "layouts", "service", "commands", "unity")
PARTS: Final = (*SPEED, "slots", "twin", "demands", "adaptive")
COLUMNS: Final = (
    *("name", "median", "p99", "unit", "baseline", "ratio"),
    *("value", "low", "high", "target", "aim", "met", "note"),
)


def command(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PART",
            help=f"What to measure: {', '.join(PARTS)}. Without a name, all but the last four "
            "are measured: slots and twin take some minutes, demands ten minutes, and adaptive "
            "half an hour (3 minutes with --quick).",
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
    layout: Annotated[
        str, typer.Option(metavar="NAME_OR_FILE", help="With --outcomes: the measurement layout.")
    ] = "aaio",
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="With the part adaptive: write all rows, seeds and curves to this folder.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Measure how fast each part is, beside what it is compared with."""
    unknown = set(parts or ()) - set(PARTS)
    if unknown:
        fail(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if keep is not None and (outcomes is not None or "adaptive" not in (parts or ())):
        fail("--keep goes with `bench adaptive`, without --outcomes")
    results: dict[str, list[dict[str, Any]]] = {}
    if outcomes is not None:
        if parts != ["adaptive"]:
            fail("--outcomes goes with `bench adaptive`")
        results["adaptive"] = _recorded(outcomes, agent or [], layout, quick)
        parts = []
        if not as_json:
            _print("adaptive", results["adaptive"])
    for part in SPEED if parts is None else parts:
        with status(f"measuring {part}"):
            run: Callable[..., list[dict[str, Any]]] = importlib.import_module(
                f"animalcat.benchmarks.{part}"
            ).run
            results[part] = run(quick, keep) if part == "adaptive" else run(quick)
        if not as_json:
            _print(part, results[part])
    if as_json:
        print_json(results)


def _recorded(outcomes: Path, agents: list[str], layout: str, quick: bool) -> list[dict[str, Any]]:
    from animalcat.benchmarks.adaptive import recorded
    from animalcat.cli.layout.outcomes import read_table

    table = read_table(outcomes, agents)
    try:
        return recorded(table, outcomes.stem, layout, quick)
    except ValueError as error:
        fail(f"{outcomes}: {error}")


def _print(part: str, rows: list[dict[str, Any]]) -> None:
    used = [c for c in COLUMNS if any(c in row for row in rows)]
    print_rows(rows, used, as_json=False, title=part)
