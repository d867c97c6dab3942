"""Whole conversations with the client's own library, in one process."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import mlagents_envs.environment
import numpy as np
import pytest
from mlagents_envs.base_env import ActionTuple, DecisionSteps, TerminalSteps
from mlagents_envs.environment import UnityEnvironment
from mlagents_envs.exception import (
    UnityCommunicatorStoppedException,
    UnityEnvironmentException,
    UnityObservationException,
)
from mlagents_envs.side_channel.raw_bytes_channel import RawBytesChannel

from animalcat.arena_configs.model import ArenaConfig, ArenaError
from animalcat.arena_configs.writer import to_yaml
from animalcat.envs.mlagents.arguments import Arguments
from animalcat.envs.mlagents.channels import ARENAS, ChannelError
from animalcat.envs.mlagents.handshake import VersionRefusedError, greet
from animalcat.envs.mlagents.link import (
    ClientClosed,
    ClientConnection,
    ClientGoneError,
)
from animalcat.envs.mlagents.peer import (
    BEHAVIOUR,
    ClientError,
    MakeSource,
    converse,
)
from animalcat.envs.mlagents.source import ConfigSource, SourceOver, config_source
from animalcat.envs.types import CameraSpec, ObservationSpec
from tests.small import FORWARD, NOOP, goal_arena

VECTOR = ObservationSpec(rays=None)
ONE = ArenaConfig(arenas={0: goal_arena()})


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return int(listener.getsockname()[1])


@dataclass
class Build:
    """A stand-in in a thread, for a client that starts none."""

    spec: ObservationSpec = VECTOR
    make: MakeSource = config_source
    port: int = field(default_factory=free_port)
    ended: BaseException | None = None

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            with ClientConnection(self.port) as link:
                link.connect()
                arguments = Arguments(self.spec, self.port, plays=False)
                converse(link, greet(link), arguments, self.make)
        except Exception as error:  # noqa: BLE001  handed over to the test
            self.ended = error

    def end(self) -> BaseException | None:
        """Why it ended."""
        self.thread.join(20)
        assert not self.thread.is_alive()
        return self.ended


@dataclass
class Client:
    """The library's environment, with the channel that Animal-AI adds."""

    build: Build
    arenas: RawBytesChannel = field(default_factory=lambda: RawBytesChannel(ARENAS))

    def __post_init__(self) -> None:
        self.unity = UnityEnvironment(
            None, base_port=self.build.port, side_channels=[self.arenas], seed=5
        )

    def reset(self, arenas: str = "") -> tuple[DecisionSteps, TerminalSteps]:
        if arenas:
            self.arenas.send_raw_data(arenas.encode())
        self.unity.reset()
        return self.unity.get_steps(BEHAVIOUR)

    def step(self, action: int | None) -> tuple[DecisionSteps, TerminalSteps]:
        if action is not None:
            discrete = np.array([divmod(action, 3)], np.int32)
            self.unity.set_actions(BEHAVIOUR, ActionTuple(discrete=discrete))
        self.unity.step()
        return self.unity.get_steps(BEHAVIOUR)


@pytest.fixture
def client() -> Iterator[Client]:
    opened = Client(Build())
    yield opened
    if opened.unity._loaded:
        opened.unity.close()
    opened.build.end()


@pytest.mark.parametrize("resets", [True, False], ids=["after a reset", "before"])
def test_a_client_that_closes_ends_the_build(resets: bool) -> None:
    """The library answers that it closes and stops its server at once: an answer may be lost."""
    ended: list[BaseException | None] = []
    while len(ended) < 5 and not (ended and isinstance(ended[-1], ClientClosed)):
        client = Client(Build())
        if resets:
            client.reset()
        client.unity.close()
        ended.append(client.build.end())
    *lost, last = ended
    assert isinstance(last, ClientClosed)
    assert all(isinstance(one, ClientGoneError) for one in lost)


def test_actions_and_observations_are_those_of_the_simulator(client: Client) -> None:
    played = config_source(VECTOR, 5)
    played.use(ONE)
    seen = [client.reset(to_yaml(ONE))]
    turns = [played.reset()]
    for action in (3, 4, 8, 0, 1, 5, 7, 2, 6):
        seen.append(client.step(action))
        turns.append(played.step(action))
    for (decisions, _), turn in zip(seen, turns, strict=True):
        observation = turn.step.observation
        vector = decisions.obs[0][0]
        assert vector[0] == np.float32(observation.health)
        assert np.array_equal(vector[1:4], observation.velocity)
        assert np.array_equal(vector[4:], observation.position)
        assert decisions.reward[0] == np.float32(turn.step.reward)


