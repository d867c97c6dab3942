"""Builds what is simulated and seen from a placed arena: bodies, goals, zones, primitives."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from animalcat.arena_configs.geometry import SHELL_INNER, Solid, solids
from animalcat.arena_configs.model import Point
from animalcat.arena_configs.signs import Picture, sign_picture
from animalcat.envs.sim.ground import FirmObjects
from animalcat.envs.sim.looks import look_index
from animalcat.envs.sim.physics import Ball, Body, Box, Collider, Hull, Surface
from animalcat.envs.sim.rules import Pickup
from animalcat.envs.sim.scene import Primitive, Shape, Style, tag_index
from animalcat.envs.sim.vector import Vector
from animalcat.envs.sim.zones import Zone
from animalcat.portable import scalars

if TYPE_CHECKING:
    import numpy.typing as npt

    from animalcat.arena_configs.catalogue import ObjectKind
    from animalcat.arena_configs.placement import PlacedObject, Placement

_BOUNCE_SPEED: Final = 10.0
"""m/s at which a bouncing goal pushes off along its heading: 500 x 0.02 (section 2.1)."""

_SHAPES: Final = {
    "box": Shape.BOX,
    "sphere": Shape.SPHERE,
    "wedge": Shape.WEDGE,
    "shell": Shape.SHELL,
}
_ORIGIN: Final = Point(0.0, 0.0, 0.0)
_TUNNEL_FACETS: Final = 48
THINNEST: Final = 0.005
"""Metres: least radius of a ball's collider."""
_CHANGING: Final = ("value", "size")
_ACTIVE: Final = (*_CHANGING, "spawner", "button")
_GLOWS: Final = {
    **dict.fromkeys(("BadGoal", "BadGoalBounce"), Style.RED),
    **dict.fromkeys(("DecoyGoal", "DecoyGoalBounce", "DecoyGoalMulti"), Style.GREY),
}
"""Goals on which light falls; the others only shine."""
_GOAL_TAGS: Final = ("goodGoal", "goodGoalMulti")


@dataclass(frozen=True, slots=True)
class BuiltObject:
    """One object, ready to be simulated.

    Attributes:
        body: Its body; None if it has no colliders.
        pickup: What touching it does, if it is a goal.
        zone: What entering it does, if it kills or burns.
        primitives: The primitives that show it.
        offsets: For each primitive its centre in the body's coordinate frame.
    """

    body: Body | None
    pickup: Pickup | None
    zone: Zone | None
    primitives: tuple[Primitive, ...]
    offsets: tuple[Vector, ...]


@dataclass(frozen=True, slots=True)
class BuiltArena:
    """The bodies, goals, zones and primitives of an arena, ready to be simulated.

    Attributes:
        bodies: The bodies; an index into the tuple is the body's index.
        goals: Index of a body -> what touching it does.
        zones: The zones that the agent may enter.
        primitives: The visible primitives.
        owners: For each primitive the index of its body, or -1 if it never moves.
        offsets: For each primitive its centre in its body's coordinate frame.
        goal_count: Number of goals that count toward the end, which comes when all are collected.
        active: Objects that act: the object, the index of its body or -1, its first primitive.
        skipped: Name and reason of each object that is not simulated.
    """

    bodies: tuple[Body, ...]
    goals: dict[int, Pickup]
    zones: tuple[Zone, ...]
    primitives: tuple[Primitive, ...]
    owners: tuple[int, ...]
    offsets: tuple[Vector, ...]
    goal_count: int
    active: tuple[tuple[PlacedObject, int, int], ...]
    skipped: tuple[tuple[str, str], ...]


