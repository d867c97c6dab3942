"""What an attempt at an episode is: how it ended, what it cost, and who says what it counts as."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import Final, NamedTuple

from animalcat.envs.types import EndedBy
from animalcat.text import names
from animalcat.values.decisions import PRACTICE, Decision

MOST_TOKENS: Final = 2**63 - 1
"""Where sums of tokens end: the largest whole number that every reader of JSON columns knows."""
MOST_CURRENCIES: Final = 10
"""Number of currencies whose costs are added up."""


class Outcome(StrEnum):
    """What became of an episode."""

    SUCCESS = auto()
    FAILURE = auto()
    VOID = auto()
    FAULT = auto()

    @property
    def counts(self) -> bool:
        """Whether the episode is evidence."""
        return self in (Outcome.SUCCESS, Outcome.FAILURE)


@dataclass(frozen=True, slots=True)
class Spent:
    """What an agent spent on an attempt at an episode, or on several.

    Attributes:
        thinking_seconds: Seconds between what it was asked and its answers, as the server saw it.
        tokens_in: Sum of the tokens that its notes say a language model was given.
        tokens_out: Sum of the tokens that its notes say the model gave.
        costs: Sums of what its notes say that cost, by currency.
        answers: Number of its answers in words, as its notes say.
        unparseable: How many of them could not be read.
        refusals: How many of them were refusals.
        repeats: How many of them were read, and had the same words as the one before.
        limits: How often a limit cut an answer off, or kept it from being asked.
        errors: How often a model's provider failed and was asked again.
    """

    thinking_seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    costs: Mapping[str, float] = field(default_factory=dict[str, float])
    answers: int = 0
    unparseable: int = 0
    refusals: int = 0
    repeats: int = 0
    limits: int = 0
    errors: int = 0

    @property
    def tokens(self) -> int:
        """Sum of all tokens."""
        return self.tokens_in + self.tokens_out

    @property
    def _counts(self) -> tuple[int, ...]:
        tokens = self.tokens_in, self.tokens_out
        lost = self.unparseable, self.refusals, self.repeats, self.limits, self.errors
        return (*tokens, self.answers, *lost)

    def __add__(self, other: Spent) -> Spent:
        """Add what else was spent; in the end it is the same in whatever order it is added.

        Of more currencies than are added up, those that come first in the alphabet stay. One that
        stays was among them all the time, so that nothing of it is lost.
        """
        currencies = sorted({*self.costs, *other.costs})[:MOST_CURRENCIES]
        sums = {c: self.costs.get(c, 0.0) + other.costs.get(c, 0.0) for c in currencies}
        return Spent(
            self.thinking_seconds + other.thinking_seconds,
            min(MOST_TOKENS, self.tokens_in + other.tokens_in),
            min(MOST_TOKENS, self.tokens_out + other.tokens_out),
            {c: min(sys.float_info.max, total) for c, total in sums.items()},
            self.answers + other.answers,
            self.unparseable + other.unparseable,
            self.refusals + other.refusals,
            self.repeats + other.repeats,
            self.limits + other.limits,
            self.errors + other.errors,
        )

    def is_close(self, other: Spent) -> bool:
        """Return whether it is the same but for the order in which it was added up."""
        return (
            self._counts == other._counts
            and self.costs.keys() == other.costs.keys()
            and math.isclose(self.thinking_seconds, other.thinking_seconds, rel_tol=1e-9)
            and all(
                math.isclose(cost, other.costs[c], rel_tol=1e-9) for c, cost in self.costs.items()
            )
        )


NOTHING: Final = Spent()
"""What is spent before there is anything to answer."""


class Cause(StrEnum):
    """Why an attempt did not come to its end, or is a failure without having done so."""

    BACKEND = "backend"
    AGENT_LEFT = "the agent left"
    WITHDREW = "the agent left before it had to do with the episode"
    LOOKED = "the agent withdrew from an arena that it had been shown"
    ACTION_TIMEOUT = "the agent did not act in time"
    BAD_FRAMES = "the agent sent too many bad frames"
    CANCELLED = "the session was cancelled"
    SERVER_STOPPED = "the server stopped"
    SESSION_STOPPED = "the session stopped, since another of its slots failed"
    SERVER_FAILED = "the server failed, without having stopped"
    OUT_OF_TIME = "out of time"
    OUT_OF_TOKENS = "out of tokens"
    TOKEN_ENDED = "the agent's token was revoked or has expired"
    DISMISSED = "whoever runs the agent took it off"
    AGENT_FAILED = "the agent's code failed"
    OUT_OF_MEMORY = "the machine ran out of memory"


class Whose(StrEnum):
    """Whose doing it is that an attempt ended early."""

    AGENT = "agent"
    OPERATOR = "operator"
    SERVER = "server"
    BACKEND = "backend"


class End(NamedTuple):
    """What a cause makes of an attempt.

    Attributes:
        whose: Whose doing it is.
        first: The outcome.
        again: The outcome where the agent has voided an attempt at the same episode before.
    """

    whose: Whose
    first: Outcome
    again: Outcome

    @property
    def warns(self) -> bool:
        """Whether such an attempt is the first of two of which the second is a failure."""
        return not self.first.counts and self.again.counts


ENDS: Final[Mapping[Cause, End]] = {
    Cause.BACKEND: End(Whose.BACKEND, Outcome.FAULT, Outcome.FAULT),
    Cause.AGENT_LEFT: End(Whose.AGENT, Outcome.VOID, Outcome.FAILURE),
    # The server was ahead: it had an episode ready for an agent that was leaving between two.
    Cause.WITHDREW: End(Whose.SERVER, Outcome.VOID, Outcome.VOID),
    # It was shown, and who comes back to it has had all the time in the world to think.
    Cause.LOOKED: End(Whose.AGENT, Outcome.VOID, Outcome.FAILURE),
    Cause.ACTION_TIMEOUT: End(Whose.AGENT, Outcome.VOID, Outcome.FAILURE),
    Cause.BAD_FRAMES: End(Whose.AGENT, Outcome.VOID, Outcome.FAILURE),
    Cause.CANCELLED: End(Whose.OPERATOR, Outcome.VOID, Outcome.VOID),
    Cause.SERVER_STOPPED: End(Whose.SERVER, Outcome.FAULT, Outcome.FAULT),
    Cause.SESSION_STOPPED: End(Whose.SERVER, Outcome.FAULT, Outcome.FAULT),
    Cause.SERVER_FAILED: End(Whose.SERVER, Outcome.FAULT, Outcome.FAULT),
    Cause.OUT_OF_TIME: End(Whose.AGENT, Outcome.FAILURE, Outcome.FAILURE),
    Cause.OUT_OF_TOKENS: End(Whose.AGENT, Outcome.FAILURE, Outcome.FAILURE),
    Cause.TOKEN_ENDED: End(Whose.OPERATOR, Outcome.VOID, Outcome.VOID),
    Cause.DISMISSED: End(Whose.OPERATOR, Outcome.VOID, Outcome.VOID),
    # It waits for a person, who says what it is (`Ruling`).
    Cause.AGENT_FAILED: End(Whose.AGENT, Outcome.VOID, Outcome.VOID),
    # It says nothing of the arena, which is not set aside for it.
    Cause.OUT_OF_MEMORY: End(Whose.SERVER, Outcome.FAULT, Outcome.FAULT),
}
"""What becomes of attempts that end early: every cause has its line, and nothing else decides.

