"""What browsers are told of a session while they watch: once for all of them, for nobody not.

A feed begins with the first browser that watches a session, and ends with the last. Twice a second
it looks at what has changed. The course of the estimates is noted all the time, as the numbers are
there anyway.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import math
import re
import struct
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.placement import place
from animalcat.envs.state import AGENT, Column
from animalcat.maps.shapes import of_state, of_things
from animalcat.maps.small import draw_things
from animalcat.service.recording.about import colour_of, png
from animalcat.service.recording.channels import Channel
from animalcat.service.recording.encoding import OPCODE
from animalcat.service.recording.sums import MAGIC
from animalcat.service.reporting.session_report import REASONS
from animalcat.service.session.engines import Engines
from animalcat.service.session.events import Event
from animalcat.service.session.glimpse import Glimpse, Onlooker
from animalcat.service.storage.artefacts import recording_path
from animalcat.service.storage.listing import Page
from animalcat.v1 import results_pb2
from animalcat.values import CapabilityStatus, Decision, Episode, Outcome, Session

log = logging.getLogger(__name__)

TICK_SECONDS: Final = 0.4
"""How often a feed looks: with that of the pictures, nothing is behind by a second."""
ALIVE_SECONDS: Final = 15.0
"""After how much silence browsers are told that the server is still there."""
MOST_POINTS: Final = 400
"""Most points of a course; of a longer one every second is dropped."""
MOST_COURSES: Final = 500
MOST_OUTCOMES: Final = 600
"""Most outcomes that are shown, the latest ones."""
STRIDE: Final = 0.2
"""Metres from one point of a path to the next, at least."""
MOST_PATH: Final = 8000
"""Most numbers of a path."""
RECENT: Final = 12
"""Episodes of which more is told than how they ended."""
BEHIND: Final = 8
"""Most messages that wait for a slow browser; then it is told all anew."""
_RECORD: Final = struct.Struct("<BQ")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_MESSAGE: Final = struct.Struct("<HIQQ")
_READ: Final = 1 << 20
_LETTERS: Final = {
    Outcome.SUCCESS: "S",
    Outcome.FAILURE: "F",
    Outcome.VOID: "v",
    Outcome.FAULT: "x",
}


def _point(session: Session) -> list[list[Any]]:
    """Return the point of a course at which a session is now; none before anything is known."""
    now = [[*_ends(c), _number(c.value)] for c in session.capabilities]
    return [[session.episodes, *now]] if now else []


def _ends(capability: CapabilityStatus) -> tuple[float, float]:
    """The ends of an interval as its words say them, so that picture and words agree."""
    first, _, last = capability.interval.partition(" to ")
    low = _number(first) or 0.0
    high = _number(last)
    return low, low if high is None else high


def _number(words: str) -> float | None:
    found = _NUMBER.search(words.replace("−", "-"))
    return None if found is None else float(found[0])


class Feeds:
    """The feeds of the sessions that are watched just now; used on one event loop only."""

    def __init__(self, engines: Engines, shown: Callable[..., str]) -> None:
        """Watch nothing yet.

        Args:
            engines: Have the sessions.
            shown: Makes HTML of a session, its latest episodes, and that which is played.
        """
        self.engines, self.shown = engines, shown
        self._feeds: dict[str, _Feed] = {}
        self._courses = OrderedDict[str, list[list[Any]]]()
        self._stopping = asyncio.Event()
        self._noting = ExitStack()
        self._noting.enter_context(engines.parts.bus.listen(self._note))

    def _note(self, event: Event) -> None:
        """Note the estimates of a session, if another episode counts."""
        session = event.session
        if not (point := _point(session)):
            return
        course = self._courses.setdefault(session.id, [])
        self._courses.move_to_end(session.id)
        if course and course[-1][0] == session.episodes:
            course.pop()
        course += point
        if len(course) > MOST_POINTS:
            del course[-2::-2]
        while len(self._courses) > MOST_COURSES:
            self._courses.popitem(last=False)

    def course(self, session: Session) -> list[list[Any]]:
        """Return how the estimates of a session have gone since the server was started.

        They are points of episodes with the ends of the interval of each capability and its
        estimate, in the unit of its words; None where it is not known.
        """
        return self._courses.get(session.id) or _point(session)

    async def watch(self, session: str) -> AsyncGenerator[bytes]:
        """Yield messages for one browser, in the form of server-sent events."""
        if (feed := self._feeds.get(session)) is None:
            feed = self._feeds[session] = _Feed(self, session)
        queue: asyncio.Queue[bytes] = asyncio.Queue(BEHIND)
        feed.join(queue)
        try:
            while not self._stopping.is_set():
                try:
                    yield await asyncio.wait_for(queue.get(), ALIVE_SECONDS)
                except TimeoutError:
                    yield b": still here\n\n"
        finally:
            if feed.leave(queue):
                del self._feeds[session]

    def stop(self) -> None:
        """End all of them."""
        self._stopping.set()
        self._noting.close()
        for feed in list(self._feeds.values()):
            for queue in feed.queues:
                with suppress(asyncio.QueueFull):
                    queue.put_nowait(b"event: end\ndata: {}\n\n")


class _Feed:
    """What is told of one session to all who watch it."""

    def __init__(self, feeds: Feeds, session: str) -> None:
        self.queues = set[asyncio.Queue[bytes]]()
        self._feeds, self._engines, self._name = feeds, feeds.engines, session
        self._state: dict[str, Any] | None = None
        self._scene: _Scene | None = None
        self._task = asyncio.create_task(self._run())

    def join(self, queue: asyncio.Queue[bytes]) -> None:
        """Tell a browser from now on, beginning with how things stand."""
        self.queues.add(queue)
        self._tell_all(queue)

    def leave(self, queue: asyncio.Queue[bytes]) -> bool:
        """Tell a browser no more; returns whether nobody is left."""
        self.queues.discard(queue)
        if self.queues:
            return False
        self._task.cancel()
        if self._scene is not None:
            self._scene.close()
        return True

    def _tell_all(self, queue: asyncio.Queue[bytes]) -> None:
        if self._state is not None:
            course = self._feeds.course(self._session)
            queue.put_nowait(_event("state", {**self._state, "course": course}))
        if self._scene is not None:
            queue.put_nowait(_event("view", self._scene.whole()))

    def _tell(self, kind: str, said: Mapping[str, Any]) -> None:
        message = _event(kind, said)
        for queue in self.queues:
            if queue.full():  # it has missed something, so it is told all of it
                while not queue.empty():
                    queue.get_nowait()
                self._tell_all(queue)
            else:
                queue.put_nowait(message)

    async def _run(self) -> None:
        engines, seen = self._engines, None
        try:
            with engines.parts.bus.watch(self._name) as events:
                while True:
                    session = self._session = await engines.session(self._name)
                    happened = not events.empty()
                    while not events.empty():
                        events.get_nowait()
                    newest = await asyncio.to_thread(self._newest, 2)
                    outcomes = [(e.number, e.attempt, e.outcome, e.invalid) for e in newest]
                    if happened or (session, outcomes) != seen:
                        first, seen = self._state is None, (session, outcomes)
                        played = await asyncio.to_thread(self._newest, MOST_OUTCOMES)
                        self._state = self._stands(session, played)
                        course = self._feeds.course(session)
                        also = {"course": course} if first else {"point": course[-1:]}
                        self._tell("state", {**self._state, **also})
                    await self._look(newest)
                    await asyncio.sleep(TICK_SECONDS)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.exception("what is told of session %s has failed", self._name)
            self._tell("failed", {"words": f"{type(error).__name__}; the server's log says more"})

    def _stands(self, session: Session, played: Sequence[Episode]) -> dict[str, Any]:
        """Return what is told of a session and of its latest attempts, which come newest first."""
        over = [e for e in played if e.outcome is not None][:RECENT]
        playing = next((e for e in reversed(played) if e.outcome is None), None)
        return {
            "html": self._feeds.shown(session=session, latest=over, playing=playing),
            "over": session.over,
            "paused": session.paused,
            "unjudged": bool(session.unjudged),
            "playing": playing is not None,
            "outcomes": [[e.number, e.attempt, letter(e)] for e in reversed(played)],
        }

    def _newest(self, most: int) -> Sequence[Episode]:
        """Return the latest attempts, newest first."""
        store = self._engines.parts.store
        return list(store.episodes(self._name, page=Page(most), newest_first=True))

    async def _look(self, newest: Sequence[Episode]) -> None:
        """Look at what is being played."""
        playing = next((e for e in reversed(newest) if e.outcome is None), None)
        if self._scene is not None and (playing is None or self._scene.name != playing.name):
            await asyncio.to_thread(self._scene.close)
        if playing is None:
            return
        if self._scene is None or self._scene.name != playing.name:
            data = self._engines.parts.data
            path = recording_path(data, self._name, playing.number, playing.attempt)
            self._scene = _Scene(playing, path)
        if (said := await asyncio.to_thread(self._scene.look)) is not None:
            self._tell("view", said)


class _Scene:
    """An episode that is played: what the agent sees, and the arena from above with its path."""

    def __init__(self, episode: Episode, recording: Path) -> None:
        self.name = episode.name
        names = ("number", "attempt", "instance")
        self._about = {name: getattr(episode, name) for name in names}
        self._recording = recording
        self._onlooker = Onlooker(recording)
        self._at = len(MAGIC)
        self._path: list[float] = []
        self._shown: dict[str, Any] = {}
        self._things = ""
        self._rows: npt.NDArray[np.float32] | None = None
        self._last: results_pb2.RecordedStep | None = None
        self._total = 0.0

    def look(self) -> dict[str, Any] | None:
        """Return what has changed since the last time; None where nothing has."""
        begun, before = len(self._path), self._last
        self._read()
        glimpse = self._onlooker.look()
        if self._last is before and glimpse is None:
            return None
        if len(self._path) > MOST_PATH:  # an arena without an end: only the way of late
            self._path, begun = self._path[-MOST_PATH // 2 :], 0
        changed = self._numbers() | ({} if glimpse is None else self._see(glimpse))
        self._shown |= changed
        return {**self._about, **changed, "from": begun, "path": self._path[begun:]}

    def whole(self) -> dict[str, Any]:
        """Return all of it, for who has just come."""
        return {**self._about, **self._shown, "from": 0, "path": self._path}

    def close(self) -> None:
        """Ask the process that plays no more."""
        with suppress(OSError):
            self._onlooker.close()

    def _numbers(self) -> dict[str, Any]:
        if (step := self._last) is None:
            return {}
        health, total = round(step.observation.health, 1), float(f"{self._total:.4g}")
        return {"step": step.step, "health": health, "return": total}

    def _see(self, glimpse: Glimpse) -> dict[str, Any]:
        said: dict[str, Any] = {"own": glimpse.own, "seen": glimpse.number}
        if glimpse.picture is not None:
            shown = base64.b64encode(png(glimpse.picture)).decode()
            said["picture"] = f"data:image/png;base64,{shown}"
        if glimpse.state is not None:
            x, z = map(float, glimpse.state[AGENT, [Column.CENTER, Column.CENTER + 2]])
            turn = glimpse.state[AGENT, Column.ROTATION : Column.ROTATION + 9]
            yaw = math.degrees(math.atan2(float(turn[2]), float(turn[8])))
            said["agent"] = [round(x, 2), round(z, 2), round(yaw)]
            rows = glimpse.state[1:]
            before = self._rows
            if before is None or before.shape != rows.shape or np.abs(before - rows).max() > 0.02:
                self._rows = rows
                said["things"] = draw_things(of_state(rows, colour_of))
        return said

    def _read(self) -> None:
        """Read what was recorded since the last time."""
        try:
            with self._recording.open("rb", 0) as file:
                file.seek(self._at)
                data = file.read(_READ)
        except FileNotFoundError:
            return
        at = 0
        while at + _RECORD.size <= len(data):
            opcode, length = _RECORD.unpack_from(data, at)
            end = at + _RECORD.size + length
            if opcode == 0 or end > len(data):
                break
            if opcode == OPCODE:
                channel, *_ = _MESSAGE.unpack_from(data, at + _RECORD.size)
                self._take(channel, data[at + _RECORD.size + _MESSAGE.size : end])
            at = end
        self._at += at

    def _take(self, channel: int, data: bytes) -> None:
        if channel == Channel.STEP.number:
            step = results_pb2.RecordedStep.FromString(data)
            self._last = step
            self._total += step.reward
            x, _, z = step.observation.position
            if len(self._path) < 2 or math.dist((x, z), self._path[-2:]) > STRIDE:
                self._path += [round(x, 2), round(z, 2)]
        elif channel == Channel.HEADER.number:
            header = results_pb2.EpisodeHeader.FromString(data)
            with suppress(ArenaError, ValueError):  # it is seen without its map then
                arena = load_text(header.arena_yaml, "arena").config.first
                placement = place(arena, np.random.default_rng(0))
                self._shown["things"] = draw_things(of_things(placement.objects))


def _event(kind: str, said: Mapping[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(said, separators=(',', ':'))}\n\n".encode()


def because(decision: Decision) -> str:
    """Return why an instance was chosen, and where it is nearest to the agent's limit."""
    said = [decision.because or REASONS.get(decision.reason, decision.reason)]
    if decision.margins:
        name, margin = min(decision.margins.items(), key=lambda pair: abs(pair[1]))
        than = "more" if margin >= 0 else "less"
        said.append(f"nearest to the limit in {name}, estimated at {than} than what it asks for")
    return "; ".join(filter(None, said))


def letter(episode: Episode) -> str:
    """The letter of an outcome: S, F, v for void, x for a fault, i for invalid, . for open."""
    if episode.invalid:
        return "i"
    return "." if episode.outcome is None else _LETTERS[episode.outcome]
