"""Campaigns: the arenas that several agents play in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np


def common_instances(
    paradigms: Sequence[str], count: int, generator: np.random.Generator
) -> list[int]:
    """Draw random instances that all agents play, paradigms in proportion to the battery.

    Args:
        paradigms: The paradigm of each instance.
        count: How many to draw; all instances if there are fewer.
        generator: Source of randomness.

    Returns:
        Their rows, in the order in which they are to be played.
    """
    shuffled = [int(row) for row in generator.permutation(len(paradigms))]
    rows: dict[str, list[int]] = {}
    for row in shuffled:
        rows.setdefault(paradigms[row], []).append(row)
    shares = {name: Fraction(len(members), len(shuffled)) for name, members in rows.items()}
    taken: Counter[str] = Counter()
    drawn: list[int] = []
    while len(drawn) < min(count, len(shuffled)):
        owed = [name for name in rows if rows[name]]
        most = max(owed, key=lambda name: shares[name] * (len(drawn) + 1) - taken[name])
        taken[most] += 1
        drawn.append(rows[most].pop())
    return drawn
