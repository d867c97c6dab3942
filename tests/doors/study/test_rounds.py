"""A participant's round outlives a killed study and a killed server, within the gap alone."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.websockets import WebSocket

from animalcat.client.async_client import AsyncClient, aconnect
from animalcat.doors.study import playing
from animalcat.doors.study.file import read_study
from animalcat.doors.study.participant import Event, Participant, Stage, TrialOver
from animalcat.doors.study.playing import Seat, Seats, forget, warm_up
from animalcat.doors.study.realtime import Key, Screen, Timing, with_screen
from animalcat.doors.study.rounds import Round, RoundFile
from animalcat.doors.study.store import StudyError, StudyStore, read_events
from animalcat.service.recording.reader import read_episode
from animalcat.v1 import sessions_pb2
from tests.doors.study.conftest import STUDY
from tests.doors.study.test_participant import PAGES
from tests.service.conftest import Service, arena

LONG = [(f"navigation-{k:02}.yaml", arena(k).replace("t: 24", "t: 40").encode()) for k in range(9)]


class Clock:
    """The real clock, and what it has jumped."""

    def __init__(self) -> None:
        self.jumped = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.jumped

    def now(self) -> datetime:
        return datetime.fromtimestamp(1.8e9 + self(), UTC)


class Page:
    """The socket of a participant's page, which begins one round and tells what it paints."""

    client = None

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.steps = 0
        self.begun = False
        self._says: asyncio.Queue[str] = asyncio.Queue()

    async def send_text(self, text: str) -> None:
        self.told.append(json.loads(text))
        self.begun = self.begun or self.told[-1].get("t") == "open"
        if self.told[-1].get("t") == "next" and not self.begun:
            self._says.put_nowait(json.dumps({"do": "ready"}))

    async def send_bytes(self, data: bytes) -> None:
        head = json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])
        times = {"received": 1.0 * self.steps, "painted": 1.0 * self.steps + 1.0, "offset": 0.0}
        self.steps += 1
        self._says.put_nowait(json.dumps({"seen": head["number"], **times}))

    async def receive_text(self) -> str:
        return await self._says.get()


async def until(done: Any) -> None:
    async with asyncio.timeout(600):
        while not done():
            await asyncio.sleep(0.01)


async def attend_page(seat: Seat, page: Page, clock: Clock, done: Any) -> None:
    """Let a page be there until something is done."""
    screen = Screen(cast("WebSocket", page), clock)
    there = asyncio.create_task(with_screen(screen, lambda: seat.attend(screen)))
    try:
        await until(done)
    finally:
        there.cancel()
        await asyncio.gather(there, return_exceptions=True)
        seat.leave(screen)


def trials(store: StudyStore, participant: str) -> list[TrialOver]:
    events = read_events(store.folder / "participants" / f"{participant}.jsonl")
    return [event for event in events if isinstance(event, TrialOver)]


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("away", [300.0, 700.0])
async def test_a_round_goes_on_after_a_kill_within_the_gap(
    start: Any, tmp_path: Path, away: float
) -> None:
    """What is on disk in the midst of a round is what a killed study and server leave behind."""
    text = STUDY.replace("practice: {passes: 1, of: 2, most: 3}\n", "gap_seconds: 600\n")
    near, far = ([f"navigation-0{k}" for k in ks] for ks in ((0, 1), (2, 3)))
    text = text.replace("trials: 2, minutes: 0", f"latin: {{near: {near}, far: {far}}}")
    (tmp_path / "study.yaml").write_text(text.partition("conditions:")[0])
    study, clock, home, left = read_study(tmp_path / "study.yaml"), Clock(), *folders(tmp_path)
    async with start(home) as service:
        await service.import_files(LONG, "tiny")
        store = StudyStore(home, study)
        store.hold()
        one, _ = store.enter({})
        for event in PAGES:
            store.append(one.id, event)
        page, file = Page(), store.round_path(one.id)
        async with aconnect(service.running.address) as client:
            seat = Seat(store, client, one.id, clock, clock.now)
            await attend_page(seat, page, clock, lambda: page.steps > 4 and file.exists())
            await asyncio.to_thread(shutil.copytree, home, left)
            store.close()
            await seat.stop()
    (path,) = (left / "recordings").rglob("*.mcap")
    before = read_episode(path).actions
    clock.jumped += away
    async with start(left) as service:
        store, page = StudyStore(left, study), Page()
        async with aconnect(service.running.address) as client:
            seat = Seat(store, client, one.id, clock, clock.now)
            if away > study.gap_seconds:
                await attend_page(seat, page, clock, lambda: {"t": "gone"} in page.told)
                assert page.steps == 0  # nothing of a round that is void is shown
                (void,) = trials(store, one.id)
                assert (void.trial.outcome, void.trial.attempt) == ("void", 0)
                assert void.trial.gaps[0] > away
                await until(lambda: not seat.busy)
            over = len(trials(store, one.id)) + 1
            await attend_page(seat, page, clock, lambda: len(trials(store, one.id)) == over)
            await seat.stop()
        trial = trials(store, one.id)[-1].trial
        session = f"sessions/{store.participant(one.id).sessions['play']}"
        attempts = [e for e in await service.list_episodes(session) if e.episode == 0]
        assert trial.outcome == "played"
        assert not store.round_path(one.id).exists()
        if away > study.gap_seconds:
            assert (trial.gaps, len(attempts)) == ((), 2)
            assert attempts[0].cause == "the agent left"
            order = study.measured(store.participant(one.id).condition).options["first"]
            assert [attempt.instance for attempt in attempts] == [*order[:2]]
            assert store.participant(one.id).stage is Stage.BREAK, "its block has no other arena"
        else:
            (gap,) = trial.gaps
            assert gap > away
            assert store.participant(one.id).stage is Stage.PLAY
            assert trial.flags[0] == "gap"
            assert (len(attempts), attempts[0].attempt) == (1, 0)
            assert {"t": "open", "resumed": True} in page.told
            recorded = read_episode(path)
            assert recorded.actions[: len(before)] == before
            assert len(recorded.actions) == trial.steps > len(before)
            assert trial.timing is not None  # frames of before the kill count, but for the last
            assert trial.steps - 2 <= trial.timing.frames <= trial.steps + 2
        await verify_it(service, session)


