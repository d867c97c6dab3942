"""Whatever an agent sends in whatever order, the server answers as the protocol's page says.

The machine goes through the states of docs/protocol.md against a real server. It knows which answer
is due to each frame and what must be stored in the end. `pytest --hypothesis-profile=deep` tries
400 ways.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,  # pyright: ignore[reportUnknownVariableType]
)

from animalcat.service.host.settings import Settings
from animalcat.service.rpc.server import create_server
from animalcat.service.session.turns import MAX_BAD_FRAMES
from animalcat.v1 import gateway_pb2, gateway_pb2_grpc, sessions_pb2, types_pb2
from tests.service.conftest import NOW, Service, Stream, action, hello

WAYS = 40
"""Ways that are tried without the profile."""
EPISODES = 60
"""More than a way can play, so that no session comes to its last fit."""

BAD = {
    "an old step": lambda step: action(step + 1, 3),
    "no action": lambda step: action(step),
    "an action that does not exist": lambda step: action(step, 3, 9),
    "another slot": lambda step: action(step, 3, slot=1),
    "a second hello": lambda step: hello("sessions/any"),
    "nothing": lambda step: gateway_pb2.EvaluateRequest(),
}


class Protocol(RuleBasedStateMachine):
    """An agent, and what the server must say to it."""

    runner: asyncio.Runner
    server: Any
    service: Service

    @initialize()
    def create(self) -> None:
        self.stream: Stream | None = None
        self.lease, self.seen, self.kept = b"", 0, False
        self.latest: Any = None
        self.number, self.step, self.bad = 0, 0, 0
        self.voids: dict[int, int] = {}
        self.ended: dict[int, str] = {}
        self.session = self.run(self.service.create(EPISODES))

    def run(self, wanted: Any) -> Any:
        return self.runner.run(asyncio.wait_for(wanted, 60))

    @precondition(lambda self: self.stream is None)
    @rule(new=st.booleans(), returns=st.sampled_from([True, True, False]))
    def greet(self, new: bool, returns: bool) -> None:
        """The same process or another one comes, and is given the first undecided episode.

        Where the place of one was kept whose connection broke, its episode is now void.
        """
        instance = f"process {len(self.voids) if new else 1}"
        if self.kept:
            self.left()

        async def comes() -> tuple[Stream, Any]:
            while True:
                stub: Any = gateway_pb2_grpc.AgentGatewayStub(self.service.channel)
                stream = Stream(stub.Evaluate())
                await stream.send(hello(self.session, instance=instance, returns=returns))
                frame = await stream.receive()
                if not isinstance(frame, types_pb2.Error):
                    return stream, frame
                assert frame.code == "AGENT_CONNECTED", frame  # the cut was not noticed yet
                await asyncio.sleep(0.02)

        self.stream, welcome = self.run(comes())
        assert welcome.session == self.session
        assert welcome.episodes_done == len(self.ended)
        assert bool(welcome.lease) == returns
        self.instance, self.lease, self.seen = instance, welcome.lease, 0
        self.begun()

    @precondition(lambda self: self.kept)
    @rule()
    def come_back(self) -> None:
        """The process whose connection broke is asked the same again."""
        asked = self.latest
        self.stream = self.run(self.comes_back(self.lease, self.instance, self.seen))
        again = self.run(self.take())
        if isinstance(asked, gateway_pb2.EpisodeStart):  # one goes on over the stream
            asked.ClearField("direct")
        assert again == asked
        self.kept = False

    @precondition(lambda self: self.stream is not None and self.lease)
    @rule(noticed=st.booleans(), wrong=st.sampled_from(["", "token", "process", "ahead"]))
    def break_and_come_back(self, noticed: bool, wrong: str) -> None:
        """Also over a second stream, while the first one seems well."""
        assert self.stream is not None
        if noticed:
            self.stream.call.cancel()
        if wrong:
            self.come_back_as_another(wrong)
        self.come_back()

    @precondition(lambda self: self.kept)
    @rule(what=st.sampled_from(["token", "process", "ahead", "behind"]))
    def come_back_as_another(self, what: str) -> None:
        """Whoever is not that process is refused, and changes nothing."""
        lease, instance, seen = self.lease, self.instance, self.seen
        if what == "token":
            lease = lease[::-1]
        elif what == "process":
            instance += "'"
        elif what == "ahead":
            seen += 1
        elif self.step and self.seen > 1:
            seen -= 2
        else:
            return
        with pytest.raises(AssertionError, match="LEASE_LOST"):
            self.run(self.comes_back(lease, instance, seen))

    async def comes_back(self, lease: bytes, instance: str, seen: int) -> Stream:
        stub: Any = gateway_pb2_grpc.AgentGatewayStub(self.service.channel)
        stream = Stream(stub.Evaluate())
        await stream.send(hello(self.session, instance=instance, lease=lease, seen=seen))
        welcome = await stream.receive("welcome")
        assert welcome.episodes_done == len(self.ended)
        return stream

    async def take(self, kind: str = "") -> Any:
        """The next frame; what its number is, is noted."""
        assert self.stream is not None
        frame = await self.stream.call.read()
        assert frame is not grpc.aio.EOF, "the stream has ended"
        found = frame.WhichOneof("frame")
        assert kind in ("", found), f"{found} came instead of {kind}: {frame}"
        asks = found in ("episode_start", "ask", "episode_end") and self.lease
        assert (frame.number > 0) == bool(asks)
        if asks:
            assert frame.number in (self.seen, self.seen + 1)
            self.seen = frame.number
            self.latest = getattr(frame, found)
        return getattr(frame, found)

    @precondition(lambda self: self.stream is None)
    @rule()
    def greet_as_another(self) -> None:
        """Another agent's name is refused, and changes nothing."""

        async def comes() -> None:
            stub: Any = gateway_pb2_grpc.AgentGatewayStub(self.service.channel)
            stream = Stream(stub.Evaluate())
            await stream.send(hello(self.session, agent="somebody else"))
            await stream.refused("AGENT_MISMATCH")

        self.run(comes())

    @precondition(lambda self: self.stream is not None)
    @rule(actions=st.lists(st.sampled_from([0, 3, 4, 5, 6]), min_size=1, max_size=30))
    def act(self, actions: list[int]) -> None:
        frame = self.ask(action(self.step, *actions))
        self.bad = 0
        if isinstance(frame, gateway_pb2.Ask):
            assert frame.step == self.step + len(actions)
            self.step = frame.step
            return
        assert isinstance(frame, gateway_pb2.EpisodeEnd), frame
        assert (frame.episode, frame.fault) == (self.number, False)
        assert self.step < frame.step <= self.step + len(actions)
        self.ended[self.number] = "played"
        self.number += 1
        self.begun()

    @precondition(lambda self: self.stream is not None)
    @rule(what=st.sampled_from(sorted(BAD)))
    def send_a_bad_frame(self, what: str) -> None:
        """It is refused and the same question stands; the third in a row ends the stream."""
        frame = self.ask(BAD[what](self.step))
        self.bad += 1
        assert isinstance(frame, types_pb2.Error), frame
        assert frame.fatal == (self.bad == MAX_BAD_FRAMES)
        if frame.fatal:
            assert frame.code == "TOO_MANY_BAD_FRAMES"
            self.left()

    @precondition(lambda self: self.stream is not None)
    @rule()
    def note(self) -> None:
        """A note has no answer."""
        assert self.stream is not None
        note = types_pb2.Note(text="hm")
        self.run(self.stream.send(gateway_pb2.EvaluateRequest(note=note)))

    @precondition(lambda self: self.stream is not None)
    @rule(how=st.sampled_from(["cut", "leave", "half closed"]))
    def go(self, how: str) -> None:
        """The open episode is void; with a lease only where one leaves for good."""
        assert self.stream is not None
        if how == "leave":
            leave = gateway_pb2.EvaluateRequest(leave=gateway_pb2.Leave())
            self.run(self.stream.send(leave))
            assert self.run(self.closed(self.stream))
        elif how == "half closed":
            self.run(self.stream.call.done_writing())
            assert self.run(self.closed(self.stream))
        else:
            self.stream.call.cancel()
        if self.lease and how != "leave":
            self.stream, self.kept = None, True
        else:
            self.left()

    @precondition(lambda self: self.stream is not None)
    @rule()
    def withdraw(self) -> None:
        """Before the first action it voids the episode; later it is a bad frame."""
        assert self.stream is not None
        frame = gateway_pb2.EvaluateRequest(withdraw=gateway_pb2.Withdraw())
        if self.step:
            answer = self.ask(frame)
            self.bad += 1
            assert isinstance(answer, types_pb2.Error)
            if answer.fatal:
                self.left()
            return
        self.run(self.stream.send(frame))
        assert self.run(self.closed(self.stream))
        self.left()

    def ask(self, frame: gateway_pb2.EvaluateRequest) -> Any:
        assert self.stream is not None

        async def asks(stream: Stream) -> Any:
            await stream.send(frame)
            return await self.take()

        return self.run(asks(self.stream))

    def begun(self) -> None:
        """The next frame begins the next episode."""
        assert self.stream is not None
        start = self.run(self.take("episode_start"))
        assert start.episode == self.number
        self.step = 0

    def left(self) -> None:
        """The second void of an episode is a failure."""
        self.voids[self.number] = self.voids.get(self.number, 0) + 1
        if self.voids[self.number] == 2:
            self.ended[self.number] = "voided twice"
            self.number += 1
        self.stream, self.step, self.bad, self.kept = None, 0, 0, False

    async def closed(self, stream: Stream) -> bool:
        try:
            return await stream.call.read() is grpc.aio.EOF
        except grpc.aio.AioRpcError:
            return True

    def teardown(self) -> None:
        """What is stored is what was played: each episode counts once, and in order."""
        if not hasattr(self, "session"):
            return
        if self.stream is not None:
            self.stream.call.cancel()
        cancel = sessions_pb2.CancelSessionRequest(name=self.session)
        self.run(self.service.sessions.CancelSession(cancel))
        episodes = self.run(self.service.list_episodes(self.session))
        counts = (types_pb2.OUTCOME_SUCCESS, types_pb2.OUTCOME_FAILURE)
        counted = [e for e in episodes if e.outcome in counts and e.episode in self.ended]
        assert [e.episode for e in counted] == sorted(self.ended)
        for episode in counted:
            twice = self.ended[episode.episode] == "voided twice"
            assert ("for the second time" in episode.cause) == twice, episode
        voids = [e.episode for e in episodes if e.outcome == types_pb2.OUTCOME_VOID]
        for number in self.ended:
            assert voids.count(number) >= min(self.voids.get(number, 0), 1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_order_of_frames(tmp_path: Path) -> None:
    async def begin() -> None:
        Protocol.server = create_server(Settings(home=tmp_path, port=0), lambda: NOW)
        running = await Protocol.server.__aenter__()
        channel = grpc.aio.insecure_channel(running.address)
        Protocol.service = Service(running, tmp_path, channel)

    async def end() -> None:
        await Protocol.service.channel.close()
        await Protocol.server.__aexit__(None, None, None)

    asked = settings().max_examples
    ways = asked if asked > settings.get_profile("default").max_examples else WAYS
    with asyncio.Runner() as runner:
        Protocol.runner = runner
        runner.run(begin())
        try:
            run_state_machine_as_test(
                Protocol,
                settings=settings(
                    max_examples=ways,
                    stateful_step_count=25,
                    deadline=None,
                    derandomize=ways == WAYS,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(end())
