"""What a privileged observation says of an arena, as solids, zones, balls and buttons."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.geometry import Solid, rotate
from animalcat.arena_configs.model import Point
from animalcat.arena_configs.tags import LOGGED_TAGS
from animalcat.envs.state import AGENT, Column
from animalcat.envs.types import PHYSICS_STEP
from animalcat.portable import scalars
from animalcat.portable.products import product

if TYPE_CHECKING:
    from collections.abc import Sequence

    from animalcat.arena_configs.catalogue import PartShape
    from animalcat.envs.state import State

_SHAPES: Final[tuple[PartShape, ...]] = ("box", "sphere", "wedge", "shell")
_SPHERE: Final = _SHAPES.index("sphere")
_BALLS: Final = frozenset(
    LOGGED_TAGS.index(tag)
    for tag in (
        "goodGoal",
        "goodGoalMulti",
        "badGoal",
        "badGoalMulti",
        "DecoyGoal",
        "DecoyGoalBounce",
        "GrowGoal",
        "ShrinkGoal",
    )
)
# The last place stands for -1, no tag.
_IS_BALL: Final = np.isin(np.arange(len(LOGGED_TAGS) + 1), tuple(_BALLS))
LAVA: Final = LOGGED_TAGS.index("DeathZone")
_HOT: Final = LOGGED_TAGS.index("HotZone")
_DATA: Final = LOGGED_TAGS.index("DataZone")
_SPAWNER: Final = LOGGED_TAGS.index("GoalSpawner")
_BUTTON: Final = LOGGED_TAGS.index("PillarButton")
_MOVABLE: Final = frozenset((LOGGED_TAGS.index("Movable"), LOGGED_TAGS.index("HollowObj")))
_FACE: Final = 0.3
"""Metres from the middle of a button's pillar to the face that is pressed (along its own x)."""
_UPRIGHT: Final = 0.985
"""Cosine of the tilt above which a solid counts as standing upright."""
_BAD: Final = 1e-9
_FASTEST: Final = 60.0
"""m/s along the floor that nothing exceeds: a goal that the agent hits at 26.7 m/s has less."""
_ROUNDING: Final = 1e-3


class Ball(NamedTuple):
    """A goal of any kind, good or bad.

    Attributes:
        number: Its number in the state.
        center: Where it is, in metres.
        radius: In metres.
        reward: What touching it gives now.
        ends: Whether taking it ends the episode.
        final: The reward that it will come to.
        rate: Change of its reward in a physics step, once it changes.
        wait: Physics steps until it changes.
    """

    number: int
    center: Point
    radius: float
    reward: float
    ends: bool
    final: float
    rate: float
    wait: float

    @property
    def girth(self) -> float:
        """Its radius in metres once it has grown, with a margin if it grows."""
        return max(self.radius, self.final / 2 + 0.3) if self.rate > 0.0 else self.radius

    @property
    def wanted(self) -> bool:
        """Whether it gives a reward, now or later."""
        return max(self.reward, self.final) > _BAD

    @property
    def shunned(self) -> bool:
        """Whether touching it takes reward, or ends the episode with nothing."""
        return not self.wanted and (self.reward < -_BAD or self.ends)


@dataclass(frozen=True, slots=True)
class View:
    """An arena as the planner sees it.

    Attributes:
        yaw: The agent's heading, degrees clockwise from +z.
        frozen: Whether the agent cannot move now.
        firm: Solids that stand.
        movable: Solids that can be pushed.
        lava: Zones that kill.
        hot: Zones that burn.
        balls: All goals.
        faces: Where each button is pressed: the middle of its face, on the floor's level.
        zones: Middle of each data zone.
        spawns: Whether there is a spawner, which may bring forth goals.
        key: Changes when a solid or a zone has moved by some centimetres.
    """

    yaw: float
    frozen: bool
    firm: tuple[Solid, ...]
    movable: tuple[Solid, ...]
    lava: tuple[Solid, ...]
    hot: tuple[Solid, ...]
    balls: tuple[Ball, ...]
    faces: tuple[Point, ...]
    zones: tuple[Point, ...]
    spawns: bool
    key: bytes


def is_other(before: State, now: State, period: int) -> bool:
    """Whether a state is of another arena than the one a decision before: one merged into it.

    In an arena, numbers are never given anew, things keep their kind, and none of them leaps.

    Args:
        before: The state before.
        now: The state.
        period: Physics steps in a decision.
    """
    numbers, old = now[:, Column.NUMBER], before[:, Column.NUMBER]
    if not np.array_equal(numbers, old):
        new = np.setdiff1d(numbers, old, assume_unique=True)
        if len(new) and new.min() < old.max():
            return True
        now, before = now[np.isin(numbers, old)], before[np.isin(old, numbers)]
    kinds = now[:, Column.SHAPE : Column.CENTER] != before[:, Column.SHAPE : Column.CENTER]
    change = now[:, Column.CENTER : Column.ROTATION] - before[:, Column.CENTER : Column.ROTATION]
    leaps = np.hypot(change[:, 0], change[:, 2]) > _FASTEST * period * PHYSICS_STEP
    resized = np.abs(change[now[:, Column.SHAPE] != _SPHERE, 3:]) > _ROUNDING
    return bool(kinds.any() or leaps.any() or resized.any())


