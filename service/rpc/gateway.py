"""Serves agents: admits each to its session and carries its messages to and from the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, NoReturn
from urllib.parse import unquote

import grpc

from animalcat.envs.types import ObservationSpec
from animalcat.machine.networks import parse_networks, within
from animalcat.service import calls
from animalcat.service.access.callers import present
from animalcat.service.access.gate import TOKEN_ENDED, Gate
from animalcat.service.errors import Code, ServiceError, public
from animalcat.service.host.limits import AGENT_RETRY_SECONDS
from animalcat.service.rpc.agent_link import GrpcLink, Stream, read_fingerprint
from animalcat.service.rpc.leases import Leases, Seat
from animalcat.service.session.engines import Engines
from animalcat.service.session.link import AgentLeftError
from animalcat.service.session.notes import NoteRoom
from animalcat.service.session.turns import MAX_BAD_FRAMES, Trust
from animalcat.service.texts import check_texts
from animalcat.text import names
from animalcat.v1 import gateway_pb2, gateway_pb2_grpc, sessions_pb2, types_pb2
from animalcat.values import Cause, Session
from animalcat.wire.codec import number
from animalcat.wire.protocol import refusal
from animalcat.wire.steps import spec_from_proto, spec_to_proto

ANYWHERE: Final = "0.0.0.0"
"""Stands for the address of whichever machine the worker is on."""
_LOOPBACK: Final = ("ipv4:127.", "ipv6:[::1]:", "ipv6:%5B::1%5D:")
"""Beginnings of the addresses of peers on this machine, as gRPC writes them."""
HELLO_SECONDS: Final = 30.0
"""Seconds that a stream may stay silent before its hello."""


_CAUSES: Final = {
    Cause.ACTION_TIMEOUT: (
        Code.ACTION_TIMEOUT,
        "the action came too late; connect again to go on. The episode is void and will be "
        "repeated, unless the agent has spent more than it may: then it is a failure",
    ),
    Cause.BAD_FRAMES: (
        Code.TOO_MANY_BAD_FRAMES,
        f"{MAX_BAD_FRAMES} bad frames came in a row; the episode is void and will be repeated "
        "when the agent connects again",
    ),
    Cause.DISMISSED: (Code.DISMISSED, ""),
    Cause.SERVER_STOPPED: (
        Code.SHUTTING_DOWN,
        "the server is shutting down; everything acknowledged is kept, resume the session",
    ),
    Cause.SESSION_STOPPED: (
        Code.SESSION_FAILED,
        "the session stopped because of a failure while another agent played it; everything "
        "acknowledged is kept, resume the session",
    ),
}
"""What an agent that is still connected is told when its link ends, by cause."""
_UNTOLD: Final = {
    Code.SESSION_FAILED: (
        "the session cannot go on. Its operator finds the reason in the server's log, and in the "
        "state and the attempts of the session; everything acknowledged is kept"
    ),
    Code.UNREADABLE: "",
    Code.NOT_COVERED: "",
}
"""What an agent is told of errors whose own text may name arenas, demands or files.

