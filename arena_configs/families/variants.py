"""Mirror images and quarter turns of arenas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from animalcat.arena_configs.catalogue import canonical_name
from animalcat.arena_configs.model import (
    ARENA_SIDE,
    Arena,
    Item,
    LimitedInvocations,
    Operation,
    OperationFromList,
    ToggleObject,
    Vector3,
)

_FACING_X: Final = (
    "SignBoard",
    "SpawnerButton",
    "SpawnerDispenserTall",
    "SpawnerContainerShort",
)
"""Objects whose front is on their x axis."""
_SWAPPED: Final = {"LBlock": "JBlock", "JBlock": "LBlock"}
"""Blocks that are each other's mirror images."""
_SYMBOLS: Final = {"left-arrow": "right-arrow", "right-arrow": "left-arrow"}

Move = Callable[[Vector3], Vector3]


def mirrored(arena: Arena) -> Arena:
    """The arena left to right: x becomes 40 - x.

    Args:
        arena: An arena with every position and rotation explicit.
    """
    return arena.model_copy(update={"items": tuple(map(_mirrored, arena.items))})


def turned(arena: Arena, quarters: int) -> Arena:
    """The arena turned about its middle.

    Args:
        arena: An arena with every position and rotation explicit.
        quarters: Quarters of a circle, clockwise.
    """
    items = arena.items
    for _ in range(quarters % 4):
        items = tuple(map(_turned, items))
    return arena.model_copy(update={"items": items})


def _mirrored(item: Item) -> Item:
    name = canonical_name(item.name) or item.name
    # An object whose front is on its x axis, and a block and its mirror image, are half a turn off.
    base = 180.0 if name in _FACING_X or name in _SWAPPED else 0.0

    def move(at: Vector3) -> Vector3:
        return at.model_copy(update={"x": _rounded(ARENA_SIDE - at.x)})

    changes: dict[str, Any] = {
        "name": _SWAPPED.get(name, item.name),
        "rotations": tuple(_rounded((base - one) % 360.0) for one in item.rotations),
        "symbol_names": tuple(map(_mirrored_symbol, item.symbol_names)),
    }
    return _moved(item, move, _mirrored, changes)


def _turned(item: Item) -> Item:
    def move(at: Vector3) -> Vector3:
        return at.model_copy(update={"x": at.z, "z": _rounded(ARENA_SIDE - at.x)})

    changes = {"rotations": tuple(_rounded((one + 90.0) % 360.0) for one in item.rotations)}
    return _moved(item, move, _turned, changes)


def _moved(item: Item, move: Move, change: Callable[[Item], Item], changes: dict[str, Any]) -> Item:
    spot = item.reward_spawn_pos
    return item.model_copy(
        update={
            **changes,
            "positions": tuple(map(move, item.positions)),
            "reward_spawn_pos": None if spot is None else move(spot),
            "operations": tuple(_operation(one, change) for one in item.operations),
        }
    )


def _operation(operation: Operation, change: Callable[[Item], Item]) -> Operation:
    match operation:
        case ToggleObject(spawnable=Item() as item):
            return operation.model_copy(update={"spawnable": change(item)})
        case LimitedInvocations(operation=inner) if inner is not None:
            return operation.model_copy(update={"operation": _operation(inner, change)})
        case OperationFromList(operations=several):
            both = tuple(_operation(one, change) for one in several)
            return operation.model_copy(update={"operations": both})
        case _:
            return operation


def _mirrored_symbol(symbol: str) -> str:
    if symbol in _SYMBOLS:
        return _SYMBOLS[symbol]
    if set(symbol) <= set("01/"):
        return "/".join(row[::-1] for row in symbol.split("/"))
    return symbol


def _rounded(value: float) -> float:
    return round(value, 3) + 0.0
