"""`python -m benchmarks.reproduce tesic2025`: simulated entrants of the contest, measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from itertools import count
from statistics import mean
from typing import Any

from animalcat.cli.shared.output import print_rows
from animalcat.cli.shared.progress import progress
from animalcat.layouts.library import load_layout
from benchmarks.reproduce.cooperation import KINDS, Recovery, population, recover

Report = dict[str, Any]


def recovered(seed: int, entrants: int) -> Report:
    """Simulate and measure both populations.

    Args:
        seed: Everything follows from it.
        entrants: How many in each population.
    """
    layout = load_layout("melting-pot")
    report: Report = {
        "paper": "tesic2025",
        "seed": seed,
        "layout": {"name": layout.name, "variant": layout.variant, "digest": layout.digest},
        "populations": {},
    }
    measured = count(1)
    with progress("measuring entrants", wait=0.0) as tell:
        for kind in KINDS:
            people = population(layout, kind, seed, entrants)
            found = recover(
                layout,
                people,
                seed,
                done=lambda: tell("measuring entrants", next(measured), entrants * len(KINDS)),
            )
            report["populations"][kind] = _as_json(found, entrants)
    return report


def _as_json(found: Recovery, entrants: int) -> Report:
    return {
        "entrants": entrants,
        "converged": found.converged,
        "readable": found.readable,
        "r2": [_or_none(value) for value in found.r2.tolist()],
        "best_r2": [_or_none(value) for value in found.best_r2.tolist()],
        "nodes": [asdict(node) for node in found.nodes],
        "table_2": [asdict(row) for row in found.table],
    }


def print_recovered(report: Mapping[str, Any]) -> None:
    """Print what was found, and Table 2 of the first entrant."""
    for kind, part in report["populations"].items():
        title = f"{part['entrants']} simulated entrants ({kind}), 80 % of the scores, by NUTS"
        rows = [_rounded(row) for row in part["nodes"]]
        print_rows(rows, list(rows[0]), as_json=False, title=title)
        pairs = zip(part["r2"], part["best_r2"], strict=True)
        pairs = [(own, best) for own, best in pairs if own is not None]
        first = part["table_2"][0]["agent"]
        print_rows(
            [
                {
                    "converged": part["converged"],
                    "R2 above 0.25": part["readable"],
                    "mean R2": f"{mean(own for own, _ in pairs):.3f}",
                    "less than who knows the entrant": f"{mean(b - a for a, b in pairs):.4f}",
                }
            ],
            ["converged", "R2 above 0.25", "mean R2", "less than who knows the entrant"],
            as_json=False,
            title="Scores held out",
        )
        table = [_rounded(row) for row in part["table_2"] if row["agent"] == first]
        title = f"Table 2 for {first} ({kind}); --json and -o have all entrants"
        print_rows(table, list(table[0]), as_json=False, title=title)


def _or_none(value: float) -> float | None:
    """None for the R2 of scores that are all equal, which JSON has no number for."""
    return None if math.isnan(value) else value


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {k: f"{v:.3f}" if isinstance(v, float) else v for k, v in row.items()}