def balls_in(state: State) -> npt.NDArray[np.bool_]:
    """Which rows of a state are goals."""
    tags = state[:, Column.TAG].astype(np.int64)
    met = _IS_BALL[tags] & (state[:, Column.SHAPE] == _SPHERE)
    met[AGENT] = False
    return met


class Viewer:
    """Turns states into views; solids are made anew only when one has moved."""

    def __init__(self) -> None:
        self._view: View | None = None
        self._about = b""

    def view(self, state: State) -> View:
        """What a state says."""
        about = state.tobytes()
        if self._view is not None and about == self._about:
            return self._view
        self._about = about
        is_ball = balls_in(state)
        others = state[~is_ball][1:]
        placed = np.column_stack(
            [
                others[:, : Column.CENTER],
                np.round(others[:, Column.CENTER : Column.ROTATION] * 20.0),
                np.round(others[:, Column.ROTATION : Column.REWARD] * 20.0),
            ]
        )
        key = (placed + 0.0).tobytes()
        agent = state[AGENT]
        yaw = math.degrees(scalars.atan2(agent[Column.ROTATION + 2], agent[Column.ROTATION]))
        frozen = bool(agent[Column.WAIT] > 0)
        balls = tuple(map(_ball, state[is_ball]))
        last = self._view
        if last is not None and last.key == key:
            view = View(
                yaw,
                frozen,
                last.firm,
                last.movable,
                last.lava,
                last.hot,
                balls,
                last.faces,
                last.zones,
                last.spawns,
                key,
            )
        else:
            view = _view(others, yaw, frozen, balls, key)
        self._view = view
        return view


def _view(others: State, yaw: float, frozen: bool, balls: Sequence[Ball], key: bytes) -> View:
    parts: dict[str, list[Solid]] = {"firm": [], "movable": [], "lava": [], "hot": []}
    faces: list[Point] = []
    zones: list[Point] = []
    spawns = False
    for row in others:
        tag, solid = int(row[Column.TAG]), solid_of(row)
        if tag == _DATA:
            zones.append(solid.center)
            continue
        if tag == _BUTTON:
            right, ahead = rotate(_FACE, 0.0, solid.yaw)
            faces.append(Point(solid.center.x + right, solid.center.y, solid.center.z + ahead))
        spawns |= tag == _SPAWNER
        kind = {LAVA: "lava", _HOT: "hot"}.get(tag, "movable" if tag in _MOVABLE else "firm")
        parts[kind].append(solid)
    return View(
        yaw,
        frozen,
        tuple(parts["firm"]),
        tuple(parts["movable"]),
        tuple(parts["lava"]),
        tuple(parts["hot"]),
        tuple(balls),
        tuple(faces),
        tuple(zones),
        spawns,
        key,
    )


def _point(row: State, column: int) -> Point:
    x, y, z = row[column : column + 3].tolist()
    return Point(x, y, z)


def _ball(row: State) -> Ball:
    return Ball(
        int(row[Column.NUMBER]),
        _point(row, Column.CENTER),
        float(row[Column.HALF]),
        float(row[Column.REWARD]),
        bool(row[Column.ENDS] > 0),
        float(row[Column.FINAL]),
        float(row[Column.RATE]),
        float(row[Column.WAIT]),
    )


def solid_of(row: State) -> Solid:
    """A solid as the ground takes it, which knows no tilt but that of a ramp's own slope.

    A body that lies on its side is the box that it then is, and one that leans has the height and
    breadth that it takes up.
    """
    turn = row[Column.ROTATION : Column.REWARD].reshape(3, 3).astype(np.float64)
    half = row[Column.HALF : Column.ROTATION].astype(np.float64)
    shape = _SHAPES[int(row[Column.SHAPE])]
    center = _point(row, Column.CENTER)
    if turn[1, 1] >= _UPRIGHT or shape == "sphere":
        yaw = math.degrees(scalars.atan2(turn[0, 2], turn[0, 0]))
        # A scene's wedge is high at local -z, a solid's at +z.
        yaw += 180.0 if shape == "wedge" else 0.0
        return Solid(shape, center, Point(*half.tolist()), yaw)
    # The axis that is most level gives the heading; along it and across it the body's extent.
    axis = int(np.argmin(np.abs(turn[1])))
    yaw = math.degrees(scalars.atan2(turn[0, axis], turn[2, axis]))
    sin, cos = scalars.sin(math.radians(yaw)), scalars.cos(math.radians(yaw))
    across = product(np.array([cos, 0.0, -sin]), turn)
    along = product(np.array([sin, 0.0, cos]), turn)
    extents = [float(product(np.abs(way), half)) for way in (across, turn[1], along)]
    return Solid("box", center, Point(*extents), yaw)
