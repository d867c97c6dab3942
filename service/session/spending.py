"""Adds up what an agent spends on an attempt, whoever asks it: the server or a worker."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from animalcat.envs.agents.base import Note
from animalcat.service.model import NOTHING, Spent

MOST_TOKENS: Final = 2**63 - 1
"""Where sums of tokens end: the largest whole number that every reader of JSON columns knows."""
MOST_CURRENCIES: Final = 10
"""Number of currencies of an attempt whose costs are added up."""


class Meter:
    """What an agent has spent on an attempt so far.

    Attributes:
        spent: The sums.
    """

    def __init__(self, spent: Spent = NOTHING) -> None:
        """Begin with what was spent already."""
        self.spent = spent

    def take(self, seconds: float, notes: Sequence[Note] = ()) -> None:
        """Add an answer, or how long one was waited for in vain.

        Args:
            seconds: How long the agent took.
            notes: The notes that it made with the answer.
        """
        thinking, tokens_in, tokens_out, costs = self.spent
        thinking += seconds
        if notes:
            amounts = dict(costs)
            for note in notes:
                tokens_in = min(MOST_TOKENS, tokens_in + (note.tokens_in or 0))
                tokens_out = min(MOST_TOKENS, tokens_out + (note.tokens_out or 0))
                known = note.currency in amounts or len(amounts) < MOST_CURRENCIES
                if note.cost is not None and known:
                    total = amounts.get(note.currency, 0.0) + note.cost
                    amounts[note.currency] = min(sys.float_info.max, total)
            costs = tuple(sorted(amounts.items()))
        self.spent = Spent(thinking, tokens_in, tokens_out, costs)
