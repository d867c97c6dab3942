"""Where everything in an arena stands at the start: Unity's rules, with chance made explicit.

There are two deviations, where Unity's own rule cannot be followed or would mislead. An object that
finds no free spot is not spawned and is listed in `Placement.skipped` (build 4.3.1 leaves it in the
arena's corner; older builds do not spawn it). A random position for the agent keeps its whole body
clear (Unity tests its centre only), so that fixing a placement cannot remove an object.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np

from animalcat.arena_configs.catalogue import (
    KINDS,
    ORIGIN,
    SIZE_ADJUSTMENT,
    ObjectKind,
    canonical_name,
)
from animalcat.arena_configs.geometry import WALLS, Obstacles, Solid, overlaps, solids
from animalcat.arena_configs.model import (
    ARENA_SIDE,
    PER_COPY,
    RGB,
    STEPS_PER_UNIT,
    Arena,
    ArenaError,
    Item,
    Point,
    Vector3,
)
from animalcat.arena_configs.signs import drawn

OBJECT_TRIES: Final = 20
_AGENT_TRIES: Final = 100
MAX_OBJECTS: Final = 2000
"""Greatest number of objects in an arena; the real files at hand have up to 204."""
AGENT_RADIUS: Final = 0.5

LIFT: Final = 0.01
"""Metres by which everything is spawned above the position that is asked for."""
_ZONE_Y: Final = -0.15
_HOT_ZONE_FLOOR: Final = -0.001
"""Greatest (least negative) reward of a HotZone at each physics step."""

_ANYWHERE: Final[Vector3] = Vector3(x=-1.0, y=0.0, z=-1.0)
_ANY_SIZE: Final = Vector3(x=-1.0, y=-1.0, z=-1.0)


@dataclass(frozen=True, slots=True)
class AgentStart:
    """Where the agent starts.

    Attributes:
        position: Its centre, in metres.
        yaw: Heading in degrees, clockwise from +z.
        frozen_seconds: How long it cannot move.
        item: The item that makes all this explicit.
    """

    position: Point
    yaw: float
    frozen_seconds: float
    item: Item = field(repr=False)


@dataclass(frozen=True, slots=True)
class PlacedObject:
    """A placed object.

    Attributes:
        kind: Its constants.
        name: Its canonical name.
        position: Position of its origin, in metres.
        yaw: Degrees clockwise, including the kind's built-in yaw.
        size: In metres, after clamping and the factor 0.999.
        color: rgb, 0 to 1; None for the kind's own look.
        reward: What a contact gives at the start; for a HotZone, at every physics step inside.
        item: An item with one copy and every value explicit, from which it was placed.
        source: Index of the arena's item that it came from, and of the copy.
    """

    kind: ObjectKind
    name: str
    position: Point
    yaw: float
    size: Point
    color: tuple[float, float, float] | None
    reward: float
    item: Item = field(repr=False)
    source: tuple[int, int]
    _solids: tuple[Solid, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = solids(self.kind, self.position, self.size, self.yaw)
        object.__setattr__(self, "_solids", parts)

    def solids(self) -> tuple[Solid, ...]:
        """Its placed colliders."""
        return self._solids


class Skipped(NamedTuple):
    """An object that was not placed.

    Attributes:
        name: Name of the object, as written.
        reason: Why it was not placed.
        source: Index of the arena's item, and of the copy.
    """

    name: str
    reason: str
    source: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Placement:
    """An arena as it stands at the start of an episode; pure data.

    Attributes:
        agent: Where the agent starts.
        objects: Everything else, in the order of spawning.
        time_limit: In units of five physics steps; 0 for no limit.
        pass_mark: Return that a success exceeds.
        blackouts: As in `Arena`.
        drawn: What was left to chance -> what was drawn. For a board's random picture it has each
            row, with the squares as a binary number.
        skipped: What was not placed.
    """

    agent: AgentStart
    objects: tuple[PlacedObject, ...]
    time_limit: int
    pass_mark: float
    blackouts: tuple[int, ...]
    drawn: Mapping[str, float]
    skipped: tuple[Skipped, ...]


def place(arena: Arena, rng: np.random.Generator) -> Placement:
    """Place everything in an arena.

    Args:
        arena: The arena.
        rng: Source of randomness for everything that the arena leaves to chance.

    Raises:
        ArenaError: The agent found no free spot, or there are more than `MAX_OBJECTS` objects.
    """
    copies = [item.copies for item in arena.items]
    if sum(copies) > MAX_OBJECTS:
        raise ArenaError(f"items: {sum(copies)} objects; at most {MAX_OBJECTS} are placed")
    return _Builder(arena, copies, rng).build()


def fix(arena: Arena, rng: np.random.Generator) -> Arena:
    """Make every value of an arena explicit, and remove what could not be placed.

    Placing the result draws nothing and gives the same placement, with one exception: a size that
    was drawn has become a given size, which Unity multiplies by 0.999.

    Args:
        arena: The arena.
        rng: As for `place`.

    Raises:
        ArenaError: As for `place`.
    """
    placement = place(arena, rng)
    items = (placement.agent.item, *(thing.item for thing in placement.objects))
    return arena.model_copy(update={"items": items})


class _Builder:
    def __init__(self, arena: Arena, copies: Sequence[int], rng: np.random.Generator) -> None:
        self._arena, self._copies = arena, copies
        self._rng = rng
        self._drawn: dict[str, float] = {}
        self._objects: list[PlacedObject] = []
        self._skipped: list[Skipped] = []
        self._blockers = Obstacles()
        self._labels: list[str] = []
        self._boxes: list[Solid] = []
        for wall in WALLS:
            self._block(wall, "the arena's wall")

    def build(self) -> Placement:
        agent = None
        for index, item in enumerate(self._arena.items):
            if canonical_name(item.name) != "Agent":
                continue
            if agent is None:
                agent = self._agent(item, f"items[{index}]")
                self._block(agent_body(agent.position), "the agent")
            else:
                self._skipped.append(Skipped("Agent", "there is another Agent", (index, 0)))
        for index, item in enumerate(self._arena.items):
            self._spawn(index, item)
        if agent is None:
            agent = self._agent(Item(name="Agent"), "agent")
        return Placement(
            agent,
            tuple(self._objects),
            self._arena.time_limit,
            self._arena.pass_mark,
            self._arena.blackouts,
            self._drawn,
            tuple(self._skipped),
        )

    def _draw(self, field: str, low: float, high: float) -> float:
        value = low + (high - low) * self._rng.random()
        self._drawn[field] = value
        return value

    def _agent(self, item: Item, field: str) -> AgentStart:
        options = item.positions if item.positions else (_ANYWHERE,)
        given = first = options[0]
        if len(options) > 1:
            choice = int(self._rng.integers(len(options)))
            self._drawn[f"{field}.positions"] = float(choice)
            given = options[choice]
        if on_edge(first) or on_edge(given):
            given = Vector3(x=1.0, y=0.0, z=1.0)
        yaw = item.rotations[0] if item.rotations else -1.0
        if yaw < 0:
            yaw = self._draw(f"{field}.rotations[0]", 0.0, 360.0)
        for _ in range(_AGENT_TRIES):
            position = self._position(given, f"{field}.positions[0]", ORIGIN)
            origin = Point(position.x, position.y + 0.5 + LIFT, position.z)
            if (given.x < 0 or given.z < 0) and not self._clear(agent_body(origin)):
                continue
            explicit = item.model_copy(
                update={"name": "Agent", "positions": (position,), "rotations": (yaw,)}
            )
            frozen = item.frozen_agent_delays[0] if item.frozen_agent_delays else 0.0
            return AgentStart(origin, yaw, frozen, explicit)
        raise ArenaError(f"{field}: the agent found no free spot in {_AGENT_TRIES} tries")

    def _spawn(self, index: int, item: Item) -> None:
        name = canonical_name(item.name)
        if name == "Agent":
            return
        if name is None:
            reason = "Animal-AI has no such object"
            self._skipped.append(Skipped(item.name, reason, (index, 0)))
            return
        copies = self._copies[index]
        if copies == 1:
            self._spawn_copy(KINDS[name], item, (index, 0))
            return
        lists = [(key, values) for key in PER_COPY if (values := getattr(item, key))]
        for copy in range(copies):
            one = item.model_copy(update={key: values[copy : copy + 1] for key, values in lists})
            self._spawn_copy(KINDS[name], one, (index, copy))

    def _spawn_copy(self, kind: ObjectKind, item: Item, source: tuple[int, int]) -> None:
        index, copy = source
        item = _with_values(kind, item)
        sizes, size = self._size(kind, item, f"items[{index}].sizes[{copy}]")
        color = self._color(kind, item, f"items[{index}].colors[{copy}]")
        blocker = None
        given = item.positions[0] if item.positions else _ANYWHERE
        turn = item.rotations[0] if item.rotations else -1.0
        by_chance = given.x < 0 or given.z < 0
        tries = OBJECT_TRIES if by_chance or (turn < 0 and kind.random_yaw) else 1
        for _ in range(tries):
            position = self._position(given, f"items[{index}].positions[{copy}]", size)
            yaw = turn
            if turn < 0:
                key = f"items[{index}].rotations[{copy}]"
                yaw = self._draw(key, 0.0, 360.0) if kind.random_yaw else 0.0
            explicit = {
                "name": kind.name,
                "positions": (position,),
                "rotations": (yaw,),
                "sizes": sizes,
                "colors": item.colors if color is None else (color,),
            }
            thing = PlacedObject(
                kind,
                kind.name,
                _origin(kind, position, size),
                yaw + kind.yaw,
                size,
                _look(kind, color),
                self._reward(kind, item, size),
                item.model_copy(update=explicit),
                source,
            )
            box = _box(thing)
            blocker = self._blocker(thing, box)
            if blocker is None:
                thing = self._with_symbol(thing, f"items[{index}].symbolNames[{copy}]")
                self._objects.append(thing)
                self._boxes.append(box)
                if not kind.zone:
                    for solid in thing.solids():
                        self._block(solid, f"{kind.name} {index}.{copy}")
                return
        drawn = {key for key in self._drawn if key.startswith(f"items[{index}].")}
        for key in drawn:
            if f"[{copy}]" in key.partition(".")[2]:
                del self._drawn[key]
        reason = f"it would overlap {blocker}"
        if by_chance:
            reason = f"no free spot in {OBJECT_TRIES} tries"
        self._skipped.append(Skipped(kind.name, reason, source))

    def _position(self, given: Vector3, field: str, size: Point) -> Vector3:
        """Clamp what is given and draw what is not; y is as given, without the lift."""
        if 0.0 <= given.x <= ARENA_SIDE and 0.0 <= given.z <= ARENA_SIDE and given.y >= 0.0:
            return given

        def axis(name: str, value: float, extent: float) -> float:
            if value >= 0:
                return min(value, ARENA_SIDE)
            return self._draw(f"{field}.{name}", extent / 2, ARENA_SIDE - extent / 2)

        x = axis("x", given.x, size.x)
        z = axis("z", given.z, size.z)
        return Vector3(x=x, y=max(given.y, 0.0), z=z)

    def _size(self, kind: ObjectKind, item: Item, field: str) -> tuple[tuple[Vector3, ...], Point]:
        """The explicit sizes of an item, and the size that results."""
        if kind.reward in ("value", "size"):
            value = min(max(item.initial_values[0], 0.0), kind.size_max.x) * SIZE_ADJUSTMENT
            return (), Point(value, value, value)
        if kind.fixed_size:
            return (), kind.size_min
        given = item.sizes[0] if item.sizes else _ANY_SIZE
        if kind.name == "SignBoard":
            low, high = kind.size_min.x, kind.size_max.x
            x, y, z = (
                1.0 if c < 0 else min(max(c, low), high) for c in (given.x, given.y, given.z)
            )
            return (Vector3(x=x, y=y, z=z),), Point(x, y, z)
        asked = [given.x, given.y, given.z]
        if kind.ball:
            asked = [-1.0 if min(asked) < 0 else given.x]
        explicit: list[float] = []
        placed: list[float] = []
        axes = zip(("x", "y", "z"), asked, kind.size_min, kind.size_max, strict=False)
        for name, value, low, high in axes:
            if value < 0:
                drawn = self._draw(f"{field}.{name}", low, high)
                explicit.append(drawn)
                placed.append(drawn)
            else:
                explicit.append(value)
                placed.append(min(max(value, low), high) * SIZE_ADJUSTMENT)
        if kind.ball:
            explicit, placed = explicit * 3, placed * 3
        if explicit != [given.x, given.y, given.z]:
            given = Vector3(x=explicit[0], y=explicit[1], z=explicit[2])
        return (given,), Point(*placed)

    def _color(self, kind: ObjectKind, item: Item, field: str) -> RGB | None:
        """The colour given or drawn; None if the kind's own look applies."""
        color = _given_color(item)
        if color is not None or kind.color_rule != "random":
            return color
        r, g, b = (255.0 * self._rng.random(3)).tolist()
        self._drawn |= {f"{field}.r": r, f"{field}.g": g, f"{field}.b": b}
        return RGB(r=r, g=g, b=b)

    def _with_symbol(self, thing: PlacedObject, field: str) -> PlacedObject:
        """Fix every square of a sign board's picture; any other object is returned unchanged."""
        names = thing.item.symbol_names
        if thing.kind.tag != "SignPoster" or not names:
            return thing
        code = drawn(names[0], self._rng)
        if code != names[0]:
            for number, row in enumerate(code.split("/")):
                self._drawn[f"{field}.row{number}"] = float(int(row, 2))
        item = thing.item.model_copy(update={"symbol_names": (code,)})
        return replace(thing, item=item)

    def _reward(self, kind: ObjectKind, item: Item, size: Point) -> float:
        match kind.reward:
            case "good" | "size":
                return size.x
            case "bad":
                return -size.x
            case "value":
                return min(max(item.initial_values[0], 0.0), kind.size_max.x)
            case "death":
                return -1.0
            case "hot":
                steps = self._arena.time_limit * STEPS_PER_UNIT
                return min(-10.0 / steps if steps > 0 else 0.0, _HOT_ZONE_FLOOR)
            case _:
                return 0.0

    def _block(self, solid: Solid, label: str) -> None:
        self._blockers.add(solid)
        self._labels.append(label)

    def _blocker(self, thing: PlacedObject, box: Solid) -> str | None:
        """What blocks the position: Unity tests a box around the first collider only."""
        met = self._blockers.first_met(box, len(WALLS) if thing.kind.zone else None)
        return None if met is None else self._labels[met]

    def _clear(self, body: Solid) -> bool:
        """Whether the agent's body touches nothing and is outside all objects' boxes and zones."""
        in_box = any(overlaps(box, body) for box in (*WALLS, *self._boxes))
        return not in_box and self._blockers.first_met(body) is None


