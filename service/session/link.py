"""Defines the connection to one agent, as the engine sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from asyncio import Future
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NamedTuple, TypeVar

from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.answers import Note
from animalcat.envs.types import Step
from animalcat.service.session.notes import NoteRoom
from animalcat.v1 import gateway_pb2
from animalcat.values import Cause, Session

T = TypeVar("T")


class AgentLeftError(Exception):
    """The agent can no longer play over this link.

    Attributes:
        cause: Why it cannot.
        waited: Seconds for which an answer was being waited for; 0 if none was due.
        detail: What else is known, in words.
    """

    def __init__(self, cause: Cause, waited: float = 0.0, detail: str = "") -> None:
        self.cause = cause
        self.waited = waited
        self.detail = detail
        super().__init__(cause.value)


class EpisodeOpening(NamedTuple):
    """What the agent is told when an episode begins.

    Attributes:
        number: Number of the episode within the session.
        time_budget_steps: Physics steps until the time limit; 0 means that there is none.
        agent_seed: A seed for the agent's own randomness.
        practice: Whether it is for practice.
        done: Decisions taken by an earlier process, with which it goes on; None: it is new.
        reward: Sum of the rewards by then.
    """

    number: int
    time_budget_steps: int
    agent_seed: int
    practice: bool = False
    done: int | None = None
    reward: float = 0.0


class Offer(NamedTuple):
    """Where the agent may play an episode without the server between.

    Attributes:
        address: Host and port of the worker that simulates it.
        ticket: What the agent shows there.
    """

    address: str
    ticket: bytes


class Answer(NamedTuple):
    """What an agent answered to an observation.

    Attributes:
        actions: One or more actions to take, one per byte, all within range.
        notes: The notes that it made with them.
        seconds: How long it took.
        returned: Whether its connection broke since its last answer, so that it may have been away
            for long.
    """

    actions: bytes
    notes: Sequence[Note]
    seconds: float
    returned: bool = False


class AgentLink(ABC):
    """The connection of an agent. Every method may raise `AgentLeftError`.

    The engine is interrupted only inside these calls. A connection that breaks interrupts nothing
    as long as the agent may come back over another: what is told meanwhile is told then.

    Attributes:
        process: Id that is unique to the agent's process.
        direct_place: Where a worker may listen for this agent: an address of the network, or
            `unix:` and a folder; empty if the agent is to play over this link.
        timeout: Seconds that the agent may take for one action.
        fingerprint: What the agent is; None where a link has no way to say.
        whole: Whether that is all of it: its first `reset` may bring more.
        same_agent: Whether whoever connects says that it is the same agent as before.
        resumes: Whether it goes on with an attempt that an earlier process of it left open.
        handed_on: Whether another process that does so takes this one's place.
        unconfined: Whether its process sees the evaluator, as an operator's does.
        room: How much the agent's notes may still take.
        ready: Is told the whole fingerprint, and raises where the agent may not go on.
    """

    process: str
    direct_place: str
    timeout: float
    room: NoteRoom
    fingerprint: AgentFingerprint | None = None
    whole: bool = True
    same_agent: bool = False
    resumes: bool = False
    handed_on: bool = False
    unconfined: bool = False
    ready: Callable[[AgentFingerprint], Awaitable[None]] | None = None

    def leaves_open(self, cause: Cause) -> bool:
        """Whether what it plays stays open for another process, where it leaves for a cause."""
        return self.resumes and (self.handed_on or cause is Cause.SERVER_STOPPED)

    @property
    @abstractmethod
    def away(self) -> bool:
        """Whether the connection broke, and the agent may still come back over another."""

    @abstractmethod
    async def welcome(self, session: Session) -> None:
        """Tell the agent what it may know before the first episode."""

    @abstractmethod
    async def begin(self, opening: EpisodeOpening, first: Step, offer: Offer | None) -> None:
        """Open an episode and send its first observation.

        Args:
            opening: The episode.
            first: Its first step.
            offer: Where the agent may play it instead of here; None for nowhere.
        """

    @abstractmethod
    async def while_elsewhere(self, playing: Future[Any]) -> None:
        """Wait until the agent has played elsewhere, or says something here, or is away.

        Args:
            playing: Is done when the agent has played elsewhere.
        """

    @abstractmethod
    async def ask(self, question: gateway_pb2.EvaluateResponse, waited: float = 0.0) -> None:
        """Send an observation that asks for an action.

        Args:
            question: A frame with an `ask`.
            waited: Seconds that the agent has had for this action elsewhere.
        """

    @abstractmethod
    async def answer(self, done: int) -> Answer:
        """Wait for the agent's answer to the latest observation.

        Args:
            done: Number of decisions taken so far.
        """

    @abstractmethod
    async def end(
        self, number: int, done: int, reward: float, last: Step | None, exceeded: str = ""
    ) -> None:
        """Tell the agent that an episode is over; it has been stored by then.

        Args:
            number: Number of the episode.
            done: Number of decisions taken.
            reward: Reward since the previous observation.
            last: The last step; None if the backend failed.
            exceeded: Which allowance the agent exceeded, a cause in words; empty for none.
        """

    @abstractmethod
    async def idle(self, until: Coroutine[Any, Any, T]) -> T:
        """Wait until `until` has ended, while nothing is asked of the agent; returns its result."""

    @abstractmethod
    def interrupt(self, cause: Cause, detail: str = "") -> None:
        """End the link: the present call, or else the next, raises `AgentLeftError`.

        Args:
            cause: Why; where the agent could not come back, that is why instead.
            detail: What else is known, in words.
        """

    @property
    @abstractmethod
    def interrupted(self) -> bool:
        """Whether `interrupt` was called."""
