"""A point in an episode, stored as the actions that lead to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from animalcat.arena_configs.draws import State
    from animalcat.arena_configs.model import Arena
    from animalcat.arena_configs.outcome import MarkedPlace


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is needed to bring an episode to this point again.

    Attributes:
        arena: The arena.
        seed: The episode's seed.
        actions: Every action so far, one per byte.
        idle: Physics steps that passed before the first observation.
        carried: Reward from an earlier episode that counts toward pass marks.
        stream: State of Unity's generator before the arena was placed; None if it was not used.
        landed: Whether the agent stood on the ground in the episode before.
        places: Marked places that are watched.
    """

    arena: Arena
    seed: int
    actions: bytes
    idle: int = 0
    carried: float = 0.0
    stream: State | None = None
    landed: bool = False
    places: Sequence[MarkedPlace] = ()
