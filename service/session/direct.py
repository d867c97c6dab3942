"""Lets an agent play an episode with the worker that simulates it, without the server between.

The server has loaded the arena and begun the recording. It asks the worker to PLAY on certain
`Terms`, and tells the agent the worker's address and a ticket. When the agent comes, the worker
answers its actions and writes the recording. At the end it reports what was `Played` to the server,
which alone judges, stores, and tells the agent what became of the episode. `python -m
animalcat.service.session.direct` is such a worker. Its frames are documented in `gateway.proto`.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import select
import socket
import struct
import time
from array import array
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import astuple
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from animalcat.envs.agents.base import UNLIMITED, Allowance
from animalcat.envs.messages import MessageKind, pack_steps, unpack_steps
from animalcat.envs.pulse import Pulse
from animalcat.envs.types import Environment, ObservationSpec, Phase, Step
from animalcat.envs.worker import receive, run, send
from animalcat.service.recording.writer import EpisodeRecorder, Unfinished
from animalcat.service.session.link import AgentLeftError
from animalcat.service.session.notes import Allotted, NoteRoom
from animalcat.service.session.spending import Meter
from animalcat.service.session.turns import FrameError, Turns
from animalcat.v1 import gateway_pb2
from animalcat.values import Cause, Spent
from animalcat.wire import observation_to_proto

MAX_FRAME: Final = 64 * 1024
"""Most bytes of a frame of the agent."""
MAX_CALLERS: Final = 16
"""Most connections that may stand at the door without having shown the ticket."""
TICKET_SECONDS: Final = 5.0
"""Seconds within which a connection must show the ticket."""
UNIX: Final = "unix:"
"""Beginning of the address of a unix socket."""
GONE: Final = "gone"
"""In `Played.left`: the connection broke, which by itself ends nothing."""

_LENGTH: Final = struct.Struct(">I")
_NUMBERS: Final = struct.Struct("<II")


class Terms(NamedTuple):
    """What the worker is told when an agent may come.

    Attributes:
        ticket: Secret that the agent has to show, in hexadecimal digits.
        timeout: Seconds that the agent may take for one action.
        recording: Where the recording stands.
        place: Address of the network to listen at, or `unix:` and a folder.
        allowance: What the agent may spend.
        notes: What is left for its notes.
    """

    ticket: str
    timeout: float
    recording: Unfinished
    place: str
    allowance: Allowance = UNLIMITED
    notes: Allotted = Allotted()

    def to_json(self) -> bytes:
        """Return the terms as the worker reads them."""
        return json.dumps([*self[:4], astuple(self.allowance), self.notes]).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Terms:
        """Return the terms that `to_json` wrote."""
        ticket, timeout, recording, place, allowance, notes = json.loads(data)
        may = Allowance(*allowance), Allotted(*notes)
        return cls(ticket, timeout, Unfinished(*recording), place, *may)


class Played(NamedTuple):
    """What was played without the server.

    Attributes:
        left: Why the agent plays no more, a value of `Cause` or `GONE`; empty if it was taken off
            or the episode is over.
        fault: What the backend failed with; empty if it did not.
        disk: Number, text and file of the error that the recording met; empty if it met none.
        reward: Reward since the observation that the agent was shown last.
        waited: Seconds that the agent has had to answer that observation.
        recording: Where the recording stands.
        spent: What the agent has spent, but for the answer that is waited for.
        exceeded: Which allowance its last answer exceeded, which was then not carried out; empty
            for none.
        noted: Bytes of the notes that it made with its answers.
        refused: Number of notes that were refused for want of room.
        trace: The reward of every decision.
        last: The latest step.
    """

    left: str
    fault: str
    disk: tuple[int, str, str] | tuple[()]
    reward: float
    waited: float
    recording: Unfinished
    spent: Spent
    exceeded: str
    noted: int
    refused: int
    trace: array[float]
    last: Step

    def pack(self) -> bytes:
        """Return it as bytes."""
        told = json.dumps([*self[:6], astuple(self.spent), *self[7:10]]).encode()
        trace = self.trace.tobytes()
        return _NUMBERS.pack(len(told), len(trace)) + told + trace + pack_steps([self.last])

    @classmethod
    def unpack(cls, data: bytes, spec: ObservationSpec) -> Played:
        """Return what `pack` packed.

        Raises:
            ValueError: It is damaged.
        """
        size, length = _NUMBERS.unpack_from(data)
        middle = _NUMBERS.size + size
        told = json.loads(data[_NUMBERS.size : middle])
        left, fault, disk, reward, waited, recording, sums, exceeded, noted, refused = told
        trace = array("d")
        trace.frombytes(data[middle : middle + length])
        (last,) = unpack_steps(data[middle + length :], spec)
        where, spent = Unfinished(*recording), Spent(*sums)
        stood = (reward, waited, where, spent, exceeded, noted, refused)
        return cls(left, fault, tuple(disk), *stood, trace, last)


class Direct:
    """Plays episodes with agents that come by themselves; it is a `worker.PlayDirectly`."""

    def __init__(self, pulse: Pulse) -> None:
        """Take what shows the server that the worker works."""
        self._pulse = pulse

    def __call__(
        self, connection: socket.socket, environment: Environment, last: Step, terms: bytes
    ) -> bytes:
        """Wait for the agent and play with it; see the protocol."""
        table = _Table(environment, last, Terms.from_json(terms), self._pulse)
        try:
            return table.serve(connection).pack()
        finally:
            self._pulse.rest()


class _OverspentError(Exception):
    """The agent has spent more than its allowance."""


class _RecalledError(Exception):
    """The server takes the agent off, or is gone."""


class _Table:
    """One episode, or the rest of one, with the agent that shows the ticket."""

    def __init__(self, environment: Environment, last: Step, terms: Terms, pulse: Pulse) -> None:
        self._environment = environment
        self._last = last
        self._terms = terms
        self._pulse = pulse
        self._reward = 0.0
        self._done = 0
        self._asked = time.monotonic()
        self._trace = array("d")
        self._turns = Turns(room=NoteRoom.allotted(terms.notes))
        self._meter = Meter(terms.allowance)

    def serve(self, connection: socket.socket) -> Played:
        """Play, and say how far it went."""
        recorder: EpisodeRecorder | None = None
        left, fault, exceeded = "", "", ""
        disk: tuple[int, str, str] | tuple[()] = ()
        try:
            deadline = self._deadline()  # for the agent to come and to answer
            with self._admit(connection, deadline) as agent:
                recorder = EpisodeRecorder.resume(self._terms.recording)
                self._play(agent, recorder, deadline)
        except _RecalledError:
            pass
        except _GoneError:
            left = GONE
        except _OverspentError as error:
            exceeded = str(error)
        except AgentLeftError as error:
            left = error.cause.value
        except OSError as error:  # of the recording: those of sockets were seen to
            disk = (error.errno or 0, error.strerror or str(error), str(error.filename or ""))
        except Exception as error:  # noqa: BLE001  whatever a backend raises is its fault
            fault = f"{type(error).__name__}: {error}"
        recording = self._terms.recording
        if recorder is not None:
            recording = recorder.hand_over()
        waited, spent = time.monotonic() - self._asked, self._meter.spent
        room = self._turns.room
        stood = (self._reward, waited, recording, spent, exceeded, room.written, room.refused)
        return Played(left, fault, disk, *stood, self._trace, self._last)

    def _admit(self, connection: socket.socket, deadline: float) -> _Agent:
        """Tell the server where the agent may come, and wait for it."""
        with ExitStack() as stack:
            try:
                listener, address = stack.enter_context(_listening(self._terms.place))
            except OSError:
                send(connection, MessageKind.OFFERED, b"")  # so the server plays this one itself
                raise _RecalledError from None
            send(connection, MessageKind.OFFERED, address.encode())
            door = _Door(listener, connection, bytes.fromhex(self._terms.ticket))
            return door.admit(deadline)

    def _play(self, agent: _Agent, recorder: EpisodeRecorder, deadline: float) -> None:
        agent.send(self._ask(), deadline)
        while True:
            try:
                frame = agent.read(deadline)
                actions = self._turns.read(frame, self._done)
            except FrameError as error:
                agent.send(self._turns.refuse(error), deadline)
                continue
            if actions is None:
                continue
            self._pulse.beat()
            until = self._take(actions, agent, recorder)
            if until is None:
                return
            deadline = until

    def _take(self, actions: bytes, agent: _Agent, recorder: EpisodeRecorder) -> float | None:
        """Take decisions and ask for the next one.

        Returns:
            Until when it may come; None if the episode is over.

        Raises:
            _OverspentError: The agent has spent more than it may; nothing was done.
        """
        notes = self._turns.take_notes()
        exceeded = self._meter.take(time.monotonic() - self._asked, notes)
        self._reward = 0.0
        if exceeded:
            raise _OverspentError(exceeded)
        final = len(actions) - 1
        for k, action in enumerate(actions):
            step = self._environment.step(action)
            self._trace.append(step.reward)
            self._reward += step.reward
            self._done += 1
            self._last = step
            over = step.phase is Phase.LAST
            if k == final and not over:
                deadline = self._deadline()
                self._pulse.rest()  # an agent that does not read is not the worker's fault
                try:
                    agent.send(self._ask(), deadline)
                finally:
                    recorder.step(step, action, notes)
                return deadline
            recorder.step(step, action, notes)
            notes = []
            if over:
                return None
        raise AssertionError("actions is not empty")

    def _ask(self) -> gateway_pb2.EvaluateResponse:
        seen = observation_to_proto(self._last.observation)
        ask = gateway_pb2.Ask(step=self._done, reward=self._reward, observation=seen)
        return gateway_pb2.EvaluateResponse(ask=ask)

    def _deadline(self) -> float:
        self._asked = time.monotonic()
        return self._asked + self._terms.timeout


class _GoneError(Exception):
    """The agent's connection broke."""


