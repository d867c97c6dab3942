"""The order in which what an arena leaves to chance is drawn: one of our own, and Unity's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

import numpy as np

from animalcat.arena_configs.catalogue import ORIGIN, SIZE_ADJUSTMENT, ObjectKind
from animalcat.arena_configs.draws import HEIGHT, SKINS, Draws, UnityDraws
from animalcat.arena_configs.model import ARENA_SIDE, RGB, Item, Point, Vector3

OBJECT_TRIES: Final = 20
AGENT_TRIES: Final = 100

_ANYWHERE: Final = Vector3(x=-1.0, y=0.0, z=-1.0)
_ANYWHERE_IN_UNITY: Final = Vector3(x=-1.0, y=-1.0, z=-1.0)
_ANY_SIZE: Final = Vector3(x=-1.0, y=-1.0, z=-1.0)
_ANY_COLOR: Final = RGB(r=-1.0, g=-1.0, b=-1.0)


class PlacementAttempt(NamedTuple):
    """Size, position, yaw and colour that one try to place an object gives it.

    Attributes:
        sizes: As they are made explicit in the item; empty if it has none.
        size: The size that results.
        position: y is without the lift.
        yaw: Without the built-in one.
        color: The colour if it is known before the place is.
    """

    sizes: tuple[Vector3, ...]
    size: Point
    position: Vector3
    yaw: float
    color: RGB | None = None


class Chance:
    """A source of draws, which keeps what it drew.

    Attributes:
        drawn: As in `Placement`.
    """

    def __init__(self, source: Draws) -> None:
        self._source = source
        self.drawn: dict[str, float] = {}

    def number(self, field: str, low: float, high: float) -> float:
        """Draw the value of a field."""
        value = float(self._source.uniform(low, high))
        self.drawn[field] = value
        return value

    def one_of(self, field: str, count: int) -> int:
        """Draw which entry of a field counts."""
        choice = int(self._source.integers(count))
        self.drawn[field] = float(choice)
        return choice

    def forget(self, index: int, copy: int) -> None:
        """Leave out what was drawn for a copy of an item that was not placed."""
        for key in [key for key in self.drawn if key.startswith(f"items[{index}].")]:
            if f"[{copy}]" in key.partition(".")[2]:
                del self.drawn[key]


class DrawOrder(Protocol):
    """The order in which what an arena leaves to chance is drawn, and the source of the draws."""

    chance: Chance
    agent_is_point: bool
    """Whether only the agent's centre must be clear, not its whole body."""
    leaves_in_corner: bool
    """Whether what finds no free spot stands in the arena's corner, instead of nowhere."""

    def agent_position(self, item: Item, field: str) -> Vector3:
        """Which of the agent's positions counts, as it is written."""
        ...

    def agent_poses(
        self, given: Vector3, item: Item, field: str
    ) -> Iterator[tuple[Vector3, float]]:
        """A position and a yaw for every try to place the agent."""
        ...

    def agent_placed(self, item: Item) -> None:
        """Draw what is drawn once the agent stands."""
        ...

    def poses(
        self, kind: ObjectKind, item: Item, field: str, copy: int
    ) -> Iterator[PlacementAttempt]:
        """What each try to place an object gives it."""
        ...

    def color(self, kind: ObjectKind, item: Item, field: str) -> RGB | None:
        """The colour of an object that has its place, if its pose had none to give."""
        ...

    def squares(self) -> np.random.Generator:
        """What draws the random squares of sign boards."""
        ...


