"""Serves agents: admits each to its session and carries its messages to and from the engine."""

from __future__ import annotations

import asyncio
import math
from asyncio import Future
from collections.abc import Coroutine
from typing import Any, Final, NoReturn, TypeAlias
from urllib.parse import unquote

import grpc

from animalcat import names
from animalcat.envs.types import EndedBy, ObservationSpec, Step
from animalcat.networks import parse_networks, within
from animalcat.protocol import PROTOCOL, refusal, version
from animalcat.service.access.callers import present
from animalcat.service.access.gate import Gate
from animalcat.service.errors import Code, ServiceError, public
from animalcat.service.model import Cause, Note, Session
from animalcat.service.session.engines import Engines
from animalcat.service.session.link import AgentLeftError, AgentLink, EpisodeOpening, Offer, T
from animalcat.service.session.turns import MAX_BAD_FRAMES, FrameError, Turns
from animalcat.v1 import gateway_pb2, gateway_pb2_grpc, sessions_pb2, types_pb2
from animalcat.wire import observation_to_proto, spec_from_proto, spec_to_proto

Stream: TypeAlias = grpc.aio.ServicerContext[
    gateway_pb2.EvaluateRequest, gateway_pb2.EvaluateResponse
]

ANYWHERE: Final = "0.0.0.0"
"""Stands for the address of whichever machine the worker is on."""
_LOOPBACK: Final = ("ipv4:127.", "ipv6:[::1]:", "ipv6:%5B::1%5D:")
"""Beginnings of the addresses of peers on this machine, as gRPC writes them."""
HELLO_SECONDS: Final = 30.0
"""Seconds that a stream may stay silent before its hello."""


_CAUSES: Final = {
    Cause.ACTION_TIMEOUT: ServiceError(
        Code.ACTION_TIMEOUT,
        "the action came too late; the episode is void and will be repeated when the agent "
        "connects again",
    ),
    Cause.BAD_FRAMES: ServiceError(
        Code.TOO_MANY_BAD_FRAMES,
        f"{MAX_BAD_FRAMES} bad frames came in a row; the episode is void and will be repeated "
        "when the agent connects again",
    ),
    Cause.SERVER_STOPPED: ServiceError(
        Code.SHUTTING_DOWN,
        "the server is shutting down; nothing that was acknowledged is lost, resume the session",
    ),
    Cause.SESSION_STOPPED: ServiceError(
        Code.SESSION_FAILED,
        "the session stopped because of a failure while another agent played it; nothing that was "
        "acknowledged is lost, resume the session",
    ),
}
"""What an agent that is still connected is told when its link ends, by cause."""


class Gateway(gateway_pb2_grpc.AgentGatewayServicer):
    """Servicer to which agents connect."""

    def __init__(
        self,
        engines: Engines,
        gate: Gate,
        *,
        direct: bool = True,
        folder: str = "",
        networks: str = "",
    ) -> None:
        """Serve the sessions of these engines.

        Args:
            engines: The engines.
            gate: Says who may play what.
            direct: Whether agents may play with the workers that simulate, where they can reach
                them.
            folder: Where unix sockets may be for agents that came by one; empty for nowhere.
            networks: Networks whose agents may play with workers of other machines.
        """
        self._engines = engines
        self._gate = gate
        self._direct = direct
        self._folder = folder
        self._networks = parse_networks(networks)

    # The stub of the generated code knows generators only; gRPC takes coroutines as well.
    async def Evaluate(  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
        self, request_iterator: Any, context: Any
    ) -> None:
        """Let an agent play the episodes of one session."""
        stream: Stream = context
        try:
            hello = await _read_hello(stream)
            session_id = await self._session_of(hello)
            await self._gate.check_session(present.get(), session_id)
            engine = await self._engines.get(session_id)
            _check_hello(hello, engine.session)
            timeout = engine.session.spec.action_timeout_seconds
            link = GrpcLink(stream, hello.instance, timeout, self._direct_place(stream))
            playing = await engine.admit(link)
            try:
                session = await asyncio.shield(playing)
            except asyncio.CancelledError:  # the agent has gone; the engine's task ends by itself
                link.interrupt(Cause.AGENT_LEFT)
                raise
            await stream.write(_session_end(session))
        except AgentLeftError as left:
            if left.cause in _CAUSES:
                await _fail(stream, _CAUSES[left.cause])
        except Exception as error:  # noqa: BLE001 - becomes a frame and a status
            await _fail(stream, error)

    def _direct_place(self, stream: Stream) -> str:
        """Return where a worker may listen for the agent; empty if it may not.

        Workers listen at the loopback address or at unix sockets alone, so only agents of this
        machine reach them; but those of a cluster, in networks that the settings trust.
        """
        if self._direct and stream.peer().startswith(_LOOPBACK):
            return "127.0.0.1"
        if self._direct and self._folder and stream.peer().startswith("unix:"):
            return f"unix:{self._folder}"
        family, _, caller = stream.peer().partition(":")
        if self._direct and family in ("ipv4", "ipv6"):
            host = unquote(caller).rpartition(":")[0]
            if within(host, self._networks):
                return ANYWHERE
        return ""

    async def _session_of(self, hello: gateway_pb2.Hello) -> str:
        if hello.session:
            return names.parse_session(hello.session)
        caller = present.get()
        waiting = [
            one
            for one in await self._engines.waiting()
            if caller.plays(await self._engines.session(one))
        ]
        if len(waiting) != 1:
            listed = ", ".join(names.session_name(s) for s in waiting[:20]) or "none"
            raise ServiceError(
                Code.INVALID_REQUEST,
                "the hello names no session, and not exactly one waits for an agent; name one. "
                f"Waiting: {listed}",
            )
        return waiting[0]


