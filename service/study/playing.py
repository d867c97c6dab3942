"""Lets a participant play in real time: the browser shows frames and says keys, and no more.

The participant is the agent of an ordinary session of the service. An arena goes on by the clock,
whether a key is pressed or not. It stands still while nothing is heard of the browser: after up to
`GAP_SECONDS` it goes on at its step, after more the participant has left the episode.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import struct
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Protocol, cast

import grpc
from PIL import Image
from pydantic import TypeAdapter, ValidationError

from animalcat.client.async_client import AsyncClient
from animalcat.client.connection import translated_errors
from animalcat.client.stream import EvaluationStream, Welcome
from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.types import ACTIONS, PHYSICS_STEP, Observation
from animalcat.errors import AnimalcatError
from animalcat.protocol import version
from animalcat.service.study.participant import (
    GAP_SECONDS,
    Part,
    Participant,
    SessionMade,
    SessionOver,
    Timing,
    Trial,
    TrialOver,
)
from animalcat.service.study.store import StudyError, StudyStore
from animalcat.v1 import gateway_pb2
from animalcat.values import Outcome

log = logging.getLogger(__name__)

SILENT_SECONDS: Final = 1.0
"""Nothing is heard of a browser for so long, and the arena stands still."""
READY_SECONDS: Final = 600.0
"""How long a participant may take to begin the next round; then its arena is given back."""
TIMING_SECONDS: Final = 1.0
"""How long the browser may take to say how a trial ran, after its end."""
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 8.0
"""Seconds between attempts to go on after the service failed, each twice the one before."""
_FRAME: Final = struct.Struct("<IdIff")
"""Step, time in ms, number of the latest key that it knows of, health, reward; then a PNG."""
_TIMING: Final = TypeAdapter(Timing)


class Socket(Protocol):
    """What reaches one page of a participant."""

    async def tell(self, **message: Any) -> None:
        """Send a message."""
        ...

    async def show(self, frame: bytes) -> None:
        """Send a frame."""
        ...

    async def close(self) -> None:
        """Close it."""
        ...


@dataclass(slots=True)
class _Heard:
    """What the browser has said."""

    at: float = 0.0
    action: int = 0
    key: int = 0
    timing: Timing | None = None
    timed: asyncio.Event = field(default_factory=asyncio.Event)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    here: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class _Run:
    """A trial that is being played."""

    episode: int
    began: float
    step: int = 0
    gaps: list[float] = field(default_factory=list[float])
    last: bytes = b""


class Seat:
    """A participant's place, which outlives the pages that they open; on one event loop."""

    def __init__(
        self,
        store: StudyStore,
        client: AsyncClient,
        participant: str,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Begin with nobody in it.

        Args:
            store: Keeps what happens.
            client: A client of the service, which may make sessions and play them.
            participant: Id of the participant.
            clock: Seconds.
            now: The time.
        """
        self._store, self._client, self._id = store, client, participant
        self._clock, self._now = clock, now
        self._socket: Socket | None = None
        self._heard = _Heard()
        self._run: _Run | None = None
        self._driving: asyncio.Task[None] | None = None
        self._ending = set[asyncio.Task[None]]()

    @property
    def busy(self) -> bool:
        """Whether somebody is there, or may come back to what is open."""
        return self._socket is not None or (self._driving is not None and not self._driving.done())

    @property
    def playing(self) -> bool:
        """Whether a trial is open."""
        return self._run is not None

    async def attend(self, socket: Socket) -> None:
        """Show a page what is played, instead of the page before it, if any."""
        if self._socket is not None:
            before, self._socket = self._socket, None
            with suppress(Exception):
                await before.tell(t="elsewhere")
                await before.close()
        self._socket = socket
        self._heard.at = self._clock()
        self._heard.action = 0
        self._heard.here.set()
        if self._run is not None:
            await self._open(self._run, resumed=True)
            await socket.show(self._run.last)
        if self._driving is None or self._driving.done():
            self._heard.ready.clear()
            self._driving = asyncio.create_task(self._drive(), name=f"participant {self._id}")

    def leave(self, socket: Socket) -> None:
        """Take note that a page is gone."""
        if socket is self._socket:
            self._socket = None
            self._heard.here.clear()

    async def hear(self, text: str) -> None:
        """Take in what the page says.

        Raises:
            ValueError: It is no message that there is.
        """
        read: Any = json.loads(text)
        if not isinstance(read, dict):
            raise ValueError("no message")
        said = cast("dict[str, Any]", read)
        heard, kind = self._heard, said.get("t")
        heard.at = self._clock()
        heard.here.set()
        if kind == "keys":
            action, key = said["a"], said["n"]
            if type(action) is not int or type(key) is not int:
                raise ValueError("no key")
            if not 0 <= action < ACTIONS or not 0 <= key < 2**31:
                raise ValueError("no key")
            heard.action, heard.key = action, key
        elif kind == "ready":
            heard.ready.set()
        elif kind == "timing":
            try:
                heard.timing = _TIMING.validate_python(said["of"])
            except ValidationError as error:
                raise ValueError("no timing") from error
            if said.get("last"):
                heard.timed.set()
        elif kind == "ping":
            stamp = said["c"]
            if type(stamp) not in (int, float):
                raise ValueError("no time")
            await self._tell(t="pong", c=stamp, s=self._clock() * 1e3)
        else:
            raise ValueError("no message")

    async def stop(self) -> None:
        """Leave, since the study stops here or the participant has withdrawn."""
        tasks = [*self._ending]
        if self._driving is not None:
            tasks.append(self._driving)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if (socket := self._socket) is not None:
            with suppress(Exception):
                await socket.close()

    async def _drive(self) -> None:
        """Play one trial after another as long as the participant is there and at play."""
        pause = FIRST_PAUSE
        while True:
            try:
                await self._play()
                return
            except (AnimalcatError, grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
                log.warning("participant %s: %s", self._id, error)
                self._run = None
                await self._tell(t="trouble")
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                if self._socket is None:
                    return
            except StudyError as error:
                log.info("participant %s: %s", self._id, error)
                await self._tell(t="page")
                return

    async def _play(self) -> None:
        participant = self._store.participant(self._id)
        if (part := participant.part) is None:
            await self._tell(t="page")
            return
        await self._tell(t="wait")
        session = participant.sessions.get(part) or await self._make_session(participant, part)
        stream = EvaluationStream(
            self._client.channel,
            uuid.uuid4().hex,
            AgentFingerprint.declared("person", version=version(), options={"study": "1"}),
            same_agent=True,  # the same person, whatever page and process they come from
            returns=True,
        )
        begun = False
        try:
            with translated_errors(self._client.address):
                try:
                    welcome = await stream.open(f"sessions/{session}", self._id, None)
                except AnimalcatError as error:
                    if error.code != "SESSION_OVER":
                        raise
                    await self._over(part)
                    return
                begun = True
                while (await self._next(stream, welcome, part, session)) is not None:
                    pass
        finally:
            if begun and not any(task.get_name() == stream_name(stream) for task in self._ending):
                await asyncio.shield(stream.leave())

    async def _next(
        self, stream: EvaluationStream, welcome: Welcome, part: Part, session: str
    ) -> bool | None:
        """Play the next trial; None once nothing more is to be played over this stream."""
        frame = await stream.receive()
        if frame.HasField("session_end"):
            await self._over(part)
            return None
        if not frame.HasField("episode_start"):
            raise AnimalcatError(f"the server sent {frame.WhichOneof('frame')} between episodes")
        start = frame.episode_start
        await self._tell(t="next", practice=part == "practice", first=start.episode == 0)
        if not await self._is_ready():
            await stream.withdraw(GAP_SECONDS)
            await self._tell(t="gone")
            return None
        ended = await self._trial(stream, start)
        if ended is None:
            return None
        await self._keep(part, session, ended)
        participant = self._store.participant(self._id)
        if participant.part != part:
            await stream.withdraw(GAP_SECONDS)  # nothing was shown of what may have been chosen
            if part == "practice":
                await self._client.cancel_session(session)
            await self._tell(t="page")
            return None
        if ended.outcome == "played" and ended.episode + 1 >= welcome.max_episodes:
            self._let_end(stream)  # the participant need not wait for the last fit
            await self._over(part)
            return None
        return True

    async def _trial(
        self, stream: EvaluationStream, start: gateway_pb2.EpisodeStart
    ) -> Trial | None:
        """Play a trial; None where the participant left it, which is stored then."""
        heard, period = self._heard, stream.spec.decision_period * PHYSICS_STEP
        period *= self._store.study_of(self._store.participant(self._id)).slower
        heard.timing, heard.action, heard.key = None, 0, 0
        heard.timed.clear()
        run = self._run = _Run(start.episode, self._clock())
        try:
            await self._open(run)
            await self._show(run, stream.observation(start.observation), 0.0)
            due = self._clock()
            while True:
                due += period
                await asyncio.sleep(max(0.0, due - self._clock()))
                since = heard.at
                if self._socket is None or self._clock() - since > SILENT_SECONDS:
                    if not await self._is_back():
                        await self._left(stream, run)
                        return None
                    run.gaps.append(round(self._clock() - since, 3))
                    due = self._clock()
                    continue
                await stream.act(0, run.step, bytes([heard.action]))
                frame = await stream.receive()
                due = max(due, self._clock() - period)  # an arena never hurries to catch up
                if frame.HasField("ask"):
                    run.step = frame.ask.step
                    seen = stream.observation(frame.ask.observation)
                    await self._show(run, seen, frame.ask.reward)
                    continue
                return await self._ended(stream, run, frame.episode_end)
        finally:
            self._run = None

    async def _ended(
        self, stream: EvaluationStream, run: _Run, end: gateway_pb2.EpisodeEnd
    ) -> Trial:
        if end.HasField("observation"):
            await self._show(run, stream.observation(end.observation), end.reward)
        await self._tell(t="stop")
        with suppress(TimeoutError):
            await asyncio.wait_for(self._heard.timed.wait(), TIMING_SECONDS)
        return Trial(
            run.episode,
            None,
            round(self._clock() - run.began, 3),
            end.step,
            "fault" if end.fault else "played",
            None,
            tuple(run.gaps),
            self._heard.timing,
        )

    async def _left(self, stream: EvaluationStream, run: _Run) -> None:
        """Leave an episode whose participant was away for too long."""
        log.info("participant %s was away for too long; the trial is void", self._id)
        await stream.leave()
        part = self._store.participant(self._id).part
        if part is None:
            return
        seconds = round(self._clock() - run.began, 3)
        gaps = (*run.gaps, round(self._clock() - self._heard.at, 3))
        void = Trial(run.episode, None, seconds, run.step, "void", None, gaps, self._heard.timing)
        self._store.append(self._id, TrialOver(self._now(), part, void))
        await self._tell(t="gone")

    async def _keep(self, part: Part, session: str, trial: Trial) -> None:
        """Store a trial with what the service knows of it, then tell the page."""
        attempts = [
            e async for e in self._client.iter_episodes(session, limit=3, newest_first=True)
        ]
        mine = next(e for e in attempts if e.number == trial.episode and e.outcome is not None)
        passed = mine.outcome is Outcome.SUCCESS if trial.outcome == "played" else None
        known = Trial(
            trial.episode,
            mine.attempt,
            trial.seconds,
            trial.steps,
            trial.outcome,
            passed,
            trial.gaps,
            trial.timing,
        )
        before = self._store.participant(self._id)
        shown = self._store.study_of(before).shows(before.condition)
        then = self._store.append(self._id, TrialOver(self._now(), part, known))
        told = passed if shown.outcome or part == "practice" else None
        await self._tell(t="over", passed=told, rounds=then.trials + len(then.practised))

    async def _make_session(self, participant: Participant, part: Part) -> str:
        """Make a session for a part, or find the one that was made before a failure."""
        study = self._store.study_of(participant)
        play = study.measured(participant.condition)
        options: dict[str, Any] = {**play.options}
        battery = play.battery
        if part == "practice":
            assert study.practice is not None  # the stage is not reached without
            battery = study.practice.battery or play.battery
            options = {k: v for k, v in options.items() if k in ("backend", "decision_period")}
            options["max_episodes"] = study.practice.most
            options["fresh"] = not study.practice.battery
            options["target_sd"] = 0.0
            options["aim"] = 0.85
        made = await self._client.create_session(
            agent=self._id,
            battery=battery,
            layout=play.layout,
            layout_variant=play.variant,
            camera=play.camera,
            action_timeout_seconds=READY_SECONDS + 60.0,
            lease_seconds=GAP_SECONDS,
            replace_voids=True,
            request_id=f"study {study.study} {participant.id} {part}",
            **options,
        )
        self._store.append(self._id, SessionMade(self._now(), part, made.id))
        return made.id

    async def _over(self, part: Part) -> None:
        self._store.append(self._id, SessionOver(self._now(), part))
        await self._tell(t="page")

    def _let_end(self, stream: EvaluationStream) -> None:
        """Stay until the session has its profile, beside what the participant does."""

        async def end() -> None:
            with suppress(AnimalcatError, grpc.aio.AioRpcError):
                while not (await stream.receive()).HasField("session_end"):
                    pass
            stream.cancel()

        task = asyncio.create_task(end(), name=stream_name(stream))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _is_ready(self) -> bool:
        """Wait until the participant begins; whether they do, while they are there."""
        end = self._clock() + READY_SECONDS
        while self._clock() < end:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._heard.ready.wait(), SILENT_SECONDS)
            if self._heard.ready.is_set() and self._socket is not None:
                self._heard.ready.clear()
                return True
            if self._clock() - self._heard.at > GAP_SECONDS:
                return False
        return False

    async def _is_back(self) -> bool:
        """Wait for a participant who is away; whether they come back in time."""
        self._heard.here.clear()
        while (left := self._heard.at + GAP_SECONDS - self._clock()) > 0.0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._heard.here.wait(), left)
            if self._socket is not None and self._heard.here.is_set():
                return True
        return False

    async def _open(self, run: _Run, *, resumed: bool = False) -> None:
        await self._tell(t="open", episode=run.episode, resumed=resumed, origin=run.began * 1e3)

    async def _show(self, run: _Run, seen: Observation, reward: float) -> None:
        assert seen.camera is not None  # sessions of people have one
        head = _FRAME.pack(run.step, self._clock() * 1e3, self._heard.key, seen.health, reward)
        run.last = head + await asyncio.to_thread(png, seen.camera)
        if (socket := self._socket) is not None:
            await self._sent(socket.show(run.last))

    async def _tell(self, **message: Any) -> None:
        if (socket := self._socket) is not None:
            await self._sent(socket.tell(**message))

    async def _sent(self, sending: Awaitable[None]) -> None:
        """Send, if the page is still there; a page that is gone is noticed by its silence."""
        with suppress(Exception):
            await sending


def stream_name(stream: EvaluationStream) -> str:
    """Return the name of the task that stays with a stream until its session has ended."""
    return f"end of stream {id(stream)}"


def png(camera: Any) -> bytes:
    """Return a picture as a PNG, packed quickly rather than tightly."""
    out = io.BytesIO()
    Image.fromarray(camera).save(out, "PNG", compress_level=1)
    return out.getvalue()


class Seats:
    """The seats of a study that are in use."""

    def __init__(self, store: StudyStore, client: AsyncClient) -> None:
        """Begin without any."""
        self._store, self._client = store, client
        self._seats: dict[str, Seat] = {}

    def of(self, participant: str) -> Seat:
        """The seat of a participant."""
        for name in [name for name, seat in self._seats.items() if not seat.busy]:
            if name != participant:
                del self._seats[name]
        if participant not in self._seats:
            self._seats[participant] = Seat(self._store, self._client, participant)
        return self._seats[participant]

    def playing(self, participant: str) -> bool:
        """Whether a participant has a trial open."""
        seat = self._seats.get(participant)
        return seat is not None and seat.playing

    async def withdraw(self, participant: str) -> None:
        """Erase a person, with what their sessions have kept."""
        person = participant.partition("-")[0]
        for name in [name for name in self._seats if name.partition("-")[0] == person]:
            await self._seats.pop(name).stop()
        stone = self._store.begin_withdrawal(person)
        for session in stone.sessions:
            await forget(self._client, session)
        self._store.end_withdrawal(stone)

    async def stop(self) -> None:
        """Empty all seats."""
        await asyncio.gather(*(seat.stop() for seat in self._seats.values()))


async def forget(client: AsyncClient, session: str) -> None:
    """Delete a session, whatever is being played of it; one that is gone is none to delete."""
    try:
        await client.dismiss_agents(session)
        with suppress(AnimalcatError):  # it is over already
            await client.cancel_session(session)
        await client.delete_session(session)
    except AnimalcatError as error:
        if error.code != "UNKNOWN_SESSION":
            raise
