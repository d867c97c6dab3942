"""Serves agents: admits each to its session and carries its messages to and from the engine."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Coroutine
from typing import Any, Final, NoReturn, TypeAlias

import grpc

from animalcat import names
from animalcat.envs.types import ACTIONS, EndedBy, ObservationSpec, Step
from animalcat.protocol import PROTOCOL, refusal, version
from animalcat.service.errors import Code, ServiceError, public
from animalcat.service.model import Cause, Note, Session
from animalcat.service.session.engines import Engines
from animalcat.service.session.link import AgentLeftError, AgentLink, EpisodeOpening
from animalcat.v1 import gateway_pb2, gateway_pb2_grpc, sessions_pb2, types_pb2
from animalcat.wire import given, observation_to_proto, spec_from_proto, spec_to_proto

Stream: TypeAlias = grpc.aio.ServicerContext[
    gateway_pb2.EvaluateRequest, gateway_pb2.EvaluateResponse
]

MAX_ACTIONS: Final = 100
"""Most actions in the list of one message."""
MAX_TAKEN: Final = 1000
"""Most actions that one message may ask for, counting repetitions."""
MAX_NOTE_BYTES: Final = 4096
"""Most bytes of a note."""
MAX_NOTES: Final = 100
"""Most notes between two actions."""
MAX_BAD_FRAMES: Final = 3
"""Number of bad frames in a row that ends the stream."""
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
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

    def __init__(self, engines: Engines) -> None:
        self._engines = engines

    # The stub of the generated code knows generators only; gRPC takes coroutines as well.
    async def Evaluate(  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
        self, request_iterator: Any, context: Any
    ) -> None:
        """Let an agent play the episodes of one session."""
        stream: Stream = context
        try:
            hello = await _read_hello(stream)
            engine = await self._engines.get(await self._session_of(hello))
            _check_hello(hello, engine.session)
            link = GrpcLink(stream, hello.instance, engine.session.spec.action_timeout_seconds)
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

    async def _session_of(self, hello: gateway_pb2.Hello) -> str:
        if hello.session:
            return names.parse_session(hello.session)
        waiting = await self._engines.waiting()
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

    def __init__(self, stream: Stream, process: str, timeout: float) -> None:
        self.process = process
        self._stream = stream
        self._timeout = timeout
        self._notes: list[Note] = []
        self._bad_frames = 0
        self._cause: Cause | None = None
        self._waiting: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = math.inf
        self._loop = asyncio.get_running_loop()

    async def welcome(self, session: Session) -> None:
        """Tell the agent what it may know before the first episode."""
        await self._write(_welcome(session))

    async def begin(self, opening: EpisodeOpening, first: Step) -> None:
        """Open an episode and send its first observation."""
        frame = gateway_pb2.EvaluateResponse(
            episode_start=gateway_pb2.EpisodeStart(
                episode=opening.number,
                time_budget_steps=opening.time_budget_steps,
                observation=observation_to_proto(first.observation),
                agent_seed=opening.agent_seed,
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
        while True:
            frame = await self._read()
            try:
                match frame.WhichOneof("frame"):
                    case "action":
                        actions = expand(frame.action, done)
                        self._bad_frames = 0
                        self._disarm()
                        return actions
                    case "note":
                        self._note(frame.note)
                    case "withdraw" if done == 0:
                        self._disarm()
                        raise AgentLeftError(Cause.WITHDREW)
                    case _:
                        raise ServiceError(
                            Code.BAD_FRAME, "only an action or a note may be sent here"
                        )
            except ServiceError as error:
                await self._refuse(error)

    def take_notes(self) -> list[Note]:
        """Return the notes that the agent has made since the last call."""
        notes, self._notes = self._notes, []
        return notes

    async def end(self, number: int, done: int, reward: float, last: Step | None) -> None:
        """Tell the agent that an episode is over."""
        end = gateway_pb2.EpisodeEnd(episode=number, step=done, reward=reward, fault=last is None)
        if last is not None:
            end.observation.CopyFrom(observation_to_proto(last.observation))
            end.truncated = last.ended_by is EndedBy.TIME_LIMIT
        await self._write(gateway_pb2.EvaluateResponse(episode_end=end))

    async def idle(self, until: Coroutine[Any, Any, object]) -> None:
        """Wait until `until` has ended, while nothing is asked of the agent."""
        await self._wait(until)

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

    def _note(self, note: types_pb2.Note) -> None:
        if len(note.text.encode()) > MAX_NOTE_BYTES:
            raise ServiceError(
                Code.NOTE_TOO_LONG, f"the note has more than {MAX_NOTE_BYTES} bytes; shorten it"
            )
        if len(self._notes) >= MAX_NOTES:
            raise ServiceError(Code.NOTE_TOO_LONG, f"more than {MAX_NOTES} notes at one step")
        self._notes.append(note_from_proto(note))

    async def _refuse(self, error: ServiceError) -> None:
        self._bad_frames += 1
        if self._bad_frames >= MAX_BAD_FRAMES:
            raise AgentLeftError(Cause.BAD_FRAMES) from error
        await self._write(
            gateway_pb2.EvaluateResponse(
                error=types_pb2.Error(code=error.code, message=error.message)
            )
        )

    async def _ask(self, frame: gateway_pb2.EvaluateResponse) -> None:
        self._deadline = self._loop.time() + self._timeout
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._look_at_deadline)
        await self._write(frame)

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
        frame = await self._wait(self._stream.read())
        if frame is grpc.aio.EOF:
            self._disarm()
            raise AgentLeftError(Cause.AGENT_LEFT)
        return frame

    async def _write(self, frame: gateway_pb2.EvaluateResponse) -> None:
        await self._wait(self._stream.write(frame))

    async def _wait(self, call: Any) -> Any:
        """Await a call of the stream; only here may `interrupt` cancel the engine's task."""
        if self._cause is not None:
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


