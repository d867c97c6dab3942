"""What Unity would tell of a game, by the embedded simulator one physics step at a time.

Written from reference/animal-ai.md sections 4.6 and 6.4 alone, to hold the stand-in against.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import cycle
from typing import NamedTuple

from animalcat.arena_configs.model import Arena
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import Observation, ObservationSpec, Phase, Step

from .conftest import Command

NOOP = 0


class Told(NamedTuple):
    """An observation, and the reward since the one before."""

    observation: Observation
    reward: float


class Message(NamedTuple):
    """One message to the client: it holds a decision, the end of an episode, or both."""

    decision: Told | None = None
    terminal: Told | None = None


class Game:
    """Plays arenas in turn as Unity's Academy does.

    The arenas leave nothing to chance, so that it does not matter how seeds are drawn.
    """

    def __init__(self, spec: ObservationSpec, arenas: Iterable[Arena]) -> None:
        self._period = spec.decision_period
        self._environment = SimEnvironment(replace(spec, decision_period=1))
        self._arenas = cycle(arenas)
        self._until_decision = self._period
        self._reward = 0.0

    def follow(self, commands: Iterable[Command], others: Iterable[Arena] = ()) -> list[Message]:
        """What comes of the reset in the client's constructor, and of each command.

        Args:
            commands: As in clients/drive.py.
            others: The arenas that a reset with a file brings.
        """
        others = tuple(others)
        return [self._first(), *self._rest(commands, others)]

    def _rest(self, commands: Iterable[Command], others: tuple[Arena, ...]) -> Iterator[Message]:
        awaiting = True
        for verb, *values in commands:
            if verb == "step":
                move, turn = (int(v) for v in values) if awaiting else (0, 0)
                message = self._step(3 * move + turn)
            else:
                if values[0]:
                    self._arenas = cycle(others)
                message = self._reset()
            awaiting = message.decision is not None
            yield message

    def _first(self) -> Message:
        """The very first reset of the process: nothing is simulated yet."""
        return Message(decision=self._tell_step(self._load()))

    def _reset(self) -> Message:
        """A later RESET: one physics step with no action is done already."""
        self._load()
        self._until_decision = self._period
        return Message(decision=self._tell_step(self._environment.step(NOOP)))

    def _step(self, action: int) -> Message:
        """Until the next decision, or until the episode ends; then the next one has begun."""
        while True:
            step = self._environment.step(action)
            self._until_decision -= 1
            due = self._until_decision == 0
            if due:
                self._until_decision = self._period
            if step.phase is Phase.LAST:
                terminal, first = self._tell_step(step), self._load(landed=self._environment.landed)
                return Message(self._tell_step(first) if due else None, terminal)
            if due:
                return Message(decision=self._tell_step(step))
            self._reward += step.reward

    def _load(self, *, landed: bool = False) -> Step:
        """The next arena; `landed` after an episode that ended, not after a RESET."""
        self._reward = 0.0
        return self._environment.load(next(self._arenas), seed=0, landed=landed)

    def _tell_step(self, step: Step) -> Told:
        reward, self._reward = self._reward + step.reward, 0.0
        return Told(step.observation, reward)
