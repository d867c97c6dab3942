"""What can be spawned in an arena: one row of constants for every object of Animal-AI.

Numbers are those of the Unity build 4.3.1; `mass_3x` is that of build 3.1.3, where pushable
blocks were some 200 times lighter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

from animalcat.arena_configs.model import Point

PartShape = Literal["box", "sphere", "wedge", "shell"]
YRule = Literal["centre", "base", "floor", "zone", "agent"]
ColorRule = Literal["random", "settable", "fixed"]
RewardRule = Literal[
    "none", "good", "bad", "decoy", "value", "size", "death", "hot", "spawner", "button"
]

SIZE_ADJUSTMENT: Final = 0.999
"""Given sizes are multiplied by this, so that touching objects do not count as overlapping."""


HATCH_HEIGHT: Final = 1.14
"""Metres: height of the hatch of a spawner's housing."""
HOUSING_WALL: Final = 0.1
"""Metres: thickness of a housing's walls."""

ORIGIN: Final = Point(0.0, 0.0, 0.0)
UNIT: Final = Point(1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Collider:
    """One collider of an object, in the object's own coordinate frame before scaling.

    Attributes:
        shape: "box"; "sphere" (diameter `size.x`); "wedge" (half of a box: full height at local +z,
            none at -z); "shell" (a thin cylinder along local z, outer diameter `size.x`).
        center: Centre of the collider.
        size: Extents of the collider's bounding box.
    """

    shape: PartShape
    center: Point = ORIGIN
    size: Point = UNIT


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """Constants of one kind of object.

    Attributes:
        name: Canonical name in the 4.x grammar.
        tag: Tag that rays report; one that is not in `tags.RAY_TAGS` is never reported.
        parts: Colliders in the object's own coordinate frame; `size` x `ratio` scales them.
        size_min: Least size, in metres.
        size_max: Greatest size; equal to `size_min` if the size is fixed.
        ratio: Scale of the object's coordinate frame for each metre of size.
        y_rule: Where the origin stands. centre: half its height above the given y; base: at the
            given y; floor: at 0; zone: at -0.15; agent: 0.5 above the given y. Except for floor and
            zone, 0.01 is added.
        stand: Diameter by half of which a ball is lifted when it is placed; None for its own.
        yaw: Built-in yaw in degrees, added to the given rotation.
        random_yaw: Whether a rotation that is not given is drawn at random; otherwise it is 0.
        mass: Mass in kg; 0.0 if it cannot move (static or trigger).
        mass_3x: Mass in build 3.1.3.
        drag: Linear drag in 1/s.
        friction: Coulomb friction coefficient; combined by the average.
        color: Default colour (rgb, 0 to 1).
        color_rule: random: drawn if it is not given; settable: the default if it is not given;
            fixed: a given colour is ignored.
        end_color: Colour at the final value of a goal whose value changes; `color` is the one at
            the initial value.
        alpha: Opacity.
        reward: good, bad: plus or minus its diameter; decoy: 0; value: its initial value, which
            changes with time; size: its diameter, which changes with time; death, hot: zones;
            spawner, button: gives rewards by what it spawns.
        goal: Whether contact with it counts as a pickup.
        multi: Whether a pickup removes it and need not end the episode.
        bounce: Whether it starts with 10 m/s along its heading.
        zone: Whether it is a trigger that does not block.
        hull: Whether its boxes are meshes in Unity, which collide as their convex hulls. PhysX
            settles what stands on a hull otherwise than on a box of the same shape.
    """

    name: str
    tag: str
    parts: tuple[Collider, ...]
    size_min: Point
    size_max: Point
    ratio: Point = UNIT
    y_rule: YRule = "centre"
    stand: float | None = None
    yaw: float = 0.0
    random_yaw: bool = True
    mass: float = 0.0
    mass_3x: float = 0.0
    drag: float = 0.0
    friction: float = 0.6
    color: tuple[float, float, float] = (1.0, 1.0, 1.0)
    color_rule: ColorRule = "fixed"
    end_color: tuple[float, float, float] | None = None
    alpha: float = 1.0
    reward: RewardRule = "none"
    goal: bool = False
    multi: bool = False
    bounce: bool = False
    zone: bool = False
    hull: bool = False

    @property
    def ball(self) -> bool:
        """Whether it is a sphere, whose diameter is `size.x` alone."""
        return self.parts[0].shape == "sphere"

    @property
    def fixed_size(self) -> bool:
        """Whether a given size is ignored."""
        return self.size_min == self.size_max


ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Cardbox1": "LightBlock",
        "Cardbox2": "HeavyBlock",
        "LObject": "LBlock",
        "LObject2": "JBlock",
        "UObject": "UBlock",
        "AntiDecayGoal": "RipenGoal",
        "SpawnerDispenser": "SpawnerDispenserTall",
        "SpawnerContainer": "SpawnerContainerShort",
        "SignPosterboard": "SignBoard",
        "Pillar-Button": "SpawnerButton",
    }
)
"""Old name -> canonical name. Case matters, as in Unity."""


