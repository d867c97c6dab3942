"""One episode as a conversation: what is shown, what was said, and which action comes next."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from animalcat.doors.speech.body import Body
from animalcat.doors.speech.doing import NOTHING, Doing
from animalcat.doors.speech.perceiving import health, picture, words
from animalcat.doors.speech.reading import EXAMPLES, Deed, Wait
from animalcat.doors.speech.tongue import Tongue
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.answers import MAX_ACTIONS
from animalcat.envs.types import Observation
from animalcat.text.counts import count_of

UNREADABLE: Final = Wait(0.6)
"""What an answer costs that cannot be read, nor could the one before: time goes on, as it does for
whoever hesitates."""


class Shown(NamedTuple):
    """What a speaker is shown when it is its turn.

    Attributes:
        text: What came of its last answer, and what it perceives now.
        picture: A PNG of what it sees; None without pictures.
    """

    text: str
    picture: bytes | None


class Conversation:
    """The turns of one episode.

    Whoever lets a speaker play asks `next` for actions at each observation. Where it returns
    none it is the speaker's turn: `show` says what to show it, and `hear`, `mishear` or `end` what
    came back.

    Attributes:
        tongue: How the speaker is told, and how it answers.
        info: What may be known of the episode.
        answers: Answers so far, readable or not.
        over: Whether the speaker says nothing more: it then stands still until the episode is over.
    """

    def __init__(self, tongue: Tongue, info: EpisodeInfo) -> None:
        """Begin before the first observation."""
        self.tongue = tongue
        self.info = info
        self.answers = 0
        self.over = self._misheard = False
        self._waiting: deque[Deed] = deque()
        self._doing: Doing | None = None
        self._body = Body(info)
        self._said: list[str] = []
        self._seen: Observation | None = None

    @property
    def seen(self) -> Observation:
        """What was observed last.

        Raises:
            RuntimeError: Nothing was observed yet.
        """
        if self._seen is None:
            raise RuntimeError("nothing was observed yet: ask `next` first")
        return self._seen

    @property
    def mute(self) -> bool:
        """Whether it says nothing more, and all that it said is done."""
        return self.over and self._doing is None

    @property
    def period(self) -> int:
        """Physics steps of a decision."""
        return self.info.observation_spec.decision_period

    def next(self, observation: Observation) -> bytes:
        """Say which actions come next, a byte each; none where it is the speaker's turn."""
        self._seen = observation
        while self._doing is not None:
            if actions := self._doing.next(observation):
                return actions
            self._said.append(self._doing.report())
            self._doing = self._begin_next()
            if self._doing is None:
                self._said.append(self._body.report_hold())
        return bytes([NOTHING]) * MAX_ACTIONS if self.over else b""

    def show(self) -> Shown:
        """Say what to show the speaker now.

        Raises:
            RuntimeError: Nothing was observed yet.
        """
        spec = self.info.observation_spec
        told = words(self.seen, spec) if self.tongue.words else health(self.seen)
        left = self.tongue.answers - self.answers
        few = (
            f"You have {count_of(left, 'answer')} left."
            if left < min(10, self.tongue.answers)
            else ""
        )
        text = " ".join(filter(None, [*self._said, told, few]))
        return Shown(text, picture(self.seen, self.tongue.picture))

    def hear(self, deeds: Sequence[Deed]) -> None:
        """Take an answer; its deeds are done one after the other."""
        self._count_answer()
        self._misheard = False
        self._waiting.extend(deeds)
        self._doing = self._begin_next()

    def mishear(self, why: str) -> None:
        """Take an answer that could not be read: the speaker is told why, and shown the form.

        It may repair the first at once; another one behind it costs time.
        """
        form = EXAMPLES[self.tongue.form]
        again = [UNREADABLE] if self._misheard else []
        self.hear(again)
        self._misheard = True
        self._said.append(why if form in why else f"{why} {form}")

    def end(self) -> None:
        """Expect no more answers."""
        self.over = True

    def _count_answer(self) -> None:
        self._said.clear()
        self.answers += 1
        self.over = self.over or self.answers >= self.tongue.answers

    def _begin_next(self) -> Doing | None:
        if not self._waiting:
            return None
        return Doing(self._waiting.popleft(), self._body)
