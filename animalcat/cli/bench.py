"""`animalcat bench`: measure speed, part by part, in one run."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from animalcat.cli.shared.output import fail, print_json, print_rows, status

SPEED: Final = ("simulator", "sensors", "layouts", "service", "unity")
PARTS: Final = (*SPEED, "slots", "adaptive")
COLUMNS: Final = (
    *("name", "median", "p99", "unit", "baseline", "ratio"),
    *("value", "low", "high", "target", "aim", "met", "note"),
)


def command(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"Parts to measure: {', '.join(PARTS)}; default all but slots, which takes some "
            "minutes, and adaptive, which takes half an hour (--quick: 3 minutes)."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions.")] = False,
    outcomes: Annotated[
        Path | None,
        typer.Option(
            help="With adaptive: replay these outcomes instead, 0 and 1. CSV with a row an "
            "instance: its meta-features, and a column of outcomes an agent."
        ),
    ] = None,
    agent: Annotated[
        list[str] | None, typer.Option(help="With --outcomes: a column of outcomes; repeat it.")
    ] = None,
    layout: Annotated[str, typer.Option(help="With --outcomes: the layout.")] = "aaio",
    keep: Annotated[
        Path | None,
        typer.Option(help="With adaptive: a folder that rows, seeds and curves are written to."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure the named parts and print medians, baselines and ratios."""
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
