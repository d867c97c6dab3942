"""The agent: chooses where to go by what it knows of the episode, and goes there."""

from __future__ import annotations

import itertools
from functools import cache
from math import degrees, hypot, inf, radians
from typing import TYPE_CHECKING, Final

import numpy as np

from animalcat.envs.agents.scout import chart, eyes
from animalcat.envs.agents.scout.memory import Goal, Memory
from animalcat.envs.agents.scout.pose import angle_between
from animalcat.envs.agents.scout.settings import ScoutSettings
from animalcat.envs.agents.scout.survey import LevelMap, ScoutState
from animalcat.portable.scalars import atan2, cos, sin

if TYPE_CHECKING:
    from animalcat.envs.agents.base import EpisodeInfo
    from animalcat.envs.agents.scout.chart import Numbers, Singles
    from animalcat.envs.types import Observation

_STAY, _FORWARD, _BACKWARD = 0, 3, 6
_RIGHT, _LEFT = 1, 2
_STALE: Final = 8
"""Decisions after which the way is worked out anew."""
_PACE: Final = 7.0
"""Metres a second that it expects to make."""
_SLOW: Final = 7.0
"""m/s at which it goes on a platform."""
_LONG: Final = 70
"""Decisions on the way within which it must get on."""
_STUCK: Final = 10
"""Decisions without getting on after which it takes it that something is in the way."""


