"""What agents spend: notes beside the step, their sums, and allowances of time and tokens."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

import animalcat
from animalcat import Note, Noted
from animalcat.client.async_client import aconnect
from animalcat.envs.types import Observation
from animalcat.layouts.inference.fitter import Fitter
from animalcat.service.measuring.report import labels
from animalcat.service.recording.reader import read_episode
from animalcat.service.recording.verify import verify
from animalcat.service.session.spending import MOST_CURRENCIES, MOST_TOKENS, Meter
from animalcat.service.storage.records import SPENT
from animalcat.text import names
from animalcat.v1 import gateway_pb2, types_pb2
from animalcat.values import NOTHING, Spent
from tests.service.conftest import Service
from tests.service.cutting import cutting
from tests.service.test_direct import Walker, files
from tests.service.test_leases import serving

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Talker(Walker):
    """Notes what every third decision cost; the others say nothing."""

    def reset(self, info: animalcat.EpisodeInfo) -> None:
        super().reset(info)
        self.decisions = 0

    def act(self, observation: Observation) -> Any:
        self.decisions += 1
        action = super().act(observation)
        if self.decisions % 3 != 1:
            return action
        words = f"decision {self.decisions}"
        kind = "unparseable" if self.decisions == 4 else "read"
        return Noted(action, Note(words, 100, 7, 0.25, "EUR", kind))


def recorded_bytes(service: Service, session: str, number: int = 0) -> list[tuple[int, str]]:
    """The steps of a recording that have notes, with their texts."""
    folder = service.data / "recordings" / names.parse_session(session)
    steps = read_episode(folder / f"{number}-0.mcap").steps
    return [(step.step, note.text) for step in steps for note in step.notes]


async def test_notes_are_recorded_and_added_up_alike_relayed_and_directly(
    tmp_path: Path, fitter: Fitter
) -> None:
    found: list[Any] = []
    for way in ("direct", "relayed"):
        async with serving(tmp_path / way, fitter, direct=way == "direct") as service:
            session = await service.create(2)
            async with aconnect(service.running.address) as client:
                await client.evaluate(Talker(), session)
                episodes = await client.episodes(session)
            for episode in episodes:
                said = [(k + 1, f"decision {k + 1}") for k in range(0, episode.steps, 3)]
                assert recorded_bytes(service, session, episode.number) == said
                spent = episode.spent
                assert spent.thinking_seconds > 0.0
                assert (spent.tokens_in, spent.tokens_out) == (100 * len(said), 7 * len(said))
                assert spent.costs == {"EUR": 0.25 * len(said)}
                lost = int(episode.steps >= 4)
                assert (spent.answers, spent.unparseable, spent.refusals) == (len(said), lost, 0)
            found.append(files(service, session))
    assert found[0] == found[1]


async def test_notes_outlast_a_connection_that_breaks(start: Any, tmp_path: Path) -> None:
    """What was lost is sent again, and nothing is counted twice."""
    loop = asyncio.get_running_loop()
    async with start(tmp_path) as service:
        session = await service.create(1)
        async with cutting(service.running.address) as cutter:

            class Cut(Talker):
                def act(self, observation: Observation) -> Any:
                    loop.call_soon_threadsafe(cutter.cut, "down")
                    return super().act(observation)

            async with aconnect(cutter.address) as client:
                await client.evaluate(Cut(), session)
                (episode,) = await client.episodes(session)
            assert cutter.cuts
        said = len(range(0, episode.steps, 3))
        assert len(recorded_bytes(service, session)) == said
        assert episode.spent.tokens_in == 100 * said


@pytest.mark.parametrize(
    ("spent", "said"),
    [
        (Spent(answers=40, unparseable=31), "31 of 40 answers could not be parsed: "),
        (Spent(answers=40, refusals=5), "5 of 40 answers were refusals: "),
        (Spent(answers=40, repeats=37), "37 of 40 answers repeated the one before: "),
        (Spent(answers=30, limits=10), "10 of 40 turns were cut off by a limit"),
        (Spent(answers=30, errors=10), "10 of 40 calls of its provider failed"),
        (Spent(answers=40, unparseable=4, refusals=4, repeats=36, limits=4, errors=4), ""),
        (NOTHING, ""),
    ],
)
async def test_answers_that_were_no_deeds_are_told_to_every_reader(
    service: Service, spent: Spent, said: str
) -> None:
    name = await service.create(2, agent="spending:said")
    async with aconnect(service.running.address) as client:
        session = await client.get_session(name)
    told = " ".join(labels(replace(session, spent=spent)))
    assert any(word in told for word in ("answers", "turns", "calls")) == bool(said)
    assert said in told


async def test_sums_have_an_end() -> None:
    meter = Meter()
    for number in range(2 * MOST_CURRENCIES):
        currency = f"AA{chr(65 + number)}"
        meter.take(1.0, [Note(tokens_in=2**64 - 1, cost=1.5e308, currency=currency)] * 2)
    assert meter.spent.thinking_seconds == 2 * MOST_CURRENCIES
    assert meter.spent.tokens_in == MOST_TOKENS
    assert len(meter.spent.costs) == MOST_CURRENCIES
    assert all(amount < float("inf") for amount in meter.spent.costs.values())
    other = replace(meter.spent, costs={"AAA": 1e308, "AAB": 1.0, "ZZZ": 1.0})
    of_a_session = meter.spent + other
    assert of_a_session == other + meter.spent
    assert of_a_session.costs.keys() == meter.spent.costs.keys()
    for spent in (meter.spent, of_a_session, NOTHING):
        assert SPENT.read(json.dumps(SPENT.write(spent))) == spent


async def test_an_answer_beyond_the_allowance_ends_the_episode_alike_relayed_and_directly(
    tmp_path: Path, fitter: Fitter
) -> None:
    """As a failure that counts; the agent goes on, and every recording replays."""
    found: list[Any] = []
    for way in ("direct", "relayed"):
        async with serving(tmp_path / way, fitter, direct=way == "direct") as service:
            most = types_pb2.Allowance(episode_tokens=250)  # the third note is one too many
            session = await service.create(3, allowance=most)
            async with aconnect(service.running.address) as client:
                summary = await client.evaluate(Talker(), session)
                episodes = await client.episodes(session)
            over = [one for one in episodes if one.cause]
            assert over
            assert summary.counted == len(episodes) == 3
            for episode, played in zip(episodes, summary.episodes, strict=True):
                spent = episode.cause != ""
                tokens = episode.spent.tokens_in + episode.spent.tokens_out
                assert spent == (tokens > 250)
                assert played.cause == (episode.cause_kind or "")
                assert played.truncated == (spent or episode.ended_by == "time_limit")
                assert played.episode_return == pytest.approx(episode.episode_return, abs=1e-6)
            for episode in over:
                assert (episode.outcome, episode.cause_kind) == ("failure", "out_of_tokens")
                assert episode.cause == "out of tokens, with more than 250 in the episode"
                assert (episode.steps, episode.ended_by) == (6, None)
                assert episode.outcomes["success"] == 0.0
            folder = service.data / "recordings" / names.parse_session(session)
            for episode in episodes:
                recording = read_episode(folder / f"{episode.number}-0.mcap")
                assert (await asyncio.to_thread(verify, recording)).difference is None
            found.append((files(service, session), [replace_time(one) for one in episodes]))
    assert found[0] == found[1]


def replace_time(episode: animalcat.values.Episode) -> animalcat.values.Episode:
    """An episode without how long it took."""
    return replace(episode, seconds=0.0, spent=replace(episode.spent, thinking_seconds=0.0))


@pytest.mark.parametrize("relayed", [False, True], ids=["direct", "relayed"])
async def test_who_is_out_of_time_fails_and_goes_on(
    tmp_path: Path, fitter: Fitter, relayed: bool
) -> None:
    class Pondering(Walker):
        def reset(self, info: animalcat.EpisodeInfo) -> None:
            super().reset(info)
            assert info.allowance == animalcat.Allowance(episode_seconds=0.2)
            self.slow = info.episode == 0
            self.decisions = 0

        def act(self, observation: Observation) -> int:
            self.decisions += 1
            if self.slow and self.decisions == 3:
                time.sleep(0.25)
            return super().act(observation)

    async with serving(tmp_path, fitter, direct=not relayed) as service:
        session = await service.create(2, allowance=types_pb2.Allowance(episode_seconds=0.2))
        async with aconnect(service.running.address) as client:
            summary = await client.evaluate(Pondering(), session)
            first, *_ = await client.episodes(session)
            profile = await client.profile(session)
    assert summary.counted == 2
    assert summary.episodes[0].cause == first.cause_kind == "out_of_time"
    assert first.cause == "out of time, with more than 0.2 s of thinking in the episode"
    assert first.spent.thinking_seconds > 0.25
    assert first.steps == 2
    about = profile["provenance"]
    assert about["overspent"] >= 1
    assert about["failures_by_default"] == about["voids"] == 0
    assert about["allowance"]["episode_seconds"] == 0.2


async def test_who_has_spent_too_much_saves_nothing_by_leaving(service: Service) -> None:
    """Neither by leaving nor by never answering: the attempt fails, and is not repeated."""
    most = types_pb2.Allowance(episode_seconds=0.1)
    session = await service.create(
        3, agent="spending:leaves", allowance=most, action_timeout_seconds=0.3
    )
    async with service.agent(session, agent="spending:leaves") as stream:
        await stream.receive("welcome")
        await stream.receive("episode_start")
        await asyncio.sleep(0.15)
        await stream.send(gateway_pb2.EvaluateRequest(leave=gateway_pb2.Leave()))
        assert await stream.call.read() is grpc.aio.EOF
    await service.settled(session, "WAITING", asyncio.sleep)
    async with service.agent(session, agent="spending:leaves") as stream:
        await stream.receive("welcome")
        await stream.receive("episode_start")
        await stream.refused("ACTION_TIMEOUT")
    await service.settled(session, "WAITING", asyncio.sleep)
    found = [(e.episode, e.outcome, e.cause_kind) for e in await service.list_episodes(session)]
    failed = (types_pb2.OUTCOME_FAILURE, types_pb2.CAUSE_OUT_OF_TIME)
    assert found == [(0, *failed), (1, *failed)]


async def test_an_allowance_out_of_range_is_refused(service: Service) -> None:
    for wrong in (
        types_pb2.Allowance(episode_seconds=-1.0),
        types_pb2.Allowance(episode_seconds=1e9),
        types_pb2.Allowance(decision_tokens=10**16),
    ):
        with pytest.raises(grpc.aio.AioRpcError, match="allowance"):
            await service.create(1, allowance=wrong)
