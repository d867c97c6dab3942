"""What the scout makes of its senses: where it is, its map at each height, and the goals it met."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import hypot, inf, radians
from typing import TYPE_CHECKING, Final

import numpy as np

from animalcat.arena_configs.tags import MISSED, RAY_TAGS, UNLISTED
from animalcat.envs.agents.scout import chart, eyes
from animalcat.envs.agents.scout.memory import Memory
from animalcat.envs.agents.scout.pose import Pose
from animalcat.envs.rays import Rays
from animalcat.portable.scalars import cos, sin, tan

if TYPE_CHECKING:
    from animalcat.envs.agents.base import EpisodeInfo
    from animalcat.envs.agents.scout.chart import Bytes, Floats, Numbers, Singles
    from animalcat.envs.agents.scout.settings import ScoutSettings
    from animalcat.envs.types import Observation, RaySpec

_BLIND: Final = 1.0
"""Metres that count as free along a ray that met nothing."""
_REST: Final = 0.49
"""Metres: height of the agent's middle on the floor."""

STATES: Final = {
    RAY_TAGS.index(tag): state
    for tag, state in {
        "arena": chart.FREE,
        "Immovable": chart.FIRM,
        "Movable": chart.MOVABLE,
        "GoalSpawner": chart.FIRM,
        "DeathZone": chart.LAVA,
        "HotZone": chart.HOT,
        "Ramp": chart.SLOPE,
        "PillarButton": chart.FIRM,
        "SignPoster": chart.FIRM,
        "HollowObj": chart.MOVABLE,
    }.items()
}
"""What each tag bars, by its index; the others are of something that bars nothing."""
GOALS: Final = {
    RAY_TAGS.index(tag): look
    for tag, look in {
        "goodGoal": eyes.GREEN,
        "goodGoalMulti": eyes.YELLOW,
        "badGoal": eyes.RED,
        "badGoalMulti": eyes.RED,
        "DecoyGoal": eyes.RED,
        "DecoyGoalBounce": eyes.RED,
    }.items()
}
"""Kinds of goals, by the index of the tag."""
_ARENA: Final = RAY_TAGS.index("arena")


@dataclass(slots=True)
class LevelMap:
    """The map at one height."""

    height: float
    state: Bytes = field(default_factory=lambda: np.zeros(chart.SIDE**2, np.uint8))
    doubt: Bytes = field(default_factory=lambda: np.zeros(chart.SIDE**2, np.uint8))
    looked: Singles = field(default_factory=lambda: np.full(chart.SIDE**2, -1.0, np.float32))


