"""Every backend of this package passes the conformance suite."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.writer import to_yaml
from animalcat.envs.backends import make_environment
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import ObservationSpec, Phase, Step
from animalcat.envs.worker_client import WorkerClient
from tests.small import play_episode, start
from tests.suites.environments import EnvironmentSuite, Make


class TestSimConformance(EnvironmentSuite):
    @pytest.fixture
    def make(self) -> Make:
        return SimEnvironment


class WorkerEnvironment:
    """The simulator in a worker process, as an environment."""

    def __init__(self, loop: asyncio.AbstractEventLoop, client: WorkerClient) -> None:
        self._loop, self._client = loop, client
        self._open = False

    @property
    def spec(self) -> ObservationSpec:
        return self._client.spec

    def load(self, arena: Arena, seed: int) -> Step:
        step = self._loop.run_until_complete(self._client.load(to_yaml(arena), seed))
        self._open = True
        return step

    def step(self, action: int) -> Step:
        if not 0 <= action < 256:
            raise ValueError(f"action {action} does not fit a byte")
        (step,) = self._loop.run_until_complete(self._client.step(bytes([action])))
        self._open = step.phase is not Phase.LAST
        return step

    def close(self) -> None:
        """Leave no episode open: the process may serve the next environment."""
        if self._open:
            list(play_episode(self, Arena(time_limit=1, items=(start(),)), 0, [0] * 20))


Clients = tuple[asyncio.AbstractEventLoop, dict[ObservationSpec, WorkerClient]]


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    loop, clients = asyncio.new_event_loop(), dict[ObservationSpec, WorkerClient]()
    yield loop, clients
    for client in clients.values():
        loop.run_until_complete(client.close())
    loop.close()


class TestWorkerConformance(EnvironmentSuite):
    """One process for each specification serves all of its environments."""

    @pytest.fixture
    def make(self, clients: Clients) -> Iterator[Make]:
        loop, by_spec = clients
        made: list[WorkerEnvironment] = []

        def make(spec: ObservationSpec) -> WorkerEnvironment:
            client = by_spec.setdefault(spec, WorkerClient("sim", spec))
            made.append(WorkerEnvironment(loop, client))
            return made[-1]

        yield make
        for environment in made:
            environment.close()


def test_backends_are_made_by_name() -> None:
    environment = make_environment("sim", ObservationSpec())
    assert isinstance(environment, SimEnvironment)
    assert environment.spec == ObservationSpec()