def _box(thing: PlacedObject) -> Solid:
    """The box around an object's first collider."""
    first = thing.solids()[0]
    half = Point(first.half.x, first.half.x, first.half.x) if thing.kind.ball else first.half
    return Solid("box", first.center, half, first.yaw)


def on_edge(given: Vector3) -> bool:
    """Whether the agent would stand in the arena's wall; Unity tests for exactly 0 or 40."""
    return 0.0 in (given.x, given.z) or max(given.x, given.z) >= ARENA_SIDE


def agent_body(origin: Point) -> Solid:
    """The agent's body; as a box it is the cube around it."""
    return Solid("sphere", origin, Point(AGENT_RADIUS, AGENT_RADIUS, AGENT_RADIUS), 0.0)


def _origin(kind: ObjectKind, position: Vector3, size: Point) -> Point:
    match kind.y_rule:
        case "floor":
            y = 0.0
        case "zone":
            y = _ZONE_Y
        case "base":
            y = position.y + LIFT
        case _:
            y = position.y + (size.y if kind.stand is None else kind.stand) / 2 + LIFT
    return Point(position.x, y, position.z)


def _with_values(kind: ObjectKind, item: Item) -> Item:
    """Fill in the values of a goal that changes with time."""
    if kind.reward not in ("value", "size"):
        return item
    grows = kind.name.startswith("Grow")
    rate = item.change_rates[0] if item.change_rates else -0.005
    if kind.reward == "size":
        rate = math.copysign(rate, 1.0 if grows else -1.0)
    return item.model_copy(
        update={
            "delays": item.delays or (0.0,),
            "initial_values": item.initial_values or (0.5 if grows else 2.5,),
            "final_values": item.final_values or (2.5 if grows else 0.5,),
            "change_rates": (rate,),
        }
    )


def _given_color(item: Item) -> RGB | None:
    """The colour that an item specifies; one negative channel means that it specifies none."""
    color = item.colors[0] if item.colors else None
    return color if color and min(color.r, color.g, color.b) >= 0 else None


def _look(kind: ObjectKind, color: RGB | None) -> tuple[float, float, float] | None:
    if color is None or kind.color_rule == "fixed":
        return None
    return min(color.r / 255, 1.0), min(color.g / 255, 1.0), min(color.b / 255, 1.0)
