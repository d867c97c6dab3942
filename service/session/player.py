"""Plays an episode with its agent: takes answers, simulates, asks for the next one, and records.

This is the one loop in which turns are taken, and it runs in the worker that simulates. The server
has loaded the arena and begun the recording. It asks the worker to PLAY on certain `Terms`. An
agent comes to the worker by itself (`direct`), with a ticket that the server gave it; or the server
relays its answers, and gets the next `Question` for it each time. An agent may change from
the first way to the second within an episode. At the end the worker sends a `PlayReport` to the
server, which alone judges, stores, and tells the agent what became of the episode. `python -m
animalcat.service.session.player` is such a worker.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from array import array
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any, Final, NamedTuple

from animalcat.envs.agents.base import UNLIMITED, Allowance
from animalcat.envs.answers import Note
from animalcat.envs.messages import SECONDS, MessageKind, pack_steps, unpack_steps
from animalcat.envs.pulse import Pulse
from animalcat.envs.types import Environment, ObservationSpec, Phase, Step
from animalcat.envs.worker import receive, run, send
from animalcat.service.recording.encoding import StepWriter
from animalcat.service.recording.live import LiveFile
from animalcat.service.session.direct import (
    Connection,
    ConnectionBrokeError,
    Door,
    PlayStoppedError,
    RecalledError,
    listening,
)
from animalcat.service.session.glimpse import Shower
from animalcat.service.session.link import AgentLeftError, Answer
from animalcat.service.session.notes import NoteBudget, NoteRoom
from animalcat.service.session.spending import Meter
from animalcat.service.session.turns import AnswerReader, FrameError
from animalcat.v1 import gateway_pb2
from animalcat.values import NOTHING, Spent
from animalcat.wire.steps import observation_to_proto

_ANSWER: Final = struct.Struct("<dH")
_QUESTION: Final = struct.Struct("<dd?II")
_LENGTHS: Final = struct.Struct("<II")


class Terms(NamedTuple):
    """What the worker is told when it is to play.

    Attributes:
        recording: The file of the recording, which has its header.
        pixels: Whether it keeps the camera's images.
        period: Physics steps per decision.
        place: Where the agent may come: an address of the network to listen at, or `unix:` and a
            folder; empty where the server relays.
        ticket: Secret that the agent has to show there, in hexadecimal digits.
        timeout: Seconds that it may take for one action there.
        allowance: What the agent may spend.
        notes: What is left for its notes.
        recorded: Number of steps that are recorded already, counting the first observation, by
            another worker that was lost. The environment is where they led.
        spent: What the agent had spent by then.
        first: Whether a step is recorded before the agent sees it, also there: it may go on with
            another process, and what it has seen must have happened.
    """

    recording: str
    pixels: bool
    period: int
    place: str = ""
    ticket: str = ""
    timeout: float = 0.0
    allowance: Allowance = UNLIMITED
    notes: NoteBudget = NoteBudget()
    recorded: int = 0
    spent: Spent = NOTHING
    first: bool = False

    def to_json(self) -> bytes:
        """Return the terms as the worker reads them."""
        fields = [*self[:6], astuple(self.allowance), *self[7:9], astuple(self.spent), self.first]
        return json.dumps(fields).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Terms:
        """Return the terms that `to_json` wrote."""
        fields: list[Any] = json.loads(data)
        fields[6], fields[7] = Allowance(*fields[6]), NoteBudget(*fields[7])
        fields[9] = Spent(*fields[9])
        return cls._make(fields)


class Question(NamedTuple):
    """What an agent is asked by way of the server.

    Attributes:
        frame: The frame for the agent, an `ask`.
        waited: Seconds that the agent has had for it already.
        thinking: Seconds that it has taken for all its answers.
        broke: Whether it is asked since its connection to the worker broke.
        noted: Bytes of the notes that it made with its answers to the worker.
        refused: Number of notes that the worker refused for want of room.
    """

    frame: gateway_pb2.EvaluateResponse
    waited: float = 0.0
    thinking: float = 0.0
    broke: bool = False
    noted: int = 0
    refused: int = 0

    def pack(self) -> bytes:
        """Return it as bytes."""
        return _QUESTION.pack(*self[1:]) + self.frame.SerializeToString()

    @classmethod
    def unpack(cls, data: bytes) -> Question:
        """Return what `pack` packed."""
        frame = gateway_pb2.EvaluateResponse.FromString(data[_QUESTION.size :])
        return cls(frame, *_QUESTION.unpack_from(data))


class PlayReport(NamedTuple):
    """How an episode was played.

    Attributes:
        left: Why the agent left the worker, a value of `Cause`; empty if it did not.
        fault: What the backend failed with; empty if it did not.
        disk: Number, text and file of the error that the recording met; empty if it met none.
        reward: Reward since the observation that the agent was shown last.
        spent: What the agent has spent, with the time that it has had for an answer that is due.
        exceeded: Which allowance its last answer exceeded, which was then not carried out; empty
            for none.
        overdue: Which allowance it has exceeded by the time that it has had for the answer that is
            due; empty for none.
        noted: Bytes of the notes that it made with its answers to the worker, but for those that a
            `Question` told of.
        refused: Number of notes that the worker refused for want of room, likewise.
        trace: The reward of every decision.
        last: The latest step.
    """

    left: str
    fault: str
    disk: tuple[int, str, str] | tuple[()]
    reward: float
    spent: Spent
    exceeded: str
    overdue: str
    noted: int
    refused: int
    trace: array[float]
    last: Step

    def pack(self) -> bytes:
        """Return it as bytes."""
        fields = json.dumps([*self[:4], astuple(self.spent), *self[5:-2]]).encode()
        trace = self.trace.tobytes()
        return _LENGTHS.pack(len(fields), len(trace)) + fields + trace + pack_steps([self.last])

    @classmethod
    def unpack(cls, data: bytes, spec: ObservationSpec) -> PlayReport:
        """Return what `pack` packed.

        Raises:
            ValueError: It is damaged.
        """
        size, length = _LENGTHS.unpack_from(data)
        middle = _LENGTHS.size + size
        fields: list[Any] = json.loads(data[_LENGTHS.size : middle])
        fields[2], fields[4] = tuple(fields[2]), Spent(*fields[4])
        trace = array("d")
        trace.frombytes(data[middle : middle + length])
        (last,) = unpack_steps(data[middle + length :], spec)
        return cls._make([*fields, trace, last])


def pack_answer(answer: Answer) -> bytes:
    """Return what the worker is told of an answer: all but whether the agent was away."""
    notes = json.dumps([astuple(note) for note in answer.notes]).encode() if answer.notes else b""
    return _ANSWER.pack(answer.seconds, len(answer.actions)) + answer.actions + notes


def unpack_answer(data: bytes) -> Answer:
    """Return what `pack_answer` packed."""
    seconds, count = _ANSWER.unpack_from(data)
    end = _ANSWER.size + count
    notes = [Note(*note) for note in json.loads(data[end:])] if data[end:] else ()
    return Answer(data[_ANSWER.size : end], notes, seconds)


class Player:
    """Plays episodes with agents; it is a `worker.PlayEpisode`."""

    def __init__(self, pulse: Pulse) -> None:
        """Take what shows the server that the worker works while an agent plays with it."""
        self._pulse = pulse

    def __call__(
        self, connection: socket.socket, environment: Environment, last: Step, terms: bytes
    ) -> bytes:
        """Play with the agent; see the protocol."""
        return _Episode(connection, environment, last, Terms.from_json(terms), self._pulse).play()


class _OverspentError(Exception):
    """The agent has spent more than its allowance."""


class _Episode:
    """One episode, with its agent, its recording and what the agent spends."""

    def __init__(
        self,
        server: socket.socket,
        environment: Environment,
        last: Step,
        terms: Terms,
        pulse: Pulse,
    ) -> None:
        self._server = server
        self._environment = environment
        self._last = last
        self._terms = terms
        self._pulse = pulse
        self._done = max(0, terms.recorded - 1)
        self._reward = 0.0
        self._trace = array("d")
        self._asked = time.monotonic()
        self._meter = Meter(terms.allowance, terms.spent)
        self._room = NoteRoom.within(terms.notes)
        self._told = 0, 0
        self._steps: StepWriter
        self._shower = Shower(Path(terms.recording), environment)

    def play(self) -> bytes:
        """Play to the end, and return the packed report."""
        left = fault = exceeded = overdue = ""
        disk: tuple[int, str, str] | tuple[()] = ()
        with ExitStack() as stack:
            try:
                file = LiveFile(Path(self._terms.recording), anew=False)
                stack.enter_context(closing(file))
                self._steps = StepWriter(file, self._terms.period, self._terms.pixels)
                if not self._terms.recorded:
                    self._steps.add(0, self._last, None, ())
                if not self._directly():
                    self._relay()
            except _OverspentError as error:
                exceeded = str(error)
            except AgentLeftError as error:
                left, overdue = error.cause.value, self._meter.take(self._waiting_seconds)
            except PlayStoppedError as stopped:
                overdue = self._meter.take(
                    self._waiting_seconds if stopped.waited < 0 else stopped.waited
                )
            except (BrokenPipeError, ConnectionResetError):
                pass  # the server is gone
            except OSError as error:  # of the recording: those of sockets were seen to
                disk = (error.errno or 0, error.strerror or str(error), str(error.filename or ""))
            except Exception as error:  # noqa: BLE001  whatever a backend raises is its fault
                fault = f"{type(error).__name__}: {error}"
        noted, refused = self._notes()
        stood = (self._reward, self._meter.spent, exceeded, overdue, noted, refused)
        return PlayReport(left, fault, disk, *stood, self._trace, self._last).pack()

    def _directly(self) -> bool:
        """Play with the agent that comes with the ticket, if it may come.

        Returns:
            Whether the episode is over; if not, the agent goes on by way of the server.
        """
        deadline = self._deadline()  # for the agent to come and to answer
        broke = False
        try:
            connection = self._admit(deadline)
            if connection is None:
                return False
            with connection:
                self._play_with(connection, deadline)
                return True
        except ConnectionBrokeError:
            broke = True
        except RecalledError:
            pass
        finally:
            self._pulse.rest()
        noted, refused = self._notes()
        thinking = self._meter.spent.thinking_seconds
        question = Question(self._ask(), self._waiting_seconds, thinking, broke, noted, refused)
        send(self._server, MessageKind.ASK, question.pack())
        return False

    def _admit(self, deadline: float) -> Connection | None:
        """Tell the server where the agent may come, and wait for it; None if it may nowhere."""
        with ExitStack() as stack:
            listener, address = None, ""
            if self._terms.place:
                with suppress(OSError):  # so it plays by way of the server
                    listener, address = stack.enter_context(listening(self._terms.place))
            send(self._server, MessageKind.OFFERED, address.encode())
            if listener is None:
                return None
            ticket = bytes.fromhex(self._terms.ticket)
            return Door(listener, self._server, ticket).admit(deadline)

    def _play_with(self, connection: Connection, deadline: float) -> None:
        """Play with the agent at a connection until the episode is over."""
        reader = AnswerReader(room=self._room)

        def ask() -> None:
            nonlocal deadline
            deadline = self._deadline()
            self._pulse.rest()  # an agent that does not read is not the worker's fault
            connection.send(self._ask(), deadline)

        connection.send(self._ask(), deadline)
        while True:
            try:
                frame = connection.read(deadline)
                actions = reader.read(frame, self._done)
            except FrameError as error:
                connection.send(reader.refuse(error), deadline)
                continue
            if actions is None:
                continue
            self._pulse.beat()
            waited = self._waiting_seconds
            if self._take(Answer(actions, reader.take_notes(), waited), ask):
                return

    def _relay(self) -> None:
        """Play with the agent by way of the server until the episode is over.

        What it is asked is recorded before. It may be away and come back after this worker was
        lost, and then another worker has to get as far by the recording.
        """
        while (message := receive(self._server)) is not None:
            kind, body = message
            if kind is MessageKind.STOP:
                raise PlayStoppedError(*SECONDS.unpack(body))
            if kind is MessageKind.TURN:  # a RECALL has crossed the question that it asks for
                if self._take(unpack_answer(body)):
                    return
                question = Question(self._ask(), thinking=self._meter.spent.thinking_seconds)
                send(self._server, MessageKind.ASK, question.pack())

    def _take(self, answer: Answer, ask: Callable[[], None] = lambda: None) -> bool:
        """Take decisions and record them.

        Args:
            answer: The decisions, with the notes on them.
            ask: Is called unless the episode is over, before the last decision is recorded (see
                `Terms.first`): the agent thinks meanwhile.

        Returns:
            Whether it is over.

        Raises:
            _OverspentError: The agent has spent more than it may; nothing was done.
        """
        actions, notes = answer.actions, answer.notes
        exceeded = self._meter.take(answer.seconds, notes)
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
            asked = k == final and not over
            try:
                if asked and not self._terms.first:
                    ask()
            finally:
                self._steps.add(self._done, step, action, notes)
            if asked and self._terms.first:
                ask()
            self._shower.show(self._done, step)
            notes = ()
            if over:
                return True
        return False

    def _ask(self) -> gateway_pb2.EvaluateResponse:
        observation = observation_to_proto(self._last.observation)
        ask = gateway_pb2.Ask(step=self._done, reward=self._reward, observation=observation)
        return gateway_pb2.EvaluateResponse(ask=ask)

    def _deadline(self) -> float:
        self._asked = time.monotonic()
        return self._asked + self._terms.timeout

    @property
    def _waiting_seconds(self) -> float:
        """Seconds that the agent has had for the answer that is due."""
        return time.monotonic() - self._asked

    def _notes(self) -> tuple[int, int]:
        """Return bytes and number of notes written and refused since the last call."""
        before, self._told = self._told, (self._room.written, self._room.refused)
        return self._told[0] - before[0], self._told[1] - before[1]


if __name__ == "__main__":
    run(Player)
