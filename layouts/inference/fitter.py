"""Fits in a process of their own, so that nothing on the path of an episode imports PyMC.

`python -m animalcat.layouts.inference.fitter` reads messages (`inference.messages`) from its
standard input and writes one answer to each on its standard output, in order. It ends when its
input does, hence with its parent. `Fitter` starts it and talks to it.

Requests:
- `{"op": "compile", "layout": ..., "weighted": ...}`
- `{"op": "fit", "layout": ..., "request": ...}` with the arrays `features` and `outcomes`, and
  `weights` where outcomes have any

Answers:
- `{"ok": true, "compiles": n}`; to a fit also `diagnostics` and `nodes`, and the arrays `draws` and
  those of the sampler's statistics
- `{"ok": false, "error": "...", "interrupted": ..., "died_of": ...}`; interrupted: by the machine's
  doing; died_of: "memory" if it could get none
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference import messages
from animalcat.layouts.inference.fit import (
    FitData,
    FitError,
    FitInterruptedError,
    FitRequest,
    FitResult,
    fit,
)
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.model.spec import Layout, from_dict, to_dict

Message: TypeAlias = tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]

Watch: TypeAlias = Callable[[int], Coroutine[Any, Any, str]]
"""Given the id of a process that was asked something, returns when the process should be given up,
with the reason."""

_STDERR_KEPT: Final = 4000
_ENDING_SECONDS: Final = 1.0
"""How long a process that has closed its pipes may take to end."""
_SETTINGS: Final = ("seed", "chains", "draws", "tune", "target_accept", "sampler")


class FitterStatus(NamedTuple):
    """The processes that make fits, and how many requests wait for them.

    Attributes:
        processes: For each process its machine, empty while it has none, and whether it works.
        waiting: Number of requests that wait for one of them.
        compiling: Whether a layout is being compiled here, or is about to be.
    """

    processes: tuple[tuple[str, bool], ...]
    waiting: int
    compiling: bool = False


class Fits(Protocol):
    """What makes fits, on this machine or on another."""

    def fitting(self) -> FitterStatus:
        """Say where fits are made, and how many wait."""
        ...

    async def start(self, *layouts: Layout, weighted: bool = False) -> None:
        """Compile layouts in the background. See `Fitter.start`."""
        ...

    async def fit(self, request: FitRequest) -> FitResult:
        """Fit. See `Fitter.fit`."""
        ...

    async def close(self) -> None:
        """End what makes them; it may be called twice."""
        ...


class Fitter:
    """A fitting process and its asyncio client; requests are served one after another.

    The process is started by the first request at the latest, and again by the next request after a
    crash. Use a fitter from one event loop only.
    """

    def __init__(self, watch: Watch | None = None, python: str = sys.executable) -> None:
        """Describe the process; nothing is started.

        Args:
            watch: Decides when a request is given up, which ends the process. By default it never
                is: an answer is awaited for as long as the process lives.
            python: The interpreter.
        """
        self.compiles = 0
        self._watch = watch
        self._python = python
        self._process: asyncio.subprocess.Process | None = None
        self._drain: asyncio.Task[None] | None = None
        self._stderr = b""
        self._turn = asyncio.Lock()
        self._asked = 0
        self._warming: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int | None:
        """Id of the process; None while it does not run."""
        return self._process.pid if self._process is not None else None

    def fitting(self) -> FitterStatus:
        """Say whether the process runs and works, and how many requests wait for it."""
        works = self._turn.locked()
        running = self._process is not None and self._process.returncode is None
        processes = ((socket.gethostname(), works),) if running else ()
        waiting = self._asked - (works and self._asked > 0)
        return FitterStatus(processes, waiting, bool(self._warming))

    async def start(self, *layouts: Layout, weighted: bool = False) -> None:
        """Start the process, and compile layouts in the background.

        A layout that cannot be compiled fails when it is fitted.

        Args:
            layouts: What is going to be fitted.
            weighted: Whether outcomes will have weights; that is another model.

        Raises:
            FitInterruptedError: The process could not be started.
        """
        async with self._turn:
            await self._running()
        for layout in layouts:
            task = asyncio.create_task(self._warm(layout, weighted))
            self._warming.add(task)
            task.add_done_callback(self._warming.discard)

    async def fit(self, request: FitRequest) -> FitResult:
        """Fit, once earlier requests have been served.

        Raises:
            FitInterruptedError: The process crashed, was killed or given up; ask again.
            FitError: The process refused the request, and would refuse it again.
        """
        settings = {name: getattr(request, name) for name in _SETTINGS}
        data = {
            "features": np.asarray(request.features, dtype=np.float64),
            "outcomes": np.asarray(request.outcomes, dtype=np.float64),
        }
        if request.weights is not None:
            data["weights"] = np.asarray(request.weights, dtype=np.float64)
        message, arrays = await self._ask(
            {"op": "fit", "layout": to_dict(request.layout), "request": settings}, data
        )
        nodes = [NodeSummary.from_dict(node) for node in message["nodes"]]
        return FitResult(
            request.layout,
            arrays.pop("draws"),
            nodes,
            message["diagnostics"],
            FitData(data["features"], data["outcomes"], data.get("weights")),
            arrays,
        )

    async def close(self) -> None:
        """End the process; it may be called twice."""
        for task in list(self._warming):
            task.cancel()
        await self._end()

    async def _warm(self, layout: Layout, weighted: bool) -> None:
        message = {"op": "compile", "layout": to_dict(layout), "weighted": weighted}
        with contextlib.suppress(FitError):
            await self._ask(message, {})

    async def _ask(self, message: Mapping[str, Any], arrays: messages.Arrays) -> Message:
        self._asked += 1
        try:
            return await self._asked_in_turn(message, arrays)
        finally:
            self._asked -= 1

    async def _asked_in_turn(self, message: Mapping[str, Any], arrays: messages.Arrays) -> Message:
        async with self._turn:
            try:
                process = await self._running()
                answer = await self._in_time(
                    process.pid, self._exchange(process, messages.pack(message, arrays))
                )
            except FitInterruptedError:
                await self._end()
                raise
            except (asyncio.IncompleteReadError, ConnectionError, messages.MessageError) as error:
                killed = await self._was_killed()
                await self._end()
                tail = self._stderr.decode(errors="replace").strip() or repr(error)
                how = "was killed" if killed else "ended unexpectedly"
                raise FitInterruptedError(
                    f"the fitting process {how}: {tail}", "kill" if killed else ""
                ) from None
            except asyncio.CancelledError:
                # Its answer would be taken for that of the next request.
                await self._end()
                raise
        if not answer[0]["ok"]:
            if answer[0].get("interrupted"):
                raise FitInterruptedError(answer[0]["error"], answer[0].get("died_of", ""))
            raise FitError(answer[0]["error"])
        self.compiles = int(answer[0]["compiles"])
        return answer

    async def _in_time(self, pid: int, exchange: Coroutine[Any, Any, Message]) -> Message:
        """Wait for the answer, unless the process is given up first."""
        answer = asyncio.create_task(exchange)
        tasks: list[asyncio.Task[Any]] = [answer]
        try:
            if self._watch is not None:
                tasks.append(asyncio.create_task(self._watch(pid)))
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise FitInterruptedError(f"the fitting process was ended: {tasks[1].result()}")
            return answer.result()
        finally:
            for task in tasks:
                task.cancel()

    async def _exchange(self, process: asyncio.subprocess.Process, message: bytes) -> Message:
        assert process.stdin is not None  # both are pipes
        assert process.stdout is not None
        process.stdin.write(message)
        await process.stdin.drain()
        header = await process.stdout.readexactly(messages.HEADER.size)
        text, payload = messages.lengths(header)
        return messages.unpack(
            await process.stdout.readexactly(text), await process.stdout.readexactly(payload)
        )

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        await self._end()
        self._stderr = b""
        try:
            self._process = await asyncio.create_subprocess_exec(
                self._python,
                "-P",
                "-m",
                "animalcat.layouts.inference.fitter",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise FitInterruptedError(f"cannot start the fitting process: {error}") from None
        self._drain = asyncio.create_task(self._keep_stderr(self._process))
        return self._process

    async def _keep_stderr(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None  # a pipe
        while part := await process.stderr.read(4096):
            self._stderr = (self._stderr + part)[-_STDERR_KEPT:]

    async def _was_killed(self) -> bool:
        """Return whether the process, which has closed its pipes, was killed by somebody else."""
        if self._process is None:
            return False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ENDING_SECONDS):
                return await self._process.wait() == -signal.SIGKILL
        return False

    async def _end(self) -> None:
        process, self._process = self._process, None
        drain, self._drain = self._drain, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if process.stdin is not None:
            process.stdin.close()
        if drain is not None:
            await drain


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer requests until the source ends."""
    requests: queue.Queue[Message] = queue.Queue()
    threading.Thread(target=_read_all, args=(source, requests), daemon=True).start()
    while True:
        message, arrays = requests.get()
        try:
            answer = _answer(message, arrays)
        except Exception as error:  # noqa: BLE001 - whatever fails is the answer, not the end
            text = f"{type(error).__name__}: {error}"
            machine = isinstance(error, MemoryError | OSError)
            died_of = "memory" if isinstance(error, MemoryError) else ""
            told = {"ok": False, "error": text, "interrupted": machine, "died_of": died_of}
            answer = messages.pack(told)
        sink.write(answer)
        sink.flush()


