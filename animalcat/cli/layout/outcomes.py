"""Tables of instances and outcomes for the commands of layouts, and fits of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Final

import typer

from animalcat.cli.layout.show import load
from animalcat.cli.shared.outcome_table import is_export, or_fail
from animalcat.cli.shared.output import fail, say
from animalcat.cli.shared.progress import progress
from animalcat.layouts.fitting.exports import insist_success, of_export
from animalcat.layouts.fitting.fits import Fit, fit_instances
from animalcat.layouts.library.choice import choose, hint, look_at, words_of_choice
from animalcat.layouts.model.instances import (
    CoveredOutcomes,
    OutcomeTable,
    TableError,
    read_csv,
    told_gaps,
)
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.model.tables import read_sheet

_NAMED: Final = 5
"""Most agents that are named where the same is said of all."""
OUTCOMES: Final = "Outcomes"
"""A group of options."""
Table = Annotated[
    Path | None,
    typer.Option(
        metavar="TABLE",
        help="A CSV file with one row for each arena: its meta-features, and one column of "
        "outcomes for each agent. Columns `instance` and `paradigm` may name the arena and its "
        "kind. Or a table as `profile export --format csv` writes it.",
        rich_help_panel=OUTCOMES,
    ),
]
Agents = Annotated[
    list[str] | None,
    typer.Option(
        "--agent",
        metavar="NAME",
        help="The column of an agent's outcomes, or an agent of a table that `profile "
        "export --format csv` wrote. Repeat it for several agents; a column may be a pattern "
        "such as 'reader-*'. Without it, all agents of such a table are taken.",
        rich_help_panel=OUTCOMES,
    ),
]


def read_meant(
    path: Path, agents: Sequence[str], named: Sequence[tuple[str, str]]
) -> tuple[CoveredOutcomes, list[Layout]]:
    """The outcomes of a table that layouts describe, and these layouts in the variants meant.

    Ends the command where the table or a layout is wrong.

    Args:
        path: A CSV or Parquet file.
        agents: Columns of agents, or agents of the table.
        named: Name or file of each layout, and its variant; empty for the one that covers most of
            the table.
    """
    loaded = [(load(name, variant), variant) for name, variant in named]

    def read() -> tuple[CoveredOutcomes, list[Layout]]:
        table, notes, exported = _table(path, agents)
        look = look_at(table.instances)
        layouts: list[Layout] = []
        for layout, variant in loaded:
            choice = choose(layout, look)
            layouts.append(layout if variant else choice.layout)
            if choice.covered:
                notes += [words_of_choice(layouts[-1], choice), hint(layouts[-1], choice, look)]
        return _cover(table, [*filter(None, notes)], exported, layouts), layouts

    return or_fail(path, read)


def _table(source: Path | str, agents: Sequence[str]) -> tuple[OutcomeTable, list[str], bool]:
    """The outcomes of a table, what is to be known of them, and whether they are an export."""
    from animalcat.outcomes import OutcomesError, read_outcomes

    if is_export(source) and "outcome" not in agents:
        content = source if isinstance(source, Path) else source.encode()
        try:
            table, notes = of_export(read_outcomes(content), agents)
        except (OutcomesError, OSError) as error:
            raise TableError(str(error)) from None
        return table, notes, True
    if not agents:
        raise TableError("which columns are outcomes? Say --agent COLUMN for each agent")
    return read_csv(source, _columns(source, agents)), [], False


def _columns(source: Path | str, agents: Sequence[str]) -> list[str]:
    """The columns that are asked for by name or by a pattern such as `reader-*`.

    Raises:
        TableError: No column fits a pattern.
    """
    if not any("*" in agent for agent in agents):
        return [*agents]
    heads = read_sheet(source).heads
    found: dict[str, None] = {}
    for agent in agents:
        fitting = [head for head in heads if agent == head or fnmatchcase(head, agent)]
        if not fitting:
            raise TableError(f"no column fits {agent!r}; columns: {', '.join(heads)}")
        found |= dict.fromkeys(fitting)
    return [*found]


def _cover(
    table: OutcomeTable, notes: Sequence[str], exported: bool, layouts: Sequence[Layout]
) -> CoveredOutcomes:
    for layout in layouts if exported else ():
        insist_success(layout)
    covered = table.covered(layouts)
    return replace(covered, notes=(*notes, *covered.notes))


def fit_layouts(layouts: Sequence[Layout], table: OutcomeTable, seed: int) -> list[dict[str, Fit]]:
    """Fit every layout to every agent, by agent; ends the command where they do not fit."""
    results: list[dict[str, Fit]] = []
    total, done = len(layouts) * len(table.agents), 0
    with progress("fitting", wait=0.0) as tell:
        for layout in layouts:
            fits: dict[str, Fit] = {}
            for agent in table.agents:
                tell(f"fitting {layout.name} ({layout.variant}) to {agent}", done, total)
                instances, outcomes = table.of(agent)
                try:
                    weights = table.weights_of(agent)
                    fits[agent] = fit_instances(
                        layout, instances, outcomes, weights=weights, agent=agent, seed=seed
                    )
                except ValueError as error:
                    fail(f"{agent}: {error}")
                done += 1
            results.append(fits)
    return results


def say_what_was_left_out(played: CoveredOutcomes) -> None:
    """Print, for people, what does not count and what is assumed."""
    agents: dict[str, list[str]] = {}
    for agent in played.table.agents:
        coverage = played.coverage(agent)
        if coverage["left_out"]:
            gaps = told_gaps(coverage["left_out"], coverage["of"])
            words = f"{coverage['covered']} of {coverage['of']} count; left out {gaps}"
            agents.setdefault(words, []).append(agent)
    for words, alike in agents.items():
        few = len(alike) <= _NAMED
        say(f"note: {', '.join(alike) if few else f'{len(alike)} agents, each'}: {words}")
    for note in played.notes:
        say(f"note: {note}")


def warn_of_bad_fits(fits: Sequence[dict[str, Fit]]) -> bool:
    """Say which fits are of outcomes the wrong way round, and which have not converged, if any."""
    pairs = [pair for by_agent in fits for pair in by_agent.items()]
    for agent, fitted in pairs:
        if fitted.inverted:
            say(f"warning: {agent}: {fitted.inverted}", err=True)
    bad = [(agent, fitted) for agent, fitted in pairs if not fitted.converged]
    for agent, fitted in bad:
        reasons = "; ".join(fitted.diagnostics["reasons"])
        where = f"{fitted.layout.name} ({fitted.layout.variant})"
        say(f"warning: {agent}: {where} has not converged: {reasons}", err=True)
    return bool(bad)
