"""What became of a speaker's body, measured from what it perceived before and after."""

from __future__ import annotations

from math import atan2, cos, hypot, pi, sin
from typing import Final, NamedTuple

import numpy as np

from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.rays import Ray, Rays
from animalcat.envs.types import PHYSICS_STEP, RAY_LENGTH, Observation

TURN: Final = 2.0
"""Degrees that the agent turns in one physics step (100 degrees a second, Animal-AI)."""
_LEAP: Final = 0.6
"""Metres that no agent moves in one physics step; who did was put elsewhere."""
_TOUCH: Final = 0.3
"""Metres from what is ahead within which whoever comes no further has met it."""
_MOVED: Final = 1e-3
_SAME: Final = 1e-7
"""Difference of rays, as observations have them, up to which nothing has turned."""
_CLOSE: Final = 1e-4
"""Distance, as observations have it, up to which a ray meets what is touched."""
_SEEN: Final = 0.1
"""Share of a picture from which on it is not another body that has moved in it."""
_STRAIGHT: Final = 0.02
"""Radians between the velocities before and after a movement that is straight."""
_STEADY: Final = 0.15
"""Share by which the way of a movement without a bump may differ from its mean speed."""
_BUDGETS: Final = (50, 30_000)
"""Decisions of an episode: below the one health tells single physics steps roughly, as the budget
is rounded to decisions; from the other on it falls by less than it is rounded."""
_OR_SO: Final = " or so"
"""Said of a turn that may be some two decisions off."""
_UNFELT: Final = ", as far as you can tell"
"""Said of a turn that nothing perceived has shown."""
_OPEN: Final = frozenset(
    (
        "goodGoal",
        "goodGoalMulti",
        "badGoal",
        "badGoalMulti",
        "DeathZone",
        "HotZone",
        "DataZone",
        "Movable",
    )
)
"""What a ray meets that stops nobody, or moves on."""


class Way(NamedTuple):
    """How far it went, in metres in its own directions: forward, and to the right."""

    forward: float
    right: float