@pytest.mark.asyncio(loop_scope="session")
async def test_the_first_arena_is_built_before_anybody_plays_and_nothing_stays(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = list[int]()

    async def look(client: AsyncClient, session: str) -> None:
        built.extend([attempt.number async for attempt in client.iter_episodes(session)])
        await forget(client, session)

    monkeypatch.setattr(playing, "forget", look)
    await service.import_files(LONG, "tiny")
    (tmp_path / "study.yaml").write_text(STUDY)
    async with aconnect(service.running.address) as client:
        await client.create_session(agent="warming-finding-things", battery="tiny")  # of a kill
        await warm_up(client, read_study(tmp_path / "study.yaml"))
        assert built == [0]
        assert await client.list_sessions() == []


class Dying(StudyStore):
    """A store whose process ends before it stores a round."""

    def append(self, participant: str, event: Event) -> Participant:
        if isinstance(event, TrialOver):
            raise StudyError("killed")
        return super().append(participant, event)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_last_round_is_stored_although_the_study_died_before(
    start: Any, tmp_path: Path
) -> None:
    text = STUDY.replace("practice: {passes: 1, of: 2, most: 3}\n", "")
    (tmp_path / "study.yaml").write_text(text.replace("max_episodes: 4", "max_episodes: 1"))
    study, clock, page = read_study(tmp_path / "study.yaml"), Clock(), Page()
    async with start(tmp_path / "home") as service, aconnect(service.running.address) as client:
        await service.import_files(LONG, "tiny")
        dying = Dying(tmp_path / "home", study)
        dying.hold()
        one, _ = dying.enter({})
        for event in PAGES:
            dying.append(one.id, event)
        seat = Seat(dying, client, one.id, clock, clock.now)
        await attend_page(seat, page, clock, lambda: {"t": "page"} in page.told)
        await seat.stop()
        session = f"sessions/{dying.participant(one.id).sessions['play']}"
        await service.settled(session, "FINISHED", asyncio.sleep)
        clock.jumped += 1000.0
        store, page = StudyStore(tmp_path / "home", study), Page()
        seat = Seat(store, client, one.id, clock, clock.now)
        await attend_page(seat, page, clock, lambda: {"t": "page"} in page.told)
        await seat.stop()
    assert store.participant(one.id).stage is Stage.DEBRIEF
    (trial,) = (event.trial for event in trials(store, one.id))
    assert (trial.outcome, trial.flags[0]) == ("played", "unseen")
    assert trial.seconds < 1000.0, "the time that the study was away is none of the round"


def test_pages_that_come_in_one_turn_keep_their_seats(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    seats = Seats(StudyStore(tmp_path, read_study(tmp_path / "study.yaml")), cast("Any", None))
    found = [seats.of(name) for name in ("a-1", "b-1", "c-1")]
    assert [seats.of(name) for name in ("a-1", "b-1", "c-1")] == found


def folders(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "home", tmp_path / "left"


async def verify_it(service: Service, session: str) -> None:
    request = sessions_pb2.VerifySessionRequest(name=session)
    assert not (await service.sessions.VerifySession(request)).problems


def test_a_round_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "round.jsonl"
    frames = [Timing(k, k / 16, k / 16, None, 1.0 * k, 2.0 * k, 0.0, 1.0) for k in range(3)]
    now = Round(7, 100.0, 101.0, 2, [1.5], 1, full_screen=True, timings=frames[:1])
    file = RoundFile(path, 5.0, 1000.0)
    assert file.read() is None
    file.add(now, anew=True)
    now.timings, now.step, now.heard = frames, 3, 102.0
    now.keys = [Key("ahead", True, 1.5), Key("ahead", False, None)]
    file.add(now)
    for cut in (b"", b"[5.0, 7, 1100.0, 110"):  # a line that was cut off never was
        path.write_bytes(path.read_bytes() + cut)
        assert file.read() == now
    assert RoundFile(path, 6.0, 1000.0).read() is None  # another event: the round is over
    later = RoundFile(path, 5.0, 1001.0).read()  # by a clock that began a second later
    assert later is not None
    assert (later.began, later.heard) == (99.0, 101.0)
