"""Adds up what an agent spends on an attempt, and sees that it keeps to its allowance.

The server does so where it asks the agent, and the worker where the agent plays with that.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from animalcat.envs.agents.base import UNLIMITED, Allowance
from animalcat.envs.answers import Note
from animalcat.values import NOTHING, Cause, Spent
from animalcat.values.attempts import MOST_CURRENCIES, MOST_TOKENS


class Meter:
    """What an agent has spent on an attempt so far, and whether it may.

    Attributes:
        spent: The sums.
    """

    def __init__(self, allowance: Allowance = UNLIMITED, spent: Spent = NOTHING) -> None:
        """Begin with what was spent already.

        Args:
            allowance: What the agent may spend.
            spent: The sums so far.
        """
        self.spent = spent
        self._allowance = allowance

    def take(self, seconds: float, notes: Sequence[Note] = ()) -> str:
        """Add an answer, or the time for which none came.

        Args:
            seconds: How long the agent took.
            notes: The notes that it made with the answer.

        Returns:
            The cause of the attempt's end, in words, if this was more than the agent may spend;
            else empty.
        """
        before = self.spent.tokens
        tokens_in, tokens_out, costs = self.spent.tokens_in, self.spent.tokens_out, self.spent.costs
        said = Counter(note.answer for note in notes if note.answer is not None)
        if notes:
            amounts = dict(costs)
            for note in notes:
                tokens_in = min(MOST_TOKENS, tokens_in + (note.tokens_in or 0))
                tokens_out = min(MOST_TOKENS, tokens_out + (note.tokens_out or 0))
                known = note.currency in amounts or len(amounts) < MOST_CURRENCIES
                if note.cost is not None and known:
                    total = amounts.get(note.currency, 0.0) + note.cost
                    amounts[note.currency] = min(sys.float_info.max, total)
            costs = dict(sorted(amounts.items()))
        thinking = self.spent.thinking_seconds + seconds
        self.spent = Spent(
            thinking,
            tokens_in,
            tokens_out,
            costs,
            self.spent.answers + said.total() - said["limit"] - said["error"],
            self.spent.unparseable + said["unparseable"],
            self.spent.refusals + said["refusal"],
            self.spent.repeats + said["repeat"],
            self.spent.limits + said["limit"],
            self.spent.errors + said["error"],
        )
        return self._exceeded_allowance(self.spent.tokens - before)

    def _exceeded_allowance(self, tokens: int) -> str:
        """Return which allowance the sums exceed now, if the last answer took so many tokens."""
        most = self._allowance
        if 0.0 < most.episode_seconds < self.spent.thinking_seconds:
            seconds = f"{most.episode_seconds:g} s of thinking"
            return f"{Cause.OUT_OF_TIME}, with more than {seconds} in the episode"
        if 0 < most.decision_tokens < tokens:
            return f"{Cause.OUT_OF_TOKENS}, with more than {most.decision_tokens} in a decision"
        if 0 < most.episode_tokens < self.spent.tokens:
            return f"{Cause.OUT_OF_TOKENS}, with more than {most.episode_tokens} in the episode"
        return ""
