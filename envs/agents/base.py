"""The contract of an agent, which is told of an episode's start and answers observations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Protocol

from animalcat.text.ranges import Range, check_ranges

if TYPE_CHECKING:
    from animalcat.envs.answers import Answer
    from animalcat.envs.types import Observation, ObservationSpec


@dataclass(frozen=True, slots=True)
class Allowance:
    """What an agent may spend; 0 is any amount.

    An answer that exceeds it is not carried out: the episode ends there as a failure.

    Attributes:
        episode_seconds: Seconds of thinking in one episode.
        decision_tokens: Tokens, given and returned, that the notes of one answer may tell of.
        episode_tokens: Tokens that all notes of one episode may tell of.
    """

    episode_seconds: Annotated[float, Range(0, 10_000_000)] = 0.0
    decision_tokens: Annotated[int, Range(0, 10**15)] = 0
    episode_tokens: Annotated[int, Range(0, 10**15)] = 0

    def __post_init__(self) -> None:
        check_ranges(self)


UNLIMITED: Final = Allowance()
"""The allowance to spend any amount."""


@dataclass(frozen=True, slots=True)
class EpisodeInfo:
    """All that an agent may know of an episode before it begins.

    Attributes:
        episode: Number of the episode, from 0.
        seed: Seed for whatever the agent draws in this episode.
        observation_spec: What its observations will hold.
        time_budget_steps: Decisions until time runs out; 0 for no limit.
        allowance: What the agent may spend.
        practice: Whether it is for practice, and does not count.
    """

    episode: int
    seed: int
    observation_spec: ObservationSpec
    time_budget_steps: int = 0
    allowance: Allowance = UNLIMITED
    practice: bool = False


class Agent(Protocol):
    """The contract of an agent class; it is instantiated without arguments, once per process."""

    def reset(self, info: EpisodeInfo) -> None:
        """Prepare for an episode; all randomness of the episode derives from `info.seed`."""
        ...

    def act(self, observation: Observation) -> Answer:
        """Choose 3 x move + turn (0 to 8), or (move, turn), or `Actions` to take in order."""
        ...
