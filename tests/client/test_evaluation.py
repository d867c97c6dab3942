"""The agent's side of the stream, against a scripted service that real servers cannot yet be."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

import animalcat
from animalcat.client import PlayedEpisode
from animalcat.envs.answers import NOTES_USED_UP
from animalcat.envs.types import Observation, ObservationSpec
from animalcat.v1 import gateway_pb2, gateway_pb2_grpc, sessions_pb2, sessions_pb2_grpc, types_pb2
from animalcat.wire.protocol import PROTOCOL
from animalcat.wire.steps import spec_to_proto

from .conftest import interrupt_next_call

SPEC = ObservationSpec(rays=None)
MOST = 2
Request, Response = gateway_pb2.EvaluateRequest, gateway_pb2.EvaluateResponse
Script = Callable[[Iterator[gateway_pb2.EvaluateRequest]], Iterator[gateway_pb2.EvaluateResponse]]


def view_of(at: float) -> types_pb2.Observation:
    return types_pb2.Observation(health=100, velocity=[0, 0, 0], position=[at, 0, 0])


def start(slot: int, episode: int) -> gateway_pb2.EvaluateResponse:
    opening = gateway_pb2.EpisodeStart(
        slot=slot,
        episode=episode,
        time_budget_steps=10,
        observation=view_of(slot),
        agent_seed=episode,
    )
    return Response(episode_start=opening)


def ask(slot: int, step: int) -> gateway_pb2.EvaluateResponse:
    return Response(ask=gateway_pb2.Ask(slot=slot, step=step, reward=1, observation=view_of(slot)))


def end(slot: int, episode: int, step: int, **fields: Any) -> gateway_pb2.EvaluateResponse:
    fields.setdefault("observation", view_of(slot))
    over = gateway_pb2.EpisodeEnd(slot=slot, episode=episode, step=step, reward=0.5, **fields)
    return Response(episode_end=over)


FINISHED = Response(
    session_end=gateway_pb2.SessionEnd(
        session="sessions/s", episodes=2, state=sessions_pb2.SESSION_STATE_FINISHED
    )
)


@contextmanager
def service(script: Script, slots: int = 1, *, welcome: bool = True) -> Iterator[str]:
    """A server that answers hello with a welcome, and then plays a script."""

    class Gateway(gateway_pb2_grpc.AgentGatewayServicer):
        def Evaluate(self, request_iterator: Any, context: Any) -> Any:  # noqa: N802
            next(request_iterator)
            if welcome:
                spec = spec_to_proto(SPEC)
                yield Response(
                    welcome=gateway_pb2.Welcome(
                        session="sessions/s",
                        observation_spec=spec,
                        slots=slots,
                        max_episodes=MOST,
                        protocol=PROTOCOL,
                    )
                )
            yield from script(request_iterator)

    class Sessions(sessions_pb2_grpc.SessionsServicer):
        def GetSession(self, request: Any, context: Any) -> Any:  # noqa: N802
            session = sessions_pb2.Session(name="sessions/s")
            session.spec.agent = "scripted"
            return sessions_pb2.GetSessionResponse(session=session)

    server = grpc.server(ThreadPoolExecutor(4))
    gateway_pb2_grpc.add_AgentGatewayServicer_to_server(Gateway(), server)
    sessions_pb2_grpc.add_SessionsServicer_to_server(Sessions(), server)
    checks = health.HealthServicer()
    checks.set("animalcat.v1.AgentGateway", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


class Remembering:
    """Answers with how often it was asked in this episode."""

    def __init__(self) -> None:
        self.slot = -1.0

    def reset(self, info: animalcat.EpisodeInfo) -> None:
        self.asked = 0

    def act(self, observation: Observation) -> int:
        if self.asked:
            assert observation.position[0] == self.slot
        self.slot = float(observation.position[0])
        self.asked += 1
        return self.asked


def two_slots(requests: Iterator[gateway_pb2.EvaluateRequest]) -> Iterator[Any]:
    got: list[tuple[int, int, bytes]] = []

    def take() -> None:
        action = next(requests).action
        got.append((action.slot, action.step, action.list.actions))

    yield start(1, 0)
    yield start(0, 1)
    take(), take()
    yield ask(0, 1)
    yield ask(1, 1)
    take(), take()
    yield ask(1, 2)
    take()
    assert got == [(1, 0, b"\1"), (0, 0, b"\1"), (0, 1, b"\2"), (1, 1, b"\2"), (1, 2, b"\3")]
    yield end(0, 1, 2)
    yield end(1, 0, 3, truncated=True)
    yield FINISHED


def test_each_slot_has_an_agent_of_its_own() -> None:
    with service(two_slots, slots=2) as address, animalcat.connect(address) as client:
        summary = client.evaluate(Remembering, "s")
    assert summary.counted == 2
    assert summary.episodes == (
        PlayedEpisode(1, 1.5, 2, truncated=False, fault=False),
        PlayedEpisode(0, 2.5, 3, truncated=True, fault=False),
    )


def test_a_call_within_a_call_is_refused_in_a_sentence() -> None:
    with service(two_slots, slots=2) as address, animalcat.connect(address) as client:
        with pytest.raises(animalcat.AnimalcatError, match="a connection of their own"):
            client.evaluate(Remembering, "s", on_episode=lambda _: client.get_session("s"))
        assert client.get_session("s").id == "s"


def test_one_agent_cannot_play_two_slots() -> None:
    with service(two_slots, slots=2) as address:
        with (
            animalcat.connect(address) as client,
            pytest.raises(animalcat.AnimalcatError, match=r"2 episodes at once.*its class"),
        ):
            client.evaluate(Remembering(), "s")
        with pytest.raises(animalcat.AnimalcatError, match="2 episodes at once"):
            animalcat.RemoteEnv(address, "s")


def test_a_note_that_is_refused_is_warned_of_and_the_episode_goes_on() -> None:
    def refusing(
        requests: Iterator[gateway_pb2.EvaluateRequest],
    ) -> Iterator[gateway_pb2.EvaluateResponse]:
        yield start(0, 0)
        next(requests)
        yield Response(error=types_pb2.Error(code=NOTES_USED_UP, message="the budget is spent"))
        yield ask(0, 1)
        next(requests)
        yield end(0, 0, 2)
        yield FINISHED

    with (
        service(refusing) as address,
        animalcat.connect(address) as client,
        pytest.warns(UserWarning, match="the budget is spent"),
    ):
        summary = client.evaluate(Remembering(), "s")
    assert [played.steps for played in summary.episodes] == [2]


def test_a_session_that_ends_at_hello_is_over() -> None:
    with service(lambda _: iter([FINISHED]), welcome=False) as address:
        with (
            animalcat.connect(address) as client,
            pytest.raises(animalcat.AnimalcatError, match="sessions/s is finished already"),
        ):
            client.evaluate(Remembering(), "s")
        with pytest.raises(animalcat.AnimalcatError) as caught:
            animalcat.RemoteEnv(address, "s")
        assert caught.value.code == "SESSION_OVER"


def test_why_the_service_closed_is_heard_by_an_agent_that_answers_too_late() -> None:
    closed = threading.Event()

    def script(_: Any) -> Iterator[Any]:
        yield start(0, 0)
        error = types_pb2.Error(code="ACTION_TIMEOUT", message="too late", fatal=True)
        yield Response(error=error)
        closed.set()

    class Slow(Remembering):
        def act(self, observation: Observation) -> int:
            closed.wait()
            time.sleep(0.1)
            return super().act(observation)

    with (
        service(script) as address,
        animalcat.connect(address) as client,
        pytest.raises(animalcat.AnimalcatError, match="too late") as caught,
    ):
        client.evaluate(Slow(), "s")
    assert caught.value.code == "ACTION_TIMEOUT"


def test_a_fault_shows_a_gymnasium_agent_what_it_saw_last() -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        yield start(0, 0)
        next(requests)
        yield end(0, 0, 0, observation=None, fault=True)
        yield start(0, 0)
        next(requests)
        yield end(0, 0, 1)
        yield FINISHED

    with service(script) as address:
        env = animalcat.RemoteEnv(address, "s")
        first, _ = env.reset()
        observation, reward, terminated, truncated, info = env.step(np.array([1, 0]))
        assert isinstance(observation, dict)
        assert isinstance(first, dict)
        assert np.array_equal(observation["position"], first["position"])
        assert (reward, terminated, truncated, info["fault"]) == (0.5, False, True, True)
        assert not env.session_over
        env.reset()
        assert env.step(np.array([0, 0]))[2]
        assert env.session_over
        env.close()


@pytest.mark.usefixtures("heeded")
def test_who_is_interrupted_between_episodes_can_still_withdraw() -> None:
    got: list[str | None] = []

    def script(requests: Iterator[gateway_pb2.EvaluateRequest]) -> Iterator[Any]:
        yield start(0, 0)
        next(requests)
        yield end(0, 0, 1)
        got.append(next(requests).WhichOneof("frame"))

    with service(script) as address:
        env = animalcat.RemoteEnv(address, "s")
        env.reset()
        assert env.step(np.array([0, 0]))[2]
        interrupt_next_call(env._episodes._client)  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(KeyboardInterrupt):
            assert env.session_over
        env.close()
    assert got == ["withdraw"]
