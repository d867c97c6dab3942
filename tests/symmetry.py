"""Arenas that are mirrored, turned or painted, and which demands that may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from animalcat.arena_configs.features.definition import Reading
from animalcat.arena_configs.features.registry import FEATURES
from animalcat.arena_configs.model import ARENA_SIDE, RGB, Item, Vector3

SIDES = frozenset({"XPos", "wayBearing", "goalBearing", "goalSide", "rightLeftPosition"})
"""Demands whose sign a mirror changes."""
COLOURS = frozenset(
    {
        *(f"{what}{rgb}" for what in ("wall", "occluder") for rgb in ("Red", "Green", "Blue")),
        "wallColours",
    }
)
"""Demands that paint changes."""
PAINTED = ("Wall", "Ramp")
"""Objects that may have any colour; the colours of others say what they are."""


def mirror_item(item: Item) -> Item:
    """An item on the other side of the arena's middle, with its heading."""
    return _move_item(item, lambda x, z: (ARENA_SIDE - x, z), lambda yaw: -yaw % 360.0)


def turn_over(item: Item) -> Item:
    """An item after the whole arena has made a quarter turn clockwise."""
    return _move_item(item, lambda x, z: (z, ARENA_SIDE - x), lambda yaw: (yaw + 90.0) % 360.0)


def paint_item(item: Item) -> Item:
    """An item in another colour, if it is of those that may have any."""
    if item.name not in PAINTED:
        return item
    colours = tuple(RGB(r=255.0 - c.r, g=c.b, b=255.0 - c.g) for c in item.colors)
    return item.model_copy(update={"colors": colours})


def _move_item(
    item: Item,
    place: Callable[[float, float], tuple[float, float]],
    head: Callable[[float], float],
) -> Item:
    at = [(*place(p.x, p.z), p.y) for p in item.positions]
    update = {
        "positions": tuple(Vector3(x=x, y=y, z=z) for x, z, y in at),
        "rotations": tuple(map(head, item.rotations)),
    }
    return item.model_copy(update=update)


@dataclass(frozen=True)
class Symmetry:
    """A change of arenas, and what it may do to their demands.

    Attributes:
        change: What becomes of each item.
        signed: Demands whose sign changes.
        free: Demands that may have any value afterwards.
    """

    change: Callable[[Item], Item]
    signed: frozenset[str] = field(default_factory=frozenset[str])
    free: frozenset[str] = field(default_factory=frozenset[str])

    def differences(
        self,
        before: Mapping[str, Reading],
        after: Mapping[str, Reading],
        slack: Mapping[str, float] | None = None,
    ) -> list[str]:
        """Demands that are not what they should be afterwards, with both values.

        Args:
            before: The value of every demand of the registry, or why there is none.
            after: The same of the changed arena.
            slack: By how much values in a unit may differ.
        """
        assert before.keys() == after.keys() == FEATURES.keys()
        found: list[str] = []
        for name in FEATURES.keys() - self.free:
            one, other = before[name], after[name]
            if isinstance(one, str) or isinstance(other, str):
                same = one == other
            else:
                unit = FEATURES[name].unit
                apart = abs(other + one if name in self.signed else other - one)
                if unit == "deg":  # -180 degrees are 180
                    apart = min(apart, 360.0 - apart)
                same = apart <= (slack or {}).get(unit, 0.0) + 2e-6 * max(1.0, abs(one))
            if not same:
                found.append(f"{name}: {one}, then {other}")
        return sorted(found)


SYMMETRIES = {
    "mirror": Symmetry(mirror_item, signed=SIDES),
    "quarter turn": Symmetry(turn_over),
    "half turn": Symmetry(lambda item: turn_over(turn_over(item))),
    "paint": Symmetry(paint_item, free=COLOURS),
}
"""What must not matter to any demand but those named."""
