"""A Braitenberg vehicle that steers toward goals and away from hazards, by its rays alone."""

from __future__ import annotations

from dataclasses import dataclass
from math import degrees, hypot, radians
from typing import TYPE_CHECKING, Final

import numpy as np

from animalcat.envs.rays import Ray, Rays
from animalcat.envs.types import PHYSICS_STEP, RAY_RADIUS
from animalcat.portable.scalars import atan2, cos, sin

if TYPE_CHECKING:
    from animalcat.envs.agents.base import EpisodeInfo
    from animalcat.envs.types import Observation, RaySpec

_WANTED: Final = frozenset(("goodGoal", "goodGoalMulti"))
_SHUNNED: Final = frozenset(("badGoal", "badGoalMulti", "DeathZone", "HotZone"))
_PASSABLE: Final = _WANTED | {"Movable"}
_TURN_PER_STEP: Final = 2.0
_STAY, _FORWARD, _BACKWARD = 0, 3, 6
_RIGHT, _LEFT = 1, 2


@dataclass(slots=True)
class _Goal:
    """Where a goal was last seen, relative to the agent: metres to the right and forward."""

    right: float
    forward: float
    age: int = 0

    @property
    def bearing(self) -> float:
        """Degrees to the right."""
        return degrees(atan2(self.right, self.forward))

    @property
    def distance(self) -> float:
        """Metres."""
        return hypot(self.right, self.forward)


