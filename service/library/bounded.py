"""Works on what strangers hand over in processes with limits, which end with those who wait."""

from __future__ import annotations

import asyncio
import math
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from animalcat.extending import plugins
from animalcat.machine.processes import end_with_parent
from animalcat.service.batteries.estimate import Tick
from animalcat.service.errors import Code, ServiceError

T = TypeVar("T")
R = TypeVar("R", covariant=True)

STEP_SECONDS: Final = 60
"""CPU time that work may take from one report of progress to the next."""
READ_SECONDS: Final = 10
"""CPU time for reading one text; a layout of a hundred nodes takes 0.1 s."""
MEMORY_BYTES: Final = 4 << 30
"""Memory that such a process may take beyond what it begins with."""
MAKE_SECONDS: Final = 900
"""CPU time for making one report or file."""
READERS: Final = 2
"""Texts that are read at once; others wait."""
MAKERS: Final = 4
"""Reports that are made at once; others wait."""
NICE: Final = 5
"""By how much such a process gives way to what plays sessions."""
_LOOK_SECONDS: Final = 0.2
_TOLD_SECONDS: Final = 0.05
_PRELOADED: Final = (
    "animalcat.service.batteries.recipes",
    "animalcat.service.library.batteries",
    "animalcat.service.library.layouts",
)
_context: Final = get_context("forkserver")
_readers: Final = ThreadPoolExecutor(READERS, "readers")
_makers: Final = ThreadPoolExecutor(MAKERS, "makers")


class Work(Protocol[R]):
    """Something to do in another process, which may report progress."""

    def __call__(self, *, tick: Tick) -> R:
        """Do it."""
        ...


class GoneError(Exception):
    """Nobody waits for the work any more."""


def run_bounded(work: Work[T], tick: Tick, seconds: int = STEP_SECONDS) -> T:
    """Do some work in a process of its own, and return its result or raise its error.

    The process has limits of CPU time and memory, and is killed when `tick` raises an error.

    Args:
        work: Can be pickled, as its result can.
        tick: Told of progress, and asked again and again where there is none.
        seconds: CPU time that may pass from one report of progress to the next.

    Raises:
        ServiceError: It took more than it may.
    """
    _context.set_forkserver_preload([*_PRELOADED])
    receiver, sender = _context.Pipe(duplex=False)
    process = _context.Process(target=_begin, args=(sender, plugins.limits(), work, seconds))
    process.start()
    sender.close()
    progress: tuple[int, int, str] = (0, 1, "reading what was sent")
    try:
        while True:
            if receiver.poll(_LOOK_SECONDS):
                kind, said = receiver.recv()
                if kind == "result":
                    return said
                if kind == "error":
                    raise said
                progress = said
            tick(*progress)
    except EOFError:
        process.join()
        raise ServiceError(
            Code.TOO_LARGE,
            f"it took more than {seconds} s of a processor or {MEMORY_BYTES >> 30} GiB of memory "
            f"(code {process.exitcode}), and was stopped: make the input smaller, or split it",
        ) from None
    finally:
        process.kill()
        process.join()
        receiver.close()


async def read_bounded(read: Callable[..., T], *arguments: Any) -> T:
    """Read a text in a process of its own, which ends when the caller goes.

    Args:
        read: The reader.
        arguments: What to give it.

    Raises:
        ServiceError: As for `run_bounded`; and what the reader raises.
    """
    return await _wait_for(_readers, READ_SECONDS, partial(read, *arguments))


async def make_bounded(make: Callable[[], T]) -> T:
    """Make a report or a file in a process of its own, which ends when the caller goes.

    Args:
        make: Makes it; can be pickled.

    Raises:
        ServiceError: As for `run_bounded`; and what `make` raises.
    """
    return await _wait_for(_makers, MAKE_SECONDS, make)


async def _wait_for(pool: Executor, seconds: int, call: Callable[[], T]) -> T:
    gone = threading.Event()

    def tick(*_: object) -> None:
        if gone.is_set():
            raise GoneError

    work: Work[T] = partial(_call, call)
    try:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(pool, run_bounded, work, tick, seconds)
    finally:
        gone.set()


def _call(call: Callable[[], T], *, tick: Tick) -> T:
    del tick
    return call()


def _begin(
    sender: Connection, limits: Sequence[frozenset[str]], work: Work[Any], seconds: int
) -> None:
    """Do work within a process that was made for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    os.nice(NICE)
    threading.Thread(target=end_with_parent, daemon=True).start()
    _limit_memory()
    next_told = 0.0

    def tick(done: int, total: int, message: str) -> None:
        nonlocal next_told
        _grant(seconds)
        if time.monotonic() >= next_told or done == total:
            next_told = time.monotonic() + _TOLD_SECONDS
            sender.send(("progress", (done, total, message)))

    _grant(seconds)
    with ExitStack() as stack:
        for limit in limits:
            stack.enter_context(plugins.only(limit))
        try:
            answer: tuple[str, Any] = "result", work(tick=tick)
        except MemoryError:
            return
        except Exception as error:  # noqa: BLE001 - raised again by who waits
            answer = "error", error
        sender.send(answer)


def _grant(seconds: int) -> None:
    """Let this process take so much more CPU time; the system ends it where it takes more."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time()) + seconds, most))


def _limit_memory() -> None:
    pages = Path("/proc/self/statm")
    if pages.exists():  # other systems do not hold processes to it
        begun = int(pages.read_text("ascii").split()[0]) * resource.getpagesize()
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (begun + MEMORY_BYTES, most))