What is not the agent's doing is no outcome of the agent's, however often it happens.
"""


def cause_of(words: str) -> Cause | None:
    """Return the cause that an attempt's words begin with; None if they begin with none."""
    for cause in Cause:
        if words == cause.value or words.startswith((f"{cause.value},", f"{cause.value}:")):
            return cause
    return None


BY_DEFAULT: Final[Mapping[str, float]] = {"success": 0.0}
"""What is observed of an attempt that is a failure without having come to its end."""


class Ruling(StrEnum):
    """What a person says of an attempt at which the agent's code failed."""

    REPEAT = auto()
    """The arena is played again, and the profile says so."""
    FAILURE = auto()
    """It counts as a failure."""
    FAULT = auto()
    """It was no doing of the agent's: a fault, and the arena is played again."""
    AWAITED = auto()
    """Nobody has said anything yet; until then nothing of the session begins."""

    @property
    def outcome(self) -> Outcome:
        """What becomes of the attempt."""
        return {Ruling.FAILURE: Outcome.FAILURE, Ruling.FAULT: Outcome.FAULT}.get(
            self, Outcome.VOID
        )


@dataclass(frozen=True, slots=True)
class Episode:
    """One attempt at an episode, open or finished. A finished one never changes.

    Attributes:
        session: Id of the session.
        number: Number of the episode within the session, from 0.
        attempt: Which attempt at this number, from 0.
        decision: Why its instance was chosen.
        agent_instance: Id of the agent's process that played it. Clients are not told.
        outcome: What became of it; None while it is open.
        episode_return: Sum of the rewards.
        steps: Number of decisions taken.
        ended_by: Why the episode ended; None while the attempt is open, or if the agent left.
        cause: Why it was void or a fault, or failed without having come to its end: on the second
            chance, or beyond the agent's allowance; empty otherwise.
        seconds: How long it took to play.
        outcomes: Observed values of a finished attempt by source: "success", "return", "time_left",
            "rewards", "choice"; those that do not apply are absent.
        versions: Versions of what played it, by package, and of a Unity build; empty while it is
            open.
        unreadable: Why its record cannot be read, and then its decision has no content; empty if it
            can be read. Clients are told it as the cause.
        invalid: Why a person declared its outcome invalid, and then it does not count; empty
            otherwise.
        spent: What the agent spent on it; nothing while it is open.
        ruling: What a person has said of it, where the agent's code failed; None elsewhere.
        seen: Whether the agent had seen its arena before, in an attempt at which its code failed or
            from which it withdrew.
    """

    session: str
    number: int
    attempt: int
    decision: Decision
    agent_instance: str = ""
    outcome: Outcome | None = None
    episode_return: float = 0.0
    steps: int = 0
    ended_by: EndedBy | None = None
    cause: str = ""
    seconds: float = 0.0
    outcomes: Mapping[str, float] = field(default_factory=dict[str, float])
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    unreadable: str = ""
    invalid: str = ""
    spent: Spent = NOTHING
    ruling: Ruling | None = None
    seen: bool = False

    @property
    def name(self) -> str:
        """Resource name, "sessions/{session}/episodes/{number}-{attempt}"."""
        return names.episode_name(self.session, self.number, self.attempt)

    @property
    def instance(self) -> str:
        """Name of the instance that was played."""
        return self.decision.instance

    @property
    def practice(self) -> bool:
        """Whether it is for practice, and so never counts."""
        return self.decision.reason == PRACTICE

    @property
    def settled(self) -> bool:
        """Whether it came to an end that stands, so that its number is not played again."""
        return self.outcome is not None and self.outcome.counts and not self.invalid

    @property
    def counts(self) -> bool:
        """Whether the attempt is evidence."""
        return self.settled and not self.practice

    @property
    def practises(self) -> bool:
        """Whether the agent may have learnt by it: it acted, and came to an end or left.

        Whatever it counts as makes no difference. A fault is left out: of it nobody knows how much
        was played, and what follows must not depend on when a server was killed.
        """
        return self.steps > 0 and self.outcome not in (None, Outcome.FAULT)

    @property
    def cause_kind(self) -> str:
        """The kind of its cause in a word such as "agent_left"; empty if it has none."""
        return self.kind.name.lower() if self.kind else ""

    @property
    def kind(self) -> Cause | None:
        """The cause of its end; None if it came to its end, is open, or nobody knows."""
        if (known := cause_of(self.cause)) is not None:
            return known
        return Cause.BACKEND if self.outcome is Outcome.FAULT else None

    @property
    def end(self) -> End:
        """What its cause makes of it; an early end of which nothing is known is the agent's."""
        return ENDS[self.kind or Cause.AGENT_LEFT]

    @property
    def backend_fault(self) -> bool:
        """Whether the backend failed."""
        return self.outcome is Outcome.FAULT and self.end.whose is Whose.BACKEND

    @property
    def agents_void(self) -> bool:
        """Whether the agent ended the attempt, so that it does not count."""
        return self.outcome is Outcome.VOID and self.end.whose is Whose.AGENT

    @property
    def warns(self) -> bool:
        """Whether it is a void after which another one of the agent's is a failure."""
        return self.outcome is Outcome.VOID and self.end.warns

    @property
    def overspent(self) -> bool:
        """Whether it is a failure since the agent spent more than its allowance."""
        return self.outcome is Outcome.FAILURE and bool(self.cause) and self.end.first.counts

    @property
    def by_default(self) -> bool:
        """Whether it is a failure since the agent ended an attempt for the second time."""
        return self.outcome is Outcome.FAILURE and bool(self.cause) and self.end.warns
