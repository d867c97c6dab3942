"""What a limited planner takes to be there: the state without the goals that it does not know."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.ground import SIDE
from animalcat.arena_configs.model import ARENA_SIDE
from animalcat.arena_configs.placement import AGENT_RADIUS
from animalcat.arena_configs.sightlines import crossed_lines
from animalcat.envs.agents.planner.view import LAVA, balls_in, solid_of
from animalcat.envs.state import AGENT, Column
from animalcat.envs.types import STATE_COLUMNS
from animalcat.portable import scalars
from animalcat.portable.products import product

if TYPE_CHECKING:
    from animalcat.envs.agents.planner.settings import PlannerSettings
    from animalcat.envs.agents.planner.terrain import Floats, Mask, PlannerTerrain
    from animalcat.envs.state import State

_ARRIVED: Final = 1.0
"""Metres from where a goal would begin, within which it notices that the goal is not there."""
_STRAIGHT: Final = 5.0
"""Degrees off the heading at the start within which a goal is on neither side."""
_GRID: Final = 8
"""A place is looked at where both of its lines of the ground's grid are multiples: every 2 m."""
_LIKELY: Final = 0.5
"""Metres across: the goal that it looks for, where its eyes cannot tell small things."""


class _Sighting(NamedTuple):
    """Where a goal was when it was last seen, and at which second."""

    center: npt.NDArray[np.float32]
    time: float


class Beliefs:
    """Turns what is into what the planner believes."""

    def __init__(self, settings: PlannerSettings) -> None:
        """Begin an episode.

        Args:
            settings: What it can know.
        """
        self._settings = settings
        self._known: dict[int, _Sighting] = {}
        self._empty: set[int] = set()
        self._missed: set[int] = set()
        self._confused: dict[int, npt.NDArray[np.float32] | None] = {}
        self._start: State | None = None
        self._eyes = Eyes()
        self._about = b""
        self._sight: dict[int, bool] = {}

    def update(self, state: State, time: float) -> State:
        """What it believes.

        Args:
            state: What is.
            time: Seconds into the episode.
        """
        settings = self._settings
        if not settings.fears_lava:
            state = state[state[:, Column.TAG] != LAVA]
        if settings.knows_all:
            return state
        if self._start is None:
            self._start = state[AGENT].copy()
        about = state.tobytes()
        if about != self._about:
            self._about = about
            self._sight.clear()
        believed = state.copy()
        keep = np.ones(len(state), np.bool_)
        hiders = self._eyes.hiders(state)
        for row in np.flatnonzero(balls_in(state)).tolist():
            center = self._believed_place(state, row, hiders, time)
            if center is not None and settings.side:
                center = self._on_its_side(state, row, center)
            keep[row] = center is not None
            if center is not None:
                believed[row, Column.CENTER : Column.HALF] = center
        return believed[keep]

    def _believed_place(
        self, state: State, row: int, hiders: Hiders, time: float
    ) -> npt.NDArray[np.float32] | None:
        """Where it takes a goal to be; None: it knows of none."""
        number, center = int(state[row, Column.NUMBER]), state[row, Column.CENTER : Column.HALF]
        # Who has confused two places attends to no other: the goal is there, or it is nowhere.
        confused = self._confused.get(number) is not None
        seen = not confused and self._sees(state, row, hiders)
        if seen:
            self._empty.discard(number)
            self._missed.discard(number)
            self._confused.pop(number, None)
            self._known[number] = _Sighting(center.copy(), time)
        known = self._known.get(number)
        if known is None:
            return None
        if seen:
            return center
        if self._settings.permanence:
            other = self._confused_place(state, row, hiders)
            if other is not None:
                if self._away(state, row, other) > _ARRIVED:
                    return other
                self._empty.add(number)
            if number in self._empty:
                return None
            if time - known.time <= self._settings.memory_seconds:
                return center
        elif self._away(state, row, known.center) > _ARRIVED:
            return known.center
        del self._known[number]
        return None

    def _confused_place(
        self, state: State, row: int, hiders: Hiders
    ) -> npt.NDArray[np.float32] | None:
        """The place that it takes for a hidden goal's, where there are too many; else None.

        They are counted once, when the goal goes out of sight.
        """
        number = int(state[row, Column.NUMBER])
        if self._settings.places == math.inf or number in self._empty:
            return None
        if number not in self._confused:
            center = state[row, Column.CENTER : Column.HALF]
            others = _hiding_places(hiders, state, center, float(state[row, Column.HALF]))
            many = len(others) > self._settings.places
            away = np.linalg.norm(others - center, axis=1) if many else np.zeros(0)
            self._confused[number] = others[int(np.argmax(away))] if many else None
        return self._confused[number]

    def _sees(self, state: State, row: int, hiders: Hiders) -> bool:
        """Whether it sees a goal; who stands and waits need not look twice at the same."""
        if row not in self._sight:
            self._sight[row] = self._looks_at(state, row, hiders)
        return self._sight[row]

    def _looks_at(self, state: State, row: int, hiders: Hiders) -> bool:
        settings = self._settings
        center, radius = state[row, Column.CENTER : Column.HALF], float(state[row, Column.HALF])
        eye = state[AGENT, Column.CENTER : Column.HALF]
        away = float(np.linalg.norm(center - eye))
        angle = 2.0 * math.degrees(scalars.asin(min(1.0, radius / max(away, 1e-6))))
        if away - radius > settings.sight_m or 2.0 * radius < settings.smallest_m - 0.01:
            return False
        if angle < settings.resolution_degrees:
            return False
        if not settings.looks:
            return True
        if state[AGENT, Column.HIDES]:
            return False
        # Its middle, and points near its edge: above, below, and at both sides.
        dx, dz = float(center[0] - eye[0]), float(center[2] - eye[2])
        flat = max(math.hypot(dx, dz), 1e-6)
        right = np.array([dz / flat, 0.0, -dx / flat])
        up = np.array([0.0, 1.0, 0.0])
        offsets = 0.8 * radius * np.array([0.0 * up, up, -up, right, -right])
        return bool(hiders.clear(eye.astype(np.float64), center + offsets).any())

    def _away(self, state: State, row: int, center: npt.NDArray[np.float32]) -> float:
        """Metres, on the level, from the agent to the surface of a goal if it were at a place."""
        x, _, z = (center - state[AGENT, Column.CENTER : Column.HALF]).tolist()
        return math.hypot(x, z) - float(state[row, Column.HALF]) - AGENT_RADIUS

    def _on_its_side(
        self, state: State, row: int, center: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float32] | None:
        """Where it takes a goal to be, or that mirrored to its side of the first heading's line."""
        assert self._start is not None
        number = int(state[row, Column.NUMBER])
        sin, cos = float(self._start[Column.ROTATION + 2]), float(self._start[Column.ROTATION])
        x, _, z = (center - self._start[Column.CENTER : Column.HALF]).tolist()
        right, ahead = x * cos - z * sin, x * sin + z * cos
        off = math.degrees(scalars.atan2(right, ahead))
        if off > -_STRAIGHT if self._settings.side == "right" else off < _STRAIGHT:
            return center
        if number in self._missed:
            return None
        mirrored = center.copy()
        mirrored[0] -= 2.0 * right * cos
        mirrored[2] += 2.0 * right * sin
        margin = float(state[row, Column.HALF])
        mirrored[[0, 2]] = np.clip(mirrored[[0, 2]], margin, ARENA_SIDE - margin)
        if self._away(state, row, mirrored) < _ARRIVED:
            self._missed.add(number)
            return None
        return mirrored


