"""What an agent has played before is counted for a layout that asks for it, by every route."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from typer.testing import CliRunner

from animalcat.cli.main import build
from animalcat.client import aconnect
from animalcat.doors.study.export import OUTCOMES, export_payment, export_study
from animalcat.doors.study.file import read_study
from animalcat.doors.study.participant import (
    PageLeft,
    Part,
    SessionOver,
    Trial,
    TrialOver,
)
from animalcat.doors.study.playing import Seat
from animalcat.doors.study.running import withdraw_person
from animalcat.doors.study.store import StudyStore
from animalcat.layouts.fitting.exports import of_export
from animalcat.layouts.library import load_layout
from animalcat.outcomes import read_outcomes
from animalcat.v1 import results_pb2
from animalcat.values import Outcome
from tests.doors.study.conftest import STUDY
from tests.doors.study.test_participant import NOW, PAGES
from tests.doors.study.test_store import PID
from tests.service.conftest import Service, action, walk

pytestmark = pytest.mark.asyncio(loop_scope="session")
Start = Callable[[Path], Any]
PEOPLE = {"layout": "aaio", "layout_variant": "people", "replace_voids": True}
BEFORE, EPISODES = 7, 4
COMES_AGAIN = "who: {by: prolific, visits: 2, days_between: 0}"


async def play_episode(service: Service, session: str, number: int, *, last: bool) -> None:
    async with service.agent(session) as stream:
        welcome = await stream.receive("welcome")
        assert welcome.episodes_done == number
        await stream.episode(walk)
        if last:
            await stream.receive("session_end")


async def test_all_routes_know_what_was_played_before(start: Start, tmp_path: Path) -> None:
    """One practice episode, a void, and a restart of the server before the last episodes."""
    asked = {"practice": 1, "played_before": BEFORE, **PEOPLE}
    async with start(tmp_path) as service:
        session = await service.create(EPISODES, **asked)
        await play_episode(service, session, 0, last=False)
        async with service.agent(session) as stream:
            await stream.receive("welcome")
            await stream.receive("episode_start")
            await stream.send(action(0, 3))
            await stream.receive("ask")
        await service.settled(session, "WAITING", asyncio.sleep)
        for number in range(1, EPISODES - 1):
            await play_episode(service, session, number, last=False)
        await service.settled(session, "WAITING", asyncio.sleep)  # what was begun last is over too
        before = await service.list_episodes(session)
    async with start(tmp_path) as service:
        for number in range(EPISODES - 1, EPISODES + 1):
            await play_episode(service, session, number, last=number == EPISODES)
        attempts = await service.list_episodes(session)
        async with aconnect(service.running.address) as client:
            rows = await client.export_profile(session, "csv")
            drawn = await client.draws(session)
            page = (await client.export_profile(session, "html")).decode()
        for episode in (1, EPISODES):
            await service.episodes.ExplainEpisode(
                results_pb2.ExplainEpisodeRequest(name=f"{session}/episodes/{episode}")
            )
    assert attempts[: len(before)] == before
    acted = [e for e in attempts if e.steps]
    assert len(acted) == EPISODES + 2
    counts = [e.decision.played_before for e in acted]
    assert counts == [*range(BEFORE, BEFORE + EPISODES + 2)]  # practice and the void count
    scored = [*range(BEFORE + 2, BEFORE + EPISODES + 2)]
    layout = load_layout("aaio", "people")
    column = layout.feature_names.index("round")
    assert drawn.features[:, column].tolist() == scored  # what the last fit was given
    assert page
    exported, _ = of_export(read_outcomes(rows, "csv"), [])
    instances, _ = exported.of(exported.agents[0])
    assert instances.features(layout)[:, column].tolist() == scored
    np.testing.assert_array_equal(instances.features(layout), drawn.features)


async def test_copies_that_play_at_once_have_no_order(service: Service) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match="use 1 slot"):
        await service.create(4, slots=2, **PEOPLE)


async def test_an_exported_study_is_fitted_with_what_was_played_before(
    start: Start, tmp_path: Path
) -> None:
    """A person practises, plays and comes again; `layout fit` reads the export."""
    play = "play: {battery: small, layout: aaio, variant: people, max_episodes: 2, camera: 32}"
    text = re.sub("play: .*", play, STUDY).replace("debrief:", f"{COMES_AGAIN}\ndebrief:")
    file = tmp_path / "study.yaml"
    file.write_text(text)
    home, to = tmp_path / "home", tmp_path / "export"
    async with start(home) as service, aconnect(service.running.address) as client:
        await service.import_files()
        store = StudyStore(home, read_study(file))
        for visit in (1, 2):
            one, _ = store.enter(PID, known=store.known(PID))  # by the browser's key
            assert one.visit == visit
            for event in PAGES:
                store.append(one.id, event)
            rounds_of: dict[Part, int] = {"practice": 1, "play": 2}
            for part, rounds in rounds_of.items():
                seat: Any = Seat(store, client, one.id)
                session = await seat._make_session(store.participant(one.id), part)
                spec = (await client.get_session(session)).spec
                assert spec.played_before == 3 * (visit - 1) + (part == "play")
                async with service.agent(f"sessions/{session}", agent=one.id) as stream:
                    await stream.receive("welcome")  # leaves without having begun
                    await stream.receive("episode_start")
                await service.settled(f"sessions/{session}", "WAITING", asyncio.sleep)
                async with service.agent(f"sessions/{session}", agent=one.id) as stream:
                    await stream.receive("welcome")
                    for _ in range(rounds):
                        await stream.episode(walk)
                    if part == "play":
                        await stream.receive("session_end")
                for episode in await client.episodes(session):
                    if episode.outcome is not None and episode.steps:
                        passed = episode.outcome is Outcome.SUCCESS or part == "practice"
                        trial = Trial(episode.number, 0, 1.0, episode.steps, "played", passed)
                        store.append(one.id, TrialOver(NOW, part, trial))
            for event in (
                PageLeft(NOW, "rested"),
                SessionOver(NOW, "play"),
                PageLeft(NOW, "debriefed"),
            ):
                store.append(one.id, event)
        written = await export_study(client, home, store.study, to)
        assert (written["participants"], written["sessions"]) == (2, 4)
        other, gone = tmp_path / "other", one.id.partition("-")[0]
        await export_study(client, home, store.study, other)
        export_payment(home, store.study, tmp_path / "payment.csv")
        (other / "analysis.R").write_text("# mine")
        assert await withdraw_person(client, home, store.study, gone) == 4
        with pytest.raises(FileExistsError, match="by --update"):
            await export_study(client, home, store.study, other)
        await export_study(client, home, store.study, other, update=True)
    left = [path for path in other.rglob("*") if path.is_file()]
    assert not [path for path in left if gone in f"{path}{path.read_text('utf-8')}"]
    assert other / "analysis.R" in left
    paid = table(tmp_path / "payment.csv")
    assert [(row["PROLIFIC_PID"], row["end"]) for row in paid] == [("5f1c", "done")] * 2
    told = [row["played_before"] for row in table(to / "data" / "description-rounds_data.csv")]
    assert told == ["0", "1", "2", "3", "4", "5"]
    assert [row["played_before"] for row in table(to / OUTCOMES)] == ["1", "2", "4", "5"]
    command = ["layout", "fit", "aaio", "--variant", "people", "--table", str(to / OUTCOMES)]
    fitted = await asyncio.to_thread(CliRunner().invoke, build(command), [*command, "--json"])
    assert fitted.exit_code in (0, 1), fitted.output  # of so little, chains need not converge
    assert [len(one["agent"]) for one in json.loads(fitted.stdout)] == [len(one.id)] * 2


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text())))
