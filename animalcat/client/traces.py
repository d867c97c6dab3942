"""Short traces: what a caller reads of an error, without the frames of event loops."""

from __future__ import annotations

import asyncio
import concurrent.futures
from pathlib import Path
from types import TracebackType
from typing import Final, TypeVar

from animalcat.errors import AnimalcatError

_E = TypeVar("_E", bound=Exception)

_INNER: Final = tuple(
    str(Path(file).parent) for file in (asyncio.__file__, concurrent.futures.__file__, __file__)
)
"""Folders whose frames tell a caller nothing."""


def shorten_trace(error: _E) -> _E:
    """An error with the frames that its reader can do something about.

    What the server says has none: it tells all in its sentence. Of what an agent's code raises, the
    frames of that code stay.

    Args:
        error: The error; it is changed.
    """
    if isinstance(error, AnimalcatError):
        return error.with_traceback(None)
    kept: TracebackType | None = None
    frames = list[TracebackType]()
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    for frame in reversed(frames):
        if not frame.tb_frame.f_code.co_filename.startswith(_INNER):
            kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return error.with_traceback(kept)
