"""How often verdicts name the kind of agents whose kind is known."""

from __future__ import annotations

from typing import Any, Final

from scipy.stats import binomtest

from animalcat.layouts.library import load_layout
from animalcat.layouts.simulation.synthetic import synthetic_agents
from benchmarks.reproduce.verdicts import drawn_agents, paper_agents, score_kinds

RUNS: Final = (
    ("paper", 1750, 11),
    ("paper", 1750, 12),
    ("paper", 150, 13),
    ("drawn", 150, 21),
    ("drawn", 60, 23),
)
"""Which agents, how many episodes each, and the seed of battery and outcomes."""
DRAWN: Final = 120
QUICK: Final = 24
"""Agents drawn anew in each run, and with --quick."""
PRINTED: Final = 0.75
"""What the paper prints: "around 75 % of cases"."""


def run(quick: bool) -> list[dict[str, Any]]:
    """Find the kinds of all agents; with `quick` of fewer, after 150 episodes only."""
    layout = load_layout("object-permanence")
    rows: list[dict[str, Any]] = []
    for which, episodes, seed in RUNS:
        if quick and episodes != 150:
            continue
        if which == "paper":
            agents = paper_agents(synthetic_agents())
        else:
            agents = drawn_agents(2005 + seed, QUICK if quick else DRAWN)
        scores = score_kinds(layout, agents, seed, episodes)
        right = sum(score.right for score in scores)
        found = binomtest(right, len(scores)).proportion_ci(0.9, method="exact")
        wrong = sum(not s.right and s.found.kind != "unclear" for s in scores)
        rows.append(
            {
                "name": f"kinds of {which} agents, {episodes} episodes, seed {seed}",
                "value": right / len(scores),
                "low": float(found.low),
                "high": float(found.high),
                "baseline": PRINTED if which == "paper" else None,
                "note": f"{right} of {len(scores)}; another kind was named for {wrong}",
            }
        )
    return rows
