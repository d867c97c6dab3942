"""Keeps of an open round, step by step, what would be lost with a process that is killed."""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass, field
from pathlib import Path

from animalcat.doors.study.realtime import AHEAD, Frame, Key, Timing


@dataclass(slots=True)
class Round:
    """A round that is open; its times are in seconds of the seat's clock.

    Attributes:
        episode: Its number in the session.
        began: When its first frame was.
        heard: When the participant was last heard.
        step: Decisions taken.
        gaps: Seconds of each absence after which it went on.
        blurs: How often the window lost its keys or was hidden.
        full_screen: Whether it ran in full screen all the time.
        timings: When each frame was.
        keys: Which keys went down and up, and when.
        kept: How many frames and keys are in the file.
        total: Sum of the rewards.
        last: The latest frame.
    """

    episode: int
    began: float
    heard: float
    step: int = 0
    gaps: list[float] = field(default_factory=list[float])
    blurs: int = 0
    full_screen: bool = False
    timings: list[Timing] = field(default_factory=list[Timing])
    keys: list[Key] = field(default_factory=list[Key])
    kept: tuple[int, int] = (0, 0)
    total: float = 0.0
    last: Frame | None = None


class RoundFile:
    """A participant's open round on disk: a line a step, each with the round as it stands.

    The operating system has a line when `add` returns, so that killing the process loses none.
    """

    def __init__(self, path: Path, since: float, skew: float) -> None:
        """Name a file; nothing is read or written yet.

        Another event than the participant's latest, which was at `since`, makes what the file holds
        out of date. `skew` is what the seat's clock lacks to seconds since 1970.
        """
        self._path, self._since, self._skew = path, since, skew

    def read(self) -> Round | None:
        """Return the round that was open; None if none was, or it cannot be read."""
        try:
            lines = [json.loads(line) for line in self._path.read_bytes().split(b"\n")[:-1]]
            since, episode, began, heard, step, gaps, blurs, full_screen, _, _ = lines[-1]
            timings = [Timing(*fields) for line in lines for fields in line[-2]]
            keys = [Key(*fields) for line in lines for fields in line[-1]]
        except (OSError, ValueError, IndexError, TypeError):
            return None
        if since != self._since:
            return None
        times = began - self._skew, heard - self._skew
        kept = len(timings), len(keys)
        return Round(episode, *times, step, gaps, blurs, full_screen, timings, keys, kept)

    def add(self, now: Round, *, anew: bool = False) -> None:
        """Write how a round stands, or that another one begins.

        Times of frames follow once the browser has told of them.
        """
        (new, known), count = now.kept, len(now.timings)
        end = new
        while end < count and (now.timings[end].received is not None or count - end > AHEAD):
            end += 1
        now.kept = end, len(now.keys)
        times = now.began + self._skew, now.heard + self._skew
        rest = now.step, now.gaps, now.blurs, now.full_screen
        told = [astuple(timing) for timing in now.timings[new:end]], now.keys[known:]
        with self._path.open("wb" if anew else "ab", buffering=0) as file:
            line = [self._since, now.episode, *times, *rest, *told]
            file.write(json.dumps(line).encode() + b"\n")