class OwnOrder:
    """Our order: what does not depend on the place is drawn once, before the first try."""

    agent_is_point = False
    leaves_in_corner = False

    def __init__(self, rng: np.random.Generator) -> None:
        self.chance, self._rng = Chance(rng), rng

    def agent_position(self, item: Item, field: str) -> Vector3:
        """Draw one of several positions."""
        options = item.positions if item.positions else (_ANYWHERE,)
        if len(options) == 1:
            return options[0]
        return options[self.chance.one_of(f"{field}.positions", len(options))]

    def agent_poses(
        self, given: Vector3, item: Item, field: str
    ) -> Iterator[tuple[Vector3, float]]:
        """Draw the yaw once, and a place for every try."""
        yaw = item.rotations[0] if item.rotations else -1.0
        if yaw < 0:
            yaw = self.chance.number(f"{field}.rotations[0]", 0.0, 360.0)
        for _ in range(AGENT_TRIES):
            yield _position(self.chance, given, f"{field}.positions[0]", ORIGIN), yaw

    def agent_placed(self, item: Item) -> None:
        """The skin is of no effect, and is not drawn."""

    def poses(
        self, kind: ObjectKind, item: Item, field: str, copy: int
    ) -> Iterator[PlacementAttempt]:
        """Draw size and colour once, a place and a yaw for every try."""
        sizes, size = _sizes(self.chance, kind, item, f"{field}.sizes[{copy}]")
        color = self._drawn_color(kind, item, f"{field}.colors[{copy}]")
        given = item.positions[0] if item.positions else _ANYWHERE
        turn = item.rotations[0] if item.rotations else -1.0
        by_chance = given.x < 0 or given.z < 0
        tries = OBJECT_TRIES if by_chance or (turn < 0 and kind.random_yaw) else 1
        for _ in range(tries):
            position = _position(self.chance, given, f"{field}.positions[{copy}]", size)
            yaw = turn
            if turn < 0:
                key = f"{field}.rotations[{copy}]"
                yaw = self.chance.number(key, 0.0, 360.0) if kind.random_yaw else 0.0
            yield PlacementAttempt(sizes, size, position, yaw, color)

    def color(self, kind: ObjectKind, item: Item, field: str) -> RGB | None:
        """Draw nothing: the pose has the colour."""
        return None

    def squares(self) -> np.random.Generator:
        """Draw squares from the same source."""
        return self._rng

    def _drawn_color(self, kind: ObjectKind, item: Item, field: str) -> RGB | None:
        color = _given_color(item)
        if color is not None or kind.color_rule != "random":
            return color
        r, g, b = (255.0 * self._rng.random(3)).tolist()
        self.chance.drawn |= {f"{field}.r": r, f"{field}.g": g, f"{field}.b": b}
        return RGB(r=r, g=g, b=b)


