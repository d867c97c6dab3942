"""Checks that a build plays the arena that was meant, by comparison with the simulator.

Only what the simulator is certain of is compared. So small differences that builds and simulator
may have (grazing rays, meshes) do not count against the build.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.placement import place
from animalcat.arena_configs.sequence import episode_arenas
from animalcat.envs.rays import Rays
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.sim.rays import cast_rays
from animalcat.envs.types import ObservationSpec, Phase, RaySpec

if TYPE_CHECKING:
    from animalcat.arena_configs.model import Arena
    from animalcat.envs.types import Observation

STEPS_PER_UNIT: Final = 5
"""Physics steps of one unit of a time limit (reference/animal-ai.md section 4.2)."""
_AWAY: Final = 0.05
"""Metres by which the agent's position may differ; the agent falls 4 mm in its first step."""
FAR: Final = 0.5
"""Metres by which a ray's distance may differ."""
_TURNED: Final = 1.0
"""Degrees by which rays are turned to find those of which the simulator is certain."""
_RELATIVE: Final = 1e-3
"""Relative difference that is allowed in the decay of a decision; float32 sums are accurate to
about 1e-6."""
SETTLED: Final = 2
"""Number of decisions of plain decay after which the time limit is judged. Something before the
first of them may have been counted in it."""
_THAWED: Final = 3
"""Likewise if the agent was frozen: Unity waits in seconds, and may be a step off."""
_GOALS: Final = (3, 4, 5)
# Ray tags of goals: good, good of several, bad.


class Mismatch(ValueError):  # noqa: N818
    """The build plays another arena than the one that was meant."""


class Witness:
    """Watches the beginning of episodes.

    The agent's position and what its rays hit are judged from the first observation, and the time
    limit from the first decisions in which health falls by nothing but time.
    """

    def __init__(self, rays: RaySpec, decision_period: int, idle: int = 0) -> None:
        """Prepare the comparison.

        Args:
            rays: Specification of the rays.
            decision_period: Number of physics steps in a decision.
            idle: Number of physics steps without action before the first observation.
        """
        self._idle = idle
        self._spec = ObservationSpec(None, rays, decision_period)
        self._rays = rays
        self._sim = SimEnvironment(self._spec, tell=False)
        self._watching = False
        self._plain = 0
        self._needs = 1
        self._decay = 0.0

    def load(self, arena: Arena, seed: int) -> None:
        """Build the arena that is meant.

        Raises:
            ArenaError: The arena cannot be built.
        """
        self._expected = self._sim.load(arena, seed, self._idle).observation
        first = episode_arenas(arena)[0]
        self._start = place(first, np.random.default_rng(seed)).agent
        self._decay = 0.0
        if first.time_limit > 0:
            self._decay = self._spec.decision_period / (first.time_limit * STEPS_PER_UNIT)
        self._needs = _THAWED if self._start.frozen_seconds else SETTLED
        self._plain = 0
        self._watching = True

    def check_first(self, seen: Observation) -> None:
        """Judge the first observation; it has rays of the specification.

        Raises:
            Mismatch: The build loaded another arena.
        """
        away = np.abs(seen.position - self._expected.position).max()
        if away > _AWAY:
            raise Mismatch(
                f"the agent starts at {_point(seen.position)} and not at "
                f"{_point(self._expected.position)}: another arena was loaded"
            )
        assert seen.rays is not None
        table, sure = self._table(seen.rays), self._sure()
        wrong = sure & ~_alike(table, self._table(self._cast(0.0)))
        goals = np.isin(table[:, 0], _GOALS), np.isin(self._table(self._cast(0.0))[:, 0], _GOALS)
        if (sure & (goals[0] != goals[1])).any():
            raise Mismatch(
                f"{goals[0][sure].sum()} rays meet goals where {goals[1][sure].sum()} should: "
                "another arena was loaded"
            )
        if wrong.sum() > sure.sum() / 2:
            raise Mismatch(
                f"{wrong.sum()} of {sure.sum()} rays see something else than in this arena from "
                f"the heading {self._start.yaw:g}: another arena was loaded, or the agent looks "
                "another way"
            )

    def check_step(self, action: int, reward: float) -> None:
        """Judge a decision's reward, until the time limit is known to be right.

        Raises:
            Mismatch: Time runs at another rate than the arena's limit says.
        """
        if not self._watching:
            return
        step = self._sim.step(action)
        if step.phase is Phase.LAST:
            self._watching = False
            return
        if abs(step.reward + self._decay) > _RELATIVE * self._decay:
            self._plain = 0  # frozen still, or more than time is at work
            return
        self._plain += 1
        if self._plain < self._needs:
            return
        self._watching = False
        if abs(reward + self._decay) > max(_RELATIVE * self._decay, 1e-9):
            raise Mismatch(
                f"a decision costs {-reward:.6g} and not {self._decay:.6g}: the build plays with "
                f"the time limit {self._limit(-reward)}"
            )

    def _limit(self, decay: float) -> str:
        if decay <= 0.0:
            return "none" if decay == 0.0 else "unknown"
        return f"{self._spec.decision_period / decay / STEPS_PER_UNIT:.0f}"

    def _sure(self) -> npt.NDArray[np.bool_]:
        """Rays that hit the same when the agent is turned slightly either way."""
        middle = self._table(self._cast(0.0))
        sides = (self._table(self._cast(turn)) for turn in (-_TURNED, _TURNED))
        return np.logical_and.reduce([_alike(side, middle) for side in sides])

    def _cast(self, turn: float) -> npt.NDArray[np.float32]:
        return cast_rays(self._sim.scene, self._start.position, self._start.yaw + turn, self._rays)

    def _table(self, rays: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """For every ray the index of the tag and the distance in metres."""
        read = Rays(rays, self._rays)
        return np.stack([read.tags.astype(np.float64), read.distances], axis=1)


def _alike(
    first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """Which rays hit the same thing at about the same distance."""
    ramp, immovable = 9, 1  # some builds give ramps a tag of their own
    tags = [np.where(table[:, 0] == ramp, immovable, table[:, 0]) for table in (first, second)]
    return (tags[0] == tags[1]) & (np.abs(first[:, 1] - second[:, 1]) < FAR)


def _point(position: npt.NDArray[np.float32]) -> str:
    return "(" + ", ".join(f"{value:.2f}" for value in position.tolist()) + ")"