class _Agent:
    """The connection of the agent that was admitted."""

    def __init__(self, connection: socket.socket, server: socket.socket, early: bytes) -> None:
        self._connection = connection
        self._server = server
        self._buffer = bytearray(early)
        connection.setblocking(False)
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._poll = select.poll()
        self._poll.register(server, select.POLLIN)
        self._recall = select.poll()
        self._recall.register(server, select.POLLIN)

    def __enter__(self) -> _Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def read(self, deadline: float) -> gateway_pb2.EvaluateRequest:
        """Wait for the next frame.

        Raises:
            FrameError: It is no frame.
            AgentLeftError: None came in time, or it is too long.
            _GoneError: The connection broke.
            _RecalledError: The server takes the agent off.
        """
        while True:
            if self._recall.poll(0):  # also while the agent never lets the worker wait
                raise_recalled(self._server)
            frame = cut_frame(self._buffer)
            if frame is not None:
                return parsed(frame)
            try:
                data = self._connection.recv(MAX_FRAME)
            except BlockingIOError:
                self._wait(select.POLLIN, deadline)
                continue
            except OSError:
                raise _GoneError from None
            if not data:
                raise _GoneError
            self._buffer += data

    def send(self, frame: gateway_pb2.EvaluateResponse, deadline: float) -> None:
        """Send a frame.

        Raises:
            AgentLeftError: The agent did not take it in time.
            _GoneError: The connection broke.
            _RecalledError: The server takes the agent off.
        """
        data = framed(frame)
        while data:
            try:
                sent = self._connection.send(data)
            except BlockingIOError:
                self._wait(select.POLLOUT, deadline)
                continue
            except OSError:
                raise _GoneError from None
            data = data[sent:] if sent < len(data) else b""

    def _wait(self, event: int, deadline: float) -> None:
        self._poll.register(self._connection, event)
        ready = self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not ready:
            raise AgentLeftError(Cause.ACTION_TIMEOUT)
        if any(fd == self._server.fileno() for fd, _ in ready):
            raise_recalled(self._server)


