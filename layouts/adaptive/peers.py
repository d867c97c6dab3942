"""What stood beside a chosen instance: plain data, kept with the decision."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Peers:
    """The battery's instances of one paradigm that had not been begun when one was chosen.

    What happens to the one that was chosen stands for all of them: `reanalysis` weights by it.

    Attributes:
        left: How many they are, the chosen one among them.
        propensity: Probability that one of them was chosen.
        predicted: Their mean predicted probability of success, or mean score.
        open: Whether every one of them had a probability above 0.
    """

    left: int
    propensity: float
    predicted: float
    open: bool
