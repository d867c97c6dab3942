"""What happens in an episode beyond what an agent is told, for those who log it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from animalcat.arena_configs.placement import PlacedObject
    from animalcat.envs.sim.movement import AgentBody
    from animalcat.envs.sim.rules import EpisodeState
    from animalcat.envs.sim.scene import Scene


class EpisodeView(Protocol):
    """An episode as it is played: what a journal may look at."""

    episode: EpisodeState

    @property
    def agent(self) -> AgentBody:
        """The agent's body."""
        ...

    @property
    def scene(self) -> Scene:
        """What sensors see; it may show where bodies were some steps ago."""
        ...

    def refresh(self) -> None:
        """Bring the scene up to date."""
        ...


class Journal:
    """Is told of the events of an episode; this one writes nothing down."""

    def enter(self, things: Sequence[PlacedObject]) -> None:
        """The agent enters an arena: the episode's first, or one that it leads into.

        Args:
            things: The objects of the arena.
        """

    def step(self, played: EpisodeView, move: int, turn: int) -> None:
        """A physics step begins; nothing of it has acted yet.

        Args:
            played: The episode.
            move: 0 none, 1 forward, 2 backward.
            turn: 0 none, 1 right, 2 left.
        """

    def collect(self, kind: str, reward: float) -> None:
        """The agent takes a goal, enters a DeathZone, or is granted the reward of an operation.

        Args:
            kind: Name of the object, or what the build calls the operation.
            reward: What it is worth.
        """

    def dispense(self, spawner: PlacedObject, goal: PlacedObject) -> None:
        """A spawner makes a goal."""

    def operate(self, owner: PlacedObject, spawned: PlacedObject) -> None:
        """An operation of a SpawnerButton or a DataZone spawns something."""

    def cross(self, zone: PlacedObject, *, entered: bool) -> None:
        """The agent enters or leaves a DataZone."""
