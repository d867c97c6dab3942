"""`python -m benchmarks.reproduce calibration`: predictions of entrants that were held out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from animalcat.cli.shared.output import console, fail, print_rows
from animalcat.layouts.calibrating.assessment import (
    BOOSTING,
    EARLY,
    FOLDS,
    LATE,
    MARGIN,
    POPULATION,
    TOLD,
    WRITTEN,
    AgentScores,
    assess,
    compared,
    coverage,
    profiles_compared,
    simulated_coverage,
)
from animalcat.layouts.calibrating.population import QUICK, CalibrationError, Effort
from animalcat.layouts.checking.baselines import MissingPackageError
from animalcat.layouts.model.instances import OutcomeTable
from animalcat.layouts.model.spec import Layout

SEEDS: Final = 5
"""How often the entrants are divided anew."""
_SIMULATED: Final = 200
"""Simulated agents of the population, for the coverage of intervals."""
_FEWER: Final = Effort(2, 150, 250, attempts=1)


def report_calibration(
    layout: Layout,
    tables: Mapping[str, OutcomeTable],
    seed: int,
    *,
    quick: bool,
    tell: Callable[[str, int, int], None],
) -> dict[str, Any]:
    """Hold out a third of the entrants in turn, and predict them by all that can be compared.

    Args:
        layout: The layout as written.
        tables: Outcomes of the entrants, by what the instances are.
        seed: Seed of everything.
        quick: Whether to divide the entrants once, with short fits.
        tell: Told of progress.
    """
    seeds = 1 if quick else SEEDS
    total, count = len(tables) * seeds * FOLDS, 0

    def done(words: str) -> None:
        nonlocal count
        count += 1
        tell(f"calibrating: {words}", count, total)

    parts: list[dict[str, Any]] = []
    for name, table in tables.items():
        try:
            scored, diagnostics, population = assess(
                layout,
                table,
                seed,
                seeds=seeds,
                effort=_FEWER if quick else QUICK,
                particles=500 if quick else 2000,
                done=done,
            )
        except (CalibrationError, MissingPackageError) as error:
            fail(str(error))
        agents = 20 if quick else _SIMULATED
        inside, intervals = simulated_coverage(layout, table, population, seed, agents)
        parts.append(
            {
                "instances": name,
                "entrants": len(table.agents),
                "brier": _brier(scored),
                "profile": {"early": EARLY, "late": LATE, **asdict(profiles_compared(scored))},
                "coverage_rest": coverage(scored),
                "coverage_nodes": inside / intervals,
                "divergences": int(np.sum([d["divergences"] for d in diagnostics])),
            }
        )
    about = {"name": layout.name, "variant": layout.variant, "digest": layout.digest}
    return {"layout": about, "seeds": seeds, "folds": FOLDS, "parts": parts}


def _brier(scored: Sequence[AgentScores]) -> list[dict[str, Any]]:
    return [
        {"told": told, "other": other, **asdict(compared(scored, other, told))}
        for told in TOLD
        for other in (POPULATION, BOOSTING, WRITTEN)
    ]


def print_calibration(report: Mapping[str, Any]) -> None:
    """Print tables for people."""
    for part in report["parts"]:
        rows = [
            {
                "episodes": row["told"],
                "compared with": row["other"],
                "calibrated": f"{row['ours']:.4f}",
                "other": f"{row['theirs']:.4f}",
                "difference": f"{row['difference']:+.4f}",
                "90 %": f"{row['low']:+.4f} to {row['high']:+.4f}",
                "must be below": "" if row["other"] == WRITTEN else f"{MARGIN:g}",
                "met": "" if row["other"] == WRITTEN else "yes" if row["high"] <= MARGIN else "no",
            }
            for row in part["brier"]
        ]
        title = (
            f"{part['instances']}: Brier scores of {part['entrants']} entrants held out, "
            f"{report['folds']} parts x {report['seeds']}"
        )
        print_rows(rows, list(rows[0]), as_json=False, title=title)
        profile = part["profile"]
        console().print(
            f"From the profile by all instances (rms, shares of the ranges): calibrated after "
            f"{profile['early']} episodes {profile['ours']:.3f}, as written after "
            f"{profile['late']} {profile['theirs']:.3f}. Coverage of 90 % intervals: "
            f"{part['coverage_rest']:.3f} of the number passed of the rest, "
            f"{part['coverage_nodes']:.3f} of nodes of simulated agents. "
            f"{part['divergences']} divergences.",
            highlight=False,
        )
