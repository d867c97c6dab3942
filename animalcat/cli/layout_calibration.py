"""The part of `animalcat layout check` that simulates agents and measures them."""

from __future__ import annotations

from typing import Annotated, Final

import typer
from rich.progress import Progress

from animalcat.cli.output import FAILED, fail, print_json, print_rows, progress_console
from animalcat.layouts.calibration import EngineName, calibrate, spread
from animalcat.layouts.randomness import rng
from animalcat.layouts.spec import Layout

Simulated = Annotated[
    int, typer.Option(min=0, help="Measure so many agents drawn from the prior; 1,000 say much.")
]
Played = Annotated[int, typer.Option(min=1, help="Outcomes of each simulated agent.")]
Engine = Annotated[
    EngineName,
    typer.Option(help="What measures simulated agents: live (quick), or nuts."),
]
PARTICLES: Final = 2000
"""Of the live posterior, as in a session."""


def check_calibration(
    layout: Layout, agents: int, outcomes: int, engine: EngineName, seed: int, *, as_json: bool
) -> None:
    """Print the calibration of a layout; exit code 1 when intervals do not hold what they say.

    Args:
        layout: The layout.
        agents: How many agents are simulated.
        outcomes: How many outcomes each has, on instances all over the ranges of the features.
        engine: What measures them.
        seed: Everything follows from it.
        as_json: Print JSON.
    """
    instances = spread(layout, max(2000, outcomes), rng(seed, "spread", 0))
    with Progress(console=progress_console(), transient=True) as progress:
        task = progress.add_task(f"measuring {agents} agents", total=agents)
        found = calibrate(
            layout,
            instances,
            agents=agents,
            outcomes=outcomes,
            seed=seed,
            engine=engine,
            particles=PARTICLES,
            done=lambda: progress.update(task, advance=1),
        )
    if not len(found.covered):
        fail(f"no fit of {agents} agents has converged: give them more outcomes (--episodes)")
    report = found.to_dict()
    if as_json:
        print_json(report)
    else:
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
        title = (
            f"{layout.name} ({layout.variant}): {report['agents']} agents, {outcomes} outcomes "
            f"each, by {engine}; pooled coverage {found.pooled:.3f}"
        )
        print_rows(rows, list(rows[0]), as_json=False, title=title)
        if found.left_out:
            typer.echo(f"{found.left_out} agents are left out: their fits did not converge")
        for problem in found.problems:
            typer.echo(problem)
        typer.echo("not calibrated" if found.problems else "calibrated")
    if found.problems:
        raise typer.Exit(FAILED)
