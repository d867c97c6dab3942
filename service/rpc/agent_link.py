"""Carries the engine's messages to an agent over a gRPC stream, and over the next if one breaks.

With a lease the agent's process may come back after its connection broke. The engine notices
nothing of it: whatever it waits for goes on waiting. What the agent has not shown that it has seen
is kept here, to be sent again.
"""

from __future__ import annotations

import asyncio
import math
from asyncio import Future
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

import grpc

from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.types import EndedBy, Step
from animalcat.service.errors import Code, ServiceError
from animalcat.service.session.link import (
    AgentLeftError,
    AgentLink,
    Answer,
    EpisodeOpening,
    Offer,
    T,
)
from animalcat.service.session.notes import NoteRoom
from animalcat.service.session.turns import AnswerReader, FrameError, Trust
from animalcat.service.texts import check_texts
from animalcat.text import names
from animalcat.v1 import gateway_pb2, types_pb2
from animalcat.values import ENDS, Cause, Session, cause_of
from animalcat.wire.codec import decode, encode
from animalcat.wire.protocol import PROTOCOL, version
from animalcat.wire.steps import observation_to_proto, spec_to_proto

Stream: TypeAlias = grpc.aio.ServicerContext[
    gateway_pb2.EvaluateRequest, gateway_pb2.EvaluateResponse
]


MAX_NAME: Final = 200
"""Most characters of a fingerprint's name, version and process."""


MAX_FINGERPRINT: Final = 256 * 1024
"""Most bytes of a fingerprint: 1,000 files take half of that."""


class Lease(NamedTuple):
    """What lets the process of an agent come back.

    Attributes:
        token: Secret of that process.
        seconds: How long its place is kept after its connection broke.
    """

    token: bytes
    seconds: float


class _BrokenError(Exception):
    """The stream is no longer the link's: it broke, or the agent came back over another."""


