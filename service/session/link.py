"""The agent's end of a connection, as the engine sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, NamedTuple

from animalcat.envs.types import Step
from animalcat.service.model import Cause, Note, Session


class AgentLeftError(Exception):
    """The agent can play no further over this link.

    Attributes:
        cause: Why.
    """

    def __init__(self, cause: Cause) -> None:
        self.cause = cause
        super().__init__(cause.value)


class EpisodeOpening(NamedTuple):
    """What the agent is told when an episode begins.

    Attributes:
        number: Number of the episode within the session.
        time_budget_steps: Physics steps until the time limit; 0: none.
        agent_seed: Seed that it may use.
    """

    number: int
    time_budget_steps: int
    agent_seed: int


class AgentLink(ABC):
    """One connection of an agent. Every method may raise `AgentLeftError`.

    The engine is interrupted nowhere but in these calls.

    Attributes:
        process: Unique to the agent's process.
    """

    process: str

    @abstractmethod
    async def welcome(self, session: Session) -> None:
        """Tell the agent what it may know before it starts."""

    @abstractmethod
    async def begin(self, opening: EpisodeOpening, first: Step) -> None:
        """Send the first observation of an episode."""

    @abstractmethod
    async def ask(self, done: int, reward: float, step: Step) -> None:
        """Send an observation that asks for an action.

        Args:
            done: Decisions taken so far.
            reward: Reward since the previous observation.
            step: The latest step.
        """

    @abstractmethod
    async def actions(self, done: int) -> bytes:
        """Wait for the answer to the latest observation.

        Args:
            done: Decisions taken so far.

        Returns:
            Actions to take, one a byte, all in range, one at least.
        """

    @abstractmethod
    def take_notes(self) -> list[Note]:
        """What the agent remarked since the last call."""

    @abstractmethod
    async def end(self, number: int, done: int, reward: float, last: Step | None) -> None:
        """Tell that an episode is over, after it was kept.

        Args:
            number: Number of the episode.
            done: Decisions taken.
            reward: Reward since the previous observation.
            last: The last step; None: the backend failed.
        """

    @abstractmethod
    async def idle(self, until: Coroutine[Any, Any, object]) -> None:
        """Wait for something that is not the agent's, while nothing is asked of it."""

    @abstractmethod
    def interrupt(self, cause: Cause) -> None:
        """End the link: the present call, or else the next one, raises `AgentLeftError`."""

    @property
    @abstractmethod
    def interrupted(self) -> bool:
        """True after `interrupt`."""
