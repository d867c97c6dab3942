"""The simulator with episodes that start a physics step late, as on a build that is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from animalcat.envs.sim.environment import SimEnvironment

if TYPE_CHECKING:
    from animalcat.arena_configs.model import Arena
    from animalcat.envs.types import ObservationSpec, Step


class LateSimEnvironment:
    """The simulator behaving like `UnityEnvironment` with a kept build, to compare the two."""

    def __init__(self, spec: ObservationSpec) -> None:
        self._sim = SimEnvironment(spec, tell=False)
        self._owed = 0.0

    @property
    def spec(self) -> ObservationSpec:
        """What its observations hold."""
        return self._sim.spec

    def load(self, arena: Arena, seed: int) -> Step:
        """As `Environment.load`; the first step's reward counts with the next one's."""
        first = self._sim.load(arena, seed, idle=1)
        self._owed = first.reward
        return first._replace(reward=0.0)

    def step(self, action: int) -> Step:
        """As `Environment.step`."""
        step = self._sim.step(action)
        owed, self._owed = self._owed, 0.0
        return step._replace(reward=step.reward + owed)

    def close(self) -> None:
        """As `Environment.close`."""
        self._sim.close()