class _Door:
    """Where connections come in, until one shows the ticket."""

    def __init__(self, listener: socket.socket, server: socket.socket, ticket: bytes) -> None:
        self._listener = listener
        self._server = server
        self._ticket = ticket
        self._callers: dict[int, tuple[socket.socket, bytearray, float]] = {}

    def admit(self, deadline: float) -> _Agent:
        """Wait for the agent.

        Raises:
            AgentLeftError: It did not come in time.
            _RecalledError: The server takes the agent off.
        """
        poll = select.poll()
        poll.register(self._server, select.POLLIN)
        poll.register(self._listener, select.POLLIN)
        try:
            while (now := time.monotonic()) < deadline:
                ends = [deadline, *(until for _, _, until in self._callers.values())]
                for fd, _ in poll.poll(max(0.0, min(ends) - now) * 1000 + 1):
                    if fd == self._server.fileno():
                        raise_recalled(self._server)
                    elif fd == self._listener.fileno():
                        self._open(poll)
                    elif (agent := self._hear(fd, poll)) is not None:
                        return agent
                for fd, (_, _, until) in list(self._callers.items()):
                    if until <= time.monotonic():
                        self._turn_away(fd, poll)
            raise AgentLeftError(Cause.ACTION_TIMEOUT)
        finally:
            for connection, _, _ in self._callers.values():
                connection.close()

    def _open(self, poll: select.poll) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # it has gone again
            return
        if len(self._callers) >= MAX_CALLERS:
            connection.close()
            return
        connection.setblocking(False)
        until = time.monotonic() + TICKET_SECONDS
        self._callers[connection.fileno()] = (connection, bytearray(), until)
        poll.register(connection, select.POLLIN)

    def _hear(self, fd: int, poll: select.poll) -> _Agent | None:
        """Read what a caller says; it is the agent if it shows the ticket."""
        connection, buffer, _ = self._callers[fd]
        try:
            data = connection.recv(MAX_FRAME)
            buffer += data
            frame = cut_frame(buffer)
            shown = None if frame is None else parsed(frame).ticket.ticket
        except BlockingIOError:
            return None
        except (OSError, FrameError, AgentLeftError):
            data, shown = b"", None
        if shown is not None and hmac.compare_digest(shown, self._ticket):
            del self._callers[fd]
            return _Agent(connection, self._server, bytes(buffer))
        if not data or shown is not None:
            self._turn_away(fd, poll)
        return None

    def _turn_away(self, fd: int, poll: select.poll) -> None:
        poll.unregister(fd)
        self._callers.pop(fd)[0].close()