class GrpcLink(AgentLink):
    """The link to an agent at the other end of a gRPC stream, or of several one after another."""

    def __init__(
        self,
        stream: Stream,
        process: str,
        timeout: float,
        direct_place: str = "",
        lease: Lease | None = None,
        admits: Callable[[], bool] = lambda: True,
        believed: Trust = Trust(),
        room: NoteRoom | None = None,
    ) -> None:
        """Begin with the stream over which the agent came.

        Args:
            stream: The stream.
            process: Id that is unique to the agent's process.
            timeout: Seconds that the agent may take for one action.
            direct_place: Where a worker may listen for the agent; empty for nowhere.
            lease: What lets the agent come back; None if it may not.
            admits: Whether the agent's token is still good, so that it would be let in again.
            believed: What is believed of it when it says why it leaves.
            room: How much its notes may take; None for what every agent may.
        """
        self.process = process
        self.direct_place = direct_place
        self.timeout = timeout
        self.lease = lease
        self._admits = admits
        self.room = room or NoteRoom()
        self._answers = AnswerReader(believed, self.room)
        self.refused: ServiceError | None = None
        self._told: types_pb2.AgentFingerprint | None = None
        self._loop = asyncio.get_running_loop()
        self._stream: Stream | None = stream
        self._ended: Future[None] = self._loop.create_future()
        self._coming: Stream | None = None
        self._back: Future[None] | None = None
        self._away: asyncio.TimerHandle | None = None
        self._elsewhere = False
        self._again = False
        self._broke = False
        self._unseen: list[gateway_pb2.EvaluateResponse] = []
        self._number = 0
        self._shown = False
        self._reading: asyncio.Task[Any] | None = None
        self._cause: Cause | None = None
        self._detail = ""
        self._waiting: asyncio.Task[Any] | None = None
        self._on_stream = False
        self._cancels = 0
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = self._due = math.inf

    @property
    def away(self) -> bool:
        """Whether the connection broke and the agent has not come back."""
        return self._stream is None

    async def welcome(self, session: Session) -> None:
        """Tell the agent what it may know before the first episode, and its lease."""
        await self._write(welcome(session, self.lease))
        if self._stream is None:  # and so it knows no lease
            self.interrupt(Cause.AGENT_LEFT)

    async def until_ended(self, stream: Stream, playing: Future[Any]) -> None:
        """Wait until the agent has played, or the stream is no longer its own."""
        if self.lease is None:
            await asyncio.wait((playing,))
        elif self._stream is stream:
            both = (playing, self._ended)
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)

    def lose(self, stream: Stream) -> None:
        """Hear that a stream broke; without a lease that ends the link."""
        if self._stream is not stream:
            return
        self._stream = self._reading = None
        self._broke = True
        self._ended.set_result(None)
        if self.lease is None:
            self.interrupt(Cause.AGENT_LEFT)
            return
        if not self._elsewhere:
            self._expect_return()
        if self._on_stream:
            self._wake()

    async def come_back(
        self,
        stream: Stream,
        session: Session,
        seen: int,
        direct_place: str,
        admits: Callable[[], bool] = lambda: True,
        believed: Trust = Trust(),
    ) -> None:
        """Go on over another stream: send what the agent has not seen, or the open question.

        A stream that it had before is given up, also if nobody has noticed yet that it broke.

        Args:
            stream: The new stream.
            session: The session as it stands.
            seen: Highest number of the frames that the agent has seen.
            direct_place: Where a worker may now listen for the agent.
            admits: Whether the token that it shows now is still good.
            believed: What is believed of it now.

        Raises:
            ServiceError: The link has ended, or the agent is not as far as the process was that
                got the lease.
            grpc.aio.BaseError: The new stream broke too.
        """
        first = self._unseen[0].number if self._unseen else self._number + 1
        if self._cause is not None or not first - 1 <= seen <= self._number:
            raise lease_lost()
        if self._stream is not None:
            self.lose(self._stream)
        self._coming = stream
        self._answers.drop_notes()  # it sends them again with its answer
        for frame in self._unseen:
            if frame.HasField("episode_start"):  # whoever comes back goes on over the stream
                frame.episode_start.ClearField("direct")
        await self._resend(stream, welcome(session, self.lease))
        sent = seen
        while rest := [frame for frame in self._unseen if frame.number > sent]:
            await self._resend(stream, rest[0])
            sent = rest[0].number
        if sent == seen and self._deadline < math.inf:
            await self._resend(stream, self._unseen[-1])
        if self._cause is not None:
            raise lease_lost()
        self._again = sent == seen and self._deadline == math.inf
        self._coming, self._stream, self.direct_place = None, stream, direct_place
        self._admits, self._answers.believed = admits, believed
        self._ended = self._loop.create_future()
        if self._away is not None:
            self._away.cancel()
        if self._back is not None:
            self._back.set_result(None)
            self._back = None

    async def begin(self, opening: EpisodeOpening, first: Step, offer: Offer | None) -> None:
        """Open an episode, send its first observation, and say where it may be played."""
        self._arm()
        self.room.begin()
        start = gateway_pb2.EpisodeStart(
            episode=opening.number,
            time_budget_steps=opening.time_budget_steps,
            observation=observation_to_proto(first.observation),
            agent_seed=opening.agent_seed,
            practice=opening.practice,
            step=opening.done,
            reward=opening.reward,
            direct=offer and gateway_pb2.Direct(address=offer.address, ticket=offer.ticket),
        )
        await self._tell(gateway_pb2.EvaluateResponse(episode_start=start))

    async def ask(self, question: gateway_pb2.EvaluateResponse, waited: float = 0.0) -> None:
        """Send an observation that asks for an action."""
        self._arm(waited)
        if question.ask.step:  # whoever has acted has seen the episode's beginning
            self._unseen.clear()
        await self._tell(question)

    async def answer(self, done: int) -> Answer:
        """Wait for the answer to the latest observation, and refuse bad frames meanwhile."""
        if self._deadline == math.inf:  # it may have been elsewhere, and decided nothing there
            self._be_due(self._due)
            if self._again:  # and has come back from there
                await self._write(self._unseen[-1])
        self._again = False
        while True:
            frame = await self._read()
            if frame.HasField("fingerprint") and done == 0 and not self.whole:
                await self._become_ready(frame.fingerprint)
                continue
            if frame.HasField("fingerprint") and frame.fingerprint == self._told:
                continue  # it came back and sends its whole answer again
            try:
                try:
                    actions = self._answers.read(frame, done)
                except FrameError as error:
                    await self._write(self._answers.refuse(error))
                    continue
            except AgentLeftError as left:
                waited = left.waited or self._disarm()
                raise AgentLeftError(left.cause, waited, left.detail) from left
            if actions is not None:
                self._unseen.clear()
                returned, self._broke = self._broke, False
                return Answer(actions, self._answers.take_notes(), self._disarm(), returned)

    async def while_elsewhere(self, playing: Future[Any]) -> None:
        """Wait until the agent has played elsewhere, or says something here, or is away.

        An agent that is away may never have reached the worker. So it is not waited for there: its
        lease begins, and when it comes back it goes on here.
        """
        self._disarm()  # who plays with it looks at the clock
        self._elsewhere = True
        try:
            if (stream := self._stream) is not None and not playing.done():
                await self._first_of(self._listen(stream), playing, self._ended)
        finally:
            self._elsewhere = False
            if self._stream is None:
                self._expect_return()

    async def end(
        self, number: int, done: int, reward: float, last: Step | None, exceeded: str = ""
    ) -> None:
        """Tell the agent that an episode is over."""
        self._disarm()
        if done:
            self._unseen.clear()
        end = gateway_pb2.EpisodeEnd(episode=number, step=done, reward=reward, fault=last is None)
        if last is not None:
            end.observation.CopyFrom(observation_to_proto(last.observation))
            end.truncated = last.ended_by is EndedBy.TIME_LIMIT or bool(exceeded)
        if exceeded and (cause := cause_of(exceeded)) is not None:
            end.cause = types_pb2.Cause.Value(f"CAUSE_{cause.name}")
        await self._tell(gateway_pb2.EvaluateResponse(episode_end=end))
        self._shown = False

    async def idle(self, until: Coroutine[Any, Any, T]) -> T:
        """Wait until `until` has ended, while nothing is asked of the agent; it may leave."""
        if self._stream is not None:
            self._listen(self._stream)
        return await self._wait(until)

    def interrupt(self, cause: Cause, detail: str = "") -> None:
        """End the link: the present call, or else the next, raises `AgentLeftError`."""
        if self._cause is None:
            if ENDS[cause].warns and self.away and not self._admits():
                cause = Cause.TOKEN_ENDED  # it could not have come back
            self._cause, self._detail = cause, detail
            for timer in (self._timer, self._away):
                if timer is not None:
                    timer.cancel()
            self._wake()

    @property
    def interrupted(self) -> bool:
        """Whether `interrupt` was called."""
        return self._cause is not None

    async def _become_ready(self, message: types_pb2.AgentFingerprint) -> None:
        """Take in all that the agent is, before its first action.

        Raises:
            AgentLeftError: It may not go on; `refused` says why.
        """
        self.whole, self._told = True, message
        assert self.ready is not None, "the engine met it before anything began"
        try:
            await self.ready(read_fingerprint(message, self.process))
        except ServiceError as error:
            self.refused = error
            self._disarm()
            # Of a process that a person started it is the person's mistake. Another one might show
            # something else on purpose, to see the arena once more.
            mistake = self._answers.believed.failure
            raise AgentLeftError(Cause.WITHDREW if mistake else Cause.LOOKED) from error

    def _expect_return(self) -> None:
        """Start the time within which the agent may come back."""
        if self.lease is not None and self._cause is None:
            if self._away is not None:
                self._away.cancel()
            self._away = self._loop.call_later(self.lease.seconds, self.interrupt, Cause.AGENT_LEFT)

    def _wait_for_agent(self) -> Future[None]:
        """Return a future that is done once the agent has come back."""
        if self._back is None:
            self._back = self._loop.create_future()
        return self._back

    async def _resend(self, stream: Stream, frame: gateway_pb2.EvaluateResponse) -> None:
        await stream.write(frame)
        if self._coming is not stream:  # it has come over yet another one meanwhile
            raise lease_lost()
        if frame.HasField("episode_start"):
            self._shown = True

    async def _tell(self, frame: gateway_pb2.EvaluateResponse) -> None:
        """Send a frame, now or when the agent comes back."""
        self._again = False
        if self.lease is not None:
            self._number += 1
            frame.number = self._number
            self._unseen.append(frame)
        await self._write(frame)
        if self._stream is not None and frame.HasField("episode_start"):
            self._shown = True

    async def _write(self, frame: gateway_pb2.EvaluateResponse) -> None:
        if self._cause is not None:
            raise self._leaving_error()
        stream = self._stream
        if stream is None:
            return
        try:
            await self._wait(stream.write(frame), on_stream=True)
        except _BrokenError:
            self.lose(stream)
            if self._cause is not None:
                raise self._leaving_error() from None

    async def _read(self) -> gateway_pb2.EvaluateRequest:
        while True:
            stream = self._stream
            if stream is None:
                await self._wait(self._wait_for_agent())
                continue
            try:
                if self._reading is None:
                    frame = await self._wait(stream.read(), on_stream=True)
                else:
                    # gRPC cannot take up a read that was given up, so this one goes on.
                    await self._wait(asyncio.wait((self._reading,)), on_stream=True)
                    reading, self._reading = self._reading, None
                    frame = await self._wait(reading, on_stream=True)
            except _BrokenError:
                self.lose(stream)
                continue
            if frame is not grpc.aio.EOF:
                return frame
            self.lose(stream)

    def _listen(self, stream: Stream) -> asyncio.Task[Any]:
        """Return the task that reads the next frame; an agent that leaves is heard at once."""

        def hear(reading: asyncio.Task[Any]) -> None:
            broken = reading.cancelled() or reading.exception() is not None
            if broken or reading.result() is grpc.aio.EOF:
                self.lose(stream)
                return
            frame = reading.result()
            leaves = frame.WhichOneof("frame") in ("leave", "withdraw")
            if leaves and self._deadline == math.inf and not self._elsewhere:
                self.interrupt(*self._answers.believed.why(frame.leave))

        if self._reading is None:
            self._reading = asyncio.ensure_future(stream.read())
            self._reading.add_done_callback(hear)
        return self._reading

    def _arm(self, waited: float = 0.0) -> None:
        """Start the clock of an action, less the time that the agent has had for it already."""
        self._be_due(self._loop.time() + self.timeout - waited)

    def _be_due(self, deadline: float) -> None:
        self._deadline = self._due = deadline
        if self._timer is not None and self._timer.when() > deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None and self._cause is None:
            self._timer = self._loop.call_at(deadline, self._look_at_deadline)

    def _look_at_deadline(self) -> None:
        """Interrupt if the deadline has passed, else look again later: one timer serves all."""
        self._timer = None
        if self._loop.time() >= self._deadline:
            self.interrupt(Cause.ACTION_TIMEOUT)
        elif self._deadline < math.inf:
            self._timer = self._loop.call_at(self._deadline, self._look_at_deadline)

    def _disarm(self) -> float:
        """Stop the clock of the action; returns for how many seconds an answer was waited for."""
        asked, self._deadline = self._deadline - self.timeout, math.inf
        return max(0.0, self._loop.time() - asked)

    def _leaving_error(self) -> AgentLeftError:
        """Return why the agent plays no more.

        Who was not shown the episode has not left it, but withdrawn.
        """
        waited = self._disarm()
        assert self._cause is not None
        if not self._shown and (
            self._cause in (Cause.AGENT_LEFT, Cause.AGENT_FAILED)
            or (self._cause is Cause.ACTION_TIMEOUT and self.away)
        ):
            return AgentLeftError(Cause.WITHDREW)
        return AgentLeftError(self._cause, waited, self._detail)

    def _wake(self) -> None:
        """Cancel what the engine's task waits for here."""
        if self._waiting is not None:
            self._cancels += 1
            self._waiting.cancel()

    async def _first_of(self, *futures: Future[Any]) -> None:
        await self._wait(asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED))

    async def _wait(self, call: Any, *, on_stream: bool = False) -> Any:
        """Await something; only here may `interrupt` or `lose` cancel the engine's task.

        Args:
            call: What to await.
            on_stream: Whether it is a call of the stream, which is given up when that breaks.
        """
        if self._cause is not None:
            if asyncio.iscoroutine(call):
                call.close()
            raise self._leaving_error()
        task = self._waiting = asyncio.current_task()
        assert task is not None
        self._on_stream = on_stream
        try:
            return await call
        except asyncio.CancelledError:
            cancels, self._cancels = self._cancels, 0
            for _ in range(cancels):
                task.uncancel()
            if self._cause is not None:
                raise self._leaving_error() from None
            if task.cancelling() or not (on_stream or cancels):
                raise
            # Woken, or gRPC reports in this way that the other side is gone.
            raise _BrokenError from None
        except grpc.aio.BaseError:
            raise _BrokenError from None
        finally:
            self._waiting = None
            self._on_stream = False


