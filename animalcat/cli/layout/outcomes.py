"""Tables of instances and outcomes for the commands of layouts, and fits of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from animalcat.cli.shared.output import fail
from animalcat.cli.shared.progress import progress
from animalcat.layouts.inference.fit import FitRequest, FitResult, fit
from animalcat.layouts.model.instances import OutcomeTable, TableError, read_csv
from animalcat.layouts.model.spec import Layout

OUTCOMES: Final = "Outcomes"
"""A group of options."""
Table = Annotated[
    Path | None,
    typer.Option(
        metavar="TABLE.csv",
        help="A table with one row for each arena: its meta-features, and one column of outcomes "
        "for each agent. Columns `instance` and `paradigm` may name the arena and its kind.",
        rich_help_panel=OUTCOMES,
    ),
]
Agents = Annotated[
    list[str] | None,
    typer.Option(
        "--agent",
        metavar="COLUMN",
        help="The column of an agent's outcomes. Repeat it for several agents.",
        rich_help_panel=OUTCOMES,
    ),
]
Seed = Annotated[
    int,
    typer.Option(metavar="NUMBER", min=0, help="The seed of everything that is left to chance."),
]


def read_table(path: Path, agents: Sequence[str]) -> OutcomeTable:
    """A table of outcomes; ends the command where it is wrong."""
    if not agents:
        fail(f"{path}: which columns are outcomes? Say --agent COLUMN for each agent")
    try:
        return read_csv(path, agents)
    except TableError as error:
        fail(str(error) if str(path) in str(error) else f"{path}: {error}")


def fit_layouts(
    layouts: Sequence[Layout], table: OutcomeTable, seed: int
) -> list[dict[str, FitResult]]:
    """Fit every layout to every agent, by agent; ends the command where they do not fit."""
    found: list[dict[str, FitResult]] = []
    total, done = len(layouts) * len(table.agents), 0
    with progress("fitting", wait=0.0) as tell:
        for layout in layouts:
            fits: dict[str, FitResult] = {}
            for agent in table.agents:
                tell(f"fitting {layout.name} ({layout.variant}) to {agent}", done, total)
                instances, outcomes = table.of(agent)
                try:
                    request = FitRequest(layout, instances.features(layout), outcomes, seed)
                    fits[agent] = fit(request)
                except ValueError as error:
                    fail(f"{agent}: {error}")
                done += 1
            found.append(fits)
    return found


def warn_of_bad_fits(fits: Sequence[dict[str, FitResult]]) -> bool:
    """Say which fits have not converged; whether there are any."""
    bad = [
        (agent, fitted)
        for by_agent in fits
        for agent, fitted in by_agent.items()
        if not fitted.converged
    ]
    for agent, fitted in bad:
        reasons = "; ".join(fitted.diagnostics["reasons"])
        where = f"{fitted.layout.name} ({fitted.layout.variant})"
        typer.echo(f"warning: {agent}: {where} has not converged: {reasons}", err=True)
    return bool(bad)