class BraitenbergAgent:
    """Steers to the nearest good goal, away from hazards and round obstacles, or explores.

    It tracks the place where it last saw a goal by dead reckoning from its own velocity and turns.
    Without a goal it looks all round, then runs to where there is most room.
    """

    def reset(self, info: EpisodeInfo) -> None:
        """Forget the last episode.

        Raises:
            ValueError: The observation has no rays.
        """
        if info.observation_spec.rays is None:
            raise ValueError(
                "builtin:braitenberg sees by rays, and the observation has none: "
                "turn rays on, or choose another agent"
            )
        self._rays: RaySpec = info.observation_spec.rays
        period = info.observation_spec.decision_period
        self._dt = period * PHYSICS_STEP
        self._turn = period * _TURN_PER_STEP
        self._rng = np.random.default_rng(info.seed)
        self._goal: _Goal | None = None
        self._last_turn = 0
        self._scan = self._full_turn()
        self._detour = 0
        self._side = _RIGHT
        self._still = 0
        self._best_room = 0.0
        self._aim = 0.0

    def act(self, observation: Observation) -> int:
        """Choose one action.

        Raises:
            ValueError: The observation has no rays.
        """
        if observation.rays is None:
            raise ValueError("builtin:braitenberg was given an observation without rays")
        rays = list(Rays(observation.rays, self._rays))
        speed = float(observation.velocity[2])
        self._track(rays, observation)
        action = self._decide(rays, speed, abs(float(observation.velocity[0])))
        self._still = self._still + 1 if action >= _FORWARD and abs(speed) < 0.3 else 0
        if self._still > 12:
            # Held by something that no ray shows: back out, and try another way.
            self._still = 0
            self._detour = 12
            self._side = int(self._rng.integers(1, 3))
            action = _BACKWARD + self._side
        self._last_turn = action % 3
        return action

    def _full_turn(self) -> int:
        return round(360.0 / self._turn)

    def _track(self, rays: list[Ray], observation: Observation) -> None:
        """Update the remembered place of the goal, or replace it by what is seen now."""
        if self._goal is not None:
            right = self._goal.right - float(observation.velocity[0]) * self._dt
            forward = self._goal.forward - float(observation.velocity[2]) * self._dt
            turned = radians({0: 0.0, _RIGHT: self._turn, _LEFT: -self._turn}[self._last_turn])
            self._goal = _Goal(
                right * cos(turned) - forward * sin(turned),
                right * sin(turned) + forward * cos(turned),
                self._goal.age + 1,
            )
        seen = [_place(ray) for ray in rays if ray.kind in _WANTED]
        same = [place for place in seen if self._goal is None or _apart(place, self._goal) < 2.0]
        near = min(same or seen, key=lambda place: place.distance, default=None)
        # It stays with the goal it has, or would waver between two, unless another is far nearer.
        if near is not None and (
            same or self._goal is None or near.distance < 0.7 * self._goal.distance
        ):
            self._goal = near
        if self._goal is not None and self._goal.age > 0 and self._gives_up(self._goal, rays[0]):
            self._goal = None
            self._scan = self._full_turn()

    def _gives_up(self, goal: _Goal, ahead: Ray) -> bool:
        """Whether a goal that is not seen now is no longer where it was, or was lost long ago."""
        looked_past = abs(goal.bearing) < 3.0 and ahead.distance > goal.distance + 1.0
        return looked_past or goal.distance < 0.5 or goal.age > 150

    def _decide(self, rays: list[Ray], speed: float, sideways: float) -> int:
        ahead = rays[0]
        stopping = 0.25 * max(speed, 0.0)
        if any(
            ray.kind in _SHUNNED and ray.distance < 0.7 + stopping and abs(ray.angle) < 45.0
            for ray in rays
        ):
            return self._shy(rays, speed)
        if self._detour > 0:
            return self._go_round(rays, stopping)
        if self._goal is not None:
            blocked = ahead.kind not in _PASSABLE and ahead.distance < 1.0 + stopping
            if blocked and abs(self._goal.bearing) < 40.0 and ahead.distance < self._goal.distance:
                self._detour = 20
                self._side = _freer_side(rays, self._side)
                return self._go_round(rays, stopping)
            return self._approach(self._goal, speed, sideways)
        return self._explore(rays, speed, stopping)

    def _approach(self, goal: _Goal, speed: float, sideways: float) -> int:
        bearing = goal.bearing
        turn = 0 if abs(bearing) < self._turn / 2 else _RIGHT if bearing > 0 else _LEFT
        if abs(bearing) > 20.0 or (sideways > 2.0 and goal.distance < 6.0):
            return _STAY + turn
        if abs(bearing) > 8.0 and speed > goal.distance:
            return _STAY + turn
        return _FORWARD + turn

    def _shy(self, rays: list[Ray], speed: float) -> int:
        """Stop and turn away from a hazard; a goal behind it is remembered."""
        self._side = _freer_side(rays, self._side)
        self._detour = 15
        self._scan = 0
        return (_BACKWARD if speed > 1.0 else _STAY) + self._side

    def _go_round(self, rays: list[Ray], stopping: float) -> int:
        """Turn to the free side until the way is open, then run along the obstacle."""
        self._detour -= 1
        ahead = rays[0]
        if ahead.kind not in _PASSABLE and ahead.distance < 1.5 + stopping:
            self._detour = max(self._detour, 8)
            return _STAY + self._side
        return _FORWARD

    def _explore(self, rays: list[Ray], speed: float, stopping: float) -> int:
        ahead = rays[0]
        if self._scan > 0:
            if self._scan == self._full_turn():
                self._best_room, self._aim = 0.0, 0.0
            self._scan -= 1
            self._aim -= self._turn
            harmless = ahead.kind not in _SHUNNED
            # A little chance, so that it does not always run to the same corner.
            room = ahead.distance * float(self._rng.uniform(0.6, 1.0)) if harmless else 0.0
            if room > self._best_room:
                self._best_room, self._aim = room, 0.0
            if self._scan == 0:
                self._aim = (self._aim + 180.0) % 360.0 - 180.0
            return _STAY + _RIGHT
        if abs(self._aim) > self._turn / 2:
            turn = _RIGHT if self._aim > 0 else _LEFT
            self._aim -= self._turn if self._aim > 0 else -self._turn
            return _STAY + turn
        if ahead.distance < 2.0 + stopping and ahead.kind not in _PASSABLE:
            self._scan = self._full_turn()
            return _STAY
        if speed > 6.0:
            return _STAY
        return _FORWARD


def _place(ray: Ray) -> _Goal:
    """Where a ray's hit lies: beyond the distance of the sphere's centre by its radius."""
    angle, reach = radians(ray.angle), ray.distance + RAY_RADIUS
    return _Goal(reach * sin(angle), reach * cos(angle))


def _apart(goal: _Goal, other: _Goal) -> float:
    return hypot(goal.right - other.right, goal.forward - other.forward)


def _freer_side(rays: list[Ray], otherwise: int) -> int:
    """The side whose rays reach farther before an obstacle or a hazard."""
    room = {_RIGHT: 0.0, _LEFT: 0.0}
    for ray in rays[1:]:
        if ray.kind not in _SHUNNED:
            room[_RIGHT if ray.angle > 0 else _LEFT] += min(ray.distance, 15.0)
    if abs(room[_RIGHT] - room[_LEFT]) < 0.5:
        return otherwise
    return _RIGHT if room[_RIGHT] > room[_LEFT] else _LEFT
