"""Agents side by side, as commands print them: ranks, and differences with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np
import typer

from animalcat.cli.shared.output import print_rows
from animalcat.cli.shared.table import Column
from animalcat.layouts.checking.compare import (
    Posterior,
    difference_words,
    node_differences,
    ranking,
)
from animalcat.layouts.explaining.wording import Scale, plain_scale, scale_of
from animalcat.layouts.inference.summary import hdi
from animalcat.layouts.library import LAYOUTS, load_layout
from animalcat.layouts.model.codec import SpecificationError
from animalcat.layouts.model.spec import Layout


def compare_agents(
    posteriors: Sequence[Posterior],
    seed: int = 0,
    *,
    every_pair: bool = False,
    scales: Mapping[str, Scale] | None = None,
    nodes: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Ranks of agents by every node, and differences.

    Args:
        posteriors: One an agent, one at least.
        seed: Seed of the pairing of draws.
        every_pair: Whether every two agents are compared; else the others with the first.
        scales: How the values of nodes are read; of those that are not there the unit alone is
            known.
        nodes: The nodes of each agent's profile, as JSON, by agent. What these do not know is not
            said.

    Raises:
        ValueError: The layouts differ.
    """
    first, *others = posteriors
    agents = {posterior.name: posterior for posterior in posteriors}
    units = dict(zip(first.nodes, first.units, strict=True))
    read = {node: plain_scale(unit) for node, unit in units.items()} | dict(scales or {})
    pairs = list(combinations(posteriors, 2)) if every_pair else [(o, first) for o in others]
    return {
        "ranking": [
            {
                "node": node,
                **asdict(entry),
                "words": _standing(agents[entry.name], node, read, nodes),
            }
            for node in (first.nodes if others else ())
            for entry in ranking(posteriors, node, seed)
        ],
        "differences": [
            {
                "agent": agent.name,
                "than": other.name,
                **asdict(difference),
                "words": {
                    **difference_words(
                        agent, other, difference.node, read[difference.node]
                    )._asdict(),
                    "rising": read[difference.node].rising,
                },
            }
            for agent, other in pairs
            for difference in node_differences(agent, other, seed)
        ],
        "approximate": any(posterior.approximate for posterior in posteriors),
    }


def scales_of(profile: Mapping[str, Any]) -> dict[str, Scale]:
    """How the values of a profile's nodes are read; empty where its layout is not at hand."""
    about = profile["layout"]
    if about["name"] not in LAYOUTS:
        return {}
    try:
        layout = load_layout(about["name"], about.get("variant") or "")
    except SpecificationError:  # it had this variant once
        return {}
    return layout_scales(layout) if layout.digest == about["digest"] else {}


def layout_scales(layout: Layout) -> dict[str, Scale]:
    """How the values of a layout's nodes are read."""
    return {name: scale_of(layout, k) for k, name in enumerate(layout.latent_names)}


def _standing(
    agent: Posterior,
    name: str,
    read: Mapping[str, Scale],
    nodes: Mapping[str, Mapping[str, Any]] | None,
) -> dict[str, str]:
    """An agent's estimate of a node, with the words and the bound of its profile."""
    found = nodes and nodes.get(agent.name, {}).get(name)
    if found:
        return read[name].of_profile(found)._asdict()
    draws = agent.column(name)
    ends = hdi(draws, np.full(len(draws), 1.0 / len(draws)))
    return read[name].brief(float(draws.mean()), *ends)._asdict()


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
                "estimate": row["words"]["estimate"],
                "rank": f"{row['rank']:.1f}",
                "90 %": "{} to {}".format(*row["interval"]),
                "P(most)": f"{row['probabilities'][0]:.2f}",
            }
            for row in report["ranking"]
        ]
        columns = ["node", "agent", "estimate", Column("rank", 1), "90 %", Column("P(most)", 2)]
        print_rows(rows, columns, as_json=False, title="Ranks; 1 has the most")
    if report["differences"]:
        others = list(dict.fromkeys(row["than"] for row in report["differences"]))
        several = len(others) > 1
        by = "differs by" if several else f"differs from {others[0]} by"
        rows = [
            {
                "agent": row["agent"],
                **({"from": row["than"]} if several else {}),
                "node": row["node"],
                by: row["words"]["estimate"],
                "90 %": row["words"]["interval"],
                "P(more)": f"{row['more']:.2f}",
            }
            for row in report["differences"]
        ]
        print_rows(rows, list(rows[0]), as_json=False, title=title)
        words = {row["node"]: row["words"] for row in report["differences"]}
        if falling := [node for node, said in words.items() if not said["rising"]]:
            typer.echo(f"Of {', '.join(falling)}, a smaller value is more ability.")
    if report["approximate"]:
        typer.echo("Profiles hold no draws: each node was taken by its mean and sd, on its own.")
