"""Finds what nothing in an arena can move: walls that stand on the floor or on one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from animalcat.arena_configs.geometry import Solid, overlaps, rotate
from animalcat.arena_configs.model import Point
from animalcat.envs.sim.physics import FLOOR_TOP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from animalcat.arena_configs.placement import PlacedObject

_IMMOVABLE_MASS: Final = 10000.0
"""Kilograms from which a body that stands on something is made static.

The agent's push (5000 N) is under a wall's friction on the floor (58,860 N), and running into
one at full speed (26.7 m/s) would shift it by 6 mm. As dynamic bodies, walls side by side keep
each other awake for ever, at a hundred times the cost; on the trace `ramp-and-wall` every
decision comes out the same."""

DROP: Final = 0.05
"""Metres by which a wall may hang above its support (when spawned, some 0.03)."""


_REACH: Final = 0.01
"""Metres: half the width of what is looked for under the agent."""
_TALL: Final = 1000.0
"""Metres, more than anything falls."""

_BALANCED: Final = (
    ((0.0, 0.0),),
    ((-0.99, 0.0), (0.99, 0.0)),
    ((0.0, -0.99), (0.0, 0.99)),
    ((-0.99, -0.99), (0.99, 0.99)),
    ((-0.99, 0.99), (0.99, -0.99)),
)
"""Sets of points of a footprint, in half extents, that keep it from tipping if all are supported.
"""


class FirmObjects:
    """The objects that stand firm: heavy, and supported at the centre or on opposite sides.

    They are supported by the floor or by other firm objects. An object without such support falls,
    as in Unity, and what it falls on may give way, so that is not firm either: a rail of 10,000 kg
    moves the posts on which it comes down. Nor are the walls of a stack on which the agent starts:
    they lean by a millionth, and its rays, which graze them, then end in them or pass over them.
    """

    def __init__(self, objects: Sequence[PlacedObject], start: Point | None = None) -> None:
        """Find the firm objects, from the floor upward.

        Args:
            objects: All objects.
            start: Where the agent starts; None while an arena is played.
        """
        self._walls: list[Solid] = []
        self._origins: dict[int, Point] = {}
        heavy = [
            (thing.solids()[0], thing) for thing in objects if thing.kind.mass >= _IMMOVABLE_MASS
        ]
        heavy.sort(key=lambda pair: _foot(pair[0]))
        hit: set[int] = set()
        while True:
            self._stand([(base, thing) for base, thing in heavy if id(thing) not in hit])
            falling = [
                base
                for base, thing in heavy
                if id(thing) not in self._origins and id(thing) not in hit
            ]
            more = {
                id(thing)
                for base, thing in heavy
                if id(thing) in self._origins and any(_falls_on(fall, base) for fall in falling)
            }
            if not more:
                break
            hit |= more
        if start is not None:
            firm = [pair for pair in heavy if id(pair[1]) in self._origins]
            for thing in _stack_under(start, firm):
                del self._origins[id(thing)]

    def _stand(self, heavy: Sequence[tuple[Solid, PlacedObject]]) -> None:
        """Find which of these objects stand firm, given in the order of their feet."""
        self._walls.clear()
        self._origins.clear()
        for base, thing in heavy:
            top = self._top_under(base)
            if top is not None:
                drop = _foot(base) - top
                x, y, z = thing.position
                self._origins[id(thing)] = Point(x, y - drop, z)
                low = Point(base.center.x, base.center.y - drop, base.center.z)
                self._walls.append(Solid(base.shape, low, base.half, base.yaw))

    def settle(self, thing: PlacedObject) -> tuple[Point, float]:
        """Origin and mass of an object; a firm one is lowered onto its support and gets mass 0."""
        origin = self._origins.get(id(thing))
        return (thing.position, thing.kind.mass) if origin is None else (origin, 0.0)

    def _top_under(self, base: Solid) -> float | None:
        """Height of what supports this object, if anything does."""
        foot = _foot(base)
        if foot <= FLOOR_TOP + DROP:
            return FLOOR_TOP
        reach = base.half.x + base.half.z
        tops = {
            wall: top
            for wall in self._walls
            if 0.0 <= foot - (top := wall.center.y + wall.half.y) <= DROP
            and abs(wall.center.x - base.center.x) < reach + wall.half.x + wall.half.z
            and abs(wall.center.z - base.center.z) < reach + wall.half.x + wall.half.z
        }
        for points in _BALANCED:
            held = [_wall_height(base, point, tops) for point in points]
            if None not in held:
                return max(top for top in held if top is not None)
        return None


def _stack_under(start: Point, firm: Sequence[tuple[Solid, PlacedObject]]) -> list[PlacedObject]:
    """The walls of the stack on which the agent starts; none where it starts on a single wall."""
    column = Solid("box", Point(start.x, 0.0, start.z), Point(_REACH, _TALL, _REACH), 0.0)
    under = [base for base, _ in firm if _top(base) < start.y and overlaps(column, base)]
    if not under:
        return []
    stack = {max(under, key=_top)}
    while more := {
        base
        for base, _ in firm
        if base not in stack
        and any(_stands(base, thing) or _stands(thing, base) for thing in stack)
    }:
        stack |= more
    return [thing for base, thing in firm if base in stack] if len(stack) > 1 else []


def _stands(upper: Solid, lower: Solid) -> bool:
    """Whether a wall stands on another one, as far as their heights and footprints tell."""
    half = Point(upper.half.x, _TALL, upper.half.z)
    column = Solid("box", upper.center, half, upper.yaw)
    return 0.0 <= _foot(upper) - _top(lower) <= DROP and overlaps(column, lower)


def _falls_on(falling: Solid, base: Solid) -> bool:
    """Whether an object that falls has another one under it."""
    half = Point(falling.half.x, _TALL, falling.half.z)
    column = Solid("box", falling.center, half, falling.yaw)
    return _foot(falling) > _foot(base) and overlaps(column, base)


def _foot(solid: Solid) -> float:
    return solid.center.y - solid.half.y


def _top(solid: Solid) -> float:
    return solid.center.y + solid.half.y


def _wall_height(base: Solid, point: tuple[float, float], tops: dict[Solid, float]) -> float | None:
    """Height of the highest wall under a point of a footprint, if there is one."""
    right, ahead = rotate(point[0] * base.half.x, point[1] * base.half.z, base.yaw)
    x, z = base.center.x + right, base.center.z + ahead
    under: list[float] = []
    for wall, top in tops.items():
        right, ahead = rotate(x - wall.center.x, z - wall.center.z, -wall.yaw)
        if abs(right) <= wall.half.x and abs(ahead) <= wall.half.z:
            under.append(top)
    return max(under, default=None)