def build_level(placement: Placement) -> BuiltArena:
    """Turn a placement into bodies, rules and primitives."""
    bodies: list[Body] = []
    goals: dict[int, Pickup] = {}
    zones: list[Zone] = []
    primitives: list[Primitive] = []
    owners: list[int] = []
    offsets: list[Vector] = []
    active: list[tuple[PlacedObject, int, int]] = []
    ground = FirmObjects(placement.objects, placement.agent.position)
    for thing in placement.objects:
        origin, mass = ground.settle(thing)
        built = make(thing, origin, mass)
        body = -1 if built.body is None else len(bodies)
        if acts(thing.kind):
            active.append((thing, body, len(primitives)))
        if built.pickup is not None:
            goals[body] = built.pickup
        if built.zone is not None:
            zones.append(built.zone)
        if built.body is not None:
            bodies.append(built.body)
        primitives.extend(built.primitives)
        owners.extend([body if mass else -1] * len(built.primitives))
        offsets.extend(built.offsets)
    return BuiltArena(
        tuple(bodies),
        goals,
        tuple(zones),
        tuple(primitives),
        tuple(owners),
        tuple(offsets),
        sum(counts(thing.kind) and not thing.cornered for thing in placement.objects),
        tuple(active),
        tuple((skipped.name, skipped.reason) for skipped in placement.skipped),
    )


def make(thing: PlacedObject, origin: Point, mass: float) -> BuiltObject:
    """Build one object.

    Args:
        thing: The object.
        origin: Where its origin stands.
        mass: In kg; 0 if it cannot move.
    """
    kind, size = thing.kind, thing.size
    if kind.stand is not None:  # a goal whose script gives it its size later
        size = Point(*[max(kind.stand, 2 * THINNEST)] * 3)
    parts = solids(kind, _ORIGIN, size, 0.0)
    placed = solids(kind, origin, size, thing.yaw)
    zone = None
    if kind.reward in ("death", "hot"):
        zone = Zone(thing.position, parts[0].half, thing.yaw, kind.reward == "death")
    return BuiltObject(
        None if kind.zone else _body(thing, parts, origin, mass),
        _pickup(thing) if kind.goal else None,
        zone,
        tuple(_primitive(thing, part, solid) for part, solid in enumerate(placed)),
        tuple(solid.center for solid in parts),
    )


def counts(kind: ObjectKind) -> bool:
    """Whether a goal is among those that end the episode when all are collected."""
    return kind.tag in _GOAL_TAGS and kind.reward == "good"


def acts(kind: ObjectKind) -> bool:
    """Whether an object changes by itself or by what the agent does to it."""
    return kind.reward in _ACTIVE or kind.name == "DataZone"


def _pickup(thing: PlacedObject) -> Pickup:
    """What touching a goal does (section 2.1): its value, and which pickup ends the episode.

    Goals whose value changes end the episode as the first pickup, and a DecoyGoalMulti after any
    (inferred: each holds its own number of goals, which stays 1). A BadGoalMulti ends it through
    health alone.
    """
    kind = thing.kind
    changing = kind.reward in _CHANGING
    ends = kind.name.endswith("EpEnding") or not (kind.multi or changing)
    counted = counts(kind) and not thing.cornered
    needs = None if counted else math.inf if kind.reward == "bad" else 1.0
    return Pickup(thing.reward, ends, needs, kind.name)


def _body(thing: PlacedObject, local: tuple[Solid, ...], origin: Point, mass: float) -> Body:
    kind = thing.kind
    push = (0.0, 0.0, 0.0)
    if kind.bounce:
        angle = math.radians(thing.yaw)
        push = (_BOUNCE_SPEED * scalars.sin(angle), 0.0, _BOUNCE_SPEED * scalars.cos(angle))
    return Body(
        colliders=tuple(_collider(solid, hull=kind.hull) for solid in local),
        position=origin,
        yaw=thing.yaw,
        mass=mass,
        friction=kind.friction,
        push=push,
    )


def _collider(solid: Solid, *, hull: bool) -> Collider:
    match solid.shape:
        case "box" if hull:
            return Hull(_corners(solid))
        case "box":
            return Box(solid.half, solid.center)
        case "sphere":
            # A goal may start from nothing; PhysX takes no ball without a size.
            return Ball(max(solid.half.x, THINNEST), solid.center)
        case "wedge":
            return Hull(_wedge(solid.half) + np.asarray(solid.center, np.float32))
        case "shell":
            return tunnel(solid.half)


