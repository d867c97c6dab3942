"""Lets a participant play in real time: the browser shows frames and says keys, and no more.

The participant is the agent of an ordinary session of the service. An arena goes on by the clock,
whether a key is pressed or not. It stands still while nothing is heard of the browser: after up to
`gap_seconds` it goes on at its step, after more the participant has left the episode. The same
holds where this process or the service was killed: the service records each step before this
process gets its frame, and rebuilds the arena from there; what else is to be known of the round is
in a `RoundFile`.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final

import grpc
import numpy as np

from animalcat.client.async_client import AsyncClient
from animalcat.client.connection import translated_errors
from animalcat.client.stream import EvaluationStream, Welcome
from animalcat.doors.study.file import Measured, Shown, Study
from animalcat.doors.study.participant import (
    LAG_MS,
    Part,
    Participant,
    SessionMade,
    SessionOver,
    Trial,
    TrialOver,
    TrialTiming,
)
from animalcat.doors.study.realtime import GONE, SILENT_SECONDS, Decision, Frame, Screen, Timing
from animalcat.doors.study.rounds import Round, RoundFile
from animalcat.doors.study.store import StudyError, StudyStore, Tombstone
from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.types import PHYSICS_STEP, Observation
from animalcat.errors import AnimalcatError
from animalcat.v1 import gateway_pb2
from animalcat.values import Episode, Outcome
from animalcat.wire.protocol import version

log = logging.getLogger(__name__)

READY_SECONDS: Final = 600.0
"""How long a participant may take to begin the next round; then its arena is given back."""
LAST_SECONDS: Final = 1.0
"""How long the browser may take to say when it painted the last frame."""
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 8.0
"""Seconds between attempts to go on after the service failed, each twice the one before."""
PRACTICE_AIM: Final = 0.85
"""Success rate at which practice aims."""
LEASE_MORE: Final = 10.0
"""Seconds beyond the longest absence for which the service keeps a round, as coming back takes."""


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
        """Begin with nobody in it."""
        self._store, self._client, self._id = store, client, participant
        self._clock, self._now = clock, now
        self._screen: Screen | None = None
        self._came = asyncio.Event()
        self._gone = clock()
        self._run: Round | None = None
        self._found: Round | None = None
        self._back = 0.0
        self._midway = False
        self._driving: asyncio.Task[None] | None = None
        self._ending = dict[EvaluationStream, asyncio.Task[None]]()

    @property
    def busy(self) -> bool:
        """Whether somebody is there, or may come back to what is open."""
        driving = self._driving
        return self._screen is not None or driving is None or not driving.done()

    @property
    def playing(self) -> bool:
        """Whether a trial is open."""
        return self._run is not None

    async def attend(self, screen: Screen) -> None:
        """Show a page what is played, instead of the page before it, until another one comes."""
        if (before := self._screen) is not None:
            with suppress(*GONE):
                await before.tell(t="elsewhere")
        self._screen = screen
        self._came.set()
        if (run := self._run) is not None:
            await self._tell(t="open", resumed=True)
            if run.last is not None:
                await screen.show(run.last, self._clock(), None)
        if self._driving is None or self._driving.done():
            self._driving = asyncio.create_task(self._drive(), name=f"participant {self._id}")
        while self._screen is screen:
            self._came.clear()
            await self._came.wait()

    def leave(self, screen: Screen) -> None:
        """Take note that a page is gone."""
        if screen is self._screen:
            self._screen, self._gone = None, screen.heard

    async def stop(self) -> None:
        """Leave, since the study stops here or the participant has withdrawn."""
        tasks = [*self._ending.values()]
        if self._driving is not None:
            tasks.append(self._driving)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._screen = None
        self._came.set()

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
                if self._screen is None:
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
        self._found, self._back = self._file(participant).read(), self._clock()
        session = participant.sessions.get(part) or await self._make_session(participant, part)
        stream = _stream(self._client)
        begun = False
        try:
            with translated_errors(self._client.address):
                try:
                    welcome = await stream.open(f"sessions/{session}", self._id, None)
                except AnimalcatError as error:
                    if error.code != "SESSION_OVER":
                        raise
                    if self._found is not None:  # of its last round this process never stored it
                        await self._settle(part, session, self._found)
                    if part == "play" or self._store.participant(self._id).part == part:
                        await self._over(part)
                    else:
                        await self._tell(t="page")
                    return
                begun = True
                while (await self._next(stream, welcome, part, session)) is not None:
                    pass
        finally:
            if self._midway:
                self._midway = False
                stream.cancel()  # whoever comes next, perhaps another process, goes on
            elif begun and stream not in self._ending:
                # What was chosen and not begun was shown to nobody, and is played later.
                await asyncio.shield(stream.leave(dismissed=True))

    async def _next(
        self, stream: EvaluationStream, welcome: Welcome, part: Part, session: str
    ) -> bool | None:
        """Play the next trial; None once nothing more is to be played over this stream."""
        frame = await stream.receive()
        start = frame.episode_start
        run, self._found = self._found, None
        if run is not None and not (start.HasField("step") and run.episode == start.episode):
            await self._settle(part, session, run)
            run = None
            if self._store.participant(self._id).part != part:
                await self._tell(t="page")
                return None
        # Without a step and a file, what was begun at the service was shown to nobody.
        self._midway = start.HasField("step") and (run is not None or start.step > 0)
        if frame.HasField("session_end"):
            await self._over(part)
            return None
        if not frame.HasField("episode_start"):
            raise AnimalcatError(f"the server sent {frame.WhichOneof('frame')} between episodes")
        if self._midway:
            run = run or Round(start.episode, self._back, self._back - self._gap - 1.0)
            if self._back - run.heard > self._gap:
                await self._leave_episode(stream, part, session, run)
                return None
            run.gaps.append(round(self._clock() - run.heard, 3))
            run.step, run.total = start.step, start.reward
        else:
            first, number = start.episode == 0, start.episode + 1
            said = await self._is_ready(practice=part == "practice", first=first, number=number)
            if said is None:
                await self._tell(t="gone")
                return None
            now, full_screen = self._clock(), bool(said.get("full"))
            run = Round(start.episode, now, now, full_screen=full_screen)
        ended = await self._trial(stream, start, run)
        if ended is None:
            await self._leave_episode(stream, part, session, run)
            return None
        await self._keep(part, session, ended)
        last = ended.outcome == "played" and ended.episode + 1 >= welcome.max_episodes
        if part == "play" and last:
            self._let_end(stream)  # the participant need not wait for the last fit
            await self._over(part)
            return None
        participant = self._store.participant(self._id)
        if participant.part != part:
            if part == "practice":
                await _cancel(self._client, session)
            await self._tell(t="page")
            return None
        return True

    async def _trial(
        self, stream: EvaluationStream, start: gateway_pb2.EpisodeStart, run: Round
    ) -> Trial | None:
        """Play a trial, or go on with it; None where the participant is away for too long."""
        participant = self._store.participant(self._id)
        study = self._store.study_of(participant)
        shown = study.shows(participant.condition)
        period = stream.spec.decision_period * PHYSICS_STEP * study.slower
        kept, anew = self._file(participant), not self._midway
        self._run, self._midway = run, True
        kept.add(run, anew=anew)
        try:
            await self._tell(t="open", resumed=not anew)
            due, decision = self._clock(), None
            frame = _frame(stream.observation(start.observation), run, shown)
            # What is pressed before a round answers nothing; in an outage of the server it may.
            await self._show(run, frame, due, None if anew else Decision(0, None))
            while True:
                due += period
                screen = self._screen
                run.heard = self._gone if screen is None else screen.heard
                if screen is None or self._clock() - screen.heard > SILENT_SECONDS:
                    if not await self._is_back(run.heard):
                        return None
                    run.gaps.append(round(self._clock() - run.heard, 3))
                    due = self._clock()
                    continue
                while (said := await screen.asked(due)) is not None:
                    run.full_screen = run.full_screen and said.get("do") != "small"
                hidden, decision = screen.hidden, screen.decide()
                run.keys += screen.keys
                screen.keys = []
                kept.add(run)
                await stream.act(0, run.step, bytes([decision.action]))
                answer = await stream.receive()
                run.blurs += screen.hidden - hidden
                if answer.HasField("ask"):
                    run.step, run.total = answer.ask.step, run.total + answer.ask.reward
                    frame = _frame(stream.observation(answer.ask.observation), run, shown)
                    await self._show(run, frame, due, decision)
                    due = max(due, self._clock() - period)  # an arena never hurries to catch up
                    continue
                end = answer.episode_end
                run.total += end.reward
                if end.HasField("observation"):
                    frame = _frame(stream.observation(end.observation), run, shown)
                    await self._show(run, frame._replace(over=True), due, decision)
                self._midway = False
                until = self._clock() + LAST_SECONDS
                while run.timings and run.timings[-1].received is None and self._clock() < until:
                    await asyncio.sleep(0.02)
                outcome = "fault" if end.fault else "played"
                return self._trial_of(run, end.step, outcome)
        finally:
            self._run = None

    def _trial_of(self, run: Round, steps: int, outcome: Any, *, unseen: bool = False) -> Trial:
        end = run.heard if unseen else self._clock()
        seconds, keys, gaps = round(end - run.began, 3), keys_of(run), (*run.gaps,)
        timing = sum_timings(run.timings, keys, run.blurs, full_screen=run.full_screen)
        return Trial(run.episode, None, seconds, steps, outcome, None, gaps, timing, keys, unseen)

    async def _leave_episode(
        self, stream: EvaluationStream, part: Part, session: str, run: Round
    ) -> None:
        """Leave an episode whose participant was away for too long."""
        log.info("participant %s was away for too long; the trial is void", self._id)
        await stream.leave()
        self._midway = False
        await self._settle(part, session, run)
        await self._tell(t="gone")

    async def _settle(self, part: Part, session: str, run: Round) -> None:
        """Store a trial that does not go on: it is void, unless it had come to its end unseen."""
        mine = await self._attempt(session, run.episode)
        if mine.settled:
            ended = self._trial_of(run, mine.steps, "played", unseen=True)
            await self._keep(part, session, ended)
            return
        run.gaps.append(round(self._clock() - run.heard, 3))
        known = replace(self._trial_of(run, run.step, "void"), attempt=mine.attempt)
        self._store.append(self._id, TrialOver(self._now(), part, known))

    def _file(self, participant: Participant) -> RoundFile:
        """The file of the participant's open round."""
        path, skew = self._store.round_path(self._id), self._now().timestamp() - self._clock()
        return RoundFile(path, participant.changed.timestamp(), skew)

    @property
    def _gap(self) -> float:
        """Longest absence after which a trial goes on."""
        return self._store.study_of(self._store.participant(self._id)).gap_seconds

    async def _keep(self, part: Part, session: str, trial: Trial) -> None:
        """Store a trial with what the service knows of it, then tell the page."""
        mine = await self._attempt(session, trial.episode)
        passed = mine.outcome is Outcome.SUCCESS if trial.outcome == "played" else None
        known = replace(trial, attempt=mine.attempt, passed=passed)
        before = self._store.participant(self._id)
        shown = self._store.study_of(before).shows(before.condition)
        then = self._store.append(self._id, TrialOver(self._now(), part, known))
        told = passed if shown.outcome or part == "practice" else None
        await self._tell(t="over", passed=told, rounds=then.trials + len(then.practised))

    async def _attempt(self, session: str, number: int) -> Episode:
        """The latest attempt at an episode that is over."""
        async for attempt in self._client.iter_episodes(session, limit=5, newest_first=True):
            if attempt.number == number and attempt.outcome is not None:
                return attempt
        raise AnimalcatError(f"the server does not know of episode {number} of session {session}")

    async def _make_session(self, participant: Participant, part: Part) -> str:
        """Make a session for a part, or find the one that was made before a failure."""
        study = self._store.study_of(participant)
        play = study.measured(participant.condition)
        options: dict[str, Any] = {**play.options}
        if part == "practice":
            assert study.practice is not None  # the stage is not reached without
            options = {k: v for k, v in options.items() if k in ("backend", "decision_period")}
            options["battery"] = study.practice.battery or play.battery
            options["max_episodes"] = study.practice.most
            options["fresh"] = not study.practice.battery
            options["target_sd"] = 0.0
            options["aim"] = PRACTICE_AIM
        made = await self._client.create_session(
            **{**_usual_options(study, play), **options},
            agent=self._id,
            played_before=await self._played_before(participant),
            request_id=f"study {study.study} {participant.id} {part}",
        )
        self._store.append(self._id, SessionMade(self._now(), part, made.id))
        return made.id

    async def _played_before(self, participant: Participant) -> int:
        """How many rounds the person has played by now, at this visit and all before."""
        played = 0
        for session in self._store.sessions_of(participant):
            async for attempt in self._client.iter_episodes(session):
                played += attempt.practises
        return played

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

        self._ending[stream] = asyncio.create_task(end())
        self._ending[stream].add_done_callback(lambda _: self._ending.pop(stream))

    async def _is_ready(self, **what: int) -> dict[str, Any] | None:
        """Tell every page what comes next until the participant begins; None if they are away.

        Returns:
            What the page says then.
        """
        end = self._clock() + READY_SECONDS
        told: Screen | None = None
        while self._clock() < end:
            screen = self._screen
            if screen is None:
                if not await self._is_back(self._gone):
                    return None
                continue
            if screen is not told:  # a reload may be too quick for its page to be missed
                told = screen
                await self._tell(t="next", **what)
            said = await screen.asked(self._clock() + SILENT_SECONDS)
            if said is not None and said.get("do") == "ready":
                return said
            if self._clock() - screen.heard > self._gap:
                return None
        return None

    async def _is_back(self, since: float) -> bool:
        """Wait for a participant who is away since a time; whether they come back soon enough."""
        while self._clock() - since <= self._gap:
            screen = self._screen
            if screen is not None and self._clock() - screen.heard <= SILENT_SECONDS:
                return True
            await asyncio.sleep(0.05)
        return False

    async def _show(self, run: Round, frame: Frame, due: float, decision: Decision | None) -> None:
        run.last = frame
        if (screen := self._screen) is not None:
            with suppress(*GONE):  # a page that is gone is noticed by its silence
                run.timings.append(await screen.show(frame, due, decision))

    async def _tell(self, **message: Any) -> None:
        if (screen := self._screen) is not None:
            with suppress(*GONE):
                await screen.tell(**message)


