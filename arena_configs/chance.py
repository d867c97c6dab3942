"""Says what an arena leaves to chance: when it is placed, and while it is played."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from animalcat.arena_configs.builds import NEWEST, Build, unheeded_fields
from animalcat.arena_configs.catalogue import canonical_name
from animalcat.arena_configs.model import (
    Arena,
    LimitedInvocations,
    Operation,
    OperationFromList,
    ToggleObject,
)
from animalcat.arena_configs.placement import Placement
from animalcat.text.counts import count_of

LEFT: Final = "left-to-chance"
"""Code of the finding."""
ORDER: Final = "the order of the arenas is left to chance (randomizeArenas)"
"""What is said of a file whose arenas come in any order."""

_NAMES: Final = {
    "positions": "position",
    "rotations": "rotation",
    "sizes": "size",
    "colors": "colour",
    "symbolNames": "picture of a sign",
}
"""Fields that are drawn, and what they are called."""
_FIELD: Final = re.compile(r"^(?:\w+\[\d+\]\.|agent\.)?(\w+)(?:\[\d+\])?")


def left_to_chance(
    arena: Arena, placement: Placement, build: Build = NEWEST
) -> tuple[str, str] | None:
    """Say what an arena leaves to chance.

    Args:
        arena: The arena.
        placement: How it was placed once, with what was drawn.
        build: The build that is to play it.

    Returns:
        The first field that is drawn, and what is drawn in words, as in "2 positions and 1 colour
        are left to chance"; None if nothing is.
    """
    fields: dict[str, set[str]] = {}
    for drawn in placement.drawn:
        match = _FIELD.match(drawn)
        assert match is not None, drawn  # each is `items[1].sizes[0].x` or the like
        fields.setdefault(match.group(1), set()).add(match.group())
    told = [count_of(len(fields[key]), name) for key, name in _NAMES.items() if key in fields] + [
        count_of(len(places), key) for key, places in fields.items() if key not in _NAMES
    ]
    played = [*_in_play(arena, build)]
    if played:
        told.append(f"{count_of(len(played), 'operation')} in play")
    first = next(iter(placement.drawn), None) or next(iter(played), None)
    if first is None:
        return None
    *others, last = told
    words = f"{', '.join(others)} and {last}" if others else last
    single = len(told) == 1 and last.startswith("1 ")
    return first, f"{words} {'is' if single else 'are'} left to chance"


def _in_play(arena: Arena, build: Build) -> Iterator[str]:
    """Fields of operations that draw while the arena is played."""
    for index, item in enumerate(arena.items):
        field = f"items[{index}]"
        if canonical_name(item.name) not in ("SpawnerButton", "DataZone"):
            continue
        lost = {heeded.field for heeded in unheeded_fields(item, build)}
        if "operations" not in lost:
            yield from _drawing(item.operations, f"{field}.operations")
        if item.reward_names:
            place = item.reward_spawn_pos
            weighed = len(item.reward_names) > 1 or item.spawn_probability not in (None, 1.0)
            at = None if place is None else (place.x, place.y, place.z)
            if weighed or at is None or not any(at) or min(at[0], at[2]) < 0:
                yield f"{field}.rewardNames"


def _drawing(operations: Iterable[Operation], field: str) -> Iterator[str]:
    for index, operation in enumerate(operations):
        here = f"{field}[{index}]"
        match operation:
            case OperationFromList(operations=several):
                if len(several) > 1:
                    yield here
                yield from _drawing(several, f"{here}.operations")
            case LimitedInvocations(operation=inner) if inner is not None:
                yield from _drawing([inner], here)
            case ToggleObject(spawnable=spawned) if spawned is not None:
                places = spawned.positions
                if not places or min(places[0].x, places[0].z) < 0:
                    yield f"{here}.spawnable"
            case _:
                pass
