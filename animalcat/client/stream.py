"""The stream of one agent process, which comes back where its connection breaks."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import grpc

from animalcat.client.direct import DirectError, DirectPlay
from animalcat.envs.agents.base import UNLIMITED, Allowance, EpisodeInfo
from animalcat.envs.agents.fingerprint import UNKNOWN, AgentFingerprint
from animalcat.envs.answers import NOTES_USED_UP, Note
from animalcat.envs.types import Observation, ObservationSpec
from animalcat.errors import AnimalcatError, is_broken, may_try_again
from animalcat.v1 import gateway_pb2, gateway_pb2_grpc, sessions_pb2, types_pb2
from animalcat.wire.codec import decode, encode, word
from animalcat.wire.protocol import PROTOCOL, server_refusal, version
from animalcat.wire.steps import (
    observation_from_proto,
    spec_from_proto,
    spec_to_proto,
)

FIRST_PAUSE: Final = 0.05
"""Seconds between the first two attempts to come back; each pause is twice the one before."""
LONGEST_PAUSE: Final = 2.0
"""Most seconds between two attempts to come back."""
LEAVE_SECONDS: Final = 2.0
"""How long the service may take to notice that an agent leaves."""

Call: TypeAlias = grpc.aio.StreamStreamCall[
    gateway_pb2.EvaluateRequest, gateway_pb2.EvaluateResponse
]


@dataclass(frozen=True, slots=True)
class Welcome:
    """What the service says before the first episode.

    Attributes:
        session: Resource name.
        observation_spec: What observations hold.
        max_episodes: Most episodes of the session.
        episodes_done: Episodes that are over already.
        slots: Episodes that play at once.
        action_timeout_seconds: How long one action may take.
        lease_seconds: How long an agent may take to come back after its connection broke; 0: it
            may not.
        allowance: What the agent may spend.
    """

    session: str
    observation_spec: ObservationSpec
    max_episodes: int
    episodes_done: int
    slots: int
    action_timeout_seconds: float
    lease_seconds: float = 0.0
    allowance: Allowance = UNLIMITED


class _LatestAnswer(NamedTuple):
    """The latest answer in a slot, with its notes before it, and over what it was sent."""

    step: int
    frames: Sequence[gateway_pb2.EvaluateRequest]
    road: Call | DirectPlay


class EvaluationStream:
    """The stream of one agent process.

    If the service gives a lease, a broken connection is made again and the lost answer is sent
    again; whoever uses the stream notices nothing.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        process: str,
        fingerprint: AgentFingerprint = UNKNOWN,
        *,
        follows: bool = False,
        same_agent: bool = False,
        returns: bool = False,
        resumes: bool = False,
    ) -> None:
        """Prepare a stream.

        Args:
            channel: To the server.
            process: Unique to this process of the agent.
            fingerprint: What identifies the agent.
            follows: Whether `identify` completes the fingerprint before the first action.
            same_agent: Whether to declare that this is the session's agent even if its fingerprint
                differs.
            returns: Whether to come back when the connection breaks. Then `leave` has to be called
                at the end.
            resumes: Whether to go on with the episode that an earlier process left open.
        """
        self._stub = gateway_pb2_grpc.AgentGatewayStub(channel)
        self._hello = gateway_pb2.Hello(
            instance=process,
            client_version=version(),
            protocol=PROTOCOL,
            returns=returns,
            fingerprint=encode(fingerprint),
            fingerprint_follows=follows,
            same_agent=same_agent,
            resumes=resumes,
        )
        self._identity: gateway_pb2.EvaluateRequest | None = None
        self._lease_seconds = 0.0
        self._returning: asyncio.Task[None] | None = None
        self._leaving = False
        self._offer: gateway_pb2.Direct | None = None
        self._direct: DirectPlay | None = None
        self._takes_offers = True
        self._answers: dict[int, _LatestAnswer] = {}

    async def open(self, session: str, agent: str, spec: ObservationSpec | None) -> Welcome:
        """Say hello.

        Args:
            session: Resource name; empty where exactly one session waits.
            agent: Name of the agent.
            spec: What the agent needs to see; None for whatever the session gives.

        Raises:
            AnimalcatError: The service refused.
        """
        self._hello.session, self._hello.agent = session, agent
        if spec is not None:
            self._hello.observation_spec.CopyFrom(spec_to_proto(spec))
        self._call: Call = self._stub.Evaluate()
        self._read_on()
        await self._write(gateway_pb2.EvaluateRequest(hello=self._hello))
        frame = await self.receive()
        if frame.HasField("session_end"):
            over = frame.session_end
            raise AnimalcatError(
                f"{over.session} is {word(sessions_pb2.SessionState, over.state)} already",
                "SESSION_OVER",
            )
        if not frame.HasField("welcome"):
            raise AnimalcatError(f"the server answered {frame.WhichOneof('frame')} to hello")
        answer = frame.welcome
        if wrong := server_refusal(answer.protocol, answer.server_version):
            raise AnimalcatError(wrong, "CLIENT_REFUSED")
        self.spec = spec_from_proto(answer.observation_spec)
        self._allowance = decode(Allowance, answer.allowance)
        self._hello.session, self._hello.lease = answer.session, answer.lease
        self._lease_seconds = answer.lease_seconds if answer.lease else 0.0
        return Welcome(
            session=answer.session,
            observation_spec=self.spec,
            max_episodes=answer.max_episodes,
            episodes_done=answer.episodes_done,
            slots=answer.slots,
            action_timeout_seconds=answer.action_timeout_seconds,
            lease_seconds=self._lease_seconds,
            allowance=self._allowance,
        )

    async def receive(self) -> gateway_pb2.EvaluateResponse:
        """The next frame, from the service or from the worker that plays an episode directly.

        Raises:
            AnimalcatError: The service reports an error, or closed the stream.
        """
        while True:
            frame, road = await self._next()
            if _ends(frame):
                raise AnimalcatError(frame.error.message, frame.error.code)
            if frame.HasField("error"):
                warnings.warn(frame.error.message, stacklevel=2)
                continue
            again = 0 < frame.number <= self._hello.seen
            self._hello.seen = max(frame.number, self._hello.seen)
            if frame.HasField("episode_start") and not again:
                wanted = self._takes_offers and frame.episode_start.HasField("direct")
                self._offer = frame.episode_start.direct if wanted else None
                self._answers.pop(frame.episode_start.slot, None)
            answer = self._answers.get(_slot(frame))
            if answer is None or _step_asked_for(frame) != answer.step:
                return frame
            if answer.road is not road:  # the answer was lost on a broken connection
                await self._send(_slot(frame), answer.step, answer.frames)

    async def act(self, slot: int, step: int, actions: bytes, notes: Sequence[Note] = ()) -> None:
        """Answer an observation.

        Args:
            slot: Slot of the observation.
            step: Decisions taken before these.
            actions: One byte an action.
            notes: Remarks about the step.
        """
        taken = gateway_pb2.ActionList(actions=actions)
        action = gateway_pb2.Action(slot=slot, step=step, list=taken)
        frames = [gateway_pb2.EvaluateRequest(note=encode(note)) for note in notes]
        for frame in frames:
            frame.note.slot = slot
        frames.append(gateway_pb2.EvaluateRequest(action=action))
        if self._identity is not None:  # only the service asks who plays, so this goes over it
            frames, self._identity, self._offer = [self._identity, *frames], None, None
        if self._offer is not None:
            offer, self._offer = self._offer, None
            try:
                self._direct = await DirectPlay.open(offer)
            except DirectError:  # ports are closed between here and there: the service relays
                self._takes_offers = False
        if self._direct is None:
            await self._send(slot, step, frames)
        else:
            self._answers[slot] = _LatestAnswer(step, frames, self._direct)
            for frame in frames:
                self._direct.send(frame)

    def identify(self, fingerprint: AgentFingerprint) -> None:
        """Send the complete fingerprint, before the first action."""
        told = encode(fingerprint)
        self._identity = gateway_pb2.EvaluateRequest(fingerprint=told)

    def observation(self, message: types_pb2.Observation) -> Observation:
        """Decode an observation by the session's specification."""
        return observation_from_proto(message, self.spec)

    def episode_info(self, start: gateway_pb2.EpisodeStart) -> EpisodeInfo:
        """What the agent may know of an episode; its time budget is in decisions."""
        return EpisodeInfo(
            episode=start.episode,
            seed=start.agent_seed,
            observation_spec=self.spec,
            time_budget_steps=-(-start.time_budget_steps // self.spec.decision_period),
            allowance=self._allowance,
            practice=start.practice,
        )

    async def withdraw(self, seconds: float) -> None:
        """Leave between episodes.

        An episode that was sent meanwhile is void; the second time it is a failure.

        Args:
            seconds: How long the service may take to end the stream.
        """
        await self._say_last(gateway_pb2.EvaluateRequest(withdraw=gateway_pb2.Withdraw()), seconds)

    async def leave(
        self, seconds: float = LEAVE_SECONDS, *, failure: str = "", dismissed: bool = False
    ) -> None:
        """Leave for good, so that nobody waits for this process to come back; then `cancel`.

        Args:
            seconds: How long the service may take to end the stream.
            failure: How the agent's code failed, in words; empty: it did not.
            dismissed: Whether the agent is taken off, and does not leave by itself.
        """
        said = gateway_pb2.Leave(failure=failure, dismissed=dismissed)
        try:
            if failure and self._returning is not None:
                with contextlib.suppress(TimeoutError, AnimalcatError, grpc.aio.AioRpcError):
                    async with asyncio.timeout(seconds):
                        await self._wait_for_return()
            if self._lease_seconds or failure or dismissed:
                await self._say_last(gateway_pb2.EvaluateRequest(leave=said), seconds)
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Leave at once; does nothing to a stream that is over. With a lease, `leave` instead."""
        self._leaving = True
        if self._returning is not None:
            self._returning.cancel()
        if self._direct is not None:
            self._direct.close()
        self._call.cancel()

    async def _say_last(self, frame: gateway_pb2.EvaluateRequest, seconds: float) -> None:
        """Send a last frame, and wait until the service closes the stream."""
        if self._leaving or (self._returning is not None and not self._returning.done()):
            return
        self._leaving = True
        gone = (TimeoutError, AnimalcatError, asyncio.InvalidStateError, grpc.aio.AioRpcError)
        with contextlib.suppress(*gone):
            async with asyncio.timeout(seconds):
                await self._call.write(frame)
                while not (await self._next())[0].HasField("error"):
                    pass

    async def _next(self) -> tuple[gateway_pb2.EvaluateResponse, Call | DirectPlay]:
        """The next frame, and over what it came."""
        if self._direct is not None:
            if (direct := await self._direct.receive()) is not None:
                return direct, self._direct
            self._direct = None  # what comes next comes over the stream
        while True:
            await self._wait_for_return()
            call = self._call
            # gRPC ends a call whose read is cancelled, and who is interrupted may want to withdraw.
            try:
                frame = await asyncio.shield(self._incoming)
            except grpc.aio.AioRpcError as error:
                if self._may_return(error):
                    self._begin_return(error)
                    continue
                raise
            if not isinstance(frame, gateway_pb2.EvaluateResponse):
                raise AnimalcatError(
                    "the server closed the stream before the session's end", "UNAVAILABLE"
                )
            if not _ends(frame):
                self._read_on()
            return frame, call

    def _read_on(self) -> None:
        """Read ahead: once a write has failed, gRPC gives nothing but what was being read."""
        self._incoming = asyncio.ensure_future(self._call.read())
        self._incoming.add_done_callback(self._look)

    def _look(self, reading: asyncio.Task[object]) -> None:
        """Come back at once where the connection broke, while the agent thinks."""
        error = None if reading.cancelled() else reading.exception()
        if not isinstance(error, grpc.aio.AioRpcError) or self._direct is not None:
            return
        if self._may_return(error):
            self._begin_return(error)

    def _may_return(self, error: grpc.aio.AioRpcError) -> bool:
        return self._lease_seconds > 0.0 and not self._leaving and is_broken(error)

    def _begin_return(self, error: grpc.aio.AioRpcError) -> None:
        if self._returning is None:
            self._offer = None  # whoever comes back goes on over the stream
            self._returning = asyncio.ensure_future(self._return(error))
            self._returning.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def _wait_for_return(self) -> None:
        """Wait until a connection that broke is made again."""
        if self._returning is not None:
            await asyncio.shield(self._returning)

    async def _return(self, broke: grpc.aio.AioRpcError) -> None:
        """Come back over another connection, as long as the lease holds.

        Raises:
            AnimalcatError: The service has given the place away.
            grpc.aio.AioRpcError: `broke`, where it could not be reached in time.
        """
        loop = asyncio.get_running_loop()
        end, pause = loop.time() + self._lease_seconds, FIRST_PAUSE
        while True:
            call: Call = self._stub.Evaluate()
            try:
                async with asyncio.timeout_at(end):
                    await call.write(gateway_pb2.EvaluateRequest(hello=self._hello))
                    frame = await call.read()
                if isinstance(frame, gateway_pb2.EvaluateResponse) and frame.HasField("welcome"):
                    self._call, self._returning = call, None
                    self._read_on()
                    return
                if isinstance(frame, gateway_pb2.EvaluateResponse) and frame.HasField("error"):
                    raise AnimalcatError(frame.error.message, frame.error.code)
            except grpc.aio.AioRpcError as error:
                if not (is_broken(error) or may_try_again(error)):
                    raise
            except asyncio.InvalidStateError:  # it broke between the two
                pass
            except TimeoutError:
                call.cancel()  # or its channel would try to connect for as long as it lives
                raise broke from None
            call.cancel()
            if loop.time() + pause > end:
                raise broke
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _send(
        self, slot: int, step: int, frames: Sequence[gateway_pb2.EvaluateRequest]
    ) -> None:
        await self._wait_for_return()
        self._answers[slot] = _LatestAnswer(step, frames, self._call)
        for frame in frames:
            await self._write(frame)

    async def _write(self, frame: gateway_pb2.EvaluateRequest) -> None:
        try:
            await self._call.write(frame)
        except (asyncio.InvalidStateError, grpc.aio.AioRpcError) as error:
            if self._lease_seconds and not self._leaving:
                return  # who reads next finds out why, and comes back if possible
            # The service has closed the stream; what it said last is why.
            await self.receive()
            raise error


def _slot(frame: gateway_pb2.EvaluateResponse) -> int:
    return frame.episode_start.slot if frame.HasField("episode_start") else frame.ask.slot


def _step_asked_for(frame: gateway_pb2.EvaluateResponse) -> int | None:
    """The step whose action a frame asks for; None if it asks for none."""
    if frame.HasField("episode_start"):
        return frame.episode_start.step
    return frame.ask.step if frame.HasField("ask") else None


def _ends(frame: gateway_pb2.EvaluateResponse) -> bool:
    """Whether nothing comes after an error; the action beside a note that is refused is taken."""
    return frame.HasField("error") and frame.error.code != NOTES_USED_UP