def _frame(seen: Observation, run: Round, shown: Shown) -> Frame:
    """Return what a participant sees: the picture, and beside it what the study lets them know."""
    assert seen.camera is not None  # sessions of people have one
    state: dict[str, Any] = {"resolution": seen.camera.shape[0]}
    if shown.health:
        state["health"] = round(float(seen.health), 2)
    if shown.reward:
        state["reward"] = round(run.total, 3)
    return Frame(seen.camera.tobytes(), state, False)


def keys_of(run: Round) -> tuple[tuple[str, bool, float | None], ...]:
    """Return the keys of a round, with their times from when its first frame was painted."""
    first = next((t.painted for t in run.timings if t.painted is not None), None)
    return tuple(
        (name, down, None if first is None or at is None else round(at - first, 2))
        for name, down, at in run.keys
    )


def sum_timings(
    timings: Sequence[Timing],
    keys: Sequence[tuple[str, bool, float | None]],
    blurs: int,
    *,
    full_screen: bool,
) -> TrialTiming | None:
    """Return how a trial ran by when each of its frames was, and its keys; None without any."""
    if not timings:
        return None

    def p95(spans: Iterable[tuple[float | None, float | None]]) -> float | None:
        known = [end - begin for begin, end in spans if begin is not None and end is not None]
        return round(1000.0 * float(np.percentile(known, 95)), 2) if known else None

    painted = [t.painted for t in timings if t.painted is not None]
    seen = [(t.number, t.painted) for t in timings if t.painted is not None]
    gaps = [b - a for (j, a), (k, b) in pairwise(seen) if j < k]  # a reload sets both to 0
    presses = [at for _, down, at in keys if down]
    trips = [t.round_trip for t in timings if t.round_trip is not None]
    shown = [(t.due, t.here(t.painted)) for t in timings]
    return TrialTiming(
        frames=len(timings),
        dropped=len(timings) - len(painted),
        late=sum(at is not None and 1000.0 * (at - due) > LAG_MS for due, at in shown),
        interval_p95=round(float(np.percentile(gaps, 95)), 2) if gaps else None,
        shown_p95=p95(shown),
        wait_p95=p95((t.here(t.key), t.due) for t in timings),
        key_p95=p95((t.here(t.key), t.here(t.painted)) for t in timings),
        round_trip=round(min(trips), 2) if trips else None,
        first_key=next((at for at in presses if at is not None and at >= 0), None),
        keys=len(presses),
        blurs=blurs,
        full_screen=full_screen,
    )


