"""The client against a real server."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import grpc
import pytest

import animalcat
from animalcat.client import Client, PlayedEpisode
from animalcat.envs.agents.braitenberg import BraitenbergAgent
from animalcat.envs.types import Observation
from animalcat.service.recording.reader import read_episode
from animalcat.service.recording.verify import verify
from animalcat.v1 import sessions_pb2, sessions_pb2_grpc
from animalcat.values import EpisodeHeader
from animalcat.wire.codec import decode
from animalcat.wire.steps import observation_to_proto

from .conftest import MakeSession, Server


class Scripted:
    """Takes the same action, or list of them, again and again; counts what it is asked."""

    def __init__(self, answer: Any = 3) -> None:
        self.answer = answer
        self.infos: list[animalcat.EpisodeInfo] = []
        self.asked = 0

    def reset(self, info: animalcat.EpisodeInfo) -> None:
        self.infos.append(info)

    def act(self, observation: Observation) -> Any:
        self.asked += 1
        assert observation.rays is not None
        assert observation.rays.flags.owndata
        assert observation.rays.flags.writeable
        return self.answer


def test_nothing_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(animalcat.AnimalcatError, match=rf"{address}.*animalcat serve") as caught:
        animalcat.connect(address)
    assert caught.value.code == "UNAVAILABLE"


def test_something_else_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            connection, _ = other.accept()
            connection.sendall(b"220 mail.example ESMTP\r\n")
            connection.close()

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(animalcat.AnimalcatError, match="no animalcat server answers"):
            animalcat.connect(f"127.0.0.1:{other.getsockname()[1]}")


@pytest.mark.parametrize("address", ["", "localhost", "localhost:", ":50051", "h:port", "h:70000"])
def test_an_address_is_host_and_port(address: str) -> None:
    with pytest.raises(animalcat.AnimalcatError, match="not HOST:PORT"):
        animalcat.connect(address)


def test_an_agent_plays_a_session_to_its_end(
    client: Client, make_session: MakeSession, server: Server
) -> None:
    session = make_session(max_episodes=3)
    told: list[PlayedEpisode] = []
    summary = client.evaluate(BraitenbergAgent(), session, on_episode=told.append)

    assert summary.session == session.name
    assert summary.state == "finished"
    assert summary.counted == 3
    assert summary.episodes == tuple(told)
    assert client.get_session(session).state == "finished"
    stored = client.episodes(session)
    assert [e.number for e in stored] == [e.episode for e in told] == [0, 1, 2]
    assert [e.steps for e in stored] == [e.steps for e in told]
    assert [e.episode_return for e in stored] == pytest.approx([e.episode_return for e in told])
    assert set(client.profile(session)["nodes"]) >= {"navigationAbility", "visualAbility"}
    assert client.export_profile(session, "csv").count(b"\n") == 4

    folder = server.home / "recordings" / session.name.removeprefix("sessions/")
    for episode in stored:
        recording = read_episode(folder / f"{episode.number}-0.mcap")
        found = verify(recording)
        assert found.difference is None
        assert found.versions == ()
        header, *steps, footer = client.stream_episode(session, episode.number)
        assert header == decode(EpisodeHeader, recording.header)
        assert isinstance(footer, animalcat.values.EpisodeFooter)
        assert (footer.outcome, footer.ended_by) == (episode.outcome, episode.ended_by)
        assert footer.steps == episode.steps
        for told_of, kept in zip(steps, recording.steps, strict=True):
            assert isinstance(told_of, animalcat.values.RecordedStep)
            assert (told_of.step, told_of.reward) == (kept.step, kept.reward)
            assert observation_to_proto(told_of.observation) == kept.observation


def test_an_agent_knows_what_it_may_know_and_others_watch(
    client: Client, make_session: MakeSession
) -> None:
    session, agent = make_session(), Scripted(animalcat.Actions([1] * 50))
    client.evaluate(agent, session)
    assert [info.episode for info in agent.infos] == [0, 1]
    assert {info.observation_spec for info in agent.infos} == {animalcat.ObservationSpec()}
    assert len({info.seed for info in agent.infos}) == 2
    steps = [episode.steps for episode in client.episodes(session)]
    assert [info.time_budget_steps for info in agent.infos] == pytest.approx(steps, abs=1)

    events = list(client.watch_session(session, from_start=True))
    assert [e.episode.number for e in events if e.episode] == [0, 1]
    assert events[-1].session.state == "finished"


def test_a_session_that_waits_need_not_be_named(
    server: Server, client: Client, make_session: MakeSession
) -> None:
    make_session(agent="someone who never comes")
    make_session(agent="someone else")
    with pytest.raises(animalcat.AnimalcatError, match=r"not exactly one waits.*someone-else"):
        client.evaluate(Scripted())
    mine = make_session(agent="mine", max_episodes=1)  # whoever else's wait
    moves = Scripted(animalcat.Actions([1] * 100))
    assert client.evaluate(moves, name="mine").session == mine.name
    for waiting in client.list_sessions():
        if waiting.state == "waiting":
            client.cancel_session(waiting)
    session = make_session(max_episodes=1)
    assert client.evaluate(Scripted(animalcat.Actions([1] * 100))).session == session.name


def test_what_an_agent_raises_comes_through_and_another_process_may_go_on(
    client: Client, make_session: MakeSession, server: Server
) -> None:
    class Broken(Scripted):
        def act(self, observation: Observation) -> int:
            if self.asked == 7:
                raise LookupError("lost my map")
            return super().act(observation)

    session = make_session(max_episodes=1)
    with pytest.raises(LookupError, match="lost my map"):
        client.evaluate(Broken(), session)
    for event in client.watch_session(session):
        if event.session.state == "waiting":
            break
    assert client.get_session(session).unjudged == (0,)
    client.judge_failure(session, "repeat")
    with animalcat.connect(server.address) as second:
        assert second.evaluate(Scripted(animalcat.Actions([1] * 100)), session).state == "finished"
    first, again = client.episodes(session)
    assert first.outcome == "void"
    assert (again.number, again.attempt, again.instance) == (0, 1, first.instance)
    left = list(client.stream_episode(session, 0, 0))
    assert [f.step for f in left if isinstance(f, animalcat.values.RecordedStep)] == list(range(8))
    whole = list(client.stream_episode(session, 0))
    assert isinstance(whole[0], animalcat.values.EpisodeHeader)
    assert whole[0].attempt == 1


def test_the_server_refuses_in_a_sentence(client: Client, make_session: MakeSession) -> None:
    def refusal_of(code: str, **call: Any) -> str:
        with pytest.raises(animalcat.AnimalcatError) as caught:
            client.evaluate(Scripted(), **call)
        assert caught.value.code == code
        return str(caught.value)

    session = make_session()
    assert "no-such" in refusal_of("UNKNOWN_SESSION", session="no-such")
    assert "'other'" in refusal_of("AGENT_MISMATCH", session=session, name="other")
    camera = animalcat.ObservationSpec(camera=animalcat.CameraSpec(84))
    assert "camera" in refusal_of("OBSERVATION_MISMATCH", session=session, observation_spec=camera)
    client.cancel_session(session)
    assert "cancelled" in refusal_of("SESSION_OVER", session=session.name)
    with pytest.raises(animalcat.AnimalcatError, match=r"\.\./etc"):
        client.get_session("../etc")
    with pytest.raises(animalcat.AnimalcatError, match="no battery is named 'unheard-of'"):
        make_session(battery="unheard-of")
    with pytest.raises(animalcat.AnimalcatError, match="aaio"):
        make_session(layout="unheard-of")


def test_a_server_that_dies_is_said_to_be_lost(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from animalcat.service.rpc.server import serve\n"
        "from animalcat.service.host.settings import Settings\n"
        "ready = lambda address, link: print(address, flush=True)\n"
        "asyncio.run(serve(Settings(home=Path(sys.argv[1]), port=0), ready))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None

    class Killer(Scripted):
        def act(self, observation: Observation) -> int:
            if self.asked == 5:
                process.kill()
                process.wait()
            return super().act(observation)

    address = process.stdout.readline().strip()
    with process, animalcat.connect(address) as client:
        client.build_battery("navigation", 3, name="small")
        session = client.create_session(
            agent="killer", battery="small", certify=False, lease_seconds=1.0
        )
        with pytest.raises(animalcat.AnimalcatError, match="lost the server at") as caught:
            client.evaluate(Killer(), session)
    assert caught.value.code == "UNAVAILABLE"


def test_python_command_and_wire_have_the_same_defaults(server: Server, client: Client) -> None:
    def make_one() -> animalcat.values.SessionSpec:
        """The spec of the session that was made last; it is gone then, so that none is reused."""
        (session,) = client.sessions(agent="defaults")
        client.cancel_session(session)
        client.delete_session(session)
        return session.spec

    client.create_session(agent="defaults", battery="navigation")
    python = make_one()
    command = [
        sys.executable,
        "-m",
        "animalcat",
        "session",
        "run",
        "--elsewhere",
        "--agent",
        "defaults",
    ]
    command += ["--battery", "navigation", "--server", server.address]
    subprocess.run(command, check=True, capture_output=True)
    assert make_one() == python
    with grpc.insecure_channel(server.address) as channel:
        spec = sessions_pb2.SessionSpec(agent="defaults", battery="batteries/navigation")
        stub: Any = sessions_pb2_grpc.SessionsStub(channel)
        stub.CreateSession(sessions_pb2.CreateSessionRequest(spec=spec))
    assert make_one() == python
    assert python.certify
    assert python.policy.random_share == 0.15
