"""The agent: looks, plans which reward to go for, and goes there."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from animalcat.arena_configs.ground import TooMuchError
from animalcat.arena_configs.model import Point
from animalcat.envs.agents.planner import motion
from animalcat.envs.agents.planner.beliefs import Beliefs, Search
from animalcat.envs.agents.planner.motion import MotionState
from animalcat.envs.agents.planner.order import Plan, best_plan
from animalcat.envs.agents.planner.settings import PlannerSettings
from animalcat.envs.agents.planner.terrain import PlannerTerrain
from animalcat.envs.agents.planner.view import Viewer, is_other
from animalcat.envs.types import PHYSICS_STEP
from animalcat.portable import scalars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from animalcat.envs.agents.base import EpisodeInfo
    from animalcat.envs.agents.planner.terrain import Floats, Mask, Numbers
    from animalcat.envs.agents.planner.view import Ball, View
    from animalcat.envs.state import State
    from animalcat.envs.types import Observation

_MOVED: Final = 0.2
"""Metres by which a ball may move before the way to it is worked out anew."""
_AT_REST: Final = 0.05
"""m/s below which a ball lies still."""
_STUCK: Final = 60
"""Decisions within which the agent must get on."""
_NEAR: Final = 0.4
"""Metres within which it has not got on."""
_LONGEST_WAIT: Final = 12.0
"""Seconds into the episode in which it waits for what moves."""
_FIRST_LOOK: Final = 0.5
"""Seconds in which nothing is given up, since what will fall has not begun to."""
_LOOK_AGAIN: Final = 2.0
"""Seconds after which it looks again for the nearest place to a reward without a way."""
_ANSWER: Final = 3.0
"""Seconds in which a button that was pressed may act."""
_AWAY: Final = 12
"""Decisions of backing away from a button before it is pressed anew."""
_BARRED: Final = 0.3
"""Metres around a place where it got stuck that it does not go to again."""
_OPENINGS: Final = 3
"""How often it tries such places anew, once there is no other way."""
_KEPT_FIELDS: Final = 96
_MOST_BALLS: Final = 24
"""Rewards that are thought of at once."""
_REPLAN: Final = 1.0
"""Seconds after which the order of rewards is thought over."""
_PATIENCE: Final = 8.0
"""Seconds after the last goal appeared in which a spawner may bring forth another."""
_RUNS: Final = np.array(motion.RUNS, np.int64)


class PlannerAgent:
    """Solves what can be solved, from the arena's true state.

    It goes for the rewards in the order that returns most, by ways that keep off lava where there
    is room, and foresees by the law of movement where each action leads. It looks at neither rays
    nor camera.

    Attributes:
        settings: What it can do; those of the moment of `reset` hold for the episode.
        status: What it is doing, in words.
    """

    def __init__(self, settings: PlannerSettings | None = None) -> None:
        """Have what is compiled ready, before an episode's clock runs.

        Args:
            settings: What it can do; None: everything.
        """
        self.settings = settings or PlannerSettings()
        _warm_up()

    def reset(self, info: EpisodeInfo) -> None:
        """Forget the last episode.

        Raises:
            ValueError: The observation does not show the arena's state.
        """
        spec = info.observation_spec
        if not spec.privileged:
            raise ValueError(
                "builtin:planner plans on the arena's true state, which this session does not "
                "show: make the session privileged (--privileged), or choose another agent"
            )
        self.status = "looking"
        self._period = spec.decision_period
        self._limit = info.time_budget_steps * spec.decision_period * PHYSICS_STEP
        self._able = self.settings
        self._patience = self._able.patience_s
        self._enter()

    def _enter(self) -> None:
        """Begin with an arena: the first of the episode, or one that the last has merged into."""
        self._shown: State | None = None
        self._state: State
        self._viewer = Viewer()
        self._terrains: dict[tuple[bytes, bool], PlannerTerrain | None] = {}
        self._fields: dict[tuple[object, ...], Floats] = {}
        self._before: dict[int, Point] = {}
        self._velocity: dict[int, tuple[float, float, float]] = {}
        self._places: list[tuple[float, float]] = []
        self._last_move, self._last_turn = 0, 0
        self._away = 2  # backwards, or forwards from where going backwards led nowhere
        self._time = 0.0
        self._news = 0.0
        self._backing = 0
        self._barred: list[tuple[float, float]] = []
        self._opened = 0
        self._pressed: float | None = None
        self._nearest: tuple[int, Point] | None = None
        self._look = 0.0
        self._pushes = False
        self._plan, self._due = Plan((), 0.0), 0.0
        self._about: tuple[tuple[int, tuple[int, ...], bool], ...] = ()
        self._beliefs, self._search = Beliefs(self._able), Search(self._able)
        self._looking: tuple[PlannerTerrain, int] | None = None

    def act(self, observation: Observation) -> int:
        """Choose one action.

        Raises:
            ValueError: The observation does not show the arena's state.
        """
        if observation.state is None:
            raise ValueError("builtin:planner was given an observation without the arena's state")
        if self._shown is not None and is_other(self._shown, observation.state, self._period):
            self._enter()
        self._shown = observation.state
        self._state = self._beliefs.update(observation.state, self._time)
        view = self._viewer.view(self._state)
        self._watch(view)
        self._time += self._period * PHYSICS_STEP
        if view.frozen:
            self.status = "frozen"
            return 0
        action = self._decide(view, observation)
        self._last_move, self._last_turn = divmod(action, 3)
        return action

    def _watch(self, view: View) -> None:
        """Keep track of where balls go."""
        length = self._period * PHYSICS_STEP
        for ball in view.balls:
            before = self._before.get(ball.number)
            if before is None:
                self._news = self._time
                self._velocity[ball.number] = (0.0, 0.0, 0.0)
            else:
                vx, vy, vz = ((q - p) / length for p, q in zip(before, ball.center, strict=True))
                self._velocity[ball.number] = vx, vy, vz
            self._before[ball.number] = ball.center

    def _speed(self, ball: Ball) -> float:
        return math.hypot(*self._velocity[ball.number])

    def _decide(self, view: View, observation: Observation) -> int:
        terrain = self._terrain(view, self._pushes)
        if terrain is None:
            self.status = "too much stands in the arena"
            return 0
        body = _body(terrain, view, observation)
        wanted = [ball for ball in view.balls if ball.wanted]
        choice = self._choose(terrain, view, body, wanted, observation.health / 100.0)
        if choice is None and self._barred and self._opened < _OPENINGS:
            self._barred.clear()
            self._opened += 1
            self._fields.clear()
            return self._decide(view, observation)
        if choice is None and not self._pushes and view.movable:
            self._pushes = True
            return self._decide(view, observation)
        if choice is None:
            return self._otherwise(terrain, view, body, wanted, observation.health / 100.0)
        target, field, wait = choice
        if target.ends and self._more_comes(view, target) and self._may_wait():
            self.status = "waiting for what moves, before the reward that ends it"
            return self._hold()
        last = len(wanted) == 1 and view.spawns and self._time - self._news < _PATIENCE
        if (last or wait > 0.0) and self._may_wait():
            self.status = "waiting for a spawner" if last else "waiting until the reward has grown"
            if self._near(body, target):
                return self._hold()
            return self._go(terrain, view, body, field, None)
        self.status = "going for a reward"
        return self._go(terrain, view, body, field, target)

    def _may_wait(self) -> bool:
        """Whether it has patience left; if so, it is spent."""
        left = self._patience > 0.0
        self._patience -= self._period * PHYSICS_STEP
        return left

    def _more_comes(self, view: View, target: Ball) -> bool:
        """Whether another reward is on its way, and there is time."""
        coming = any(
            ball.wanted and ball.number != target.number and self._speed(ball) > _AT_REST
            for ball in view.balls
        )
        return coming and self._time < _LONGEST_WAIT

    def _terrain(self, view: View, pushes: bool) -> PlannerTerrain | None:
        key = view.key, pushes
        if key not in self._terrains:
            if len(self._terrains) > 4:
                self._terrains.clear()
                self._fields.clear()
            solids = view.firm if pushes else (*view.firm, *view.movable)
            try:
                self._terrains[key] = PlannerTerrain(
                    solids,
                    view.lava,
                    view.hot,
                    climbs=self._able.climbs,
                    platforms=self._able.platforms,
                )
            except TooMuchError:
                self._terrains[key] = None
        return self._terrains[key]

    def _choose(
        self,
        terrain: PlannerTerrain,
        view: View,
        body: MotionState,
        wanted: Sequence[Ball],
        health: float,
    ) -> tuple[Ball, Floats, float] | None:
        """The reward to go for, the way there, and how long to wait before taking it."""
        here = body.x, body.y, body.z
        near = sorted(wanted, key=lambda ball: (ball.ends, math.dist(ball.center, here)))
        near = near[:_MOST_BALLS]
        bad = [ball for ball in view.balls if ball.shunned]
        ending = [ball for ball in near if ball.ends]
        fields: list[Floats] = []
        costs: list[float] = []
        for ball in near:
            others = [other for other in ending if other.number != ball.number]
            field = self._field(terrain, ball, [*bad, *others])
            cost = _cost(terrain, field, body)
            if math.isinf(cost) and others:
                field = self._field(terrain, ball, bad)
                cost = _cost(terrain, field, body)
            fields.append(field)
            costs.append(cost)
        if not any(map(math.isfinite, costs)):
            return None
        legs = [costs]
        for k, ball in enumerate(near):
            touching = terrain.touching(ball)
            row = [math.inf] * len(near)
            if len(touching) and math.isfinite(costs[k]):
                from_here = touching[np.argsort(fields[k][touching], kind="stable")]
                for j in range(len(near)):
                    if j != k:
                        row[j] = float(fields[j][from_here].min())
            legs.append(row)
        plan = self._best_plan(near, legs, health)
        if not plan.order:
            k = int(np.argmin(costs))
            return near[k], fields[k], 0.0
        k = plan.order[0]
        return near[k], fields[k], plan.wait

    def _best_plan(
        self, balls: Sequence[Ball], legs: Sequence[Sequence[float]], health: float
    ) -> Plan:
        """The best order; it is kept while the rewards are where they were and of equal worth."""
        about = tuple((ball.number, _cell(ball.center), ball.ends) for ball in balls)
        changing = any(ball.rate for ball in balls)
        if changing or about != self._about or not self._plan.order or self._time > self._due:
            self._plan = best_plan(balls, legs, self._limit, health)
            self._about, self._due = about, self._time + _REPLAN
        return self._plan

    def _field(self, terrain: PlannerTerrain, ball: Ball, shut: Sequence[Ball]) -> Floats:
        """Cost of the way to a ball from everywhere."""
        key: tuple[object, ...] = (
            id(terrain),
            _cell(ball.center),
            round(ball.radius, 1),
            tuple(_cell(other.center) for other in shut),
            len(self._barred),
        )
        if key not in self._fields:
            if len(self._fields) > _KEPT_FIELDS:
                self._fields.clear()
            self._fields[key] = terrain.field(terrain.touching(ball), self._shut(terrain, shut))
        return self._fields[key]

    def _near(self, body: MotionState, ball: Ball) -> bool:
        away = math.hypot(ball.center.x - body.x, ball.center.z - body.z)
        return away < ball.girth + 3.0

    def _go(
        self,
        terrain: PlannerTerrain,
        view: View,
        body: MotionState,
        field: Floats,
        target: Ball | None,
    ) -> int:
        if self._backing:
            self._backing -= 1
            return 3 * self._away + (1 if self._backing % 8 > 3 else 2)
        if self._stands(body):
            self._backing = 8
            self._away = 1 if self._last_move == 2 else 2
            self._places.clear()
            self._bar(terrain, body, field)
        move, turn, _ = motion.choose(
            terrain.land_to(field),
            self._balls(view, target),
            field,
            body,
            self._period,
            motion.PACE,
            motion.UNEASE,
            self._last_turn,
            _RUNS,
        )
        return 3 * move + turn

    def _bar(self, terrain: PlannerTerrain, body: MotionState, field: Floats) -> None:
        """Take it that there is no going on where it stood: something is there after all."""
        if body.place < 0:
            return
        near = terrain.land.near[body.place]
        near = near[near >= 0]
        if len(near):
            best = int(near[np.argmin(field[near])])
            self._barred.append((float(terrain.ground.x[best]), float(terrain.ground.z[best])))

    def _shut(self, terrain: PlannerTerrain, balls: Sequence[Ball]) -> Mask:
        closed = terrain.shut(balls)
        ground = terrain.ground
        for x, z in self._barred:
            closed |= (ground.x - x) ** 2 + (ground.z - z) ** 2 < _BARRED**2
        return closed

    def _stands(self, body: MotionState) -> bool:
        """Whether it has not got on for a while, though it wanted to."""
        self._places.append((body.x, body.z))
        if len(self._places) <= _STUCK:
            return False
        x, z = self._places.pop(0)
        return all(math.hypot(px - x, pz - z) < _NEAR for px, pz in self._places)

    def _balls(self, view: View, target: Ball | None) -> Floats:
        rows = [
            (
                *ball.center,
                ball.radius if wanted else ball.girth,
                *self._velocity[ball.number],
                motion.WANTED if wanted else motion.SHUNNED,
            )
            for ball in view.balls
            for wanted in [target is not None and ball.number == target.number]
            if ball.shunned or wanted or (ball.wanted and (ball.ends or target is None))
        ]
        return np.array(rows, np.float64).reshape(-1, motion.BALL_COLUMNS)

    def _hold(self) -> int:
        """Stand still."""
        self._places.clear()
        return 0

    def _otherwise(
        self,
        terrain: PlannerTerrain,
        view: View,
        body: MotionState,
        wanted: Sequence[Ball],
        health: float,
    ) -> int:
        """What to do when there is no way to any reward."""
        moving = any(self._speed(ball) > _AT_REST for ball in view.balls)
        if (moving and self._time < _LONGEST_WAIT) or self._time < _FIRST_LOOK:
            self.status = "waiting for what moves"
            return self._hold()
        if not wanted and not self._able.knows_all:
            return self._look_for(terrain, view, body)
        if view.faces:
            return self._press(terrain, view, body)
        if view.spawns and not wanted:
            self.status = "waiting for a spawner"
            return self._hold()
        if not wanted:
            return self._end(terrain, view, body, health)
        self.status = "no way to any reward"
        if not (self._able.climbs and self._able.platforms):
            return self._hold()
        return self._approach(terrain, view, body, wanted)

    def _look_for(self, terrain: PlannerTerrain, view: View, body: MotionState) -> int:
        """Go where it has not looked yet, if it searches at all."""
        self.status = "it knows of no reward"
        if not self._able.searches or self._able.side or body.place < 0:
            return self._hold()
        self._search.look(terrain, self._state)
        aim = self._looking
        if aim is None or aim[0] is not terrain or self._search.sees(terrain, aim[1]):
            closed = self._shut(terrain, [ball for ball in view.balls if ball.shunned])
            place = self._search.following(terrain, body.place, closed)
            if place is None:
                self._search.again()
                self._looking = None
                return self._hold()
            aim = self._looking = terrain, place
        self.status = "looking for a reward"
        field = self._field_to(terrain, view, np.array([aim[1]]), f"search {aim[1]}")
        if math.isinf(_cost(terrain, field, body)):
            self._search.skip(terrain, aim[1])
            self._looking = None
            return self._hold()
        return self._go(terrain, view, body, field, None)

    def _press(self, terrain: PlannerTerrain, view: View, body: MotionState) -> int:
        """Go to a button, press it, and wait for what it does."""
        self.status = "pressing a button"
        if self._pressed is not None:
            if self._time - self._pressed < _ANSWER:
                return self._hold()
            self._pressed, self._backing = None, _AWAY
        if self._backing:
            self._backing -= 1
            return 6
        touching = [terrain.ground.touching(face, 0.1) for face in view.faces]
        field = self._field_to(terrain, view, np.concatenate(touching), "button")
        if _cost(terrain, field, body) < 0.1:
            self._pressed = self._time
        return self._go(terrain, view, body, field, None)

    def _end(self, terrain: PlannerTerrain, view: View, body: MotionState, health: float) -> int:
        """Without any reward: the least bad end, if it is better than to wait for the last."""
        self.status = "there is no reward"
        ends = [b for b in view.balls if b.ends and b.reward > -health + 0.1]
        ball = max(ends, key=lambda ball: ball.reward, default=None)
        if ball is None or not self._limit:
            return self._hold()
        others = [b for b in view.balls if b.shunned and b.number != ball.number]
        field = self._field(terrain, ball, others)
        if math.isinf(_cost(terrain, field, body)):
            return self._hold()
        return self._go(terrain, view, body, field, ball)

    def _approach(
        self, terrain: PlannerTerrain, view: View, body: MotionState, wanted: Sequence[Ball]
    ) -> int:
        """Go as near to a reward as there is a way, and then straight at it."""
        if body.place < 0:
            return self._hold()
        ground = terrain.ground
        ball = min(wanted, key=lambda b: math.dist(b.center, (body.x, body.y, body.z)))
        closed = terrain.shut([b for b in view.balls if b.shunned])
        nearest = self._nearest_on(terrain)
        if nearest is None or self._time >= self._look:
            self._look = self._time + _LOOK_AGAIN
            reached = ground.graph(closed).reached(body.place)
            end = terrain.settled(ball)
            away = np.sqrt(
                (ground.x - end.x) ** 2 + (ground.z - end.z) ** 2 + (ground.height - end.y) ** 2
            )
            away[~reached | closed] = np.inf
            nearest = int(np.argmin(away))
            self._nearest = nearest, terrain.point(nearest)
        field = self._field_to(terrain, view, np.array([nearest]), f"near {nearest}")
        if _cost(terrain, field, body) > 0.6:
            return self._go(terrain, view, body, field, ball)
        off = math.degrees(scalars.atan2(ball.center.x - body.x, ball.center.z - body.z)) - body.yaw
        off = (off + 180.0) % 360.0 - 180.0
        turn = 0 if abs(off) < motion.TURN * self._period / 2 else 1 if off > 0 else 2
        move = 1 if abs(off) < 30.0 else 0
        balls = self._balls(view, ball)
        seen = motion.advance(terrain.land, balls, body, move, turn, self._period, 0.0)
        for _ in range(5):
            seen = motion.advance(terrain.land, balls, seen, 0, 0, 3, 0.0)
        return turn if seen.state == 2 else 3 * move + turn

    def _nearest_on(self, terrain: PlannerTerrain) -> int | None:
        """The place that it found nearest to a reward, if the ground still has it by its number."""
        if self._nearest is None:
            return None
        number, point = self._nearest
        same = number < len(terrain.ground) and terrain.point(number) == point
        return number if same else None

    def _field_to(self, terrain: PlannerTerrain, view: View, places: Numbers, name: str) -> Floats:
        """Cost of the way to some places from everywhere."""
        shut = [ball for ball in view.balls if ball.shunned or (ball.wanted and ball.ends)]
        key = id(terrain), name, tuple(_cell(ball.center) for ball in shut), len(self._barred)
        if key not in self._fields:
            if len(self._fields) > _KEPT_FIELDS:
                self._fields.clear()
            self._fields[key] = terrain.field(places, self._shut(terrain, shut))
        return self._fields[key]


@cache
def _warm_up() -> None:
    """Compile everything that decisions use; the compiled code is kept on disk."""
    terrain = PlannerTerrain((), (), ())
    field = terrain.field(np.array([0]), terrain.shut(()))
    balls = np.zeros((0, motion.BALL_COLUMNS))
    body = MotionState(20.0, 0.49, 20.0, 0.0, 0.0, 0.0, 0.0, 0, True, 0, 0.0)
    body = body._replace(place=int(motion.place_at(terrain.land, 20.0, 20.0, 0.49, 0.3)))
    motion.choose(terrain.land, balls, field, body, 3, motion.PACE, motion.UNEASE, 0, _RUNS)
    motion.advance(terrain.land, balls, body, 0, 0, 1, 0.0)


def _cell(point: Point) -> tuple[int, ...]:
    return tuple(round(value / _MOVED) for value in point)


def _body(terrain: PlannerTerrain, view: View, observation: Observation) -> MotionState:
    """The agent as `motion` takes it."""
    x, y, z = (float(value) for value in observation.position)
    right, up, ahead = (float(value) for value in observation.velocity)
    angle = math.radians(view.yaw)
    sin, cos = scalars.sin(angle), scalars.cos(angle)
    vx, vz = right * cos + ahead * sin, ahead * cos - right * sin
    land = terrain.land
    place = int(motion.place_at(land, x, z, y, 0.3))
    if place < 0 or y - land.height[place] > 0.15:
        near = terrain.ground.under(Point(x, y, z))
        if near is not None and (place < 0 or abs(land.height[near] - y) < 0.3):
            place = near
    grounded = place < 0 or y - float(land.height[place]) < 0.15
    return MotionState(x, y, z, vx, up, vz, view.yaw, place, grounded, 0, 0.0)


def _cost(terrain: PlannerTerrain, field: Floats, body: MotionState) -> float:
    return float(motion.cost_at(terrain.land, field, body))