async def warm_up(client: AsyncClient, study: Study) -> None:
    """Begin a session of each layout that is played, and delete it, so that nobody waits for it.

    A server takes seconds for the first session of a layout, and less than one for the next.
    """
    plays = [study.measured(condition.name) for condition in study.conditions] or [study.play]
    agent = f"warming-{study.study}"
    with suppress(AnimalcatError, grpc.aio.AioRpcError):  # which whoever plays is told
        async for left in client.sessions(agent=agent):  # by a study that was killed
            await forget(client, left.id)
        for play in {(p.battery, p.layout, p.variant): p for p in plays}.values():
            options = {**_usual_options(study, play), **play.options}
            made = await client.create_session(agent=agent, **options)
            stream = _stream(client)
            try:
                await stream.open(f"sessions/{made.id}", agent, None)
                await stream.receive()  # the first arena is built
            finally:
                stream.cancel()
                await asyncio.shield(forget(client, made.id))


def _usual_options(study: Study, play: Measured) -> dict[str, Any]:
    return {
        "battery": play.battery,
        "layout": play.layout,
        "layout_variant": play.variant,
        "camera": play.camera,
        "action_timeout_seconds": READY_SECONDS + 60.0,
        "lease_seconds": study.gap_seconds + LEASE_MORE,
        "replace_voids": True,
    }


