"""Tables of instances and outcomes for the commands of layouts, and fits of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer

from animalcat.cli.outcomes import FOLDER
from animalcat.cli.shared.output import fail
from animalcat.cli.shared.progress import progress
from animalcat.cli.shared.remote import data_folder
from animalcat.layouts.inference.fit import FitRequest, FitResult, fit
from animalcat.layouts.model.instances import Instances, OutcomeTable, TableError, read_csv
from animalcat.layouts.model.spec import Layout

OUTCOMES: Final = "Outcomes"
"""A group of options."""
Table = Annotated[
    Path | None,
    typer.Option(
        metavar="TABLE",
        help="A CSV file with one row for each arena: its meta-features, and one column of "
        "outcomes for each agent. Columns `instance` and `paradigm` may name the arena and its "
        "kind. Or the name of a table that `outcomes import` has kept.",
        rich_help_panel=OUTCOMES,
    ),
]
Agents = Annotated[
    list[str] | None,
    typer.Option(
        "--agent",
        metavar="NAME",
        help="The column of an agent's outcomes, or the name of an agent in an imported table. "
        "Repeat it for several agents. Without it, all agents of an imported table are taken.",
        rich_help_panel=OUTCOMES,
    ),
]
Seed = Annotated[
    int,
    typer.Option(metavar="NUMBER", min=0, help="The seed of everything that is left to chance."),
]


def read_table(path: Path, agents: Sequence[str], data: Path | None = None) -> OutcomeTable:
    """A table of outcomes; ends the command where it is wrong.

    Args:
        path: A CSV file, or the name of a table that was imported.
        agents: Columns of the file, or agents of the imported table.
        data: The data directory in which imported tables are; None for the usual one.
    """
    folder = data_folder(data) / FOLDER
    kept = folder / f"{path}.parquet"
    if not path.exists() and len(path.parts) == 1 and kept.is_file():
        return _imported(str(path), kept, agents)
    if not path.exists():
        known = ", ".join(sorted(one.stem for one in folder.glob("*.parquet"))) or "none"
        fail(f"{path}: no such file or imported table; imported tables: {known}")
    if not agents:
        fail(f"{path}: which columns are outcomes? Say --agent COLUMN for each agent")
    try:
        return read_csv(path, agents)
    except TableError as error:
        fail(str(error) if str(path) in str(error) else f"{path}: {error}")


def _imported(name: str, file: Path, agents: Sequence[str]) -> OutcomeTable:
    """An imported table with a row for each attempt that counts; ends the command on bad names."""
    from animalcat.cli.shared.evidence import evidence_of
    from animalcat.layouts.adaptive.pooling import ContradictionError
    from animalcat.outcomes import COLUMNS, OutcomesError, read_outcomes

    try:
        frame = read_outcomes(file)
    except (OutcomesError, OSError) as error:
        fail(f"table {name}: {error}")
    try:
        counted = evidence_of(frame)
    except ContradictionError as error:
        fail(f"table {name}: {error}")
    frame, weights = counted.frame, counted.weights
    who = frame["agent"].fillna("agent")
    known = [*dict.fromkeys(who)]
    if lost := [agent for agent in agents if agent not in known]:
        fail(f"table {name}: no agent {lost[0]!r}; agents: {', '.join(known) or 'none'}")
    chosen = [*dict.fromkeys(agents)] or known
    if not chosen:
        fail(f"table {name}: no attempt has succeeded or failed; there is nothing to fit")
    features = [column for column in frame.columns if column not in COLUMNS]
    instances = Instances(
        tuple(re.sub(r"\s*\[[^\]]*\]$", "", column) for column in features),
        frame[features].to_numpy(np.float64, na_value=np.nan).reshape(len(frame), len(features)),
        tuple(frame["paradigm"].fillna("")) if "paradigm" in frame else (),
        tuple(frame["instance"]),
    )
    passed = (frame["outcome"] == "success").to_numpy(np.float64)
    rows = [np.where((who == agent).to_numpy(bool), passed, np.nan) for agent in chosen]
    for note in counted.notes:
        typer.echo(f"note: table {name}: {note}", err=True)
    return OutcomeTable(instances, tuple(chosen), np.array(rows), weights, counted.notes)


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
                    request = FitRequest(
                        layout,
                        instances.features(layout),
                        outcomes,
                        seed,
                        weights=table.weights_of(agent),
                    )
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