def framed(frame: gateway_pb2.EvaluateResponse | gateway_pb2.EvaluateRequest) -> bytes:
    """Return a frame as it travels: its length in four bytes, then the frame."""
    data = frame.SerializeToString()
    return _LENGTH.pack(len(data)) + data


def cut_frame(buffer: bytearray) -> bytes | None:
    """Take the first frame out of a buffer; None if it is not complete.

    Raises:
        AgentLeftError: It is too long.
    """
    if len(buffer) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(buffer)
    if length > MAX_FRAME:
        raise AgentLeftError(Cause.BAD_FRAMES)
    end = _LENGTH.size + length
    if len(buffer) < end:
        return None
    frame = bytes(buffer[_LENGTH.size : end])
    del buffer[:end]
    return frame


def parsed(data: bytes) -> gateway_pb2.EvaluateRequest:
    """Return the frame of an agent.

    Raises:
        FrameError: It is none.
    """
    try:
        return gateway_pb2.EvaluateRequest.FromString(data)
    except DecodeError:
        raise FrameError("BAD_FRAME", "the frame is no EvaluateRequest") from None


def raise_recalled(server: socket.socket) -> None:
    """Take RECALL from the server's connection, whatever else has come, and end the play."""
    receive(server)  # nothing else may come now; None: the server is gone
    raise _RecalledError


@contextmanager
def _listening(place: str) -> Generator[tuple[socket.socket, str]]:
    """Listen at an address of the network, or in a folder; yields the socket and where it is.

    Raises:
        OSError: One cannot listen there.
    """
    if place.startswith(UNIX):
        path = f"{place.removeprefix(UNIX)}/{secrets.token_hex(8)}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(path)
            try:
                os.chmod(path, 0o666)  # also agents that run as another user; the ticket counts
                listener.listen(MAX_CALLERS)
                listener.setblocking(False)
                yield listener, f"{UNIX}{path}"
            finally:
                os.unlink(path)
        return
    family = socket.AF_INET6 if ":" in place else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind((place, 0))
        listener.listen(MAX_CALLERS)
        listener.setblocking(False)
        host, port = listener.getsockname()[:2]
        yield listener, f"{host}:{port}"


if __name__ == "__main__":
    run(Direct)
