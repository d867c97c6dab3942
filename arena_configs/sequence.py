"""Which arena of a configuration comes next: Unity's order, and the arenas merged into one episode.

Source: reference/animal-ai.md section 1.7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from animalcat.arena_configs.model import Arena, ArenaConfig, ArenaError

if TYPE_CHECKING:
    import numpy as np


class ArenaSequence(Arena):
    """An arena together with those that it merges with, which play in the same episode.

    It goes wherever an arena goes.
    """

    following: tuple[Arena, ...] = ()

    def config(self) -> ArenaConfig:
        """The same as a configuration, numbered from 0."""
        names = Arena.model_fields
        first = Arena.model_validate({name: getattr(self, name) for name in names})
        return ArenaConfig(arenas=dict(enumerate((first, *self.following))))


def episode_arenas(arena: Arena) -> tuple[Arena, ...]:
    """The arenas of an episode in the order of play: one, or those of a sequence.

    Raises:
        ArenaError: One of them merges with a next one that is not there.
    """
    following = arena.following if isinstance(arena, ArenaSequence) else ()
    arenas = (arena, *following)
    last = len(arenas) - 1
    for index, one in enumerate(arenas):
        if one.merge_next_arena and index == last:
            raise ArenaError(
                "mergeNextArena: the last arena has no next one to merge with; play the whole "
                "configuration, or set it to false"
            )
        if not one.merge_next_arena and index < last:
            raise ArenaError(f"arena {index} of the sequence does not merge with the next one")
    return arenas


def merged(config: ArenaConfig, number: int | None = None) -> Arena:
    """The arena that an episode starts with, with those that it merges with if it does.

    Args:
        config: The configuration.
        number: Number of the arena that the episode starts with; None: the lowest.

    Raises:
        ArenaError: There is no such arena, or the last one wants to merge with a next one.
    """
    if not config.arenas:
        raise ArenaError("the configuration has no arena")
    number = min(config.arenas) if number is None else number
    if number not in config.arenas:
        raise ArenaError(f"there is no arena {number}; there are {sorted(config.arenas)}")
    first, *following = (config.arenas[n] for n in _run(config, number))
    if not following:
        return first
    values = {name: getattr(first, name) for name in Arena.model_fields}
    return ArenaSequence(**values, following=tuple(following))


class ArenaOrder:
    """Gives the number of the arena that each episode starts with, as Unity chooses it.

    The first one is the lowest. Then the next number follows where there is one, else the first
    again; or, with `randomize_arenas`, any that was not played yet, and when all were, any but
    the one just played. Arenas that an earlier one merges with start no episode. A new
    configuration goes on counting from the arena played last (inferred: Unity notes its first
    reset once for a process, not for a configuration).

    Attributes:
        current: Number of the arena last given, or None before the first.
    """

    def __init__(self, config: ArenaConfig) -> None:
        """Begin before the first arena.

        Raises:
            ArenaError: There is no arena, or the last one wants to merge with a next one.
        """
        self.current: int | None = None
        self.use(config)

    def use(self, config: ArenaConfig) -> None:
        """Take another configuration, without forgetting which arena was played last.

        Raises:
            ArenaError: As for the constructor.
        """
        numbers = sorted(config.arenas)
        if not numbers:
            raise ArenaError("arenas: the configuration has no arena")
        followers = {n for number in numbers for n in _run(config, number)[1:]}
        self._config = config
        self._starts = [number for number in numbers if number not in followers]
        self._played: set[int] = set()

    def next(self, rng: np.random.Generator) -> int:
        """The number of the arena that the next episode starts with.

        Args:
            rng: Where a random order is drawn from; else nothing is drawn.
        """
        if self.current is None:
            chosen = self._starts[0]
        elif self._config.randomize_arenas:
            chosen = self._draw(rng)
        else:
            after = self.current
            if after in self._config.arenas:  # an episode may have gone on into its followers
                after = _run(self._config, after)[-1]
            chosen = after + 1 if after + 1 in self._starts else self._starts[0]
        self.current = chosen
        self._played.add(chosen)
        return chosen

    def _draw(self, rng: np.random.Generator) -> int:
        left = [number for number in self._starts if number not in self._played]
        if not left:
            self._played.clear()
            left = [number for number in self._starts if number != self.current] or self._starts
        return left[int(rng.integers(len(left)))]


def _run(config: ArenaConfig, number: int) -> list[int]:
    """An arena's number and those of the arenas that it merges with."""
    run = [number]
    while config.arenas[run[-1]].merge_next_arena:
        follower = run[-1] + 1
        if follower not in config.arenas:
            raise ArenaError(
                f"arenas[{run[-1]}].mergeNextArena: there is no arena {follower} to merge with"
            )
        run.append(follower)
    return run
