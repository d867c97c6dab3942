"""The peers of a chosen instance: plain data that is kept with the decision."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Peers:
    """The instances of one paradigm that had not been begun when one of them was chosen.

    The outcome of the chosen one stands for all of them, weighted by this.

    Attributes:
        left: How many they are, including the chosen one.
        propensity: Probability that any one of them was chosen.
        predicted: Their mean predicted probability of success, or mean score.
        open: Whether every one of them had a probability above 0.
    """

    left: int
    propensity: float
    predicted: float
    open: bool
