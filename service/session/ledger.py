"""Keeps account of the attempts of a session: played, being played, and told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from animalcat.service.measuring.faults import MAX_FAULTS
from animalcat.values import Cause, Decision, Episode

MAX_FAULTS_IN_A_ROW: Final = 9
"""Backend faults in a row, of any instances, after which the session pauses."""


class Ledger:
    """The attempts of one session. Episodes are numbered in the order in which they begin.

    Attributes:
        attempts: The attempts that are over.
        playing: Numbers of the episodes that are being played.
        untold: The lowest number whose outcome has not been told.
    """

    def __init__(self, attempts: Sequence[Episode] = (), practice: int = 0) -> None:
        """Start with the stored attempts.

        Args:
            attempts: All of them over, ordered by episode number and attempt.
            practice: How many episodes come first that are not told.
        """
        self.attempts: list[Episode] = []
        self.playing: set[int] = set()
        self.untold = practice
        self._told: set[int] = set()
        self._counted: dict[int, Episode] = {}
        self._open: set[int] = set()
        self._decisions: dict[int, Decision] = {}
        self._tries: Counter[int] = Counter()
        self._faults: Counter[str] = Counter()
        for episode in attempts:
            self.begin(episode)
            self.end(episode)

    @property
    def begun(self) -> int:
        """How many episodes were begun, which is also the next new number."""
        return len(self._decisions)

    @property
    def idle(self) -> int | None:
        """The lowest number that was begun, is not settled yet, and is not being played."""
        return min(self._open - self.playing, default=None)

    @property
    def seconds(self) -> float:
        """Seconds played in all but for practice, including attempts that did not count."""
        return sum(episode.seconds for episode in self.attempts if not episode.practice)

    @property
    def practised(self) -> int:
        """Number of practice episodes that are over."""
        return sum(episode.practice and episode.settled for episode in self.attempts)

    @property
    def set_aside(self) -> set[str]:
        """Names of the instances whose backend failed too often."""
        return {name for name, count in self._faults.items() if count >= MAX_FAULTS}

    @property
    def backend_fails(self) -> bool:
        """Whether the last `MAX_FAULTS_IN_A_ROW` attempts all failed because of the backend."""
        latest = self.attempts[-MAX_FAULTS_IN_A_ROW:]
        return len(latest) == MAX_FAULTS_IN_A_ROW and all(e.backend_fault for e in latest)

    @property
    def counted(self) -> list[Episode]:
        """The episodes that count, in order of number."""
        return [self._counted[number] for number in sorted(self._counted)]

    @property
    def rest(self) -> list[Episode]:
        """The episodes that count but have not been told, in order of number."""
        return [episode for episode in self.counted if episode.number not in self._told]

    def outcome(self, number: int) -> Episode | None:
        """Return the attempt that counts for this number; None if there is none."""
        return self._counted.get(number)

    def tries(self, number: int) -> int:
        """Return how many attempts at this number were begun."""
        return self._tries[number]

    def decision(self, number: int) -> Decision | None:
        """Return the decision made for this number; None if its instance was set aside since."""
        decision = self._decisions[number]
        return None if decision.instance in self.set_aside else decision

    def chosen(self) -> set[str]:
        """Return the names of the battery's instances of which an attempt was begun."""
        over = (episode.decision for episode in self.attempts)
        return {decision.chosen for decision in (*self._decisions.values(), *over)}

    def pending(self, number: int) -> list[str]:
        """List the instances of all other numbers whose outcomes have not been told."""
        return [
            self._decisions[k].instance
            for k in range(self.untold, self.begun)
            if k != number
            and k not in self._told
            and (k in self._counted or self.decision(k) is not None)
        ]

    def tell(self, number: int) -> None:
        """Note that the outcome of this number was told."""
        self._told.add(number)
        while self.untold in self._told:
            self.untold += 1

    def begin(self, episode: Episode) -> None:
        """Note that an attempt, already stored, begins."""
        self._decisions[episode.number] = episode.decision
        self._tries[episode.number] += 1
        self._open.add(episode.number)
        self.playing.add(episode.number)

    def end(self, episode: Episode) -> None:
        """Note that an attempt, already stored, is over."""
        self.playing.discard(episode.number)
        self.attempts.append(episode)
        if episode.settled:
            self._open.discard(episode.number)
            if episode.counts:
                self._counted[episode.number] = episode
        elif episode.backend_fault:
            self._faults[episode.decision.instance] += 1

    def drop(self, number: int) -> None:
        """Note that this number is no longer played, even if its end could not be stored."""
        self.playing.discard(number)

    def voided_before(self, episode: Episode) -> bool:
        """Return whether the agent voided an earlier attempt at this number and instance."""
        return any(e.warns for e in self._before(episode.number, episode.decision))

    def seen_before(self, number: int, decision: Decision) -> bool:
        """Return whether the agent saw this arena, and its code failed there or it withdrew."""
        before = self._before(number, decision)
        return any(e.ruling is not None or e.kind is Cause.LOOKED for e in before)

    def _before(self, number: int, decision: Decision) -> list[Episode]:
        """Return the attempts at this number and instance that are over."""
        return [
            e
            for e in self.attempts
            if e.number == number and e.decision.instance == decision.instance
        ]