def canonical_name(name: str) -> str | None:
    """Look up the canonical name of an object; None if Unity knows no such object.

    Args:
        name: A name or an alias, as written.
    """
    resolved = ALIASES.get(name, name)
    return resolved if resolved in KINDS else None


def _rgb(*channels: float) -> tuple[float, float, float]:
    r, g, b = (min(channel / 255.0, 1.0) for channel in channels)
    return r, g, b


def _cube(side: float) -> Point:
    return Point(side, side, side)


_BOX = (Collider("box"),)
_WEDGE = (Collider("wedge", size=_cube(2.0)),)
_SPHERE = (Collider("sphere"),)
_SHELL = (Collider("shell", size=Point(2.08, 2.08, 2.0)),)
_STANDING = (Collider("box", Point(0.0, 0.5, 0.0)),)
_HOLLOW = (Collider("box", Point(-0.015, 0.852, 0.023), Point(2.095, 1.725, 2.037)),)
_BOARD = (Collider("box", Point(0.0, 1.0, 0.0), Point(0.1, 2.0, 3.0)),)
_U_PARTS = (
    Collider("box", size=Point(1.003, 1.0, 12.0)),
    Collider("box", Point(1.502, 0.0, -5.499), Point(1.995, 1.0, 1.001)),
    Collider("box", Point(1.513, 0.0, 5.504), Point(2.003, 1.0, 0.991)),
)
_L_PARTS = (
    Collider("box", Point(-0.017, 0.0, -0.5), Point(0.965, 1.0, 11.0)),
    Collider("box", Point(1.489, 0.0, -5.522), Point(2.021, 1.0, 0.955)),
)
_J_PARTS = (
    Collider("box", Point(0.016, -0.032, -0.5), Point(0.991, 1.065, 11.0)),
    Collider("box", Point(-1.489, 0.0, -5.505), Point(2.022, 1.0, 0.991)),
)


def _goal(
    name: str,
    tag: str,
    color: tuple[float, float, float],
    reward: RewardRule,
    *,
    color_rule: ColorRule = "settable",
    size_min: float = 0.5,
    size_max: float = 5.0,
) -> ObjectKind:
    return ObjectKind(
        name,
        tag,
        _SPHERE,
        _cube(size_min),
        _cube(size_max),
        random_yaw="Bounce" in name,
        mass=1.0,
        mass_3x=1.0,
        color=color,
        color_rule=color_rule,
        reward=reward,
        goal=True,
        multi="Multi" in name,
        bounce="Bounce" in name,
    )


def _metres(extent: Point, *parts: Collider) -> tuple[Collider, ...]:
    """Colliders given in metres, as shares of an object's fixed size."""

    def share(point: Point) -> Point:
        return Point(*(c / e for c, e in zip(point, extent, strict=True)))

    return tuple(Collider(part.shape, share(part.center), share(part.size)) for part in parts)


def _housing(extent: Point) -> tuple[Collider, ...]:
    """Walls, lid and the front above the hatch of a housing; a 1 m goal falls freely inside.

    The thickness of the walls is not in the mesh data that were read (inferred). Camera images show
    the frame of the hatch: the front is -x.
    """
    width, height, _ = extent
    side, inner = (width - HOUSING_WALL) / 2, width - 2 * HOUSING_WALL
    over = height - HATCH_HEIGHT
    return _metres(
        extent,
        Collider("box", Point(side, height / 2, 0.0), Point(HOUSING_WALL, height, width)),
        *(
            Collider("box", Point(0.0, height / 2, z), Point(inner, height, HOUSING_WALL))
            for z in (-side, side)
        ),
        Collider(
            "box", Point(0.0, height - HOUSING_WALL / 2, 0.0), Point(inner, HOUSING_WALL, inner)
        ),
        Collider("box", Point(-side, height - over / 2, 0.0), Point(HOUSING_WALL, over, width)),
    )