def test_an_episode_ends_and_another_begins(client: Client) -> None:
    client.reset(to_yaml(goal_arena()))
    decisions, terminals = client.step(FORWARD)
    while not len(terminals):
        decisions, terminals = client.step(FORWARD)
    assert len(decisions) == 0  # the goal is touched within a decision
    assert list(terminals.agent_id) == [0]
    assert not terminals.interrupted[0]
    decisions, terminals = client.step(None)
    assert (list(decisions.agent_id), len(terminals)) == ([0], 0)
    assert decisions.obs[0][0][4:].tolist() == pytest.approx([20.0, 0.5, 5.0], abs=0.02)


def test_a_terminal_and_a_decision_come_together() -> None:
    build = Build(spec=ObservationSpec(rays=None, decision_period=1))
    client = Client(build)
    client.reset(to_yaml(goal_arena()))
    decisions, terminals = client.step(FORWARD)
    while not len(terminals):
        decisions, terminals = client.step(FORWARD)
    assert (len(decisions), len(terminals)) == (1, 1)
    assert decisions.reward[0] == 0.0
    assert decisions.obs[0][0][0] == 100.0
    assert terminals.reward[0] > 0.9
    client.unity.close()
    build.end()


def test_bad_arenas_stop_a_client_at_once(client: Client, tmp_path: Path) -> None:
    client.reset()
    file = tmp_path / "arena.yaml"
    file.write_text("!ArenaConfig\narenas:\n  0: !Arena\n    t: soon\n")
    with pytest.raises(UnityCommunicatorStoppedException):
        client.reset(str(file))
    client.unity.close()
    error = client.build.end()
    assert isinstance(error, ArenaError)
    assert f"{file}:4" in str(error)


def test_torn_side_channels_stop_a_client(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.reset()
    manager = client.unity._side_channel_manager
    monkeypatch.setattr(manager, "generate_side_channel_messages", lambda: b"torn")
    with pytest.raises(UnityCommunicatorStoppedException):
        client.step(NOOP)
    client.unity.close()
    assert isinstance(client.build.end(), ChannelError)


def test_an_action_that_does_not_exist_stops_a_client(client: Client) -> None:
    client.reset()
    action = ActionTuple(discrete=np.array([[0, 3]], np.int32))
    client.unity.set_actions(BEHAVIOUR, action)
    with pytest.raises(UnityCommunicatorStoppedException):
        client.unity.step()
    client.unity.close()
    error = client.build.end()
    assert isinstance(error, ClientError)
    assert "[0, 3]" in str(error)


def test_another_communication_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UnityEnvironment, "API_VERSION", "2.0.0")
    build = Build()
    with pytest.raises(UnityEnvironmentException, match="not compatible"):
        Client(build)
    error = build.end()
    assert isinstance(error, VersionRefusedError)
    assert "'2.0.0'" in str(error)


@pytest.mark.parametrize(("version", "shape"), [("0.30.0", (8, 8, 3)), ("9.1", (3, 8, 8))])
def test_images_are_laid_out_as_the_client_wants_them(
    monkeypatch: pytest.MonkeyPatch, version: str, shape: tuple[int, int, int]
) -> None:
    monkeypatch.setattr(mlagents_envs.environment.mlagents_envs, "__version__", version)
    build = Build(spec=ObservationSpec(CameraSpec(8), None))
    unity = UnityEnvironment(None, base_port=build.port)
    try:
        # This library reads channels first: of the other layout it learns the shape, and gives up.
        with contextlib.suppress(UnityObservationException):
            unity.reset()
        assert unity.behavior_specs[BEHAVIOUR].observation_specs[0].shape == shape
    finally:
        unity.close()
    build.end()


def test_a_source_that_is_over_stops_the_client_at_its_next_reset() -> None:
    class Once(ConfigSource):
        def reset(self):
            if not self._fresh:
                raise SourceOver("the session is complete")
            return super().reset()

    def make(spec: ObservationSpec, seed: int) -> Once:
        plain = config_source(spec, seed)
        return Once(plain._environment, plain._config, seed)

    build = Build(make=make)
    client = Client(build)
    client.reset()
    with pytest.raises(UnityCommunicatorStoppedException):
        client.reset()
    client.unity.close()
    assert isinstance(build.end(), SourceOver)
