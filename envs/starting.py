"""Starts worker processes: each by itself, or as forks of one process that is warm already."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Final, NamedTuple, Protocol

from animalcat.envs.bare import bare_environment
from animalcat.envs.forks import MOST_BYTES, ONE_THREAD
from animalcat.envs.patience import Patience
from animalcat.envs.types import ObservationSpec

log = logging.getLogger(__name__)

_CODE_SECONDS: Final = 1.0
"""How long the fork server may take to say how a process ended."""


class WorkerHandles(NamedTuple):
    """The connection and files that a worker process is given.

    Attributes:
        connection: Its end of the connection.
        pulse: File descriptor of its pulse.
        log: The file for what it prints.
    """

    connection: socket.socket
    pulse: int
    log: IO[bytes]


class WorkerProcess(Protocol):
    """A worker process.

    Attributes:
        pid: Its id.
    """

    @property
    def pid(self) -> int:
        """Its id."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait until it has ended, and return whether it has; may be called in any thread."""
        ...

    def code(self) -> int | None:
        """Return with which code it ended, negative for a signal; None where that is not known."""
        ...

    def kill(self) -> None:
        """End it at once, wait for that, and free what is held of it."""
        ...


class Starter(Protocol):
    """Starts workers."""

    async def start(self, handles: WorkerHandles, spec: ObservationSpec) -> WorkerProcess:
        """Start one; may be cancelled.

        Args:
            handles: The connection and files that it is given.
            spec: The observations that it is to be ready for.

        Raises:
            OSError: It cannot be started.
        """
        ...

    async def close(self) -> None:
        """End what helps to start; workers go on."""
        ...


class Spawn:
    """Starts each worker by itself, as a program that imports everything anew."""

    def __init__(self, command: Sequence[str]) -> None:
        """Describe the program, which serves the socket `--fd`."""
        self.command = tuple(command)

    async def start(self, handles: WorkerHandles, spec: ObservationSpec) -> WorkerProcess:
        """Start one; see `Starter`."""
        fd = handles.connection.fileno()
        process = subprocess.Popen(
            [*self.command, "--fd", str(fd), "--pulse", str(handles.pulse)],
            pass_fds=[fd, handles.pulse],
            stdin=subprocess.DEVNULL,
            stdout=handles.log,
            stderr=handles.log,
            env=bare_environment(),
        )
        return _SpawnedProcess(process)

    async def close(self) -> None:
        """Do nothing: there is nothing to end."""


