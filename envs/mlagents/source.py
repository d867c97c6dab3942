"""Sources of episodes for a stand-in: the contract, and a client's arenas played as by Unity."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from zlib import crc32

import numpy as np

from animalcat.arena_configs.builds import NEWEST, Build, config_in
from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.sequence import ArenaOrder, arena_numbers, merge_arenas
from animalcat.envs.types import ObservationSpec, Phase, Step

if TYPE_CHECKING:
    from animalcat.arena_configs.draws import Draws
    from animalcat.arena_configs.model import ArenaConfig
    from animalcat.envs.mlagents.observation_log import ObservationLog
    from animalcat.envs.sim.environment import SimEnvironment

logger = logging.getLogger(__name__)

_ORDER: Final = crc32(b"order")
"""Separates the seed of random orders from that of episodes."""

_SLOW_SECONDS: Final = 4.0
_COMPILING: Final = "getting ready: the first start on a machine compiles for half a minute"


class SourceOver(Exception):  # noqa: N818  an end, not an error
    """There is nothing more to play; the message says why."""


class SourceFailedError(Exception):
    """The source of episodes has failed; the message says how, and what to do.

    Attributes:
        unreachable: Whether the server of the episodes does not answer.
    """

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.unreachable = unreachable


class ScheduledStep(NamedTuple):
    """A step, and when the agent decides next.

    Attributes:
        step: FIRST and MID ask for a decision, LAST ends the episode.
        due: For LAST, whether the first decision of the next episode falls at the same moment, so
            that both go into one message.
    """

    step: Step
    due: bool = False


class EpisodeSource(Protocol):
    """Provides the episodes that a client plays, decision by decision."""

    def use(self, config: ArenaConfig) -> None:
        """Use the client's arenas, from the next episode on.

        Raises:
            ArenaError: The arenas cannot be played.
        """
        ...

    def reset(self) -> ScheduledStep:
        """Leave the episode and start another, on a RESET command.

        Raises:
            ArenaError: The arena cannot be built.
            SourceOver: There is no further episode.
            SourceFailedError: The source has failed.
        """
        ...

    def restart(self) -> ScheduledStep:
        """Start the episode that follows automatically when one is over.

        Raises:
            ArenaError: The arena cannot be built.
            SourceOver: There is no further episode.
            SourceFailedError: The source has failed.
        """
        ...

    def step(self, action: int) -> ScheduledStep:
        """Take one decision: 3 x move + turn.

        Raises:
            SourceFailedError: The source has failed.
        """
        ...

    def close(self) -> None:
        """Release what is held."""
        ...


class ConfigSource:
    """The client's configurations on the embedded simulator, with Unity's bookkeeping.

    The very first episode begins before any simulation. After a RESET command, one physics step
    without action has passed, and what the interrupted episode has earned still counts toward pass
    marks. After the end of an episode, the next decision falls when the decision period is due, and
    until then physics steps without action pass.

    A random order, too, is drawn from Unity's stream if the simulator has one. Seeds of episodes
    are drawn from the client's seed as `ArenaEnv` draws them from its own.

    Source: reference/animal-ai.md sections 1.7 and 4.6.
    """

    def __init__(
        self,
        environment: SimEnvironment,
        config: ArenaConfig,
        seed: int,
        log: ObservationLog | None = None,
    ) -> None:
        """Begin before the first episode.

        Args:
            environment: The simulator.
            config: Arenas to play until others are sent.
            seed: The client's seed; a negative one counts as its 32 bits.
            log: The journal of the environment, told when episodes begin and agents decide.

        Raises:
            ArenaError: The arenas cannot be played.
        """
        self._environment = environment
        self._log = log
        self._config = config = config_in(config, environment.build)
        self._order = ArenaOrder(config, environment.build)
        seed &= 0xFFFFFFFF
        self._seeds = np.random.default_rng(seed)
        self._chance: Draws = environment.unity_draws or np.random.default_rng([seed, _ORDER])
        self._fresh = True
        self._left = 0
        self._open = False

    def use(self, config: ArenaConfig) -> None:
        """Use other arenas from the next episode on; the count of arenas continues.

        Raises:
            ArenaError: The arenas cannot be played.
        """
        config = config_in(config, self._environment.build)
        self._order.use(config)
        self._config = config

    def reset(self) -> ScheduledStep:
        """Start another episode.

        Raises:
            ArenaError: The arena cannot be built.
        """
        idle = 0 if self._fresh else 1
        self._fresh = False
        carried = self._environment.episode_return if self._open else 0.0
        return self._start(idle, carried, first_row=1 - idle)

    def restart(self) -> ScheduledStep:
        """Start the episode that follows one that is over.

        Raises:
            ArenaError: The arena cannot be built.
        """
        # Logs of the real build show that the agent still stands then. No log shows a RESET, which
        # sets every body anew.
        return self._start(self._left, landed=self._environment.landed)

    def step(self, action: int) -> ScheduledStep:
        """Take one decision."""
        before = self._environment.physics_steps
        if self._log is not None:
            self._log.decide()
        step = self._environment.step(action)
        return self._turn(step, self._environment.spec.decision_period + before)

    def close(self) -> None:
        """Release the simulator, and end the log as a build does.

        A build that is told to end finishes its present step: after the end of an episode that is
        one of the next, which has begun.
        """
        if self._log is not None and not self._fresh:
            if not self._open:
                with suppress(ArenaError):
                    self.restart()
            if self._open:
                self._log.await_decision(self._environment.world)
            self._log.close()
        self._environment.close()

    def _start(
        self, idle: int, carried: float = 0.0, first_row: int = 1, *, landed: bool = False
    ) -> ScheduledStep:
        number = self._order.next(self._chance)
        arena = merge_arenas(self._config, number)
        if self._log is not None:
            self._log.begin(arena_numbers(self._config, number), first_step=first_row)
        seed = int(self._seeds.integers(2**31))
        step = self._environment.load(arena, seed, idle, carried, landed=landed)
        return self._turn(step, idle)

    def _turn(self, step: Step, due_at: int) -> ScheduledStep:
        """Wrap a step; the next decision is due at physics step `due_at` of its episode."""
        self._open = step.phase is not Phase.LAST
        self._left = due_at - self._environment.physics_steps
        return ScheduledStep(step, due=self._left == 0 and not self._open)


def config_source(
    spec: ObservationSpec, seed: int, build: Build = NEWEST, logs: Path | None = None
) -> ConfigSource:
    """Make a source on the simulator; without a configuration it plays the arena of `ArenaEnv`.

    What arenas leave to chance is what a build draws when it is given this seed.

    Args:
        spec: Specification of the observations.
        seed: The client's seed.
        build: The build to play as.
        logs: Folder of the observation logs; None for none. Builds before 4.1 write none.
    """
    note = threading.Timer(_SLOW_SECONDS, logger.info, (_COMPILING,))
    note.daemon = True
    note.start()
    try:
        from animalcat.arena_configs.loader import load_text
        from animalcat.envs.gym import NAVIGATION
        from animalcat.envs.sim.environment import SimEnvironment

        config = load_text(NAVIGATION, "").config
        warm = SimEnvironment(spec)
        warm.load(config.first, 0)  # which compiles
        warm.step(0)
        warm.close()
        log = None
        if logs is not None and build != "3.1.3":
            from animalcat.envs.mlagents.observation_log import ObservationLog

            log = ObservationLog(logs, spec.rays)
        environment = SimEnvironment(spec, build, "unity", seed, log, tell=False)
    finally:
        note.cancel()
    return ConfigSource(environment, config, seed, log)
