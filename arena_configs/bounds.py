"""Numbers that no build can compute with: they are lost in single precision, or overflow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from pydantic import BaseModel

from animalcat.arena_configs.model import STEPS_PER_UNIT, Arena, ArenaError
from animalcat.arena_configs.scalars import INT_MAX, INT_MIN

LARGEST: Final = 1e9
"""Greatest size of a number in an arena that may be a fraction; others have 32 bits."""
LONGEST: Final = INT_MAX // STEPS_PER_UNIT
"""Greatest time limit, and latest blackout, whose physics steps are a number of 32 bits."""
ENDLESS: Final = 5_242_879
"""Greatest time limit that ends an episode: with more, a step takes so little of the agent's health
that single precision leaves it what it is."""
TIMES: Final = ("time_limit", "blackouts")
"""Fields of an arena that count in units of several physics steps."""


def too_large(value: float) -> str:
    """What is wrong with a number beyond all bounds, and what to do."""
    if isinstance(value, int):
        return f"{value} is beyond the whole numbers of 32 bits: give {INT_MIN} to {INT_MAX}"
    return (
        f"{value:g} is out of all bounds: give a number from -{LARGEST:g} to {LARGEST:g} "
        "(an arena is 40 m wide)"
    )


def too_long(units: int) -> str:
    """What is wrong with a time beyond `LONGEST`, and what to do."""
    return (
        f"{units} units are more physics steps ({STEPS_PER_UNIT} each) than a number of 32 bits "
        f"holds: give at most {LONGEST}, or a timeLimit of 0 for no limit"
    )


def huge_numbers(value: Any, field: str) -> Iterator[tuple[str, float]]:
    """Find the numbers in a part of an arena that are out of all bounds, each with its field.

    Args:
        value: A number, a model or a tuple of them; anything else holds no number.
        field: The field that holds it.
    """
    match value:
        case int():
            if not INT_MIN <= value <= INT_MAX:
                yield field, value
        case float():
            if not abs(value) <= LARGEST:
                yield field, value
        case BaseModel():
            for name, info in type(value).model_fields.items():
                yield from huge_numbers(getattr(value, name), f"{field}.{info.alias or name}")
        case tuple():
            for index, entry in enumerate(cast("tuple[Any, ...]", value)):
                yield from huge_numbers(entry, f"{field}[{index}]")
        case _:
            pass


def out_of_bounds(arena: Arena) -> Iterator[tuple[str, str]]:
    """The numbers of an arena that are out of all bounds: the field of each, and what is wrong."""
    yield from _long_times(arena)
    for name, info in Arena.model_fields.items():
        if name not in TIMES:
            for field, value in huge_numbers(getattr(arena, name), info.alias or name):
                yield field, too_large(value)


def refuse_huge(arena: Arena) -> None:
    """Raise an error for the numbers that are used as they are given; others are clamped.

    Raises:
        ArenaError: The time limit or a blackout is beyond `LONGEST`; or the pass mark, a position
            or a rotation, also of what an operation spawns, is beyond `LARGEST`.
    """
    for field, message in _long_times(arena):
        raise ArenaError(f"{field}: {message}")
    for field, value in _values_used(arena):
        raise ArenaError(f"{field}: {too_large(value)}")


def _long_times(arena: Arena) -> Iterator[tuple[str, str]]:
    if abs(arena.time_limit) > LONGEST:
        yield "timeLimit", too_long(arena.time_limit)
    for index, time in enumerate(arena.blackouts):
        if abs(time) > LONGEST:
            yield f"blackouts[{index}]", too_long(time)


def _values_used(arena: Arena) -> Iterator[tuple[str, float]]:
    yield from huge_numbers(arena.pass_mark, "passMark")
    for index, item in enumerate(arena.items):
        # This runs whenever an arena is built, so it looks twice only where it has to.
        if any(not abs(p.x) + abs(p.y) + abs(p.z) <= LARGEST for p in item.positions):
            yield from huge_numbers(item.positions, f"items[{index}].positions")
        if any(not abs(yaw) <= LARGEST for yaw in item.rotations):
            yield from huge_numbers(item.rotations, f"items[{index}].rotations")
        for field, value in huge_numbers(item.operations, f"items[{index}].operations"):
            if ".positions[" in field or ".rotations[" in field:
                yield field, value