def read_fingerprint(message: types_pb2.AgentFingerprint, instance: str) -> AgentFingerprint:
    """Read what an agent is.

    Args:
        message: The message; empty where its client declares nothing.
        instance: Unique to its process, for agents of which nothing is known.

    Raises:
        ServiceError: It is no fingerprint, or too long.
    """
    sizes = (len(message.options), 100), (len(message.files), 1000), (len(message.environment), 200)
    texts = (message.name, message.version, message.process)
    if message.ByteSize() > MAX_FINGERPRINT:  # it is stored beside the session
        raise ServiceError(
            Code.INVALID_REQUEST,
            f"fingerprint: it has {message.ByteSize():,} bytes and may have {MAX_FINGERPRINT:,}",
        )
    if any(size > most for size, most in sizes) or max(map(len, texts)) > MAX_NAME:
        raise ServiceError(
            Code.INVALID_REQUEST,
            f"fingerprint: name, version and process have at most {MAX_NAME} characters each, and "
            "there are at most 100 options, 1,000 files and 200 environment variables",
        )
    check_texts(message)
    try:
        fingerprint = decode(AgentFingerprint, message, strict=True)
    except ValueError as error:
        raise ServiceError(Code.INVALID_REQUEST, f"fingerprint: {error}") from error
    return (
        fingerprint
        if fingerprint.known or fingerprint.process
        else replace(fingerprint, process=instance)
    )


def lease_lost() -> ServiceError:
    """Return the error for a lease by which nobody can come back; it never tells the reason."""
    return ServiceError(
        Code.LEASE_LOST,
        "this lease has nothing to return to: it has expired, the action came too late, or "
        "another process has taken over; connect without a lease to go on",
    )


def welcome(session: Session, lease: Lease | None) -> gateway_pb2.EvaluateResponse:
    """Return what an agent is told before the first episode, and again when it comes back."""
    return gateway_pb2.EvaluateResponse(
        welcome=gateway_pb2.Welcome(
            session=names.session_name(session.id),
            observation_spec=spec_to_proto(session.spec.observation_spec),
            max_episodes=session.spec.stop.max_episodes + session.spec.practice,
            episodes_done=session.episodes + session.practised,
            slots=1,
            action_timeout_seconds=session.spec.action_timeout_seconds,
            protocol=PROTOCOL,
            server_version=version(),
            lease=b"" if lease is None else lease.token,
            lease_seconds=0.0 if lease is None else lease.seconds,
            allowance=encode(session.spec.allowance),
        )
    )
