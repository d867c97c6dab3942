"""Agents side by side, as commands print them: ranks, and differences with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

import typer

from animalcat.cli.shared.output import print_rows
from animalcat.layouts.checking.compare import Posterior, node_differences, ranking


def compare_agents(
    posteriors: Sequence[Posterior], seed: int = 0, *, every_pair: bool = False
) -> dict[str, Any]:
    """Ranks of agents by every node, and differences.

    Args:
        posteriors: One an agent, one at least.
        seed: Seed of the pairing of draws.
        every_pair: Whether every two agents are compared; else the others with the first.

    Raises:
        ValueError: The layouts differ.
    """
    first, *others = posteriors
    pairs = list(combinations(posteriors, 2)) if every_pair else [(o, first) for o in others]
    return {
        "ranking": [
            {"node": node, **asdict(entry)}
            for node in (first.nodes if others else ())
            for entry in ranking(posteriors, node, seed)
        ],
        "differences": [
            {"agent": agent.name, "than": other.name, **asdict(found)}
            for agent, other in pairs
            for found in node_differences(agent, other, seed)
        ],
        "approximate": any(posterior.approximate for posterior in posteriors),
    }


def print_comparison(report: dict[str, Any], *, title: str) -> None:
    """Tables of what `compare_agents` gave.

    Args:
        report: What it gave.
        title: Title of the table of differences.
    """
    if report["ranking"]:
        rows = [
            {
                "node": row["node"],
                "agent": row["name"],
                "mean": f"{row['mean']:.3g}",
                "rank": f"{row['rank']:.1f}",
                "90 %": "{} to {}".format(*row["interval"]),
                "P(most)": f"{row['probabilities'][0]:.2f}",
            }
            for row in report["ranking"]
        ]
        print_rows(rows, list(rows[0]), as_json=False, title="Ranks; 1 has the most")
    if report["differences"]:
        several = len({row["than"] for row in report["differences"]}) > 1
        rows = [
            {
                "agent": row["agent"],
                **({"than": row["than"]} if several else {}),
                "node": row["node"],
                "more by": f"{row['mean']:+.3g}",
                "90 %": "{:+.3g} to {:+.3g}".format(*row["hdi"]),
                "unit": row["unit"],
                "P(more)": f"{row['more']:.2f}",
            }
            for row in report["differences"]
        ]
        print_rows(rows, list(rows[0]), as_json=False, title=title)
    if report["approximate"]:
        typer.echo("Profiles hold no draws: each node was taken by its mean and sd, on its own.")
