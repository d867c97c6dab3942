"""How many chick controls the paper's battery has: its text contradicts itself, its Table 8 tells.

Section D.2 of Burden et al. 2023 counts 598 cup, 430 grid and 521 basic instances, 36 chick
instances with hiding and 1,195 controls of these, and 2,188 together. With 1,195 they are 2,780;
the total leaves 603. The Brier score of the aggregate is p (1 - p), so Table 8 gives away the
success rates of the agents that pass whole apparatuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from animalcat.layouts.simulation.synthetic import PARADIGMS
from benchmarks.reproduce.printed import burden2023

WRITTEN: Final = 1195
"""Chick controls that section D.2 writes."""
LEFT: Final = PARADIGMS["chick-control"]
"""Chick controls that its total leaves."""
_PASSES: Final = {
    19: ("chick",),
    21: ("grid",),
    23: ("cup",),
    25: ("chick", "grid"),
    27: ("cup", "grid"),
    29: ("chick", "cup"),
}
"""Apparatuses that an agent passes always, beside the basic instances, and no others."""


@dataclass(frozen=True, slots=True)
class CountRow:
    """An agent's success rate and the aggregate's Brier score with either number of controls.

    Attributes:
        agent: Its number.
        passes: What it passes.
        rate_603: Success rate with 603 controls.
        rate_1195: With 1,195.
        brier_603: p (1 - p) with 603 controls.
        brier_1195: With 1,195.
        printed: Brier score of the aggregate in Table 8.
    """

    agent: int
    passes: str
    rate_603: float
    rate_1195: float
    brier_603: float
    brier_1195: float
    printed: float


def count_batteries() -> list[CountRow]:
    """Compare both numbers with Table 8, agent by agent."""
    rows: list[CountRow] = []
    for agent, passed in _PASSES.items():
        few, many = (_rate(("basic", *passed), controls) for controls in (LEFT, WRITTEN))
        printed = burden2023().table_8[agent].aggregate
        words = " and ".join(("basic", *passed))
        rows.append(
            CountRow(agent, words, few, many, few * (1.0 - few), many * (1.0 - many), printed)
        )
    return rows


def _rate(passed: tuple[str, ...], controls: int) -> float:
    """Share of the battery that is in the apparatuses that are passed."""
    sizes = dict(PARADIGMS) | {"chick-control": controls}
    return sum(n for name, n in sizes.items() if name.split("-")[0] in passed) / sum(sizes.values())
