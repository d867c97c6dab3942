"""Mirror images, turns and shifts of arenas, and other colours of their walls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from animalcat.arena_configs.catalogue import canonical_name
from animalcat.arena_configs.geometry import rotate
from animalcat.arena_configs.model import (
    ARENA_SIDE,
    RGB,
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
PAINTED: Final = ("Wall", "Ramp")
"""Objects that may have any colour; the colours of others say what they are."""

_SWAPPED: Final = {"LBlock": "JBlock", "JBlock": "LBlock"}
"""Blocks that are each other's mirror images."""
_SYMBOLS: Final = {"left-arrow": "right-arrow", "right-arrow": "left-arrow"}

Move = Callable[[Vector3], Vector3]


def mirror_arena(arena: Arena) -> Arena:
    """The arena left to right: x becomes 40 - x.

    Args:
        arena: An arena with every position and rotation explicit.
    """
    return arena.model_copy(update={"items": tuple(map(_mirror_item, arena.items))})


def turn_arena(arena: Arena, quarters: int) -> Arena:
    """The arena turned about its middle.

    Args:
        arena: An arena with every position and rotation explicit.
        quarters: Quarters of a circle, clockwise.
    """
    items = arena.items
    for _ in range(quarters % 4):
        items = tuple(map(_turn_item, items))
    return arena.model_copy(update={"items": items})


def shift_arena(arena: Arena, degrees: float, dx: float, dz: float) -> Arena:
    """The arena's contents turned about its middle, then shifted; its outer walls stay.

    Args:
        arena: An arena with every position and rotation explicit.
        degrees: By how much it is turned, clockwise.
        dx: Metres by which it is shifted along x.
        dz: Metres by which it is shifted along z.
    """
    return arena.model_copy(
        update={"items": tuple(_shift_item(item, degrees, dx, dz) for item in arena.items)}
    )


def shifted_point(x: float, z: float, degrees: float, dx: float, dz: float) -> tuple[float, float]:
    """Where `shift_arena` puts a point of the floor."""
    middle = ARENA_SIDE / 2
    off_x, off_z = rotate(x - middle, z - middle, degrees)
    return middle + off_x + dx, middle + off_z + dz


def repaint_arena(arena: Arena, paint: Mapping[RGB, RGB]) -> Arena:
    """The arena with other colours of what may have any colour.

    Args:
        arena: An arena with every colour explicit.
        paint: The new colour of each old one.
    """
    return arena.model_copy(
        update={
            "items": tuple(
                item.model_copy(update={"colors": tuple(paint.get(c, c) for c in item.colors)})
                if canonical_name(item.name) in PAINTED
                else item
                for item in arena.items
            )
        }
    )


def colours(arena: Arena) -> list[RGB]:
    """The colours of what may have any colour, each once, in order of appearance."""
    colors = (
        c for item in arena.items if canonical_name(item.name) in PAINTED for c in item.colors
    )
    return [*dict.fromkeys(colors)]


def _shift_item(item: Item, degrees: float, dx: float, dz: float) -> Item:
    def move(at: Vector3) -> Vector3:
        if at.x < 0.0 or at.z < 0.0:
            # A turn leaves no axis along which it is known, so it is random along both.
            return at.model_copy(update={"x": -1.0, "z": -1.0})
        x, z = shifted_point(at.x, at.z, degrees, dx, dz)
        return at.model_copy(update={"x": _round(x), "z": _round(z)})

    def change(other: Item) -> Item:
        return _shift_item(other, degrees, dx, dz)

    changes = {"rotations": _yaws(item, lambda angle: angle + degrees)}
    return _move_item(item, move, change, changes)


def _mirror_item(item: Item) -> Item:
    name = canonical_name(item.name) or item.name
    # An object whose front is on its x axis, and a block and its mirror image, are half a turn off.
    base = 180.0 if name in _FACING_X or name in _SWAPPED else 0.0

    def move(at: Vector3) -> Vector3:
        return at.model_copy(update={"x": _opposite(at.x)})

    changes: dict[str, Any] = {
        "name": _SWAPPED.get(name, item.name),
        "rotations": _yaws(item, lambda angle: base - angle),
        "symbol_names": tuple(map(_mirrored_symbol, item.symbol_names)),
    }
    return _move_item(item, move, _mirror_item, changes)


def _turn_item(item: Item) -> Item:
    def move(at: Vector3) -> Vector3:
        return at.model_copy(update={"x": at.z, "z": _opposite(at.x)})

    changes = {"rotations": _yaws(item, lambda angle: angle + 90.0)}
    return _move_item(item, move, _turn_item, changes)


def _move_item(
    item: Item, move: Move, change: Callable[[Item], Item], changes: dict[str, Any]
) -> Item:
    spot = item.reward_spawn_pos
    if spot is not None and (spot.x, spot.y, spot.z) != (0.0, 0.0, 0.0):  # zeros mean anywhere
        spot = move(spot)
    return item.model_copy(
        update={
            **changes,
            "positions": tuple(map(move, item.positions)),
            "reward_spawn_pos": spot,
            "operations": tuple(_operation(operation, change) for operation in item.operations),
        }
    )


def _operation(operation: Operation, change: Callable[[Item], Item]) -> Operation:
    match operation:
        case ToggleObject(spawnable=Item() as item):
            return operation.model_copy(update={"spawnable": change(item)})
        case LimitedInvocations(operation=inner) if inner is not None:
            return operation.model_copy(update={"operation": _operation(inner, change)})
        case OperationFromList(operations=several):
            both = tuple(_operation(branch, change) for branch in several)
            return operation.model_copy(update={"operations": both})
        case _:
            return operation


def _mirrored_symbol(symbol: str) -> str:
    if symbol in _SYMBOLS:
        return _SYMBOLS[symbol]
    if set(symbol) <= set("01/"):
        return "/".join(row[::-1] for row in symbol.split("/"))
    return symbol


def _opposite(along: float) -> float:
    """The same place along an axis seen from the other end; random stays random."""
    return along if along < 0.0 else _round(ARENA_SIDE - along)


def _yaws(item: Item, turn: Callable[[float], float]) -> tuple[float, ...]:
    """An item's rotations turned; random ones stay random."""
    return tuple(angle if angle < 0.0 else _round(turn(angle) % 360.0) for angle in item.rotations)


def _round(value: float) -> float:
    return round(value, 3) + 0.0