class Body:
    """How far it went and turned, what it met and how long it was held.

    At the start an agent may be held. Health falls in every physics step in which it is not, so
    where time is limited health says for how long. Elsewhere, and where an arena holds it later,
    an agent that turns perceives that nothing turns.

    Attributes:
        period: Physics steps of one decision.
        turned: Degrees to the right since `start`; to the left if negative.
        doubt: Why that may be otherwise, in words; empty where it is certain.
        met: Whether what was ahead has stopped it.
        elsewhere: Whether it was put elsewhere since `start`, where another arena began.
    """

    def __init__(self, info: EpisodeInfo) -> None:
        """Begin before the first observation."""
        self._spec = info.observation_spec
        self.period = self._spec.decision_period
        few, many = _BUDGETS
        budget = info.time_budget_steps
        # What health loses in a physics step; 0 where that cannot be told.
        limited = 0 < budget < many
        self._loss = 100.0 / (budget * self.period) if limited else 0.0
        self._rough = budget < few
        self._seen: Observation | None = None
        self._actions = b""
        self._arrive()
        self._begin()

    def _arrive(self) -> None:
        """Know nothing of an arena in which it has just appeared."""
        self._waits = True  # it has not been free to move yet, as far as can be told
        # Whether it is held; None where it was, and has not tried to move since.
        self._holds: bool | None = False
        self._least = self.met = False
        self._held = 0.0
        self._lose_heading()
        self._ahead = None if self._seen is None else self._look_ahead(self._seen)

    def _begin(self) -> None:
        self.turned, self.doubt, self.elsewhere = 0.0, "", False
        self._from = self._seen

    def _lose_heading(self) -> None:
        self._heading: float | None = None
        self._sure = 0.02  # how well the best movement so far tells it, at first in metres

    def start(self, observation: Observation) -> None:
        """Measure from here on."""
        self.perceive(observation)
        self._begin()

    def act(self, actions: bytes) -> bytes:
        """Take note of actions that are taken now, none of which turns if they are several."""
        self._actions = actions
        return actions

    @property
    def straight(self) -> bool:
        """Whether it is known in which of its own directions it went, if it went anywhere."""
        assert self._from is not None
        assert self._seen is not None
        return self._heading is not None or hypot(*_between(self._from, self._seen)) < 0.05

    @property
    def way(self) -> Way:
        """How far it went since `start`, if it has not turned meanwhile."""
        if self._from is None or self._seen is None:
            return Way(0.0, 0.0)
        x, z = _between(self._from, self._seen)
        if self._heading is None:
            return Way(hypot(x, z), 0.0)
        s, c = sin(self._heading), cos(self._heading)
        return Way(x * s + z * c, x * c - z * s)

    def report_hold(self) -> str:
        """Say that it is held, and for how long, or that it was until now; empty otherwise."""
        if not self._held or self._holds is None:
            return ""
        if self._holds:
            long = f"{'at least ' * self._least}{self._held:.1f} s"
            return f"You are held, for {long} so far: you can neither move nor turn."
        told, self._held, self._least = self._held, 0.0, False
        return f"You were held for at least {told:.1f} s."

    def perceive(self, observation: Observation) -> None:
        """Take in what came of the actions that were taken last."""
        before, actions, self._seen = self._seen, self._actions, observation
        self._actions = b""
        if before is None:
            self._arrive()
        if before is None or not actions:
            return
        way = _between(before, observation)
        steps = self.period * len(actions)
        if hypot(*way) > _LEAP * steps + 0.5:
            self._arrive()
            self._begin()
            self.elsewhere = self._least = True
            return
        turn = actions[0] % 3
        free = self._count_free(actions[0], steps, before, observation)
        self._held += (steps - free) * PHYSICS_STEP
        if turn and free:
            self.turned += TURN * free * (1.0 if turn == 1 else -1.0)
            self._ahead, self.met = self._look_ahead(observation), False
            self._lose_heading()
        elif hypot(*way) > _MOVED:
            self._find_heading(before, observation, way)
            self._meet(observation, hypot(*way))

    def _count_free(self, action: int, steps: int, before: Observation, after: Observation) -> int:
        """In how many physics steps it could move; all, unless something tells otherwise."""
        was, waited = self._holds, self._waits
        if waited and self._loss:
            lost = before.health - after.health
            free = min(steps, round(lost / self._loss))
            self._holds = self._waits = lost == 0.0
            if lost and (self._rough or abs(lost / self._loss - free) > 0.2):
                free, self.doubt = steps, _OR_SO  # more than time takes health, or gives some
            return free if not free or action % 3 == 0 else self._check_turn(free, before, after)
        if not action:
            self._holds = False if self._holds is False else None
            return steps
        if action % 3:
            free = self._check_turn(steps, before, after)
            if free and (was is not False or waited):
                self.doubt = self.doubt or _OR_SO  # it may have been let go within the decision
            return free
        # What is ahead is known for sure before it has touched anything.
        clear = self._ahead is not None and self._ahead.distance > _TOUCH
        if _moves(before, after):
            self._holds = self._waits = False
        elif waited and clear:
            self._holds = self._least = True
            return 0
        elif was or waited:
            self._holds = None
        return steps

    def _check_turn(self, free: int, before: Observation, after: Observation) -> int:
        """The physics steps in which it turned: none, if it sees the same as before."""
        still = self._saw_no_turn(before, after)
        if still:
            self._holds = self._least = True
            self.doubt = self.doubt or _OR_SO * (self.turned != 0.0)
            return 0
        self._holds = self._waits = False
        self.doubt = _UNFELT if still is None else self.doubt
        return free

    def _saw_no_turn(self, before: Observation, after: Observation) -> bool | None:
        """Whether what it sees has not turned; None where it sees nothing that would."""
        fallen = abs(float(before.position[1] - after.position[1]))
        if before.rays is not None and after.rays is not None:
            old = Rays(before.rays, self._spec.rays).table[:, -1]
            new = Rays(after.rays, self._spec.rays).table[:, -1]
            # A body that touches a wall feels it at no distance all around.
            hits = np.maximum(old, new) > _CLOSE
            hits &= np.minimum(old, new) < 1.0
            if hits.sum() > 1:
                # Others may move meanwhile, so not all have to be the same.
                off = float(np.median(np.abs(old - new)[hits]))
                # Who drops onto the floor, as all do at first, sees some of it move too.
                return None if _SAME < off <= 5.0 * fallen / RAY_LENGTH else off <= _SAME
        if (
            fallen < _MOVED
            and before.camera is not None
            and after.camera is not None
            and np.ptp(after.camera)
        ):
            changed = float((before.camera != after.camera).mean())
            return None if 0.0 < changed < _SEEN else changed == 0.0
        return None

    def _find_heading(
        self, before: Observation, after: Observation, way: tuple[float, float]
    ) -> None:
        """Find where it looks from a straight movement, whose direction is known both ways."""
        old, new = (np.asarray(one.velocity, float)[[0, 2]] for one in (before, after))
        own, far, fast = atan2(*new), hypot(*way), hypot(*old)
        mean = (fast + hypot(*new)) / 2.0 * PHYSICS_STEP * self.period
        bent = abs((atan2(*old) - own + pi) % (2 * pi) - pi) if fast > _MOVED else 0.0
        # A bump seldom leaves it without a speed to its side.
        sure = far * (100.0 if abs(new[0]) < 1e-3 * hypot(*new) else 1.0)
        if sure > self._sure and bent < _STRAIGHT and abs(far - mean) < _STEADY * mean:
            self._heading, self._sure = atan2(*way) - own, sure

    def _meet(self, observation: Observation, moved: float) -> None:
        """Find out whether it has met what was ahead: rays do not tell what is touched."""
        right, _, forward = (float(one) for one in observation.velocity)
        before, after = self._ahead, self._look_ahead(observation)
        self._ahead = after
        if before is not None and before.kind not in _OPEN:
            left = before.distance - moved
            if left < _TOUCH and (after is None or abs(after.distance - left) > _TOUCH):
                self.met = True
                return
        if abs(forward) > max(0.1, 5.0 * abs(right)):
            self.met = False

    def _look_ahead(self, observation: Observation) -> Ray | None:
        """What the middle ray meets; None where it meets nothing, or there is none."""
        if observation.rays is None:
            return None
        ray = Rays(observation.rays, self._spec.rays)[0]
        return None if ray.kind is None else ray


def _between(before: Observation, after: Observation) -> tuple[float, float]:
    x, _, z = (after.position - before.position).tolist()
    return x, z


def _moves(before: Observation, after: Observation) -> bool:
    """Whether it moved at all, falling included."""
    return hypot(*_between(before, after)) > _MOVED or float(np.abs(after.velocity).max()) > 0.01