class Search:
    """Where it has looked for goals, and where it looks next."""

    def __init__(self, settings: PlannerSettings) -> None:
        """Begin an episode.

        Args:
            settings: What it can see.
        """
        self._settings = settings
        self._reach = settings.sight_m
        if settings.resolution_degrees:
            half = math.radians(settings.resolution_degrees) / 2.0
            self._reach = min(self._reach, _LIKELY / 2.0 / scalars.tan(half))
        self._seen: set[tuple[int, int, int]] = set()
        self._eyes = Eyes()

    def look(self, terrain: PlannerTerrain, state: State) -> None:
        """Take note of the places that it sees now.

        Args:
            terrain: The ground.
            state: What is.
        """
        if self._settings.looks and state[AGENT, Column.HIDES]:
            return
        eye = state[AGENT, Column.CENTER : Column.HALF].astype(np.float64)
        places = np.flatnonzero(_coarse(terrain))
        points = _points(terrain, places)
        near = np.linalg.norm(points - eye, axis=1) <= max(self._reach, 1.5)
        places, points = places[near], points[near]
        if self._settings.looks and len(points):
            points = points[self._eyes.hiders(state).clear(eye, points)]
        self._seen.update(_keys(points))

    def following(self, terrain: PlannerTerrain, start: int, closed: Mask) -> int | None:
        """The nearest place that it has not seen yet and can get to; None: it has seen all.

        Args:
            terrain: The ground.
            start: Place where it is.
            closed: Places that it must not enter.
        """
        places = np.flatnonzero(_coarse(terrain) & terrain.reached(start, closed))
        points = _points(terrain, places)
        unseen = np.array([key not in self._seen for key in _keys(points)], np.bool_)
        if not unseen.any():
            return None
        here = _points(terrain, np.array([start]))
        away = np.linalg.norm(points - here, axis=1)
        away[~unseen] = np.inf
        return int(places[np.argmin(away)])

    def sees(self, terrain: PlannerTerrain, place: int) -> bool:
        """Whether it has seen a place."""
        return _keys(_points(terrain, np.array([place])))[0] in self._seen

    def skip(self, terrain: PlannerTerrain, place: int) -> None:
        """Take a place for seen, since it cannot get there."""
        self._seen.update(_keys(_points(terrain, np.array([place]))))

    def again(self) -> None:
        """Begin anew: goals may have moved."""
        self._seen.clear()