def main() -> None:
    """Serve requests on standard input and output."""
    # What a library prints must not get between the messages.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with contextlib.suppress(OSError):
        os.nice(5)  # episodes come first
        Path("/proc/self/oom_score_adj").write_text("500")  # it is made again, the server is not
    serve(sys.stdin.buffer, answers)


def _read_all(source: BinaryIO, requests: queue.Queue[Message]) -> None:
    """Queue every request; at the end of the input exit at once, even in the middle of a fit."""
    try:
        while message := messages.read(source.read):
            requests.put(message)
    finally:
        os._exit(0)


def _answer(message: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    if message.get("op") not in ("compile", "fit"):
        raise ValueError(f"op {message.get('op')!r} is unknown; valid: compile, fit")
    layout = from_dict(message.get("layout"))
    from animalcat.layouts.inference.backend.engine import default_engine

    engine = default_engine()
    if message["op"] == "compile":
        engine.compile(layout, weighted=bool(message.get("weighted")))
        return messages.pack({"ok": True, "compiles": engine.compiles})
    settings = {name: message["request"][name] for name in _SETTINGS}
    weights = arrays.get("weights")
    request = FitRequest(
        layout, arrays["features"], arrays["outcomes"], weights=weights, **settings
    )
    result = fit(request, engine)
    answer = {
        "ok": True,
        "compiles": engine.compiles,
        "diagnostics": result.diagnostics,
        "nodes": [asdict(node) for node in result.nodes],
    }
    return messages.pack(answer, {"draws": result.draws, **result.statistics})


if __name__ == "__main__":
    main()