def _spawner(
    name: str, extent: Point, color: tuple[float, float, float], parts: tuple[Collider, ...]
) -> ObjectKind:
    return ObjectKind(
        name,
        "GoalSpawner",
        parts,
        extent,
        extent,
        y_rule="base",
        yaw=90.0 if name == "SpawnerTree" else 0.0,
        random_yaw=False,
        color=color,
        color_rule="fixed" if name == "SpawnerTree" else "settable",
        reward="spawner",
    )


def _block(name: str, parts: tuple[Collider, ...], mass: float, mass_3x: float) -> ObjectKind:
    cube = parts == _BOX
    return ObjectKind(
        name,
        "Movable",
        parts,
        _cube(0.5) if cube else Point(1.0, 0.3, 3.0),
        _cube(10.0) if cube else Point(5.0, 2.0, 20.0),
        ratio=_cube(1.0) if cube else Point(0.3, 1.0, 0.1),
        yaw={"LightBlock": 180.0, "HeavyBlock": 0.0}.get(name, 90.0),
        mass=mass,
        mass_3x=mass_3x,
        friction=0.25 if cube else 0.6,
        color={"LightBlock": _rgb(134, 134, 134), "HeavyBlock": _rgb(107, 111, 119)}.get(
            name,
            _rgb(209, 196, 183),  # grey and its emission together, as camera images show it
        ),
        color_rule="settable",
        hull=cube,
    )


_ZONE_REWARDS: Final[Mapping[str, RewardRule]] = {"DeathZone": "death", "HotZone": "hot"}


def _zone(name: str, color: tuple[float, float, float], alpha: float) -> ObjectKind:
    data = name == "DataZone"
    return ObjectKind(
        name,
        name,
        _BOX,
        Point(1.0, 0.5, 1.0),
        Point(30.0, 10.0, 30.0) if data else Point(40.0, 10.0, 40.0),
        y_rule="centre" if data else "zone",
        color=color,
        alpha=alpha,
        reward=_ZONE_REWARDS.get(name, "none"),
        zone=True,
    )


_WALL = ObjectKind(
    "Wall",
    "Immovable",
    _BOX,
    _cube(0.1),
    Point(40.0, 10.0, 40.0),
    mass=10000.0,
    mass_3x=10000.0,
    color=_rgb(128, 128, 128),
    color_rule="random",
)
_RAMP = replace(
    _WALL,
    name="Ramp",
    parts=_WEDGE,
    size_min=Point(0.5, 0.1, 0.5),
    ratio=_cube(0.5),
    yaw=180.0,
    mass=1000.0,
    mass_3x=1000.0,
)
_TUNNEL = ObjectKind(
    "CylinderTunnel",
    "Immovable",
    _SHELL,
    _cube(2.5),
    _cube(10.0),
    ratio=Point(0.4808, 0.4808, 0.5),
    y_rule="floor",
    color=_rgb(128, 128, 128),
)
_GREEN = _rgb(129, 191, 65)
_YELLOW = _rgb(232, 185, 35)
# Base and emission together, as the red ball looks in camera images of the real build.
_RED = _rgb(226, 39, 43)
# Base 178 under the light of those images, and emission 114.
_GREY = _rgb(164, 177, 192)


# The tree's collision mesh is narrower than the tree: x and z from -1.6 to 1.4, 5.3 high (section
# 2). A trunk and a round crown of these bounds let fruit roll off (inferred: only they are known).
_TREE: Final = Point(5.19, 5.95, 5.02)
_TREE_PARTS: Final = _metres(
    _TREE,
    Collider("box", Point(-0.1, 1.5, -0.1), Point(0.6, 3.0, 0.6)),
    Collider("sphere", Point(-0.1, 3.8, -0.1), Point(3.0, 3.0, 3.0)),
)
_PILLAR: Final = Point(0.5, 1.3, 0.64)
"""Metres: about 1.3 high; its button is on the side of +x (transforms in the prefab)."""