class ScoutState:
    """What the scout knows of its episode by its senses.

    Attributes:
        pose: Where it is and how it moves.
        memory: The goals that it remembers.
        level: The map at the height on which it stands.
        levels: The maps of all heights, that of the floor first.
        lengths: Metres that each ray of the last observation went.
        kinds: What each of them met, as the map has it.
        image: Whether the last observation had a picture with light in it.
        fixed: Where something did not yield, whatever it looked like.
        changes: How often something has happened that makes all ways on the map worthless at once.
        step: Decisions so far.
        now: Seconds since the episode began.
    """

    def __init__(self, settings: ScoutSettings, info: EpisodeInfo, rays: RaySpec) -> None:
        """Begin an episode.

        Args:
            settings: What the scout can do.
            info: The episode.
            rays: The rays that are observed.
        """
        self._settings = settings
        self._angles = np.array(rays.angles, np.float64)
        self._order = np.argsort(self._angles)
        self._rays = rays
        self.pose = Pose(info.observation_spec.decision_period, info.time_budget_steps > 0)
        self.memory = Memory()
        self.level = LevelMap(0.0)
        self.levels = [self.level]
        self.lengths = np.zeros(len(self._angles))
        self.kinds = np.zeros(len(self._angles), np.int64)
        self.image = False
        self.fixed: list[tuple[float, float]] = []
        self.changes = 0
        self.step = 0
        self.now = 0.0
        self._hits = np.zeros((len(self._angles), 4))
        self._early: dict[float, tuple[float, float, float, Numbers, Floats]] = {}
        self._health = 100.0
        self._flat = 0
        self._last_y = 0.0
        self._round, self._round_at = 0.0, (0.0, 0.0)
        self._round_depths = np.zeros(max(1, round(360.0 / self.pose.turn)))

    def take(self, observation: Observation, action: int) -> None:
        """Take an observation in.

        Args:
            observation: The observation.
            action: The action that led to it.
        """
        pose = self.pose
        rotation = pose.update(observation, action)
        self.step += 1
        self.now = self.step * pose.length
        if observation.health > self._health + 1e-3:
            self.memory.collect(pose)
            self.changes += 1
        self._health = observation.health
        if rotation:
            self.memory.turn(rotation, pose.x, pose.z)
        if pose.known and self._early:
            for x, z, heading, kinds, lengths in self._early.values():
                self._enter(x, z, heading + rotation, kinds, lengths)
            self._early.clear()
        self._stand()
        self._sense(observation)
        if self._settings.memory_seconds < inf:
            self.memory.forget(self.now - self._settings.memory_seconds)

    def _stand(self) -> None:
        """Notice on which level it stands."""
        pose = self.pose
        height = pose.y - _REST
        if abs(pose.y - self._last_y) < 0.01 and abs(pose.vy) < 0.1:
            self._flat += 1
        else:
            self._flat = 0
        self._last_y = pose.y
        if self._flat >= 3 and abs(height - self.level.height) > 0.2:
            near = [level for level in self.levels if abs(level.height - height) < 0.2]
            if near:
                self.level = near[0]
            else:
                self.level = LevelMap(height)
                self.levels.append(self.level)
                if len(self.levels) == 2 and self.step < 8:
                    self.levels[0].height = 0.0
            self.changes += 1
            self._hits[:] = 0.0

    @property
    def _sloping(self) -> bool:
        return abs(self.pose.y - _REST - self.level.height) > 0.15

    def _enter(self, x: float, z: float, heading: float, kinds: Numbers, lengths: Floats) -> None:
        level = self.level
        chart.trace(
            level.state, level.doubt, level.looked, x, z, heading, self._angles, kinds, lengths,
            self._hits, self.now,
        )  # fmt: skip

    def _sense(self, observation: Observation) -> None:
        pose, now = self.pose, self.now
        rays = Rays(observation.rays, self._rays)
        lengths, tags = rays.distances, rays.tags.tolist()
        kinds = self.kinds = np.empty(len(tags), np.int64)
        tells: list[bool] = []
        for i, tag in enumerate(tags):
            kind = STATES.get(tag, chart.FREE)
            if tag == MISSED:
                kind, lengths[i] = chart.UNKNOWN, _BLIND
            elif kind == chart.LAVA and not self._settings.fears_lava:
                kind = chart.FREE
            kinds[i] = kind
            tells.append(kind not in (chart.UNKNOWN, chart.LAVA, chart.HOT) or tag == _ARENA)
            goal = GOALS.get(tag, 0)
            if tag == UNLISTED:
                goal = eyes.ODD
            if goal:
                self.memory.meet(goal, float(self._angles[i]), float(lengths[i]), pose, now)
        self.lengths = lengths
        if pose.known:
            if not self._sloping:
                self._enter(pose.x, pose.z, pose.heading, kinds, lengths)
            if observation.camera is not None:
                self._note_round()
        else:
            self._early[pose.heading] = (pose.x, pose.z, pose.heading, kinds, lengths)
        image = observation.camera
        self.image = image is not None and image.shape[2] == 3 and bool(image.max() > 8)
        if self.image:
            assert image is not None
            self._see(image)
        self.memory.check(
            pose, now, self._angles.tolist(), lengths.tolist(), tells, self.image, self.open_to
        )

    def open_to(self, x: float, z: float) -> bool:
        """Whether the map has nothing that hides a position from here."""
        if not self.pose.known:
            return False
        dx, dz = x - self.pose.x, z - self.pose.z
        away = hypot(dx, dz)
        state = self.level.state
        for k in range(1, int(away / 0.25) - 2):
            share = 0.25 * k / away
            held = state[chart.cell_of(self.pose.x + share * dx, self.pose.z + share * dz)]
            if held != chart.FREE:
                return False
        return True

    def _see(self, image: np.ndarray) -> None:
        pose, now = self.pose, self.now
        eye = pose.y + 0.01
        for patch in eyes.find_patches(image):
            self.memory.spot(patch, eye, pose, now, self._clear_below(patch.bearing))
        if not pose.known:
            return
        if self.step % 2:
            return
        reach = self._depths(np.linspace(-48.0, 48.0, 33))
        if not self._sloping:
            chart.look_along(
                self.level.state, self.level.looked, pose.x, pose.z, pose.heading, reach, now
            )
        if self.step % 4 == 0:
            self._note_feet(image, eye)

    def _depths(self, bearings: Floats) -> Floats:
        """How far it is clear in some directions, by the rays of now and of other headings here."""
        pose, order = self.pose, self._order
        angles = self._angles[order]
        right = np.clip(np.searchsorted(angles, bearings), 1, len(order) - 1)
        reach = np.minimum(self.lengths[order][right], self.lengths[order][right - 1])
        bins = (pose.heading + bearings - self._round) % 360.0 / pose.turn
        low = np.floor(bins).astype(np.int64) % len(self._round_depths)
        pair = (low, (low + 1) % len(self._round_depths))
        known = self._round_depths[pair[0]] > 0.0
        known &= self._round_depths[pair[1]] > 0.0
        both = np.minimum(self._round_depths[pair[0]], self._round_depths[pair[1]])
        return np.where(known, both, reach)

    def _clear_below(self, bearing: float) -> float:
        """How far it is clear in a direction, at the body's height; infinite if no ray told."""
        nearest = int(np.argmin(np.abs(self._angles - bearing)))
        if abs(self._angles[nearest] - bearing) < 0.5 * self.pose.turn:
            return float(self.lengths[nearest])
        turns = round((self.pose.heading + bearing - self._round) % 360.0 / self.pose.turn)
        depth = float(self._round_depths[turns % len(self._round_depths)])
        return depth if depth > 0.0 else inf

    def _note_round(self) -> None:
        """Keep the depths of this heading, for as long as the agent stays where it is."""
        pose = self.pose
        x, z = self._round_at
        if hypot(pose.x - x, pose.z - z) > 0.8:
            self._round_at = pose.x, pose.z
            self._round = pose.heading
            self._round_depths[:] = 0.0
        bins = np.round((pose.heading + self._angles - self._round) % 360.0 / pose.turn)
        self._round_depths[bins.astype(np.int64) % len(self._round_depths)] = self.lengths

    def _note_feet(self, image: np.ndarray, eye: float) -> None:
        """Note slopes by their colour, and lava below a platform, which rays do not meet."""
        pose = self.pose
        if self._settings.climbs and self.level.height < 0.2:
            for bearing, down, _ in eyes.find_feet(image, True):
                if down > 1.0:
                    distance = eye / tan(radians(down))
                    if distance < 14.0:
                        self._mark_slope(bearing, distance)
        if self._settings.fears_lava and self.level.height > 0.4:
            for bearing, low, high in eyes.find_feet(image, False):
                if high > 2.5:
                    a = radians(pose.heading + bearing)
                    near, far = eye / tan(radians(low)), eye / tan(radians(high))
                    for distance in np.arange(near, min(far, near + 3.0), 0.2).tolist():
                        self._mark_lava(pose.x + distance * sin(a), pose.z + distance * cos(a))

    def _mark_lava(self, x: float, z: float) -> None:
        if 0.0 < x < 40.0 and 0.0 < z < 40.0:
            cell = chart.cell_of(x, z)
            for level in (self.level, self.levels[0]):
                if level.doubt[cell] != chart.VISITED:
                    level.state[cell], level.doubt[cell] = chart.LAVA, chart.VISITED

    def _mark_slope(self, bearing: float, distance: float) -> None:
        pose, state = self.pose, self.level.state
        a = radians(pose.heading + bearing)
        for reach in (distance - 0.75, distance - 0.5, distance - 0.25, distance):
            x, z = pose.x + reach * sin(a), pose.z + reach * cos(a)
            if reach > 0.0 and 0.5 < x < 39.5 and 0.5 < z < 39.5:
                if any(hypot(x - bx, z - bz) < 0.7 for bx, bz in self.fixed):
                    continue
                cell = chart.cell_of(x, z)
                if state[cell] in (chart.FIRM, chart.UNKNOWN):
                    state[cell] = chart.SLOPE

    def on_slope(self) -> bool:
        """Whether it goes up or down a slope, as far as its velocity tells."""
        pose = self.pose
        off = abs(pose.y - _REST - self.level.height)
        return off > 0.08 and 0.1 < abs(pose.vy) < 1.2 * pose.speed
