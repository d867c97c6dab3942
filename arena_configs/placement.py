"""Where everything in an arena stands at the start: Unity's rules, with chance made explicit.

There are two deviations, where Unity's own rule would mislead. An object that finds no free spot is
not spawned and is listed in `Placement.skipped` (Unity leaves it in the arena's corner). A random
position for the agent keeps its whole body clear (Unity tests its centre only), so that fixing a
placement cannot remove an object.

What is left to chance is drawn in an order of our own, or as a build of Animal-AI draws it: the
source of the draws decides (`draws`). With `UnityDraws` there is no deviation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from animalcat.arena_configs.bounds import refuse_huge
from animalcat.arena_configs.catalogue import (
    KINDS,
    ORIGIN,
    ObjectKind,
    canonical_name,
)
from animalcat.arena_configs.draws import Draws, UnityDraws
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
from animalcat.arena_configs.orders import (
    AGENT_TRIES,
    OBJECT_TRIES,
    DrawOrder,
    OwnOrder,
    PlacementAttempt,
    UnityOrder,
)
from animalcat.arena_configs.sequence import ArenaSequence, episode_arenas, of_parts
from animalcat.arena_configs.signs import draw_sign

MAX_OBJECTS: Final = 2000
"""Greatest number of objects in an arena; the real files at hand have up to 204."""
AGENT_RADIUS: Final = 0.5

LIFT: Final = 0.01
"""Metres by which everything is spawned above the position that is asked for."""
_ZONE_Y: Final = -0.15
_HOT_ZONE_FLOOR: Final = -0.001
"""Greatest (least negative) reward of a HotZone at each physics step."""


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
        cornered: Whether it found no free spot and stands in the arena's corner. A goal there is
            not among those that must be taken, and ends the episode if it is taken (inferred).
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
    cornered: bool = False
    _solids: tuple[Solid, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = solids(self.kind, self.position, self.size, self.yaw)
        object.__setattr__(self, "_solids", parts)

    def solids(self) -> tuple[Solid, ...]:
        """Its placed colliders."""
        return self._solids


class SkippedObject(NamedTuple):
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
        skipped: What found no free spot, or is unknown; with `UnityDraws` an object is here and in
            the arena's corner.
    """

    agent: AgentStart
    objects: tuple[PlacedObject, ...]
    time_limit: int
    pass_mark: float
    blackouts: tuple[int, ...]
    drawn: Mapping[str, float]
    skipped: tuple[SkippedObject, ...]


def place(arena: Arena, rng: Draws) -> Placement:
    """Place everything in an arena.

    Args:
        arena: The arena; of a sequence the first.
        rng: Source of randomness for everything that the arena leaves to chance; which one it is
            decides the order of draws.

    Raises:
        ArenaError: The agent found no free spot, there are more than `MAX_OBJECTS` objects, or a
            number is out of all bounds (`refuse_huge`).
    """
    refuse_huge(arena)
    copies = [item.copies for item in arena.items]
    if sum(copies) > MAX_OBJECTS:
        raise ArenaError(f"items: {sum(copies)} objects; at most {MAX_OBJECTS} are placed")
    order = UnityOrder(rng) if isinstance(rng, UnityDraws) else OwnOrder(rng)
    placement = _Placer(arena, copies, order).build()
    if isinstance(rng, UnityDraws) and arena.random_seed:
        rng.random.seed(arena.random_seed)
    return placement


def fix(arena: Arena, rng: Draws) -> Arena:
    """Make every value of an arena explicit, and remove what could not be placed.

    Placing the result draws nothing and gives the same placement, with one exception: a size that
    was drawn has become a given size, which Unity multiplies by 0.999.

    Args:
        arena: The arena. Those that a sequence merges with are drawn one after another.
        rng: As for `place`.

    Raises:
        ArenaError: As for `place`.
    """
    if isinstance(arena, ArenaSequence):
        return of_parts([fix(part, rng) for part in episode_arenas(arena)])
    placement = place(arena, rng)
    things = (thing for thing in placement.objects if not thing.cornered)
    items = (placement.agent.item, *(thing.item for thing in things))
    return arena.model_copy(update={"items": items})


