"""Published tables and figures, ours beside the printed ones (`python -m benchmarks papers`).

Burden et al. (2023): profiles of the entrants of the Animal-AI Olympics (Figure 9), predictions of
them (Figure 6a), and the thirty synthetic agents (Tables 1 and 8). Tesic et al. (2025): simulated
entrants of the Melting Pot contest, since the outcomes of the real ones are not published.
"""

from __future__ import annotations

from typing import Any

from animalcat.cli.shared.progress import progress
from benchmarks.papers import cooperation, olympics, permanence


def run(quick: bool) -> list[dict[str, Any]]:
    """Work out all of them; those of the entrants need the data that ANIMALCAT_DATA names.

    Args:
        quick: Few entrants, agents and splits.
    """
    with progress("working it out", wait=0.0) as tell:
        return [
            *olympics.rows(quick, tell),
            *permanence.rows(quick, tell),
            *cooperation.rows(quick, tell),
        ]