def _corners(solid: Solid) -> npt.NDArray[np.float32]:
    """The eight corners of a box."""
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=3)), np.float32)
    return signs * np.asarray(solid.half, np.float32) + np.asarray(solid.center, np.float32)


def _wedge(half: Point) -> npt.NDArray[np.float32]:
    """Corners of a ramp in its object's coordinate frame: full height at local +z, none at -z.

    With the built-in yaw of 180 degrees a ramp given rotation 0 is high at its -z end, as in the
    real build (measured: a trace up a ramp given rotation 180, which rises toward +z).
    """
    x, y, z = half
    base = [(i * x, -y, k * z) for i in (-1, 1) for k in (-1, 1)]
    return np.array([*base, (-x, y, z), (x, y, z)], np.float32)


def tunnel(half: Point) -> Surface:
    """Mesh of a tunnel: a closed thin shell along local z.

    Args:
        half: Outer radii along x and y, and half the length, in metres.
    """
    angles = np.arange(_TUNNEL_FACETS) * (2 * np.pi / _TUNNEL_FACETS)
    circle = np.array([(scalars.cos(a) * half.x, scalars.sin(a) * half.y) for a in angles.tolist()])
    rings = [
        np.column_stack([circle * scale, np.full(_TUNNEL_FACETS, end * half.z)])
        for scale, end in ((1.0, -1), (1.0, 1), (SHELL_INNER, 1), (SHELL_INNER, -1))
    ]
    return Surface(np.concatenate(rings).astype(np.float32), _tunnel_triangles())


@cache
def _tunnel_triangles() -> npt.NDArray[np.uint32]:
    """Corners between neighbouring rings of a tunnel, the last and the first among them."""
    here = np.arange(_TUNNEL_FACETS)
    there = (here + 1) % _TUNNEL_FACETS
    triangles: list[npt.NDArray[np.int64]] = []
    for ring in range(4):
        a, b = ring * _TUNNEL_FACETS, (ring + 1) % 4 * _TUNNEL_FACETS
        triangles.append(np.stack([a + here, b + here, a + there], 1))
        triangles.append(np.stack([a + there, b + here, b + there], 1))
    return np.concatenate(triangles).astype(np.uint32)


def _primitive(thing: PlacedObject, part: int, solid: Solid) -> Primitive:
    kind = thing.kind
    alpha = 0.0 if thing.item.zone_visibility is False else kind.alpha
    sign = _sign(thing)
    # A scene's wedge is high at local -z, an object's at +z.
    angle = math.radians(solid.yaw + (180.0 if solid.shape == "wedge" else 0.0))
    sin, cos = scalars.sin(angle), scalars.cos(angle)
    return Primitive(
        shape=_SHAPES[solid.shape],
        center=solid.center,
        half=solid.half,
        color=(*(thing.color or sign.color or kind.color), alpha),
        rotation=((cos, 0.0, sin), (0.0, 1.0, 0.0), (-sin, 0.0, cos)),
        tag=tag_index(kind.tag),
        style=_style(thing),
        zone=kind.zone,
        look=look_index(kind, part),
        picture=sign.rows,
    )


def _sign(thing: PlacedObject) -> Picture:
    """The picture of a sign board; nothing for any other object."""
    if thing.kind.tag != "SignPoster":
        return Picture((), None)
    names = thing.item.symbol_names
    return sign_picture(names[0] if names else None)


def _style(thing: PlacedObject) -> Style:
    kind = thing.kind
    if kind.reward in ("death", "hot"):
        return Style.ZONE
    if kind.reward == "value":
        return Style.RIPENING if kind.name.startswith("Ripen") else Style.DECAYING
    if kind.goal:
        if thing.color is not None:
            return Style.GLOWING
        return _GLOWS.get(kind.name, Style.EMISSIVE)
    return Style.TRANSPARENT if kind.alpha < 1.0 else Style.PLAIN
