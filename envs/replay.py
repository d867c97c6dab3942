"""Plays an episode again from what defines it: arena, seed and actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.envs.places import watch
from animalcat.envs.types import Environment, Phase, Step


def replay(
    environment: Environment,
    arena: Arena,
    seed: int,
    actions: bytes,
    places: Sequence[MarkedPlace] = (),
) -> Iterator[Step]:
    """Play an episode again; gives its steps, from the first until the episode ends.

    Args:
        environment: The environment; it may observe more than the recorded one did, but must have
            the same decision period.
        arena: The arena.
        seed: Seed of the episode.
        actions: One byte per action.
        places: Marked places to watch, if the environment can.

    Raises:
        ArenaError: The arena cannot be built.
        ValueError: An action is out of range.
    """
    first = environment.load(arena, seed)
    watch(environment, places)
    yield first
    for action in actions:
        step = environment.step(action)
        yield step
        if step.phase is Phase.LAST:
            return