class _Placer:
    def __init__(self, arena: Arena, copies: Sequence[int], order: DrawOrder) -> None:
        self._arena, self._copies = arena, copies
        self._order = order
        self._objects: list[PlacedObject] = []
        self._skipped: list[SkippedObject] = []
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
                self._skipped.append(SkippedObject("Agent", "there is another Agent", (index, 0)))
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
            self._order.chance.drawn,
            tuple(self._skipped),
        )

    def _agent(self, item: Item, field: str) -> AgentStart:
        given = self._order.agent_position(item, field)
        if on_edge(item.positions[0] if item.positions else given) or on_edge(given):
            given = Vector3(x=1.0, y=0.0, z=1.0)
        for position, yaw in self._order.agent_poses(given, item, field):
            origin = Point(position.x, position.y + 0.5 + LIFT, position.z)
            if (given.x < 0 or given.z < 0) and not self._clear(origin):
                continue
            self._order.agent_placed(item)
            explicit = item.model_copy(
                update={"name": "Agent", "positions": (position,), "rotations": (yaw,)}
            )
            frozen = item.frozen_agent_delays[0] if item.frozen_agent_delays else 0.0
            return AgentStart(origin, yaw, frozen, explicit)
        raise ArenaError(f"{field}: the agent found no free spot in {AGENT_TRIES} tries")

    def _spawn(self, index: int, item: Item) -> None:
        name = canonical_name(item.name)
        if name == "Agent":
            return
        if name is None:
            reason = "Animal-AI has no such object"
            self._skipped.append(SkippedObject(item.name, reason, (index, 0)))
            return
        copies = self._copies[index]
        if copies == 1:
            self._spawn_copy(KINDS[name], item, (index, 0))
            return
        lists = [(key, values) for key in PER_COPY if (values := getattr(item, key))]
        for copy in range(copies):
            single = item.model_copy(update={key: values[copy : copy + 1] for key, values in lists})
            self._spawn_copy(KINDS[name], single, (index, copy))

    def _spawn_copy(self, kind: ObjectKind, item: Item, source: tuple[int, int]) -> None:
        index, copy = source
        item = _with_values(kind, item)
        blocker = thing = None
        for pose in self._order.poses(kind, item, f"items[{index}]", copy):
            thing = self._standing(kind, item, pose, source)
            box = _box(thing)
            blocker = self._blocker(thing, box)
            if blocker is None:
                thing = self._paint(thing, f"items[{index}].colors[{copy}]")
                thing = self._with_symbol(thing, f"items[{index}].symbolNames[{copy}]")
                self._objects.append(thing)
                self._boxes.append(box)
                if not kind.zone:
                    for solid in thing.solids():
                        self._block(solid, f"{kind.name} {index}.{copy}")
                return
        self._order.chance.forget(index, copy)
        reason = f"it would overlap {blocker}"
        given = item.positions[0] if item.positions else None
        if given is None or given.x < 0 or given.z < 0:
            reason = f"no free spot in {OBJECT_TRIES} tries"
        if self._order.leaves_in_corner and thing is not None:
            reason += ", so it stays in the arena's corner"
            self._objects.append(_move_to_corner(thing))
        self._skipped.append(SkippedObject(kind.name, reason, source))

    def _standing(
        self, kind: ObjectKind, item: Item, pose: PlacementAttempt, source: tuple[int, int]
    ) -> PlacedObject:
        """An object in a pose."""
        explicit = {
            "name": kind.name,
            "positions": (pose.position,),
            "rotations": (pose.yaw,),
            "sizes": pose.sizes,
            "colors": item.colors if pose.color is None else (pose.color,),
        }
        return PlacedObject(
            kind,
            kind.name,
            _origin(kind, pose.position, pose.size),
            pose.yaw + kind.yaw,
            pose.size,
            _look(kind, pose.color),
            self._reward(kind, item, pose.size),
            item.model_copy(update=explicit),
            source,
        )

    def _paint(self, thing: PlacedObject, field: str) -> PlacedObject:
        color = self._order.color(thing.kind, thing.item, field)
        if color is None:
            return thing
        item = thing.item.model_copy(update={"colors": (color,)})
        return replace(thing, color=_look(thing.kind, color), item=item)

    def _with_symbol(self, thing: PlacedObject, field: str) -> PlacedObject:
        """Fix every square of a sign board's picture; any other object is returned unchanged."""
        names = thing.item.symbol_names
        if thing.kind.tag != "SignPoster" or not names:
            return thing
        code = draw_sign(names[0], self._order.squares())
        if code != names[0]:
            for number, row in enumerate(code.split("/")):
                self._order.chance.drawn[f"{field}.row{number}"] = float(int(row, 2))
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

    def _clear(self, origin: Point) -> bool:
        """Whether the agent, or its centre, would touch nothing and stand outside all zones.

        Its whole body keeps out of the boxes around all objects, too.
        """
        if self._order.agent_is_point:
            body, boxed = Solid("box", origin, ORIGIN, 0.0), self._zones()
        else:
            body, boxed = agent_body(origin), (*WALLS, *self._boxes)
        in_box = any(overlaps(box, body) for box in boxed)
        return not in_box and self._blockers.first_met(body) is None

    def _zones(self) -> list[Solid]:
        things = self._objects
        return [t.solids()[0] for t in things if t.kind.zone and not t.cornered]


def _box(thing: PlacedObject) -> Solid:
    """The box around an object's first collider."""
    first = thing.solids()[0]
    half = Point(first.half.x, first.half.x, first.half.x) if thing.kind.ball else first.half
    return Solid("box", first.center, half, first.yaw)


def _move_to_corner(thing: PlacedObject) -> PlacedObject:
    """An object where Unity leaves it that finds no free spot: where its prefab was made.

    That is at x = z = 0, not turned and in the size that was asked for (reference/animal-ai.md
    section 1.9; that the prefabs stand half a metre above the ground, or on it, is inferred). It
    has the layer of objects that block no others.
    """
    y = 0.5 if thing.kind.y_rule == "centre" else 0.0
    return replace(
        thing, position=Point(0.0, y, 0.0), yaw=thing.kind.yaw, color=None, cornered=True
    )


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


def _look(kind: ObjectKind, color: RGB | None) -> tuple[float, float, float] | None:
    if color is None or kind.color_rule == "fixed":
        return None
    return shade(color)


def shade(color: RGB) -> tuple[float, float, float]:
    """A colour that is given as 0 to 255, as 0 to 1."""
    return min(color.r / 255, 1.0), min(color.g / 255, 1.0), min(color.b / 255, 1.0)