def _table() -> tuple[ObjectKind, ...]:
    # Unity also draws a yaw for plain multi goals; nothing can tell one from another.
    # Emission at the initial and the final value, from the prefabs; that of RipenGoals starts grey.
    # They are placed before their value is set, with the prefab's: 3 (as an image shows) and 0.
    bright, ending, dull = _rgb(233, 184, 35), _rgb(128, 190, 64), _rgb(100, 100, 100)
    changing = (
        replace(
            _goal(name, "goodGoalMulti", first, "value", color_rule="fixed", size_min=0.0),
            end_color=last,
            stand=value * SIZE_ADJUSTMENT,
        )
        for name, first, last, value in (
            ("DecayGoal", bright, dull, 3.0),
            ("RipenGoal", dull, bright, 0.0),
            ("DecayGoalEpEnding", ending, dull, 3.0),
            ("RipenGoalEpEnding", dull, ending, 0.0),
        )
    )
    return (
        ObjectKind(
            "Agent",
            "agent",
            _SPHERE,
            _cube(1.0),
            _cube(1.0),
            y_rule="agent",
            mass=100.0,
            mass_3x=100.0,
            drag=1.6,
        ),
        _WALL,
        replace(
            _WALL, name="WallTransparent", color=(1.0, 1.0, 1.0), alpha=0.416, color_rule="fixed"
        ),
        _RAMP,
        _TUNNEL,
        replace(_TUNNEL, name="CylinderTunnelTransparent", color=(1.0, 1.0, 1.0), alpha=0.416),
        _block("LightBlock", _BOX, 220.0, 1.0),
        _block("HeavyBlock", _BOX, 420.0, 2.0),
        _block("UBlock", _U_PARTS, 180.0, 1.5),
        _block("LBlock", _L_PARTS, 180.0, 1.5),
        _block("JBlock", _J_PARTS, 180.0, 1.5),
        ObjectKind(
            "HollowBox",
            "HollowObj",
            _HOLLOW,
            _cube(0.5),
            _cube(5.0),
            ratio=_cube(0.5),
            mass=500.0,
            mass_3x=500.0,
            color=_rgb(243, 228, 213),  # as a camera image shows it
            color_rule="settable",
        ),
        _goal("GoodGoal", "goodGoal", _GREEN, "good"),
        _goal("GoodGoalBounce", "goodGoal", _GREEN, "good"),
        _goal("GoodGoalMulti", "goodGoalMulti", _YELLOW, "good"),
        _goal("GoodGoalMultiBounce", "goodGoalMulti", _YELLOW, "good"),
        _goal("BadGoal", "badGoal", _RED, "bad"),
        _goal("BadGoalBounce", "badGoal", _RED, "bad"),
        _goal("BadGoalMulti", "badGoalMulti", _rgb(255, 45, 0), "bad"),
        _goal("DecoyGoal", "DecoyGoal", _GREY, "decoy"),
        _goal("DecoyGoalBounce", "DecoyGoalBounce", _GREY, "decoy"),
        _goal("DecoyGoalMulti", "DecoyGoal", _GREY, "decoy"),
        *changing,
        *(
            # Placed with the size of the prefab, which is 0: half in the floor, as an image shows.
            replace(_goal(name, name, _YELLOW, "size", size_min=0.0, size_max=8.0), stand=0.0)
            for name in ("GrowGoal", "ShrinkGoal")
        ),
        _zone("DeathZone", _rgb(160, 20, 20), 0.88),
        _zone("HotZone", _rgb(255, 134, 60), 0.56),
        _zone("DataZone", (1.0, 1.0, 1.0), 0.416),
        _spawner("SpawnerTree", _TREE, _rgb(94, 55, 37), _TREE_PARTS),
        *(
            # As camera images show the material (48, 139, 203).
            _spawner(name, extent, _rgb(71, 117, 162), _housing(extent))
            for name, extent in (
                ("SpawnerDispenserTall", Point(1.67, 4.46, 1.67)),
                ("SpawnerContainerShort", Point(1.67, 1.67, 1.67)),
            )
        ),
        ObjectKind(
            "SpawnerButton",
            "PillarButton",
            _STANDING,
            _PILLAR,
            _PILLAR,
            y_rule="base",
            mass=100000.0,
            mass_3x=100000.0,
            color=_rgb(218, 219, 133),
            reward="button",
        ),
        ObjectKind(
            "SignBoard",
            "SignPoster",
            _BOARD,
            _cube(0.5),
            _cube(2.5),
            y_rule="base",
            color=_rgb(40, 40, 40),  # of the symbol: it is what can be coloured
            color_rule="settable",
        ),
    )


KINDS: Final[Mapping[str, ObjectKind]] = MappingProxyType({kind.name: kind for kind in _table()})
"""Canonical name -> constants, for everything that can be spawned."""