def _stream(client: AsyncClient) -> EvaluationStream:
    return EvaluationStream(
        client.channel,
        uuid.uuid4().hex,
        AgentFingerprint.declared("person", version=version(), options={"study": "1"}),
        same_agent=True,  # the same person, whatever page and process they come from
        returns=True,
        resumes=True,
    )


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
        await erase(self._client, self._store, self._store.begin_withdrawal(person))

    async def stop(self) -> None:
        """Empty all seats."""
        await asyncio.gather(*(seat.stop() for seat in self._seats.values()))


async def erase(client: AsyncClient, store: StudyStore, stone: Tombstone) -> None:
    """Go on with a withdrawal to its end: erase the sessions, then what the study has."""
    for session in stone.sessions:
        await forget(client, session)
    store.end_withdrawal(stone)


async def forget(client: AsyncClient, session: str) -> None:
    """Delete a session, whatever is being played of it; one that is gone is none to delete."""
    try:
        await client.dismiss_agents(session)
        await _cancel(client, session)
        await client.delete_session(session)
    except AnimalcatError as error:
        if error.code != "UNKNOWN_SESSION":
            raise


async def _cancel(client: AsyncClient, session: str) -> None:
    """Cancel a session, unless it is over already."""
    try:
        await client.cancel_session(session)
    except AnimalcatError as error:
        if error.code != "SESSION_OVER":
            raise