Empty for the text of the catalogue.
"""


async def _nothing() -> None:
    """Do nothing."""


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
        most_agents: int = 0,
        leases: Leases | None = None,
        check: Callable[[], Awaitable[None]] = _nothing,
        refused: Callable[[str, str, str, int], None] = lambda what, who, words, number: None,
    ) -> None:
        """Serve the sessions of these engines.

        Args:
            engines: The engines.
            gate: Says who may play what.
            direct: Whether agents may play with the workers that simulate, where they can reach
                them.
            folder: Where unix sockets may be for agents that came by one; empty for nowhere.
            networks: Networks whose agents may play with workers of other machines.
            most_agents: Most agents at once, with those that may come back; 0 for no limit.
            leases: Where agents are known again; None for new ones.
            check: Raises `ServiceError` where the server has no room for another agent. One that
                comes back has its place already.
            refused: Is called with what an agent was refused, who it is, why, and how often.
        """
        self._engines = engines
        self._gate = gate
        self._direct = direct
        self._folder = folder
        self._networks = parse_networks(networks)
        self._most_agents = most_agents
        self._leases = leases or Leases()
        self._check = check
        self._refused = refused

    # The stub of the generated code knows generators only; gRPC takes coroutines as well.
    async def Evaluate(  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
        self, request_iterator: Any, context: Any
    ) -> None:
        """Let an agent play the episodes of one session."""
        stream: Stream = context
        try:
            hello = await _read_hello(stream)
            session_id = await self._session_of(hello)
            calls.current.get().about = (names.session_name(session_id),)
            await self._gate.check_session(present.get(), session_id)
            if hello.lease:
                seat = await self._return(stream, session_id, hello)
            else:
                seat = await self._admit(stream, session_id, hello)
            if self._gate.audit is not None:
                words = f"agent {hello.agent}, process {hello.instance}"
                self._gate.audit.note(present.get(), "done", words)
            await _carry(stream, seat)
        except AgentLeftError as left:
            if left.cause in _CAUSES:
                await _fail(stream, ServiceError(*_CAUSES[left.cause]))
        except Exception as error:  # noqa: BLE001 - becomes a frame and a status
            await _fail(stream, _censor(public(error)))

    async def _admit(self, stream: Stream, session_id: str, hello: gateway_pb2.Hello) -> Seat:
        """Let an agent play that comes for the first time."""
        engine = await self._engines.get(session_id)
        _check_hello(hello, engine.session)
        await self._check()
        if self._most_agents and self._engines.agents >= self._most_agents:
            raise ServiceError(
                Code.BUSY,
                f"agents that play or may come back: {self._most_agents}, the most that this "
                "server allows at once",
                retry_seconds=AGENT_RETRY_SECONDS,
            )
        spec = engine.session.spec
        lease = self._leases.make(spec.lease_seconds) if hello.returns else None
        place, timeout = self._direct_place(stream), spec.action_timeout_seconds
        caller = present.get()
        tell = partial(self._refused, Code.NOTES_USED_UP, caller.words)
        room = NoteRoom(self._gate.purse(caller), tell)
        link = GrpcLink(
            stream, hello.instance, timeout, place, lease, *self._check_and_beliefs(), room
        )
        link.fingerprint = read_fingerprint(hello.fingerprint, hello.instance)
        link.whole, link.same_agent = not hello.fingerprint_follows, hello.same_agent
        link.unconfined, link.resumes = caller.runs, hello.resumes and spec.resumable
        seat = Seat(session_id, link, await engine.admit(link))
        self._leases.keep(seat)
        return seat

    async def _return(self, stream: Stream, session_id: str, hello: gateway_pb2.Hello) -> Seat:
        """Let an agent whose connection broke go on."""
        seat = self._leases.find(session_id, hello.lease, hello.instance)
        session = await self._engines.session(session_id)
        place = self._direct_place(stream)
        await seat.link.come_back(stream, session, hello.seen, place, *self._check_and_beliefs())
        return seat

    def _check_and_beliefs(self) -> tuple[Callable[[], bool], Trust]:
        """Return a check that the caller may still come, and what is believed of it."""
        caller = present.get()
        believed = Trust(caller.started, caller.runs)
        return partial(self._gate.admits, caller), believed

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
            session
            for session in await self._engines.waiting()
            if caller.plays(found := await self._engines.session(session))
            and found.spec.agent == hello.agent
        ]
        its_own = [
            session
            for session in waiting
            if (await self._engines.session(session)).spec.agent == hello.agent
        ]
        waiting = its_own or waiting  # of one that is for another agent it is told what is wrong
        if len(waiting) != 1:
            listed = ", ".join(names.session_name(s) for s in waiting[:20]) or "none"
            raise ServiceError(
                Code.INVALID_REQUEST,
                f"the hello names no session, and not exactly one waits for {hello.agent}; name "
                f"one (--session, session= in Python). Waiting: {listed}",
            )
        return waiting[0]


async def _carry(stream: Stream, seat: Seat) -> None:
    """Wait while an agent plays over a stream, and tell it the session's end."""
    try:
        await seat.link.until_ended(stream, seat.playing)
    except asyncio.CancelledError as gone:  # the engine's task ends by itself, or waits
        if TOKEN_ENDED in gone.args:
            seat.link.interrupt(Cause.TOKEN_ENDED)
        seat.link.lose(stream)
        raise
    if seat.playing.done() and seat.link.refused is not None:
        raise seat.link.refused
    if seat.playing.done():
        await stream.write(_session_end(seat.playing.result()))


def _censor(error: ServiceError) -> ServiceError:
    """Return an error without anything that tells the agent of its arenas."""
    text = _UNTOLD.get(error.code)
    return error if text is None else ServiceError(error.code, text)


async def _fail(stream: Stream, error: ServiceError) -> NoReturn:
    """End the stream with an error, sent both as a frame and as a status."""
    await stream.write(
        gateway_pb2.EvaluateResponse(
            error=types_pb2.Error(code=error.code, message=error.message, fatal=True)
        )
    )
    raise error


async def _read_hello(stream: Stream) -> gateway_pb2.Hello:
    try:
        async with asyncio.timeout(HELLO_SECONDS):
            frame = await stream.read()
    except TimeoutError:
        raise ServiceError(Code.BAD_FRAME, f"no hello came within {HELLO_SECONDS:g} s") from None
    if frame is grpc.aio.EOF or frame.WhichOneof("frame") != "hello":
        raise ServiceError(Code.BAD_FRAME, "the first frame must be a hello")
    hello = frame.hello
    check_texts(hello)
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
            f"{name} is {session.state.name.lower()}; create a new session",
        )
    if hello.agent != session.spec.agent:
        raise ServiceError(
            Code.AGENT_MISMATCH,
            f"{name} is for the agent {session.spec.agent!r}, not {hello.agent!r}; say its name "
            f"(--name {session.spec.agent}, name= in Python), or create a session for yours",
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
                f"{name} shows {_describe(shown)}; the agent needs {_describe(wanted)}",
            )


def _describe(spec: ObservationSpec) -> str:
    camera = f"camera {spec.camera.shape}" if spec.camera else "no camera"
    rays = (
        f"{2 * spec.rays.per_side + 1} rays to {spec.rays.max_degrees:g} degrees with "
        f"{spec.rays.tags} tags"
        if spec.rays
        else "no rays"
    )
    state = "the arena's true state (privileged)" if spec.privileged else "no state"
    return f"{camera}, {rays}, {state}, decision period {spec.decision_period}"


def _session_end(session: Session) -> gateway_pb2.EvaluateResponse:
    assert session.state.over
    return gateway_pb2.EvaluateResponse(
        session_end=gateway_pb2.SessionEnd(
            session=names.session_name(session.id),
            episodes=session.episodes,
            state=number(sessions_pb2.SessionState, session.state),
        )
    )
