"""What is staked on a chosen instance: plain data that is kept with the decision."""

from __future__ import annotations

from typing import NamedTuple


class Wager(NamedTuple):
    """What is staked on an episode against each number of successes, before it is played.

    Attributes:
        before: How many instances of the battery had been begun before.
        failure: Logarithm of the stake's factor if it fails, for each of `totals`.
        success: The same if it succeeds.
    """

    before: int
    failure: tuple[float, ...]
    success: tuple[float, ...]