class UnityOrder:
    """The order of a build of Animal-AI (source: reference/unity-random.md)."""

    agent_is_point = True
    leaves_in_corner = True

    def __init__(self, draws: UnityDraws) -> None:
        self.chance, self._draws = Chance(draws), draws

    def agent_position(self, item: Item, field: str) -> Vector3:
        """Take the first position, or draw one, as the build does."""
        options = item.positions if item.positions else (_ANYWHERE_IN_UNITY,)
        if len(options) == 1 or not self._draws.rules.agent_choice:
            return options[0]
        return options[self.chance.one_of(f"{field}.positions", len(options))]

    def agent_poses(
        self, given: Vector3, item: Item, field: str
    ) -> Iterator[tuple[Vector3, float]]:
        """Draw height, place and yaw for every try."""
        turn = item.rotations[0] if item.rotations else -1.0
        key = f"{field}.positions[0]"
        for _ in range(AGENT_TRIES):
            position = _position(self.chance, self._with_height(given, key), key, ORIGIN)
            yaw = turn
            if turn < 0:
                yaw = self.chance.number(f"{field}.rotations[0]", 0.0, 360.0)
            yield position, yaw

    def agent_placed(self, item: Item) -> None:
        """Draw the skin, which is of no effect, unless it is named."""
        if not item.skins:
            self._draws.integers(SKINS)

    def poses(
        self, kind: ObjectKind, item: Item, field: str, copy: int
    ) -> Iterator[PlacementAttempt]:
        """Draw everything anew for every try, but the height only once."""
        given = item.positions[0] if item.positions else _ANYWHERE_IN_UNITY
        turn = item.rotations[0] if item.rotations else -1.0
        key = f"{field}.positions[{copy}]"
        for attempt in range(OBJECT_TRIES):
            sizes, size = _sizes(self.chance, kind, item, f"{field}.sizes[{copy}]")
            if attempt == 0:
                given = self._with_height(given, key)
            position = _position(self.chance, given, key, size)
            yaw = self._yaw(kind, f"{field}.rotations[{copy}]") if turn < 0 else turn
            yield PlacementAttempt(sizes, size, position, yaw)

    def color(self, kind: ObjectKind, item: Item, field: str) -> RGB | None:
        """Draw what a colour lacks, for the objects that the build paints."""
        rules, given = self._draws.rules, item.colors[0] if item.colors else _ANY_COLOR
        channels = {"r": given.r, "g": given.g, "b": given.b}
        missing = [name for name, value in channels.items() if value < 0]
        if not missing:
            return given
        if kind.name not in rules.colored:
            return None
        for name in missing if rules.channels else channels:
            channels[name] = self.chance.number(f"{field}.{name}", 0.0, 1.0) * 255.0
            self.chance.drawn[f"{field}.{name}"] = channels[name]
        return RGB(**channels)

    def squares(self) -> np.random.Generator:
        """Draw squares aside: Unity's are seeded by the clock."""
        return self._draws.aside()

    def _with_height(self, given: Vector3, field: str) -> Vector3:
        if given.y != -1.0 or not self._draws.rules.height:
            return given
        return Vector3(x=given.x, y=self.chance.number(f"{field}.y", 0.0, HEIGHT), z=given.z)

    def _yaw(self, kind: ObjectKind, field: str) -> float:
        """Draw a yaw, also where the range is from 0 to 0."""
        if kind.random_yaw or kind.multi:  # of a plain ball it turns the box of the free-spot test
            return self.chance.number(field, 0.0, 360.0)
        return self._draws.uniform(0.0, 0.0)


def _position(chance: Chance, given: Vector3, field: str, size: Point) -> Vector3:
    """Clamp what is given and draw what is not; y is as given, without the lift."""
    if 0.0 <= given.x <= ARENA_SIDE and 0.0 <= given.z <= ARENA_SIDE and given.y >= 0.0:
        return given

    def axis(name: str, value: float, extent: float) -> float:
        if value >= 0:
            return min(value, ARENA_SIDE)
        return chance.number(f"{field}.{name}", extent / 2, ARENA_SIDE - extent / 2)

    x = axis("x", given.x, size.x)
    z = axis("z", given.z, size.z)
    return Vector3(x=x, y=max(given.y, 0.0), z=z)


def _sizes(
    chance: Chance, kind: ObjectKind, item: Item, field: str
) -> tuple[tuple[Vector3, ...], Point]:
    """The explicit sizes of an item, and the size that results."""
    if kind.reward in ("value", "size"):
        value = min(max(item.initial_values[0], 0.0), kind.size_max.x) * SIZE_ADJUSTMENT
        return (), Point(value, value, value)
    if kind.fixed_size:
        return (), kind.size_min
    given = item.sizes[0] if item.sizes else _ANY_SIZE
    if kind.name == "SignBoard":
        low, high = kind.size_min.x, kind.size_max.x
        x, y, z = (1.0 if c < 0 else min(max(c, low), high) for c in (given.x, given.y, given.z))
        return (Vector3(x=x, y=y, z=z),), Point(x, y, z)
    asked = [given.x, given.y, given.z]
    if kind.ball:
        asked = [-1.0 if min(asked) < 0 else given.x]
    explicit: list[float] = []
    placed: list[float] = []
    axes = zip(("x", "y", "z"), asked, kind.size_min, kind.size_max, strict=False)
    for name, value, low, high in axes:
        if value < 0:
            drawn = chance.number(f"{field}.{name}", low, high)
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


def _given_color(item: Item) -> RGB | None:
    """The colour that an item specifies; one negative channel means that it specifies none."""
    color = item.colors[0] if item.colors else None
    return color if color and min(color.r, color.g, color.b) >= 0 else None
