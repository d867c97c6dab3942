"""Drives a worker process from asyncio: starts it, sends requests, and reports what went wrong."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import IO, Final, Protocol

from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.envs.messages import (
    HEADER,
    SECONDS,
    MessageKind,
    Reply,
    spec_to_json,
    unpack_steps,
)
from animalcat.envs.patience import Patience, Watchdog
from animalcat.envs.pulse import Pulse
from animalcat.envs.starting import Spawn, Starter, WorkerHandles, WorkerProcess
from animalcat.envs.types import ACTIONS, ObservationSpec, Step

_UNITY_SECONDS: Final = 600.0
"""How long a worker that drives a Unity build may be quiet: it waits for the build, which works in
another process and has time-outs of its own with better messages."""
CLOSE_SECONDS: Final = 5.0
"""How long a worker may take to end before it is killed."""

COMMAND: Final = (sys.executable, "-P", "-m", "animalcat.envs.worker")


class WorkerFault(RuntimeError):  # noqa: N818  "fault" is the project's word for it
    """The worker died, hung or failed; neither the agent nor the arena is to blame.

    Attributes:
        died_of: "memory" where it could get none, "kill" where it was killed, perhaps for want of
            memory; else empty.
    """

    def __init__(self, message: str, died_of: str = "") -> None:
        super().__init__(message)
        self.died_of = died_of


class Worker(Protocol):
    """What plays the episodes of one agent, on this machine or on another.

    It takes one request at a time. After a `WorkerFault` it is gone, and the next `load` makes it
    anew.

    Attributes:
        backend: Name of the backend.
        spec: Specification of its observations.
        versions: Versions of software outside this installation that plays, known once the worker
            is open.
    """

    backend: str
    spec: ObservationSpec
    versions: Mapping[str, str]

    @property
    def running(self) -> bool:
        """Whether there is something that has not failed."""
        ...

    async def open(self) -> None:
        """Make it unless it is there, and wait until it can play; may be cancelled."""
        ...

    async def load(self, arena_yaml: str, seed: int, places: Sequence[MarkedPlace] = ()) -> Step:
        """Start an episode; an unfinished one is dropped. See `WorkerClient.load`."""
        ...

    async def step(self, actions: bytes) -> list[Step]:
        """Take decisions until the list or the episode ends. See `WorkerClient.step`."""
        ...

    def place_for(self, place: str) -> str:
        """Return where the worker may listen for an agent, given that of this machine; or empty."""
        ...

    async def play(self, terms: bytes) -> Reply:
        """Play the episode with its agent. See `WorkerClient.play`."""
        ...

    async def turn(self, answer: bytes) -> Reply:
        """Take what the agent answered. See `WorkerClient.turn`."""
        ...

    async def reply(self, waits: float) -> Reply:
        """Wait for what the worker says of an agent that came to it. See `WorkerClient.reply`."""
        ...

    def recall(self) -> None:
        """Have the agent go on through this process: `reply` returns at once."""
        ...

    def stop(self, waited: float) -> None:
        """End the play. See `WorkerClient.stop`."""
        ...

    def rest(self) -> None:
        """Note that nothing is played until the next `open`; the worker may give up its place."""
        ...

    def drop(self) -> None:
        """End it at once, because it has failed."""
        ...

    async def close(self) -> None:
        """End it; it may be called twice."""
        ...


class WorkerClient:
    """One worker process and the episode that it plays.

    It takes one request at a time. After a `WorkerFault` the process is gone, and the next `load`
    starts a new one.

    Attributes:
        backend: Name of the backend.
        spec: Specification of its observations.
        versions: Versions of software outside this installation that plays, known once the worker
            is open.
    """

    def __init__(
        self,
        backend: str,
        spec: ObservationSpec,
        *,
        starter: Starter | None = None,
        patience: Patience | None = None,
    ) -> None:
        """Describe a worker; nothing is started.

        Args:
            backend: Name of the backend, for example "sim".
            spec: Specification of its observations.
            starter: Starts its process, for example as another program; None for the program
                `COMMAND`.
            patience: How long it may take for one answer: to import and make its environment, to
                load an arena (including compilation), or to take a list of actions.
        """
        self.backend = backend
        self.spec = spec
        self.versions: Mapping[str, str] = {}
        self._starter = starter or Spawn(COMMAND)
        self._patience = patience or Patience()
        if backend.startswith("unity:"):
            quiet = max(_UNITY_SECONDS, self._patience.quiet_seconds)
            self._patience = replace(self._patience, quiet_seconds=quiet)
        self._process: _Process | None = None

    @classmethod
    async def start(cls, backend: str, spec: ObservationSpec) -> WorkerClient:
        """Start a worker and wait until its environment is made.

        Raises:
            WorkerFault: It did not start; the message holds what it printed.
        """
        client = cls(backend, spec)
        await client.open()
        return client

    @property
    def running(self) -> bool:
        """Whether there is a process that has not failed."""
        return self._process is not None

    @property
    def pid(self) -> int | None:
        """Id of the process; None while there is none."""
        return self._process.pid if self._process else None

    async def open(self) -> None:
        """Start the process unless it is running; may be cancelled.

        Raises:
            WorkerFault: It did not start.
        """
        if self._process is not None and self._process.ended:
            self.drop()  # it died between episodes, so nothing is lost with it
        if self._process is None:
            self._process = await _Process.start(self._starter, self.spec)
            request = {"backend": self.backend, "spec": spec_to_json(self.spec)}
            answer = await self._ask(MessageKind.OPEN, json.dumps(request).encode())
            self.versions = json.loads(answer or b"{}")

    async def load(self, arena_yaml: str, seed: int, places: Sequence[MarkedPlace] = ()) -> Step:
        """Start an episode; an unfinished one is dropped.

        Args:
            arena_yaml: A configuration with one arena, or with one and those that it merges with.
            seed: Seed of all randomness in the episode.
            places: Marked places to watch, if the backend can.

        Raises:
            ArenaError: The arena cannot be built; the worker is well.
            WorkerFault: The worker failed.
        """
        await self.open()
        request = {"arena": arena_yaml, "seed": seed, "places": places}
        body = json.dumps(request).encode()
        (step,) = self._unpack(await self._ask(MessageKind.LOAD, body))
        return step

    async def step(self, actions: bytes) -> list[Step]:
        """Take decisions until the list or the episode ends.

        Args:
            actions: One byte per action, 0 to 8. All their observations come in one answer, so keep
                lists short (100) if there is a camera.

        Raises:
            ValueError: An action is out of range; nothing was done.
            WorkerFault: The worker failed, or no episode was open.
        """
        if not actions or max(actions) >= ACTIONS:
            raise ValueError(f"actions {list(actions)}: give at least one, each 0 to {ACTIONS - 1}")
        return self._unpack(await self._ask(MessageKind.STEP, actions))

    def place_for(self, place: str) -> str:
        """Return `place`, since the worker is on this machine."""
        return place

    async def play(self, terms: bytes) -> Reply:
        """Play the episode with its agent, which only the worker of `animalcat.service` can do.

        Unless the reply is PLAYED, `turn`, `reply` or `stop` must follow until it comes.

        Args:
            terms: Body of the request, for the worker.

        Returns:
            OFFERED, with where the worker waits for the agent; or PLAYED.

        Raises:
            WorkerFault: The worker failed, or no episode was open.
        """
        return await self._reply(MessageKind.PLAY, terms)

    async def turn(self, answer: bytes) -> Reply:
        """Take what the agent answered to this process, and return what follows.

        Args:
            answer: Body of the request, for the worker.

        Returns:
            ASK, with the next question; or PLAYED.

        Raises:
            WorkerFault: The worker failed, or plays nothing.
        """
        return await self._reply(MessageKind.TURN, answer)

    async def reply(self, waits: float) -> Reply:
        """Wait until an agent that came to the worker goes on by this process, or has played.

        Args:
            waits: Seconds for which the worker itself waits for the agent at most.

        Returns:
            ASK, with the question that is open; or PLAYED.

        Raises:
            WorkerFault: The worker failed.
        """
        if self._process is None:
            raise WorkerFault("no worker is running; load an arena first")
        return await self._answer_of(self._process.expect(self._patience, waits))

    def recall(self) -> None:
        """Have the agent go on through this process: `reply` returns at once."""
        if self._process is not None:
            self._process.send(MessageKind.RECALL, b"")

    def stop(self, waited: float) -> None:
        """End the play: PLAYED is the next `reply`, or the one after ASK.

        Args:
            waited: Seconds that the agent has had for the action that is due; below 0 where the
                worker looks at the clock.
        """
        if self._process is not None:
            self._process.send(MessageKind.STOP, SECONDS.pack(waited))

    def rest(self) -> None:
        """Do nothing: on one machine, a process that waits is in nobody's way."""

    async def close(self) -> None:
        """End the process; it may be called twice."""
        process, self._process = self._process, None
        if process is not None:
            await process.close()

    async def _ask(self, kind: MessageKind, body: bytes) -> bytes:
        """Send a request and return the body of the answer."""
        return (await self._reply(kind, body)).body

    async def _reply(self, kind: MessageKind, body: bytes) -> Reply:
        """Send a request and return the answer."""
        if self._process is None:
            raise WorkerFault("no worker is running; load an arena first")
        return await self._answer_of(self._process.ask(kind, body, self._patience))

    async def _answer_of(self, asked: asyncio.Future[tuple[MessageKind, bytes]]) -> Reply:
        """Return an answer.

        Raises:
            ArenaError: The arena was at fault.
            WorkerFault: The worker was.
        """
        try:
            answer, data = await asked
        except asyncio.CancelledError:
            # The answer is still to come, and would be taken for the next request's.
            self.drop()
            raise
        except WorkerFault as fault:
            self.drop()
            raise WorkerFault(f"worker ({self.backend}): {fault}", fault.died_of) from fault
        if answer is MessageKind.ERROR:
            error = json.loads(data)
            if error["arena"]:
                raise ArenaError(error["message"])
            self.drop()
            message = str(error["message"])
            died_of = "memory" if message.startswith(MemoryError.__name__) else ""
            raise WorkerFault(f"worker ({self.backend}): {message}", died_of)
        return Reply(answer, data)

    def _unpack(self, data: bytes) -> list[Step]:
        try:
            return unpack_steps(data, self.spec)
        except ValueError as error:
            self.drop()
            raise WorkerFault(f"worker ({self.backend}): {error}") from error

    def drop(self) -> None:
        """End the process at once, because it has failed; the next `load` starts another."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()


class _Process(asyncio.BufferedProtocol):
    """The process, its socket, and the pending answer.

    It is a buffered protocol rather than asyncio's streams, which halves the overhead of a round
    trip.
    """

    def __init__(self, process: WorkerProcess, log: IO[bytes], pulse: Pulse) -> None:
        self._process = process
        self._log = log
        self._pulse = pulse
        self._buffer = bytearray(1 << 16)
        self._filled = 0
        self._answer: asyncio.Future[tuple[MessageKind, bytes]] | None = None
        self._transport: asyncio.Transport | None = None
        self._early: tuple[MessageKind, bytes] | None = None
        self._next_look: asyncio.TimerHandle | None = None
        self._died_of = ""
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def start(cls, starter: Starter, spec: ObservationSpec) -> _Process:
        ours, theirs = socket.socketpair()
        log = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        pulse = Pulse()
        try:
            with theirs:
                process = await starter.start(WorkerHandles(theirs, pulse.fd, log), spec)
        except BaseException as error:
            ours.close()
            log.close()
            pulse.close()
            if isinstance(error, OSError):
                raise WorkerFault(f"worker: could not be started: {error}") from error
            raise
        self = cls(process, log, pulse)
        ours.setblocking(False)
        await self._loop.create_connection(lambda: self, sock=ours)
        return self

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether its end of the socket is closed."""
        return self._transport is None

    def ask(
        self, kind: MessageKind, body: bytes, patience: Patience
    ) -> asyncio.Future[tuple[MessageKind, bytes]]:
        """Send a request; returns a future with its answer, or a WorkerFault."""
        answer = self._await_answer()
        if not answer.done():
            self._look_again(Watchdog(patience, self._process.pid), patience.interval)
            self.send(kind, body)
        return answer

    def expect(self, patience: Patience, waits: float) -> asyncio.Future[tuple[MessageKind, bytes]]:
        """Expect one more answer to the last request, while the worker answers somebody else.

        Args:
            patience: How long it may take for one answer to that one.
            waits: Seconds for which it waits for that one.
        """
        answer = self._await_answer()
        if not answer.done():
            self._look_at_pulse(patience, waits, None, -1, 0.0)
        return answer

    def send(self, kind: MessageKind, body: bytes) -> None:
        """Send a message; nothing happens if the process is gone."""
        if self._transport is not None:
            self._transport.write(HEADER.pack(len(body), kind) + body)

    def _await_answer(self) -> asyncio.Future[tuple[MessageKind, bytes]]:
        assert self._answer is None, "one request at a time"
        answer = self._answer = self._loop.create_future()
        if self._early is not None:
            self._answer = None
            answer.set_result(self._early)
            self._early = None
        elif self._transport is None:
            self._fail(self._epitaph())
        else:
            answer.add_done_callback(self._stop_looking)
        return answer

    def kill(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        self._process.kill()
        self._log.close()
        self._pulse.close()

    async def close(self) -> None:
        """Close the socket, which ends the worker; kill it if that does not."""
        if self._transport is not None:
            self._transport.close()
        try:
            await asyncio.to_thread(self._process.wait, CLOSE_SECONDS)
        finally:
            self.kill()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        while self._filled >= HEADER.size:  # OFFERED and what follows may come together
            length, kind = HEADER.unpack_from(self._buffer)
            end = HEADER.size + length
            if end > len(self._buffer):
                self._buffer = self._buffer[: self._filled] + bytes(end - self._filled)
            if self._filled < end:
                return
            body = bytes(memoryview(self._buffer)[HEADER.size : end])
            self._filled -= end
            if self._filled:
                self._buffer[: self._filled] = self._buffer[end : end + self._filled]
            self._take(MessageKind(kind), body)

    def _take(self, kind: MessageKind, body: bytes) -> None:
        answer, self._answer = self._answer, None
        if answer is None:
            self._early = kind, body
        elif not answer.done():
            answer.set_result((kind, body))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        # Who has given up waiting, and so closed the connection, need not be told of the end of
        # the process; to ask for it takes a second while it still works.
        if self._answer is not None and not self._answer.done():
            self._fail(self._epitaph())

    def _look_again(self, watch: Watchdog, interval: float) -> None:
        self._next_look = self._loop.call_later(interval, self._look, watch, interval)

    def _look(self, watch: Watchdog, interval: float) -> None:
        if reason := watch.look():
            self._fail(reason)
        else:
            self._look_again(watch, interval)

    def _look_at_pulse(
        self, patience: Patience, waits: float, watch: Watchdog | None, seen: int, since: float
    ) -> None:
        """Watch one decision after another, and the waiting in between."""
        count, now = self._pulse.read(), self._loop.time()
        if count != seen:
            since = now
            watch = Watchdog(patience, self._process.pid) if count % 2 else None
        reason = ""
        if watch is not None:
            reason = watch.look()
        elif now - since > waits + patience.quiet_seconds:
            reason = f"no answer for {now - since:.0f} s, longer than it waits for its agent"
        if reason:
            self._fail(reason)
            return
        self._next_look = self._loop.call_later(
            patience.interval, self._look_at_pulse, patience, waits, watch, count, since
        )

    def _stop_looking(self, _: object) -> None:
        if self._next_look is not None:
            self._next_look.cancel()

    def _fail(self, message: str) -> None:
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_exception(WorkerFault(message, self._died_of))

    def _epitaph(self) -> str:
        """How the process ended, with the last lines that it printed."""
        if not self._process.wait(1.0):
            return "closed its connection"
        code = self._process.code()
        self._died_of = "kill" if code == -signal.SIGKILL else ""
        how = "ended" if code is None else f"ended with code {code}"
        if self._log.closed:
            return how
        self._log.seek(0)
        printed = self._log.read().decode(errors="replace").strip().splitlines()[-5:]
        return " / ".join([how, *printed])
