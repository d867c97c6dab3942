"""Numbers that no build can compute with: in single precision they are lost, or overflow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from pydantic import BaseModel

from animalcat.arena_configs.model import Arena, ArenaError

LARGEST: Final = 1e9
"""Greatest size of a number in an arena."""


def too_large(value: float) -> str:
    """What is wrong with a number beyond `LARGEST`, and what to do."""
    return (
        f"{value:g} is out of all bounds: give a number from -{LARGEST:g} to {LARGEST:g} "
        "(an arena is 40 m wide)"
    )


def huge_numbers(value: Any, field: str) -> Iterator[tuple[str, float]]:
    """The numbers beyond `LARGEST` in a part of an arena, each with its field.

    Args:
        value: A number, a model or a tuple of them; anything else holds no number.
        field: The field that holds it.
    """
    match value:
        case float() | int():
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


def refuse_huge(arena: Arena) -> None:
    """Raise an error for the numbers that are used as they are given; others are clamped.

    Raises:
        ArenaError: The pass mark, a position or a rotation, also of what an operation spawns, is
            beyond `LARGEST`.
    """
    for field, value in _used(arena):
        raise ArenaError(f"{field}: {too_large(value)}")


def _used(arena: Arena) -> Iterator[tuple[str, float]]:
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
