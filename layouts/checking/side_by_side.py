"""Agents side by side, as JSON values and as the cells of tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, Literal, TypeAlias

from animalcat.layouts.checking.compare import (
    NodeDifference,
    Posterior,
    Rank,
    differences_from,
    every_difference,
    standings,
)
from animalcat.layouts.explaining.wording import Scale, few_of, plain_scale

Pairs: TypeAlias = Literal["every", "first"]
Report: TypeAlias = Mapping[str, Any]
"""What `compare_agents` returns."""

CLUSTERS: Final = 5
"""Rows of clusters of a node that a table has at most."""
FEW_RANKS: Final = 24
"""Ranks of agents that a table has at most; of more, it has the best and the worst of each node."""


def compare_agents(
    posteriors: Sequence[Posterior],
    seed: int = 0,
    *,
    pairs: Pairs | None = None,
    scales: Mapping[str, Scale] | None = None,
    nodes: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Where agents stand by every node, and who can be told apart.

    Args:
        posteriors: One an agent, one at least.
        seed: Seed of the pairing of draws.
        pairs: The pairs whose differences are wanted beside that: "every" two agents, or all
            others from the "first". Every pair takes time and room by the square of the number of
            agents; None is every pair of two agents, and none of more.
        scales: How the values of nodes are read; of those that are not there the unit alone is
            known.
        nodes: The nodes of each agent's profile, as JSON, by agent. What these do not know is not
            said.

    Returns:
        JSON values: `standings` has for every node the clusters of agents that cannot be told apart
        and the two that are farthest apart, `ranking` a row an agent and node, and `differences`
        one a pair and node. All three are empty of one agent alone.

    Raises:
        ValueError: The layouts differ.
    """
    first, *others = posteriors
    agents = {posterior.name: posterior for posterior in posteriors}
    units = dict(zip(first.nodes, first.units, strict=True))
    read = {node: plain_scale(unit) for node, unit in units.items()} | dict(scales or {})
    if pairs is None and len(posteriors) == 2:
        pairs = "every"
    found = standings(posteriors, seed, read, every_rank=pairs == "every") if others else []
    differences: Iterable[NodeDifference] = ()
    if pairs == "every":
        differences = every_difference(posteriors, seed, read)
    elif pairs == "first":
        differences = differences_from(first, others, seed, read)
    return {
        "standings": [
            {
                "node": standing.node,
                "unit": standing.unit,
                "clusters": [asdict(cluster) for cluster in standing.clusters],
                "apart": standing.apart and _difference(standing.apart, read),
            }
            for standing in found
        ],
        "ranking": [
            {
                "node": standing.node,
                **_rank_row(entry),
                "words": _standing(agents[entry.name], standing.node, read, nodes),
            }
            for standing in found
            for entry in standing.ranks
        ],
        "differences": [_difference(difference, read) for difference in differences],
        "approximate": any(posterior.approximate for posterior in posteriors),
    }


def _rank_row(entry: Rank) -> dict[str, Any]:
    """A rank as JSON values; the probabilities of all ranks only where they were asked for."""
    row = asdict(entry)
    if not entry.probabilities:
        del row["probabilities"]
    return row


def _difference(found: NodeDifference, read: Mapping[str, Scale]) -> dict[str, Any]:
    words = {**found.words._asdict(), "rising": read[found.node].rising}
    return {**asdict(found), "words": words}


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
    i = agent.nodes.index(name)
    return read[name].brief(float(agent.means[i]), *agent.intervals[i].tolist())._asdict()


def rank_rows(report: Report, *, every: bool = False) -> list[dict[str, Any]]:
    """Cells of a table of ranks: of all agents where they are few, else of the first and last.

    Args:
        report: What `compare_agents` returned.
        every: Whether all are wanted, however many there are.
    """
    ranking: Sequence[Report] = report["ranking"]
    if not every and len(ranking) > FEW_RANKS:
        by_node: dict[str, list[Report]] = {}
        for row in ranking:
            by_node.setdefault(row["node"], []).append(row)
        ranking = [row for rows in by_node.values() for row in (rows[0], rows[-1])]
    return [
        {
            "node": row["node"],
            "agent": row["name"],
            "estimate": row["words"]["estimate"],
            "interval": row["words"]["interval"],
            "rank": round(row["rank"], 1),
            "90 %": "{} to {}".format(*row["interval"]),
            "P(most)": round(row["most"], 2),
            "P(least)": round(row["least"], 2),
        }
        for row in ranking
    ]


def cluster_rows(report: Report, *, every: bool = False) -> list[dict[str, Any]]:
    """Cells of a table of who cannot be told apart; clusters in the middle are taken together.

    Args:
        report: What `compare_agents` returned.
        every: Whether each cluster has a row of its own, however many there are.
    """
    said = {(row["node"], row["name"]): row["words"]["estimate"] for row in report["ranking"]}
    rows: list[dict[str, Any]] = []
    for standing in report["standings"]:
        node, clusters = standing["node"], standing["clusters"]
        spans = [(k, k + 1) for k in range(len(clusters))]
        if not every and len(spans) > CLUSTERS:
            spans = [*spans[: CLUSTERS - 2], (CLUSTERS - 2, len(spans) - 1), spans[-1]]
        for begin, end in spans:
            agents = [name for cluster in clusters[begin:end] for name in cluster["agents"]]
            ends = dict.fromkeys(said[node, name] for name in (agents[0], agents[-1]))
            above = clusters[end - 1]["above"]
            rows.append(
                {
                    "node": node,
                    "group": str(end) if end - begin == 1 else f"{begin + 1} to {end}",
                    "agents": len(agents),
                    "estimates": " … ".join(ends),
                    "P(above the next)": None if above is None else round(above, 2),
                    "who": few_of(agents),
                }
            )
    return rows


def difference_rows(report: Report, *, every: bool = True) -> list[dict[str, Any]]:
    """Cells of a table of differences.

    Args:
        report: What `compare_agents` returned.
        every: Take the pairs that were asked for; else of each node the two that are farthest
            apart.
    """
    found = [standing["apart"] for standing in report["standings"]]
    return [
        {
            "node": row["node"],
            "agent": row["agent"],
            "from": row["than"],
            "differs by": row["words"]["estimate"],
            "90 %": row["words"]["interval"],
            "P(more)": round(row["more"], 2),
        }
        for row in (report["differences"] if every else found)
    ]


def falling(report: Report) -> list[str]:
    """The nodes of which a smaller value is more ability."""
    found = [*report["differences"], *(standing["apart"] for standing in report["standings"])]
    return list(dict.fromkeys(row["node"] for row in found if row and not row["words"]["rising"]))