def expand(action: gateway_pb2.Action, done: int) -> bytes:
    """Return the actions that a message asks for, with repetitions written out.

    Args:
        action: The message.
        done: Number of decisions taken so far, which the message must name.

    Returns:
        The actions, one per byte.

    Raises:
        ServiceError: The message answers another observation, or is out of range.
    """
    actions, repeat = action.list.actions, action.list.repeat or 1
    if action.slot != 0:
        raise ServiceError(
            Code.ACTION_OUT_OF_RANGE, f"slot {action.slot} does not exist; give slot 0"
        )
    if action.WhichOneof("kind") is None:
        raise ServiceError(
            Code.ACTION_OUT_OF_RANGE,
            "the action is of a kind that sessions do not take; give a list",
        )
    if action.step != done:
        raise ServiceError(
            Code.ACTION_STALE, f"the action answers step {action.step}; answer step {done}"
        )
    if not 1 <= len(actions) <= MAX_ACTIONS or len(actions) * repeat > MAX_TAKEN:
        raise ServiceError(
            Code.ACTION_OUT_OF_RANGE,
            f"{len(actions)} actions, {repeat} times; give 1 to {MAX_ACTIONS} of them, "
            f"repeated to at most {MAX_TAKEN}",
        )
    if max(actions) >= ACTIONS:
        raise ServiceError(
            Code.ACTION_OUT_OF_RANGE,
            f"action {max(actions)} is not in 0..{ACTIONS - 1}; an action is 3 x move + turn",
        )
    return actions * repeat


def note_from_proto(message: types_pb2.Note) -> Note:
    """Convert a message to a note.

    Raises:
        ServiceError: Its cost is not an amount of a currency.
    """
    told = given(message, "tokens_in", "tokens_out", "cost")
    cost, currency = told.get("cost"), message.currency
    if cost is None and currency:
        raise ServiceError(Code.INVALID_REQUEST, "the note has a currency but no cost; give both")
    if cost is not None and not (0.0 <= cost < math.inf and _CURRENCY.fullmatch(currency)):
        raise ServiceError(
            Code.INVALID_REQUEST,
            f"the note's cost is {cost:g} {currency[:20]!r}; give a number of 0 or more and a "
            "currency of three capital letters, such as EUR",
        )
    return Note(text=message.text, currency=currency, **told)


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