class ScoutAgent:
    """Finds goals with a map and a memory, from what an agent that is measured may perceive.

    It looks all round, maps what its rays meet, remembers goals and goes to them by ways on the
    map: yellow ones first, the green one, which ends the episode, last. A goal that went out of
    sight it looks for behind what hides it, and then elsewhere. Without any it explores.

    Attributes:
        settings: What it can do.
        status: What it is doing, in words.
        memory: The goals that it remembers.
    """

    def __init__(self, settings: ScoutSettings | None = None) -> None:
        """Have what is compiled ready, before an episode's clock runs.

        Args:
            settings: What it can do; None for all.
        """
        self.settings = settings or ScoutSettings()
        self.status = "waiting"
        self.memory = Memory()
        _warm_up()

    def reset(self, info: EpisodeInfo) -> None:
        """Forget the last episode.

        Raises:
            ValueError: The observation has no rays.
        """
        spec = info.observation_spec
        if spec.rays is None:
            raise ValueError(
                "builtin:scout maps the arena by rays, and the observation has none: "
                "turn rays on, or choose another agent"
            )
        self._survey = ScoutState(self.settings, info, spec.rays)
        self.memory = self._survey.memory
        self._ticks = spec.decision_period
        self._budget = info.time_budget_steps
        self._rng = np.random.default_rng(info.seed)
        self._action = 0
        self._tries = 0
        self._turned = 0.0
        rays = spec.rays
        self._scan = max(360.0 - 2.0 * rays.max_degrees, rays.spacing)
        self._field: Singles | None = None
        self._cost = self._survey.level.looked
        self._about: tuple[object, ...] = ()
        self._age = 0
        self._still = 0
        self._backing = 0
        self._view = -1
        self._viewing = 0
        self._cutoff = 0.0
        self._waited = 0.0
        self._put_off = 0.0
        self._searched = 0
        self._probes: list[tuple[float, float]] = []
        self._probe: tuple[float, float] | None = None
        self._probing = 0
        self._target: Goal | None = None
        self._places: list[tuple[float, float]] = []
        self._side = _RIGHT

    def act(self, observation: Observation) -> int:
        """Choose one action.

        Raises:
            ValueError: The observation has no rays.
        """
        if observation.rays is None:
            raise ValueError("builtin:scout was given an observation without rays")
        before = self._survey.changes
        self._survey.take(observation, self._action)
        if self._survey.changes > before:
            self._about = ()
        action = self._decide()
        speed = self._survey.pose.speed
        if action >= _FORWARD and speed < 0.3:
            self._still += 1
        elif speed > 0.6 or action % 3:
            self._still = 0
        self._action = action
        return action

    # --- deciding ------------------------------------------------------------------------------

    def _decide(self) -> int:
        pose, settings = self._survey.pose, self.settings
        if not pose.known:
            self.status = "finding out where it looks"
            return self._calibrate()
        if pose.travelled > settings.longest_path_m:
            self.status = "has walked as far as it can"
            return _STAY
        if not settings.platforms and self._survey.level.height > 0.35:
            self.status = "does not move on a platform"
            return _STAY
        if not settings.climbs and self._survey.on_slope():
            self.status = "backs off a slope"
            return _BACKWARD
        if self._backing:
            self._backing -= 1
            return _BACKWARD + (0 if self._backing > 4 else self._side)
        if self._still > _STUCK:
            self._bump()
        goals = [goal for goal in self.memory.goals if goal.kind != eyes.RED]
        yellow = [g for g in goals if g.kind == eyes.YELLOW and not g.gone]
        green = [g for g in goals if g.kind == eyes.GREEN and not g.gone]
        lost = [g for g in goals if g.gone and g.kind != eyes.ODD]
        if green:
            self._put_off += pose.length
        moving = [g for g in (*yellow, *green) if self._is_watched(g)]
        if moving and self._may_wait():
            self.status = "watching what falls"
            return self._face(moving[0])
        if self._turned < self._scan and not yellow and (self._patient or not green):
            self.status = "looking round"
            self._turned += pose.turn
            return _RIGHT
        target = self._target = self._choose(yellow, green)
        if target is not None:
            return self._fetch(target)
        return self._search(goals, lost)

    def _is_watched(self, goal: Goal) -> bool:
        """Whether a goal in the air is in sight, and falls or may begin to."""
        return (
            goal.raised > 0.5
            and goal.shown >= self._survey.now - 0.2
            and (self._survey.now - goal.first < 1.5 or self._survey.now - goal.moved < 1.5)
        )

    def _calibrate(self) -> int:
        """Move a little, so that the direction of movement tells the heading."""
        ahead_safe = self._survey.lengths[0] > 1.0 and self._survey.kinds[0] not in (
            chart.LAVA,
            chart.HOT,
        )
        if self._survey.pose.held:
            return _FORWARD if ahead_safe else _BACKWARD
        self._tries += 1
        if self._tries % 14 > 9:
            return _RIGHT
        return _FORWARD if ahead_safe == (self._tries % 28 < 14) else _BACKWARD

    def _bump(self) -> None:
        """Take it that something is in the way, and back off."""
        pose = self._survey.pose
        self._still = 0
        a = radians(pose.heading)
        sign = 1.0 if self._action < _BACKWARD else -1.0
        for reach in (0.2, 0.45, 0.7):
            for across in (-0.25, 0.0, 0.25):
                x = pose.x + sign * reach * sin(a) + across * cos(a)
                z = pose.z + sign * reach * cos(a) - across * sin(a)
                if 0.0 < x < 40.0 and 0.0 < z < 40.0:
                    self._survey.level.state[chart.cell_of(x, z)] = chart.FIRM
        self._survey.fixed.append((pose.x + sign * 0.5 * sin(a), pose.z + sign * 0.5 * cos(a)))
        self._backing = 8
        self._side = int(self._rng.integers(1, 3))
        self._about = ()
        if self._probe is not None:
            self._probe = None

    def _time_left(self) -> float:
        return (
            inf
            if self._budget <= 0
            else (self._budget - self._survey.step) * self._survey.pose.length
        )

    def _choose(self, yellow: list[Goal], green: list[Goal]) -> Goal | None:
        """The goal to go for: yellow ones first, if there is time."""
        pose, now = self._survey.pose, self._survey.now
        yellow = [g for g in yellow if g.barred < now]
        green = [g for g in green if g.barred < now]
        best_green = min(green, key=lambda g: self._worth(g, green), default=None)
        if best_green is not None and yellow:
            way = best_green.away(pose.x, pose.z)
            if self._time_left() < way / 4.0 + 3.0 or not self._patient:
                return best_green
        if yellow:
            return min(yellow, key=lambda g: self._worth(g, yellow))
        return best_green

    def _worth(self, goal: Goal, among: list[Goal]) -> float:
        """How little a goal is worth going for: metres of way, less what it and others give."""
        pose = self._survey.pose
        value = goal.away(pose.x, pose.z) - goal.radius
        # Of green ones it can take only one, and metres cost little beside what size gives.
        value -= 15.0 * goal.radius if goal.kind == eyes.GREEN else 2.0 * goal.radius
        if goal is self._target:
            value -= 2.0
        if goal.raised > 0.5:
            value += 15.0
        if self._survey.level.height > 0.35 and goal.kind == eyes.YELLOW:
            # There may be no way back onto a platform, so all that lies together counts.
            value -= 20.0 * sum(2.0 * g.radius for g in self._together(goal, among))
        return value

    def _together(self, goal: Goal, among: list[Goal]) -> list[Goal]:
        """The goals on the same side of the widest gap between goals, as seen from here."""
        pose = self._survey.pose
        ahead = degrees(atan2(goal.x - pose.x, goal.z - pose.z))
        bearings = sorted(
            (angle_between(degrees(atan2(g.x - pose.x, g.z - pose.z)) - ahead), k)
            for k, g in enumerate(among)
        )
        gaps = [(b[0] - a[0], k) for k, (a, b) in enumerate(itertools.pairwise(bearings))]
        if not gaps:
            return among
        _, cut = max(gaps)
        low = [among[k] for _, k in bearings[: cut + 1]]
        high = [among[k] for _, k in bearings[cut + 1 :]]
        return low if any(g is goal for g in low) else high

    def _fetch(self, target: Goal) -> int:
        pose = self._survey.pose
        self.status = "going for a goal"
        shut = [
            g for g in self.memory.goals
            if g is not target and not g.gone
            and (g.kind == eyes.RED or (g.kind == eyes.GREEN and target.kind == eyes.YELLOW))
        ]  # fmt: skip
        discs = [(g.x, g.z, 0.5 + g.radius + 0.25, chart.SHUT) for g in shut]
        x, z = target.guess(self._survey.now)
        if not self.settings.permanence and target.seen < self._survey.now - 0.3:
            x, z = self._before(target)
            if hypot(x - pose.x, z - pose.z) < 0.8:
                target.gone = True
        about = ("goal", round(x * 2), round(z * 2), len(discs))
        cells = chart.disc_cells(x, z, min(max(0.3, target.radius), 1.0))
        action = self._go(about, cells, discs)
        if action is None:
            action = self._go(("pushing", *about), cells, discs, movable=6.0)
        if action is None:
            target.barred = self._survey.now + 6.0
            return self._decide_again()
        return action

    def _decide_again(self) -> int:
        """Choose anew, after the target proved to be out of reach."""
        goals = [goal for goal in self.memory.goals if goal.kind != eyes.RED]
        target = self._choose(
            [g for g in goals if g.kind == eyes.YELLOW and not g.gone],
            [g for g in goals if g.kind == eyes.GREEN and not g.gone],
        )
        if target is not None and target.barred < self._survey.now:
            return self._fetch(target)
        return self._search(goals, [g for g in goals if g.gone and g.kind != eyes.ODD])

    def _may_wait(self) -> bool:
        """Whether it still has the patience to wait for a decision, and the time."""
        self._waited += self._survey.pose.length
        whole = self._budget * self._survey.pose.length
        return self._patient and (self._budget <= 0 or self._waited < 0.3 * whole)

    @property
    def _patient(self) -> bool:
        return max(self._waited, self._put_off) <= self.settings.patience_s

    def _face(self, goal: Goal) -> int:
        """Turn to a goal."""
        pose = self._survey.pose
        off = angle_between(degrees(atan2(goal.x - pose.x, goal.z - pose.z)) - pose.heading)
        return _STAY + (0 if abs(off) < pose.turn else _RIGHT if off > 0 else _LEFT)

    def _before(self, goal: Goal) -> tuple[float, float]:
        """Where a goal was last in sight, as far as the map is clear: before what hides it now."""
        ex, ez = goal.eye
        away = max(goal.away(ex, ez), 0.1)
        dx, dz = (goal.x - ex) / away, (goal.z - ez) / away
        t = 0.0
        while t < away:
            if self._survey.level.state[chart.cell_of(ex + t * dx, ez + t * dz)] == chart.FIRM:
                t = max(0.0, t - 0.6)
                break
            t += 0.2
        return ex + t * dx, ez + t * dz

    def _behind(self, goal: Goal) -> tuple[float, float]:
        """Where a goal may be that went out of sight: behind what hides it."""
        x, z = goal.guess(self._survey.now)
        ex, ez = goal.eye
        away = max(hypot(x - ex, z - ez), 0.1)
        dx, dz = (x - ex) / away, (z - ez) / away
        state = self._survey.level.state
        t = 1.0
        # The camera alone does not tell well how far away something in the air was.
        limit = 1.7 * away if goal.by_ray == -inf else away + 1.5
        while t < limit:
            px, pz = ex + t * dx, ez + t * dz
            if not (0.5 < px < 39.5 and 0.5 < pz < 39.5):
                break
            if state[chart.cell_of(px, pz)] == chart.FIRM and t > 0.5 * away:
                beyond = max(t + 1.8, away)
                qx, qz = ex + beyond * dx, ez + beyond * dz
                return min(max(qx, 0.7), 39.3), min(max(qz, 0.7), 39.3)
            t += 0.2
        return x, z

    def _search(self, goals: list[Goal], lost: list[Goal]) -> int:
        """Look for goals that are not in sight."""
        pose, settings = self._survey.pose, self.settings
        guesses: list[tuple[float, float, float]] = []
        if lost:
            cutoff = max(g.seen for g in lost)
            if settings.permanence:
                for goal in lost:
                    x, z = self._behind(goal)
                    guesses.append((x, z, 1.0))
            elif not settings.searches:
                return self._look_about()
        else:
            cutoff = self._cutoff
        if not settings.searches and not guesses:
            return self._look_about()
        if not settings.searches:
            guesses = [g for g in guesses if self._unseen(g, cutoff)]
            if not guesses:
                return self._look_about()
        self.status = "looking behind things" if guesses else "exploring"
        discs = [
            (g.x, g.z, 0.5 + g.radius + 0.25, chart.SHUT)
            for g in self.memory.goals
            if not g.gone and g.kind == eyes.RED
        ]
        action = self._explore(guesses, cutoff, discs)
        if action is not None:
            return action
        odd = [
            g for g in goals if g.kind == eyes.ODD and g.barred < self._survey.now and not g.gone
        ]
        if odd:
            nearest = min(odd, key=lambda g: g.away(pose.x, pose.z))
            self.status = "trying something strange"
            cells = chart.disc_cells(nearest.x, nearest.z, 0.4)
            action = self._go(("odd", round(nearest.x), round(nearest.z)), cells, discs)
            if action is not None:
                return action
            nearest.barred = self._survey.now + 20.0
        return self._last_resort(discs)

    def _explore(
        self,
        guesses: list[tuple[float, float, float]],
        cutoff: float,
        discs: list[tuple[float, float, float, float]],
    ) -> int | None:
        """Go where something has not been seen; None if there is no such place."""
        looked, pose = self._survey.level.looked, self._survey.pose
        for _ in range(4):
            view = self._view
            if view >= 0 and looked[view] < cutoff:
                i, j = divmod(view, chart.SIDE)
                x, z = (i + 0.5) * chart.CELL, (j + 0.5) * chart.CELL
                near = hypot(x - pose.x, z - pose.z)
                self._viewing += 1
                if self._viewing < 90 and not (near < 0.5 or (near < 1.3 and pose.speed < 0.2)):
                    cells = np.array([view], np.int64)
                    action = self._go(("view", i, j, len(discs)), cells, discs, movable=8.0)
                    if action is not None:
                        return action
                # It cannot be seen, or not be reached.
                looked[chart.disc_cells(x, z, 1.1)] = self._survey.now
            self._view = self._next_view(guesses, cutoff, discs)
            self._viewing = 0
            if self._view < 0:
                return None
        return None

    def _unseen(self, guess: tuple[float, float, float], cutoff: float) -> bool:
        return bool(self._survey.level.looked[chart.cell_of(guess[0], guess[1])] < cutoff)

    def _next_view(
        self,
        guesses: list[tuple[float, float, float]],
        cutoff: float,
        discs: list[tuple[float, float, float, float]],
    ) -> int:
        pose = self._survey.pose
        cost = self._costs(discs, 8.0)
        here = np.array([chart.cell_of(pose.x, pose.z)], np.int64)
        reach = chart.spread(cost, here, -1, 0.0, True)
        a = radians(pose.heading)
        return int(
            chart.choose_view(
                self._survey.level.looked, cutoff, reach, self._survey.level.state,
                np.array(guesses, np.float64).reshape(-1, 3), sin(a), cos(a), pose.x, pose.z,
            )
        )  # fmt: skip

    def _look_about(self) -> int:
        """Turn on the spot."""
        self.status = "looking about"
        self._places.clear()
        return _RIGHT

    def _last_resort(self, discs: list[tuple[float, float, float, float]]) -> int:
        """All that can be seen was seen: try whether something firm is a slope, or look anew."""
        pose = self._survey.pose
        if self.settings.climbs and self._searched < 12:
            if self._probe is None:
                self._probe = self._next_probe()
                self._probing = 0
                if self._probe is not None:
                    self._probes.append(self._probe)
                    self._searched += 1
            if self._probe is not None:
                self.status = "trying whether something is a slope"
                self._probing += 1
                x, z = self._probe
                if self._probing > 120 or (hypot(x - pose.x, z - pose.z) < 0.4):
                    self._probe = None
                else:
                    cells = chart.disc_cells(x, z, 0.3)
                    action = self._go(("probe", x, z), cells, discs)
                    if action is not None:
                        return action
                    self._probe = None
        # What is on the map may be wrong, or may have changed.
        state = self._survey.level.state
        state[(state == chart.FIRM) | (state == chart.MOVABLE)] = chart.UNKNOWN
        self._cutoff = self._survey.now
        self._searched = 0
        self._probes.clear()
        self._turned = 0.0
        return self._look_about()

    def _next_probe(self) -> tuple[float, float] | None:
        """Something firm that was not tried yet: near, and of a slope's colour if there is any."""
        pose = self._survey.pose
        firm = np.flatnonzero(self._survey.level.state == chart.SLOPE)
        if not len(firm):
            firm = np.flatnonzero(self._survey.level.state == chart.FIRM)
        best: tuple[float, float] | None = None
        least = inf
        for cell in firm[:: max(1, len(firm) // 400)].tolist():
            x, z = (cell // chart.SIDE + 0.5) * chart.CELL, (cell % chart.SIDE + 0.5) * chart.CELL
            if any(hypot(x - px, z - pz) < 2.5 for px, pz in self._probes):
                continue
            away = hypot(x - pose.x, z - pose.z)
            if away < least:
                best, least = (x, z), away
        return best

    def _escape(self) -> int:
        """It does not get on: take it that the map is wrong around here, and back off."""
        pose, level = self._survey.pose, self._survey.level
        near = chart.disc_cells(pose.x, pose.z, 3.0)
        wrong = near[(level.state[near] == chart.FIRM) & (level.doubt[near] != chart.VISITED)]
        level.state[wrong] = chart.UNKNOWN
        self._places.clear()
        self._backing = 14
        self._side = int(self._rng.integers(1, 3))
        self._about = ()
        return _BACKWARD + self._side

    def _tread(self) -> int:
        """Follow the way on a platform, which may not be left twice, so it turns before it runs."""
        pose = self._survey.pose
        assert self._field is not None
        off = angle_between(chart.downhill(self._field, pose.x, pose.z) - pose.heading)
        turn = 0 if abs(off) < 0.5 * pose.turn else _RIGHT if off > 0.0 else _LEFT
        if abs(off) > 18.0 or pose.speed > _SLOW:
            return _STAY + turn
        return _FORWARD + turn

    # --- going ---------------------------------------------------------------------------------

    def _costs(self, discs: list[tuple[float, float, float, float]], movable: float) -> Singles:
        return chart.costs(
            self._survey.level.state,
            np.array(discs, np.float64).reshape(-1, 4),
            1.5,
            2.0 if self.settings.climbs else chart.SHUT,
            movable,
            self.settings.fears_lava,
        )

    def _go(
        self,
        about: tuple[object, ...],
        cells: Numbers,
        discs: list[tuple[float, float, float, float]],
        movable: float = chart.SHUT,
    ) -> int | None:
        """The action that leads to some cells; None if there is no way."""
        pose, level = self._survey.pose, self._survey.level
        here = int(chart.cell_of(pose.x, pose.z))
        self._age += 1
        self._places.append((pose.x, pose.z))
        if len(self._places) > _LONG:
            x, z = self._places.pop(0)
            if hypot(x - pose.x, z - pose.z) < 0.6:
                return self._escape()
        if about != self._about or self._field is None or self._age % _STALE == 0:
            self._cost = self._costs(discs, movable)
            self._field = chart.spread(self._cost, cells, here, 3.0, False)
            self._about = about
        if not self._field[here] < 1e5:
            return None
        if level.height > 0.35:
            return self._tread()
        return int(
            chart.steer(
                level.state, self._cost, self._field, pose.x, pose.z, pose.vx, pose.vz,
                pose.heading,
                self._ticks, self._action % 3, self.settings.fears_lava, _PACE,
            )
        )  # fmt: skip


@cache
def _warm_up() -> None:
    """Compile what is compiled, so that no decision waits for it."""
    level = LevelMap(0.0)
    array = np.zeros(1)
    middle = np.array([chart.cell_of(20.0, 20.0)], np.int64)
    chart.trace(
        level.state, level.doubt, level.looked, 20.0, 20.0, 0.0, array, np.ones(1, np.int64),
        array + 5.0, np.zeros((1, 4)), 0.1,
    )  # fmt: skip
    chart.look_along(level.state, level.looked, 20.0, 20.0, 0.0, np.ones(3), 0.1)
    cost = chart.costs(level.state, np.zeros((0, 4)), 1.3, 2.0, 8.0, True)
    way = chart.spread(cost, middle, -1, 0.0, False)
    chart.disc_cells(20.0, 20.0, 0.5)
    chart.choose_view(level.looked, 0.0, way, level.state, np.zeros((0, 3)), 0.0, 1.0, 20.0, 20.0)
    chart.steer(level.state, cost, way, 20.0, 22.0, 0.0, 0.0, 0.0, 3, 0, True, _PACE)
    image = np.zeros((4, 4, 3), np.uint8)
    eyes.find_patches(image)
    eyes.find_feet(image, True)