class GrpcLink(AgentLink):
    """The link to an agent at the other end of a gRPC stream."""

    def __init__(
        self, stream: Stream, process: str, timeout: float, direct_place: str = ""
    ) -> None:
        self.process = process
        self.direct_place = direct_place
        self.timeout = timeout
        self._stream = stream
        self._turns = Turns()
        self._reading: asyncio.Task[Any] | None = None
        self._cause: Cause | None = None
        self._waiting: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = math.inf
        self._loop = asyncio.get_running_loop()

    async def welcome(self, session: Session) -> None:
        """Tell the agent what it may know before the first episode."""
        await self._write(_welcome(session))

    async def begin(self, opening: EpisodeOpening, first: Step, offer: Offer | None) -> None:
        """Open an episode, send its first observation, and say where it may be played."""
        frame = gateway_pb2.EvaluateResponse(
            episode_start=gateway_pb2.EpisodeStart(
                episode=opening.number,
                time_budget_steps=opening.time_budget_steps,
                observation=observation_to_proto(first.observation),
                agent_seed=opening.agent_seed,
                direct=offer and gateway_pb2.Direct(address=offer.address, ticket=offer.ticket),
            )
        )
        try:
            await self._ask(frame)
        except AgentLeftError as left:
            if left.cause is Cause.AGENT_LEFT:  # and so has not seen the observation
                raise AgentLeftError(Cause.WITHDREW) from None
            raise

    async def ask(self, done: int, reward: float, step: Step) -> None:
        """Send an observation that asks for an action."""
        await self._ask(
            gateway_pb2.EvaluateResponse(
                ask=gateway_pb2.Ask(
                    step=done, reward=reward, observation=observation_to_proto(step.observation)
                )
            )
        )

    async def actions(self, done: int) -> bytes:
        """Wait for the answer to the latest observation, and refuse bad frames meanwhile."""
        if self._deadline == math.inf:  # the agent has played elsewhere, and goes on here
            self._arm()
        while True:
            frame = await self._read()
            try:
                actions = self._turns.read(frame, done)
            except FrameError as error:
                await self._write(self._turns.refuse(error))
                continue
            except AgentLeftError:
                self._disarm()
                raise
            if actions is not None:
                self._disarm()
                return actions

    async def while_elsewhere(self, playing: Future[Any]) -> None:
        """Wait until the agent has played elsewhere, or says something here."""
        self._disarm()  # who plays with it looks at the clock
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._stream.read())
            self._reading.add_done_callback(lambda task: task.cancelled() or task.exception())
        await self._wait(
            asyncio.wait((self._reading, playing), return_when=asyncio.FIRST_COMPLETED)
        )

    def take_notes(self) -> list[Note]:
        """Return the notes that the agent has made since the last call."""
        return self._turns.take_notes()

    async def end(self, number: int, done: int, reward: float, last: Step | None) -> None:
        """Tell the agent that an episode is over."""
        end = gateway_pb2.EpisodeEnd(episode=number, step=done, reward=reward, fault=last is None)
        if last is not None:
            end.observation.CopyFrom(observation_to_proto(last.observation))
            end.truncated = last.ended_by is EndedBy.TIME_LIMIT
        await self._write(gateway_pb2.EvaluateResponse(episode_end=end))

    async def idle(self, until: Coroutine[Any, Any, T]) -> T:
        """Wait until `until` has ended, while nothing is asked of the agent; returns its result."""
        return await self._wait(until)

    def interrupt(self, cause: Cause) -> None:
        """End the link: the present call, or else the next, raises `AgentLeftError`."""
        if self._cause is None:
            self._cause = cause
            if self._timer is not None:
                self._timer.cancel()
            if self._waiting is not None:
                self._waiting.cancel()

    @property
    def interrupted(self) -> bool:
        """Whether `interrupt` was called."""
        return self._cause is not None

    async def _ask(self, frame: gateway_pb2.EvaluateResponse) -> None:
        self._arm()
        await self._write(frame)

    def _arm(self) -> None:
        """Give the agent its time for an action from now on."""
        self._deadline = self._loop.time() + self.timeout
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._look_at_deadline)

    def _look_at_deadline(self) -> None:
        """Interrupt if the deadline has passed, else look again later: one timer serves all."""
        self._timer = None
        if self._loop.time() >= self._deadline:
            self.interrupt(Cause.ACTION_TIMEOUT)
        elif self._deadline < math.inf:
            self._timer = self._loop.call_at(self._deadline, self._look_at_deadline)

    def _disarm(self) -> None:
        self._deadline = math.inf

    async def _read(self) -> gateway_pb2.EvaluateRequest:
        if self._reading is None:
            frame = await self._wait(self._stream.read())
        else:
            # gRPC cannot take up a read that was given up, so this one goes on until it is done.
            await self._wait(asyncio.wait((self._reading,)))
            reading, self._reading = self._reading, None
            frame = await self._wait(reading)
        if frame is grpc.aio.EOF:
            self._disarm()
            raise AgentLeftError(Cause.AGENT_LEFT)
        return frame

    async def _write(self, frame: gateway_pb2.EvaluateResponse) -> None:
        await self._wait(self._stream.write(frame))

    async def _wait(self, call: Any) -> Any:
        """Await a call of the stream; only here may `interrupt` cancel the engine's task."""
        if self._cause is not None:
            if asyncio.iscoroutine(call):
                call.close()
            raise AgentLeftError(self._cause)
        task = self._waiting = asyncio.current_task()
        assert task is not None
        try:
            return await call
        except asyncio.CancelledError:
            self._disarm()
            if self._cause is not None:
                task.uncancel()
                raise AgentLeftError(self._cause) from None
            if task.cancelling():
                raise
            # gRPC reports in this way that the other side is gone.
            raise AgentLeftError(Cause.AGENT_LEFT) from None
        except grpc.aio.BaseError:
            self._disarm()
            raise AgentLeftError(Cause.AGENT_LEFT) from None
        finally:
            self._waiting = None


