"""Runs what a page shows on a thread of its own, or in a process of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

from animalcat.errors import AnimalcatError
from animalcat.machine.processes import process_pool

NICE: Final = 5
"""By how much a show in a process of its own gives way to what plays sessions."""


class Shown(NamedTuple):
    """What a call is answered.

    Attributes:
        state: What the page shows beside the pictures, as JSON has it; it says their sizes.
        pixels: The pictures' bytes, one after another, three bytes a pixel.
    """

    state: Mapping[str, Any]
    pixels: bytes


class Show(Protocol):
    """What a page shows; all of it runs on one thread, by the names of its methods."""

    def state(self) -> Shown:
        """Return what is to be seen at first."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class Stage:
    """A show, and where it runs; used on one event loop only."""

    def __init__(self, make: Callable[[], Show], *, apart: bool = False) -> None:
        """Begin nothing yet.

        Args:
            make: Makes the show; to be pickled where it is to run apart.
            apart: Whether it runs in a process of its own, so that it cannot take a server with it.
        """
        self._make = make
        self._apart = apart
        self._executor: Executor | None = None

    async def call(self, name: str, *arguments: int) -> Shown:
        """Call a method of the show; the first call makes it.

        Raises:
            AnimalcatError: Its process has died.
            Exception: What the show raises.
        """
        loop, first = asyncio.get_running_loop(), self._executor is None
        if self._executor is None:
            self._executor = (
                process_pool(1, os.nice, NICE) if self._apart else ThreadPoolExecutor(1)
            )
        try:
            if first:
                await loop.run_in_executor(self._executor, _open, id(self), self._make)
            return await loop.run_in_executor(self._executor, _ask, id(self), name, arguments)
        except BrokenProcessPool as error:
            words = "the process that shows this has died; reload the page"
            raise AnimalcatError(words, "INTERNAL") from error

    def close(self) -> None:
        """End the show; a later call begins anew."""
        executor, self._executor = self._executor, None
        if executor is not None:
            with suppress(BrokenProcessPool):
                executor.submit(_close, id(self))
            executor.shutdown(wait=not self._apart)


_shows: Final[dict[int, Show]] = {}
"""Shows of this process, by the stage that they are on."""


def _open(number: int, make: Callable[[], Show]) -> None:
    _shows[number] = make()


def _ask(number: int, name: str, arguments: tuple[int, ...]) -> Shown:
    return getattr(_shows[number], name)(*arguments)


def _close(number: int) -> None:
    if (show := _shows.pop(number, None)) is not None:
        show.close()
