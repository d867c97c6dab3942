"""Watches which marked place an agent is in first, at every physics step, where a backend can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.outcome import MarkedPlace, PlaceWatch
from animalcat.envs.types import Environment, ObservationSpec, Step


@runtime_checkable
class PlaceWatcher(Protocol):
    """An environment that knows where the agent is at every physics step."""

    def watch(self, places: Sequence[MarkedPlace]) -> None:
        """Watch some places from now on, in the arena that has just been loaded.

        Steps then say in `reached` which of them the agent was in first.

        Raises:
            RuntimeError: No arena is loaded.
        """
        ...


def can_watch(backend: str, spec: ObservationSpec) -> bool:
    """Whether a backend sees the agent at every physics step: the simulator, or any at period 1.

    Args:
        backend: Name of the backend.
        spec: Specification of the observations.
    """
    return backend == "sim" or spec.decision_period == 1


def watchable(environment: Environment) -> Environment:
    """An environment that can watch places, if its decisions are physics steps.

    Any other environment is returned as it is. Where the agent is between two decisions is not
    known, so nothing is watched there.
    """
    if isinstance(environment, PlaceWatcher) or environment.spec.decision_period > 1:
        return environment
    return _Onlooker(environment)


def unwrap_environment(environment: Environment) -> Environment:
    """The environment of which `watchable` made another."""
    return environment.environment if isinstance(environment, _Onlooker) else environment


def watch(environment: Environment, places: Sequence[MarkedPlace]) -> None:
    """Watch places in the arena that has just been loaded, if the environment can."""
    if places and isinstance(environment, PlaceWatcher):
        environment.watch(places)


class _Onlooker:
    """Another environment, whose agent is looked at after every decision."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._watch = PlaceWatch()

    @property
    def spec(self) -> ObservationSpec:
        """Specification of the observations."""
        return self.environment.spec

    @property
    def versions(self) -> Mapping[str, str]:
        """What the environment says of itself."""
        return getattr(self.environment, "versions", {})

    def load(self, arena: Arena, seed: int) -> Step:
        """As `Environment.load`."""
        self._watch = PlaceWatch()
        return self.environment.load(arena, seed)

    def watch(self, places: Sequence[MarkedPlace]) -> None:
        """As `PlaceWatcher.watch`."""
        self._watch = PlaceWatch(places)

    def step(self, action: int) -> Step:
        """As `Environment.step`."""
        step = self.environment.step(action)
        x, _, z = step.observation.position.tolist()
        self._watch.look(x, z)
        return step._replace(reached=self._watch.reached)

    def close(self) -> None:
        """As `Environment.close`."""
        self.environment.close()
