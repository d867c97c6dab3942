"""The contract of an agent, which is told of an episode's start and answers observations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from animalcat.envs.types import Observation, ObservationSpec


@dataclass(frozen=True, slots=True)
class EpisodeInfo:
    """All that an agent may know of an episode before it begins.

    Attributes:
        episode: Number of the episode, from 0.
        seed: Seed for whatever the agent draws in this episode.
        observation_spec: What its observations will hold.
        time_budget_steps: Decisions until time runs out; 0 for no limit.
    """

    episode: int
    seed: int
    observation_spec: ObservationSpec
    time_budget_steps: int = 0


class Agent(Protocol):
    """The contract of an agent class; it is instantiated without arguments, once per process."""

    def reset(self, info: EpisodeInfo) -> None:
        """Prepare for an episode; all randomness of the episode derives from `info.seed`."""
        ...

    def act(self, observation: Observation) -> int | Sequence[int]:
        """Choose one action (3 x move + turn, 0 to 8), or a list of actions to take in order."""
        ...
