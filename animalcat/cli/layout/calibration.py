"""The part of `animalcat layout check` that simulates agents and measures them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Annotated, Any, Final

import typer

from animalcat.cli.shared.common import common
from animalcat.cli.shared.output import FAILED, fail, print_json, print_table, say
from animalcat.cli.shared.progress import progress
from animalcat.layouts.checking.calibration import (
    EngineName,
    SimulationBasedCalibration,
    problems,
    simulate_calibration,
    spread,
)
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.spec import Layout

SIMULATED: Final = "Simulated agents"
"""A group of options."""
Simulated = Annotated[
    int,
    typer.Option(
        metavar="AGENTS",
        min=0,
        help="How many agents are drawn from the prior and measured. 1000 are informative.",
        rich_help_panel=SIMULATED,
    ),
]
Played = Annotated[
    int,
    typer.Option(
        metavar="NUMBER",
        min=1,
        help="How many outcomes each simulated agent has.",
        rich_help_panel=SIMULATED,
    ),
]
Missing = Annotated[
    float,
    typer.Option(
        metavar="SHARE",
        min=0.0,
        max=0.99,
        help="What share of the outcomes is lost, where an episode has several.",
        rich_help_panel=SIMULATED,
    ),
]
Engine = Annotated[
    EngineName,
    typer.Option(
        help="What measures simulated agents: live is quick and used within sessions, nuts is "
        "slow and exact.",
        rich_help_panel=SIMULATED,
    ),
]
PARTICLES: Final = 2000
"""Of the live posterior, as in a session."""


def check_calibration(
    layouts: Sequence[Layout],
    agents: int,
    outcomes: int,
    missing: float,
    engine: EngineName,
    seed: int,
) -> None:
    """Print the calibration of layouts; exit code 1 when intervals do not hold what they say.

    Args:
        layouts: The layouts of the run: p-values are corrected for the nodes of all of them.
        agents: How many agents are simulated for each.
        outcomes: How many episodes each has, on instances all over the ranges of the features.
        missing: Share of outcomes that get lost, where an episode has several.
        engine: What measures them.
        seed: Everything follows from it.
    """
    run: list[SimulationBasedCalibration] = []
    measured = count(1)
    with progress("measuring agents", wait=0.0) as tell:
        for layout in layouts:
            calibration = simulate_calibration(
                layout,
                spread(layout, max(2000, outcomes), rng(seed, "spread", 0)),
                agents=agents,
                outcomes=outcomes,
                seed=seed,
                engine=engine,
                particles=PARTICLES,
                missing=missing,
                done=lambda: tell("measuring agents", next(measured), agents * len(layouts)),
            )
            if not len(calibration.covered):
                fail(
                    f"no fit of {agents} agents has converged: give them more outcomes (--episodes)"
                )
            run.append(calibration)
    wrong = problems(run)
    reports = [
        calibration.to_dict() | {"problems": list(of)}
        for calibration, of in zip(run, wrong, strict=True)
    ]
    if common().as_json:
        print_json(reports[0] if len(reports) == 1 else reports)
    else:
        for calibration, report in zip(run, reports, strict=True):
            _print(calibration, report)
        say("not calibrated" if any(wrong) else "calibrated")
    if any(wrong):
        raise typer.Exit(FAILED)


def _print(calibration: SimulationBasedCalibration, report: Mapping[str, Any]) -> None:
    rows = [
        {
            "node": name,
            "coverage of 90 % intervals": f"{node['coverage']:.3f}",
            "99 % interval": "{:.3f} to {:.3f}".format(*node["interval"]),
            "with equal tails": f"{node['central']:.3f}",
            "p of uniform ranks": f"{node['uniformity']:.3f}",
        }
        for name, node in report["nodes"].items()
    ]
    lost = f", {calibration.missing:.0%} of outcomes lost" * (calibration.missing > 0)
    title = (
        f"{calibration.layout.name} ({calibration.layout.variant}): {report['agents']} agents, "
        f"{calibration.outcomes} outcomes each{lost}, by {calibration.engine}; "
        f"pooled coverage {calibration.pooled:.3f}"
    )
    print_table(rows, list(rows[0]), title=title)
    if calibration.left_out:
        say(f"{calibration.left_out} agents are left out: their fits did not converge")
    for problem in report["problems"]:
        say(problem)
