"""`animalcat bench`: measure speed, part by part, in one run."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from animalcat.cli.output import fail, print_json, print_rows, progress_console

PARTS: Final = ("simulator", "sensors", "layouts", "service", "unity")
COLUMNS: Final = ("name", "median", "p99", "unit", "baseline", "ratio", "target", "note")


def command(
    parts: Annotated[
        list[str] | None, typer.Argument(help=f"Parts to measure: {', '.join(PARTS)}; default all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure the named parts and print medians, baselines and ratios."""
    unknown = set(parts or ()) - set(PARTS)
    if unknown:
        fail(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    results: dict[str, list[dict[str, Any]]] = {}
    for part in parts or PARTS:
        with progress_console().status(f"measuring {part}"):
            run: Callable[[bool], list[dict[str, Any]]] = importlib.import_module(
                f"animalcat.benchmarks.{part}"
            ).run
            results[part] = run(quick)
        if not as_json:
            used = [c for c in COLUMNS if any(c in row for row in results[part])]
            print_rows(results[part], used, as_json=False, title=part)
    if as_json:
        print_json(results)