class Hiders:
    """What hides what is behind it."""

    def __init__(self, rows: State) -> None:
        """Take in the opaque rows of a state."""
        self.solids = [solid_of(row) for row in rows]
        self._centers = np.array([solid.center for solid in self.solids]).reshape(-1, 3)
        self._reach = np.array([math.hypot(*solid.half) for solid in self.solids])

    def clear(self, eye: Floats, ends: Floats) -> Mask:
        """Which of some points, (n, 3), can be seen from an eye."""
        hidden = np.zeros(len(ends), np.bool_)
        if not self.solids or not len(ends):
            return ~hidden
        middle = ends.mean(axis=0)
        wide = np.linalg.norm(ends - middle, axis=1).max()
        along = middle - eye
        share = product(self._centers - eye, along) / max(float(product(along, along)), 1e-9)
        off = self._centers - eye - np.clip(share, 0.0, 1.0)[:, None] * along
        near = np.linalg.norm(off, axis=1) <= self._reach + wide
        for k in np.flatnonzero(near).tolist():
            hidden |= crossed_lines(self.solids[k], eye, ends)
        return ~hidden


class Eyes:
    """Finds what hides in a state; nothing is worked out anew while nothing has moved."""

    def __init__(self) -> None:
        self._key = b""
        self._hiders = Hiders(np.zeros((0, STATE_COLUMNS), np.float32))

    def hiders(self, state: State) -> Hiders:
        """What hides what is behind it."""
        rows = state[1:]
        rows = rows[rows[:, Column.HIDES] > 0]
        key = rows[:, : Column.REWARD].tobytes()
        if key != self._key:
            self._key, self._hiders = key, Hiders(rows)
        return self._hiders


def _hiding_places(
    hiders: Hiders, state: State, center: npt.NDArray[np.float32], radius: float
) -> npt.NDArray[np.float32]:
    """Places behind other things that could hide a goal from the agent where it is, (n, 3).

    Args:
        hiders: What hides.
        state: What is.
        center: Where the goal is.
        radius: The goal's.
    """
    eye = state[AGENT, Column.CENTER : Column.HALF].astype(np.float64)
    places: list[tuple[float, float, float]] = []
    for solid in hiders.solids:
        dx, dz = solid.center.x - eye[0], solid.center.z - eye[2]
        flat = max(math.hypot(dx, dz), 1e-6)
        off = min(solid.half.x, solid.half.z) + radius + 0.1
        x, z = solid.center.x + off * dx / flat, solid.center.z + off * dz / flat
        inside = radius <= x <= ARENA_SIDE - radius and radius <= z <= ARENA_SIDE - radius
        own = math.hypot(x - center[0], z - center[2]) < max(solid.half.x, solid.half.z) + radius
        if inside and not own and crossed_lines(solid, eye, np.array([[x, radius, z]]))[0]:
            places.append((x, radius, z))
    return np.array(places, np.float32).reshape(-1, 3)


def _coarse(terrain: PlannerTerrain) -> Mask:
    column, row = np.divmod(terrain.ground.cell, SIDE)
    return (column % _GRID == _GRID // 2) & (row % _GRID == _GRID // 2)


def _points(terrain: PlannerTerrain, places: npt.NDArray[np.int64]) -> Floats:
    ground = terrain.ground
    return np.stack([ground.x[places], ground.height[places], ground.z[places]], axis=1)


def _keys(points: Floats) -> list[tuple[int, int, int]]:
    """Names of places that stay the same when the ground is worked out anew."""
    return [(round(x * 4), round(y * 4), round(z * 4)) for x, y, z in points.tolist()]