class _SpawnedProcess:
    """A process that this one started."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def code(self) -> int | None:
        return self._process.poll()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Fork:
    """Starts workers as forks of one process that has imported and compiled everything.

    They share its memory until they write to it, and are there at once. That process, the fork
    server (`animalcat.envs.forks`), is started with the first worker. Where it cannot be started,
    or dies, each worker is started by itself; another fork server is tried first each time.
    Workers outlive it.
    """

    def __init__(self, command: Sequence[str], patience: Patience) -> None:
        """Describe it; nothing is started.

        Args:
            command: Program of a worker, which is the fork server with the option `--forks`.
            patience: How long it may take to warm up and to fork.
        """
        self._spawn = Spawn(command)
        self._patience = patience
        self._server: _ForkServer | None = None

    @staticmethod
    def works_here() -> bool:
        """Return whether this system has what it takes: Linux, with descriptors of processes."""
        if sys.platform != "linux" or not hasattr(signal, "pidfd_send_signal"):
            return False
        try:
            os.close(os.pidfd_open(os.getpid()))
        except OSError:
            return False
        return True

    @property
    def pid(self) -> int | None:
        """Id of the fork server; None while there is none."""
        return self._server.pid if self._server is not None and not self._server.gone else None

    async def start(self, handles: WorkerHandles, spec: ObservationSpec) -> WorkerProcess:
        """Start one; see `Starter`."""
        if self._server is None or self._server.gone:
            try:
                self._server = _ForkServer(self._spawn.command)
            except OSError as error:
                log.warning("no fork server could be started: %s", error)
                return await self._spawn.start(handles, spec)
        try:
            return await self._server.fork(handles, spec, self._patience)
        except _ServerGoneError as error:
            log.warning("the fork server is gone: %s", error)
            return await self._spawn.start(handles, spec)

    async def close(self) -> None:
        """End the fork server; its workers go on."""
        server, self._server = self._server, None
        if server is not None:
            server.close("it was ended")
            await asyncio.to_thread(server.reap)


class _ServerGoneError(Exception):
    """The fork server has ended, or was given up."""


class _ForkServer:
    """One fork server, and who waits for it."""

    def __init__(self, command: Sequence[str]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [*command, "--forks", str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    env=bare_environment() | ONE_THREAD,
                )
        except OSError:
            ours.close()
            self._log.close()
            raise
        ours.setblocking(False)
        self._connection = ours
        self._asked = 0
        self._waiting: dict[int, asyncio.Future[_ForkedProcess]] = {}
        self._living: dict[int, _ForkedProcess] = {}
        self._turn = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(ours.fileno(), self.read)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def gone(self) -> bool:
        return self._connection.fileno() < 0

    async def fork(
        self, handles: WorkerHandles, spec: ObservationSpec, patience: Patience
    ) -> _ForkedProcess:
        """Have a worker forked.

        Raises:
            _ServerGoneError: There is nobody to do it.
            OSError: The system does not let it be done.
        """
        # One after another, so that neither messages nor descriptors on the way pile up.
        async with self._turn:
            self._asked += 1
            number = self._asked
            ready = {"camera": spec.camera is not None, "rays": spec.rays is not None}
            body = json.dumps({"number": number, **ready}).encode()
            fds = [handles.connection.fileno(), handles.pulse, handles.log.fileno()]
            answer = self._waiting[number] = self._loop.create_future()
            try:
                if self.gone:
                    raise _ServerGoneError("it has ended")
                socket.send_fds(self._connection, [body], fds)
                return await self._answer(answer, patience)
            except (BrokenPipeError, ConnectionResetError, BlockingIOError) as error:
                self.close(str(error))
                raise _ServerGoneError(str(error)) from error
            finally:
                # A fork for nobody finds its connection closed, and ends by itself.
                self._waiting.pop(number, None)

    async def _answer(
        self, answer: asyncio.Future[_ForkedProcess], patience: Patience
    ) -> _ForkedProcess:
        watching = asyncio.ensure_future(patience.outlast(self.pid))
        try:
            await asyncio.wait((answer, watching), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                self._process.kill()
                self.close(watching.result())
            return answer.result()
        except asyncio.CancelledError:
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                answer.result().kill()
            raise
        finally:
            watching.cancel()

    def read(self) -> None:
        """Take all that the fork server has said."""
        while not self.gone:
            try:
                body, fds, _, _ = socket.recv_fds(self._connection, MOST_BYTES, 1)
            except BlockingIOError:
                return
            except OSError as error:
                self.close(str(error))
                return
            if not body:
                self.close(self._epitaph())
                return
            self._take(json.loads(body), fds)

    def await_word(self, seconds: float) -> None:
        """Wait until the fork server says something, or is gone, and take it."""
        if not self.gone:
            poll = select.poll()
            poll.register(self._connection, select.POLLIN)
            poll.poll(seconds * 1000)
            self.read()

    def forget(self, pid: int) -> None:
        """Drop what is known of a process."""
        self._living.pop(pid, None)

    def close(self, reason: str) -> None:
        """Let it end, and let nobody wait for it; a second call does nothing."""
        if self.gone:
            return
        self._loop.remove_reader(self._connection.fileno())
        self._connection.close()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(_ServerGoneError(reason))
        self._log.close()
        if self._process.poll() is None:
            # It ends when the connection closes, unless it hangs.
            self._process.terminate()

    def reap(self) -> None:
        """Wait for its end."""
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _take(self, said: dict[str, int | str], fds: Sequence[int]) -> None:
        pid = said.get("pid")
        if "code" in said:
            ended = self._living.pop(int(said["pid"]), None)
            if ended is not None:
                ended.took(int(said["code"]))
            return
        answer = self._waiting.pop(int(said["number"]), None)
        if answer is None or answer.done():  # nobody waits any more
            for fd in fds:
                os.close(fd)
        elif pid is None:
            answer.set_exception(OSError(str(said["error"])))
        else:
            forked = self._living[int(pid)] = _ForkedProcess(self, int(pid), fds[0])
            answer.set_result(forked)

    def _epitaph(self) -> str:
        try:
            code = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return "it closed its connection"
        self._log.seek(0)
        printed = self._log.read().decode(errors="replace").strip().splitlines()[-5:]
        return " / ".join([f"ended with code {code}", *printed])


class _ForkedProcess:
    """A process that the fork server started.

    It is known by a descriptor, which never comes to mean another process as an id does.
    """

    def __init__(self, server: _ForkServer, pid: int, fd: int) -> None:
        self._server = server
        self._pid = pid
        self._fd = fd
        self._code: int | None = None

    @property
    def pid(self) -> int:
        return self._pid

    def took(self, code: int) -> None:
        """Hear with which code it ended."""
        self._code = code

    def wait(self, seconds: float) -> bool:
        if self._fd < 0:
            return True
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def code(self) -> int | None:
        end = time.monotonic() + _CODE_SECONDS
        while self._code is None and not self._server.gone and time.monotonic() < end:
            self._server.await_word(end - time.monotonic())
        return self._code

    def kill(self) -> None:
        if self._fd < 0:
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._fd, signal.SIGKILL)
        self.wait(5.0)
        fd, self._fd = self._fd, -1
        os.close(fd)
        self._server.forget(self._pid)
