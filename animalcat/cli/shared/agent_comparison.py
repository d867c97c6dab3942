"""Agents side by side, as commands print them: ranks, groups, and differences with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from animalcat.cli.shared.output import print_rows
from animalcat.cli.shared.table import Column
from animalcat.layouts.checking.compare import TOLD_APART
from animalcat.layouts.checking.side_by_side import (
    FEW_RANKS,
    cluster_rows,
    difference_rows,
    falling,
    rank_rows,
)


def print_comparison(report: Mapping[str, Any], *, title: str, every: bool = False) -> None:
    """Print what `compare_agents` gave: a screen, however many agents there are.

    Args:
        report: What it gave.
        title: Title of the table of differences, where some were asked for.
        every: Whether every rank and group has a row of its own.
    """
    if report["ranking"]:
        few = every or len(report["ranking"]) <= FEW_RANKS
        rows = [
            {**row, "rank": f"{row['rank']:.1f}", **_shares(row, "P(most)", "P(least)")}
            for row in rank_rows(report, every=every)
        ]
        columns = [
            *("node", "agent", "estimate"),
            *(Column("rank", 1), "90 %", Column("P(most)", 2), Column("P(least)", 3)),
        ]
        heading = "Ranks; 1 has the most" if few else "The most and the least, by rank"
        print_rows(rows, columns, as_json=False, title=heading)
        rows = [
            {**row, **_shares(row, "P(above the next)")}
            for row in cluster_rows(report, every=every)
        ]
        columns = ["node", "group", "agents", "estimates", Column("P(above the next)", 1), "who"]
        heading = (
            "Groups: none is told apart from the first of its group "
            f"(P below {TOLD_APART:g}), which is told apart from the first of the next"
        )
        print_rows(rows, columns, as_json=False, title=heading)
    several = not report["differences"]
    if rows := difference_rows(report, every=not several):
        print_rows(
            [{**row, **_shares(row, "P(more)")} for row in rows],
            list(rows[0]),
            as_json=False,
            title="The largest differences" if several else title,
        )
        if named := falling(report):
            typer.echo(f"Of {', '.join(named)}, a smaller value is more ability.")
    if report["approximate"]:
        typer.echo("Profiles hold no draws: each node was taken by its mean and sd, on its own.")


def _shares(row: Mapping[str, Any], *names: str) -> dict[str, str]:
    """Probabilities as they are printed."""
    return {name: "-" if row[name] is None else f"{row[name]:.2f}" for name in names}
