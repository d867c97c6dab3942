"""Keeps an agent's notes within budgets of bytes: of a step, of an episode and of its token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

STEP_BYTES: Final = 16 * 1024
"""Most bytes of the notes that go with one answer."""
EPISODE_BYTES: Final = 2 * 1024 * 1024
"""Most bytes of the notes of one attempt at an episode: two kilobytes at each of 1,000 steps."""
NOTE_BYTES: Final = 32
"""What a note counts beside its text: its place in the recording, tokens and cost."""


class Purse(NamedTuple):
    """What is left of a token's budget, which all agents share that show the token.

    Attributes:
        left: Returns how many bytes are left.
        spend: Takes bytes off.
        words: How large the budget is, in words.
    """

    left: Callable[[], float]
    spend: Callable[[int], None]
    words: str


class NoteBudget(NamedTuple):
    """What an agent may still write in notes during an attempt that it plays with the worker.

    Attributes:
        left: Bytes that are left of the token's budget; None where there is no such budget.
        words: How large that budget is, in words.
    """

    left: float | None = None
    words: str = ""


class NoteRoom:
    """Counts the notes of one agent; what its purse has left may also be spent by others.

    Attributes:
        written: Bytes of the notes of this episode that went with an answer.
        refused: Number of notes that were refused for want of room.
    """

    def __init__(
        self,
        purse: Purse | None = None,
        tell: Callable[[str, int], None] = lambda words, number: None,
    ) -> None:
        """Begin with nothing written.

        Args:
            purse: What is left of the token's budget; None where there is none.
            tell: Is called with why notes were refused, and how many.
        """
        self._tell = tell
        self.written = 0
        self.refused = 0
        self._purse = purse
        self._pending = 0

    @classmethod
    def within(cls, budget: NoteBudget) -> NoteRoom:
        """Return room for one attempt in the worker, where no other agent spends."""
        if budget.left is None:
            return cls()
        left = budget.left
        room = cls(Purse(lambda: left - room.written, _keep, budget.words))
        return room

    @property
    def rest(self) -> NoteBudget:
        """What is left for an attempt that is to be played elsewhere."""
        purse = self._purse
        return NoteBudget() if purse is None else NoteBudget(purse.left(), purse.words)

    def begin(self) -> None:
        """Begin an episode."""
        self.written = self._pending = 0

    def add(self, text: int) -> str:
        """Make room for a note that comes before an answer.

        Args:
            text: Bytes of its text.

        Returns:
            Why there is none, in words; empty if there is.
        """
        pending = self._pending + text + NOTE_BYTES
        why = ""
        if pending > STEP_BYTES:
            why = f"the notes of one step have at most {STEP_BYTES:,} bytes in all"
        elif self.written + pending > EPISODE_BYTES:
            why = f"the notes of one episode have at most {EPISODE_BYTES:,} bytes in all"
        elif self._purse is not None and pending > self._purse.left():
            why = f"the notes of this token have at most {self._purse.words}"
        if why:
            words = f"{why}, and a note counts its text and {NOTE_BYTES} bytes"
            self.refused += 1
            self._tell(words, 1)
            return words
        self._pending = pending
        return ""

    def drop(self) -> None:
        """Forget the notes that no answer came with."""
        self._pending = 0

    def take(self) -> None:
        """Count the notes with which an answer came."""
        self.spend(self._pending)
        self._pending = 0

    def was_refused(self, number: int) -> None:
        """Count notes that were refused where the agent played without the server."""
        if number:
            self.refused += number
            self._tell("the notes of an agent that plays with its simulator took too much", number)

    def spend(self, size: int) -> None:
        """Count notes that were written, here or elsewhere."""
        self.written += size
        if self._purse is not None and size:
            self._purse.spend(size)


def _keep(size: int) -> None:
    """Take nothing off: `NoteRoom.written` says what was spent."""


def size_of(texts: list[str]) -> int:
    """Return what notes with these texts count."""
    return sum(len(text.encode()) + NOTE_BYTES for text in texts)