async def _fail(stream: Stream, error: Exception) -> NoReturn:
    """End the stream with an error, sent both as a frame and as a status."""
    shown = public(error)
    await stream.write(
        gateway_pb2.EvaluateResponse(
            error=types_pb2.Error(code=shown.code, message=shown.message, fatal=True)
        )
    )
    raise shown from error


async def _read_hello(stream: Stream) -> gateway_pb2.Hello:
    try:
        async with asyncio.timeout(HELLO_SECONDS):
            frame = await stream.read()
    except TimeoutError:
        raise ServiceError(Code.BAD_FRAME, f"no hello came within {HELLO_SECONDS:g} s") from None
    if frame is grpc.aio.EOF or frame.WhichOneof("frame") != "hello":
        raise ServiceError(Code.BAD_FRAME, "the first frame must be a hello")
    hello = frame.hello
    if wrong := refusal(hello.protocol, hello.client_version):
        raise ServiceError(Code.CLIENT_REFUSED, wrong)
    if not 1 <= len(hello.agent) <= 200 or not 1 <= len(hello.instance) <= 200:
        raise ServiceError(
            Code.INVALID_REQUEST, "hello.agent and hello.instance need 1 to 200 characters each"
        )
    return hello


def _check_hello(hello: gateway_pb2.Hello, session: Session) -> None:
    name = names.session_name(session.id)
    if session.state.over:
        raise ServiceError(
            Code.SESSION_OVER,
            f"{name} is {session.state.name.lower()} ({session.reason}); create a new session",
        )
    if hello.agent != session.spec.agent:
        raise ServiceError(
            Code.AGENT_MISMATCH,
            f"{name} is for the agent {session.spec.agent!r}, not {hello.agent!r}",
        )
    if hello.HasField("observation_spec"):
        try:
            wanted = spec_from_proto(hello.observation_spec)
        except ValueError as error:
            raise ServiceError(Code.INVALID_REQUEST, f"observation_spec: {error}") from error
        shown = spec_from_proto(spec_to_proto(session.spec.observation_spec))
        if wanted != shown:
            raise ServiceError(
                Code.OBSERVATION_MISMATCH,
                f"{name} shows {_described(shown)}; the agent needs {_described(wanted)}",
            )


def _described(spec: ObservationSpec) -> str:
    camera = f"camera {spec.camera.shape}" if spec.camera else "no camera"
    rays = (
        f"{2 * spec.rays.per_side + 1} rays to {spec.rays.max_degrees:g} degrees with "
        f"{spec.rays.tags} tags"
        if spec.rays
        else "no rays"
    )
    state = "the arena's true state (privileged)" if spec.privileged else "no state"
    return f"{camera}, {rays}, {state}, decision period {spec.decision_period}"


def _welcome(session: Session) -> gateway_pb2.EvaluateResponse:
    return gateway_pb2.EvaluateResponse(
        welcome=gateway_pb2.Welcome(
            session=names.session_name(session.id),
            observation_spec=spec_to_proto(session.spec.observation_spec),
            max_episodes=session.spec.stop.max_episodes,
            episodes_done=session.episodes,
            slots=1,
            action_timeout_seconds=session.spec.action_timeout_seconds,
            protocol=PROTOCOL,
            server_version=version(),
        )
    )


def _session_end(session: Session) -> gateway_pb2.EvaluateResponse:
    assert session.state.over
    return gateway_pb2.EvaluateResponse(
        session_end=gateway_pb2.SessionEnd(
            session=names.session_name(session.id),
            episodes=session.episodes,
            state=sessions_pb2.SessionState.ValueType(session.state),
        )
    )
