"""Which arena of a configuration comes next: Unity's order, and arenas merged into one episode.

Source: reference/animal-ai.md section 1.7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from animalcat.arena_configs.builds import NEWEST, Build
from animalcat.arena_configs.model import Arena, ArenaConfig, ArenaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from animalcat.arena_configs.draws import Draws


class ArenaSequence(Arena):
    """An arena together with those that it merges with, played in one episode.

    It can be used wherever an arena can.
    """

    following: tuple[Arena, ...] = ()

    def config(self) -> ArenaConfig:
        """The sequence as a configuration, numbered from 0."""
        names = Arena.model_fields
        first = Arena.model_validate({name: getattr(self, name) for name in names})
        return ArenaConfig(arenas=dict(enumerate((first, *self.following))))


def episode_arenas(arena: Arena) -> tuple[Arena, ...]:
    """The arenas of an episode in the order of play: one, or those of a sequence.

    Raises:
        ArenaError: One of them merges with a next arena that does not exist.
    """
    arenas = _arenas(arena)
    last = len(arenas) - 1
    for index, part in enumerate(arenas):
        if part.merge_next_arena and index == last:
            raise ArenaError(
                "mergeNextArena: the last arena has no next one to merge with; play the whole "
                "configuration, or set it to false"
            )
        if not part.merge_next_arena and index < last:
            raise ArenaError(f"arena {index} of the sequence does not merge with the next one")
    return arenas


def of_parts(parts: Sequence[Arena]) -> Arena:
    """The arena of an episode, from its arenas in the order of play."""
    first, *following = parts
    if not following:
        return first
    values = {name: getattr(first, name) for name in Arena.model_fields}
    return ArenaSequence(**values, following=tuple(following))


def pass_mark(arena: Arena) -> float:
    """Return that an episode must exceed to be a success.

    A build compares the reward of all arenas so far with the pass mark of each arena that is
    completed; a pass mark of 0 lets everybody go on to the next arena. So the return must exceed
    the pass mark of the last arena, and every other pass mark that is not 0.
    """
    *before, last = _arenas(arena)
    return max([last.pass_mark, *(part.pass_mark for part in before if part.pass_mark)])


def episodes(config: ArenaConfig) -> dict[int, Arena]:
    """The episodes of a configuration, by the number of the arena that each starts with.

    Raises:
        ArenaError: The last arena is to merge with a next one, and there is none.
    """
    chains = {number: arena_numbers(config, number) for number in sorted(config.arenas)}
    followers = {number for chain in chains.values() for number in chain[1:]}
    starts = (number for number in chains if number not in followers)
    return {start: of_parts([config.arenas[n] for n in chains[start]]) for start in starts}


def _arenas(arena: Arena) -> tuple[Arena, ...]:
    return tuple(arena.config().arenas.values()) if isinstance(arena, ArenaSequence) else (arena,)


def merge_arenas(config: ArenaConfig, number: int | None = None) -> Arena:
    """The arena that an episode starts with, together with those that it merges with.

    Args:
        config: The configuration.
        number: Number of the arena that the episode starts with; None for the lowest.

    Raises:
        ArenaError: There is no such arena, or the last one is to merge with a next one.
    """
    if not config.arenas:
        raise ArenaError("the configuration has no arena")
    number = min(config.arenas) if number is None else number
    if number not in config.arenas:
        raise ArenaError(f"there is no arena {number}; there are {sorted(config.arenas)}")
    return of_parts([config.arenas[n] for n in arena_numbers(config, number)])


class ArenaOrder:
    """Chooses the number of the arena that each episode starts with, as Unity does.

    The first one is the lowest. Then the next number follows if there is one, otherwise the first
    again. With `randomize_arenas`, any arena that was not played yet follows, and once all were
    played, any but the last. Arenas that an earlier one merges with start no episode. A new
    configuration continues counting from the arena played last (inferred: Unity notes its first
    reset once for a process, not for a configuration). Build 3.1.3 goes on to the next greater
    number, over gaps, and draws any arena but the last (section 1.3).

    Attributes:
        current: Number of the arena chosen last, or None before the first.
    """

    def __init__(self, config: ArenaConfig, build: Build = NEWEST) -> None:
        """Begin before the first arena.

        Args:
            config: The arenas.
            build: The build whose order it is.

        Raises:
            ArenaError: There are no arenas, or the last one is to merge with a next one.
        """
        self.current: int | None = None
        self._old = build == "3.1.3"
        self.use(config)

    def use(self, config: ArenaConfig) -> None:
        """Switch to another configuration, remembering which arena was played last.

        Raises:
            ArenaError: As for the constructor.
        """
        if not config.arenas:
            raise ArenaError("arenas: the configuration has no arena")
        self._config = config
        self._starts = list(episodes(config))
        self._played: set[int] = set()

    def next(self, rng: Draws) -> int:
        """Choose the number of the arena that the next episode starts with.

        Args:
            rng: Source of randomness for a random order; otherwise nothing is drawn.
        """
        if self.current is None:
            chosen = self._starts[0]
        elif self._config.randomize_arenas:
            chosen = self._draw(rng)
        else:
            after = self.current
            if after in self._config.arenas:  # an episode may have gone on into its followers
                after = arena_numbers(self._config, after)[-1]
            follows = (n for n in self._starts if (n > after if self._old else n == after + 1))
            chosen = next(follows, self._starts[0])
        self.current = chosen
        self._played.add(chosen)
        return chosen

    def _draw(self, rng: Draws) -> int:
        left = [number for number in self._starts if number not in self._played]
        if not left or self._old:
            self._played.clear()
            left = [number for number in self._starts if number != self.current] or self._starts
        return left[int(rng.integers(len(left)))]


def arena_numbers(config: ArenaConfig, number: int) -> list[int]:
    """Numbers of an arena and of the arenas that it merges with.

    Raises:
        ArenaError: The last of them is to merge with a next one, and there is none.
    """
    run = [number]
    while config.arenas[run[-1]].merge_next_arena:
        follower = run[-1] + 1
        if follower not in config.arenas:
            raise ArenaError(
                f"arenas[{run[-1]}].mergeNextArena: there is no arena {follower} to merge with"
            )
        run.append(follower)
    return run
