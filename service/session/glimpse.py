"""Shows people who watch what an agent sees just now, as far as anybody watches.

Who plays an episode and who shows it to browsers are different processes. The second one asks by a
file in the data directory whose time it renews, and the first one answers in another file beside
it, a few times a second. Where nobody asks, that costs one look at the clock a decision.
"""

from __future__ import annotations

import json
import os
import struct
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from animalcat.envs.places import unwrap_environment
from animalcat.envs.types import STATE_COLUMNS, Environment, Step

FOLDER: Final = "watched"
"""Folder of a data directory for these files; nothing in it is kept."""
PERIOD: Final = 0.25
"""Seconds between looks whether somebody asks, and so between pictures."""
ASKED_SECONDS: Final = 3.0
"""For how long one is shown pictures after asking."""
SIDE: Final = 96
"""Side in pixels of a picture that is drawn for people, where the agent has no camera."""


_HEAD: Final = struct.Struct("<II")
"""Length and check sum of what is shown."""


@runtime_checkable
class Glances(Protocol):
    """An environment that can show what is seen now, without changing anything."""

    def glance(self, side: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]]:
        """Return a picture (side, side, 3) and the true state."""
        ...


class Glimpse(NamedTuple):
    """What an agent sees at a moment.

    Attributes:
        number: Number of decisions taken so far.
        own: Whether the picture is that of the agent's own camera; else it was drawn for people.
        picture: uint8 (height, width, channels); None where there is none.
        state: The true state as `envs.state` names it; None where the backend does not tell.
    """

    number: int
    own: bool
    picture: npt.NDArray[np.uint8] | None
    state: npt.NDArray[np.float32] | None


class Shower:
    """Shows an episode while it is played, in the process that plays it."""

    def __init__(self, recording: Path, environment: Environment) -> None:
        """Look for nobody yet.

        Args:
            recording: The recording of the episode, by whose name it is asked for.
            environment: What plays it.
        """
        self._ask, self._view = files_of(recording)
        self._environment = unwrap_environment(environment)
        self._next = 0.0

    def show(self, number: int, step: Step) -> None:
        """Show a step if somebody asks; what goes wrong with that is no matter to the episode."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + PERIOD
        with suppress(OSError):
            if time.time() - self._ask.stat().st_mtime < ASKED_SECONDS:
                self._write(number, step)

    def _write(self, number: int, step: Step) -> None:
        own = step.observation.camera
        picture, state = own, step.observation.state
        if isinstance(self._environment, Glances):
            drawn, state = self._environment.glance(SIDE)
            picture = drawn if picture is None else picture
        shape = None if picture is None else picture.shape
        rows = 0 if state is None else len(state)
        head: Mapping[str, Any] = {
            "number": number,
            "own": own is not None,
            "shape": shape,
            "rows": rows,
        }
        parts = [json.dumps(head).encode(), b"\n"]
        parts += [] if picture is None else [picture.tobytes()]
        parts += [] if state is None else [state.tobytes()]
        data = b"".join(parts)
        # In place: to rename a file over another one may wait for the disk, and the agent with it.
        file = os.open(self._view, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(file, _HEAD.pack(len(data), zlib.crc32(data)) + data, 0)
        finally:
            os.close(file)


class Onlooker:
    """Asks for one episode, in the process that shows it to browsers; it blocks for moments."""

    def __init__(self, recording: Path) -> None:
        """Ask for nothing yet.

        Args:
            recording: The recording of the episode.
        """
        self._ask, self._view = files_of(recording)
        self._seen = 0

    def look(self) -> Glimpse | None:
        """Ask, and return what was shown since the last time; None if nothing new was."""
        try:
            os.utime(self._ask)
        except FileNotFoundError:
            self._ask.parent.mkdir(0o700, parents=True, exist_ok=True)  # not for agents
            self._ask.touch(0o600)
        try:
            changed = self._view.stat().st_mtime_ns
            data = b"" if changed == self._seen else self._view.read_bytes()
        except FileNotFoundError:
            return None
        if len(data) < _HEAD.size:
            return None
        size, check = _HEAD.unpack_from(data)
        data = data[_HEAD.size : _HEAD.size + size]
        if zlib.crc32(data) != check:  # it is being written just now
            return None
        self._seen = changed
        return _read(data)

    def close(self) -> None:
        """Ask no more."""
        for file in (self._ask, self._view):
            file.unlink(missing_ok=True)


def files_of(recording: Path) -> tuple[Path, Path]:
    """Return the files by which an episode is asked for, and in which it is shown."""
    name = f"{recording.parent.name}-{recording.stem}"
    folder = recording.parents[2] / FOLDER
    return folder / f"{name}.ask", folder / f"{name}.view"


def _read(data: bytes) -> Glimpse:
    head, _, rest = data.partition(b"\n")
    said = json.loads(head)
    picture = state = None
    if said["shape"] is not None:
        height, width, channels = map(int, said["shape"])
        size = height * width * channels
        picture = np.frombuffer(rest, np.uint8, size).reshape(height, width, channels)
        rest = rest[size:]
    if said["rows"]:
        state = np.frombuffer(rest, np.float32).reshape(said["rows"], STATE_COLUMNS)
    return Glimpse(said["number"], said["own"], picture, state)
