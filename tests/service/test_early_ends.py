"""Whose doing it is that attempts end early, and what people say where an agent's code failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from animalcat.arena_configs.instance import Instance
from animalcat.arena_configs.outcome import EpisodeMonitor
from animalcat.client.async_client import AsyncClient, aconnect
from animalcat.client.evaluation import PlayedEpisode
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.types import Observation
from animalcat.errors import AnimalcatError
from animalcat.service.session.play import judge
from animalcat.service.session.playthrough import Playthrough
from animalcat.service.session.turns import Trust
from animalcat.v1 import gateway_pb2, sessions_pb2, types_pb2
from animalcat.values import ENDS, Cause, Outcome, Whose, cause_of

from .conftest import Service, Stream, action
from .test_leases import leave_lease

pytestmark = pytest.mark.asyncio(loop_scope="session")

VOID, FAILURE, FAULT = Outcome.VOID, Outcome.FAILURE, Outcome.FAULT


class TestTable:
    @pytest.mark.parametrize("again", [False, True])
    @pytest.mark.parametrize("cause", Cause)
    def test_an_attempt_is_judged_by_its_line(self, cause: Cause, again: bool) -> None:
        played = Playthrough(EpisodeMonitor(Instance("a", "p", {}, 0.0, 100, 1, "").task))
        if cause is Cause.BACKEND:
            played.fault = "it broke"
        elif ENDS[cause].first.counts:
            played.exceeded = f"{cause.value}, with more than 1 s"
        else:
            played.left = cause
        found = judge(played, 1, second_chance=again)
        assert found.outcome is ENDS[cause][1 + again]
        assert cause_of(found.cause) is cause
        if ENDS[cause].whose is not Whose.AGENT:
            assert not found.outcome.counts

    def test_what_is_believed_of_whom(self) -> None:
        failed, taken = gateway_pb2.Leave(failure="x"), gateway_pb2.Leave(dismissed=True)
        for believed, of_failed, of_taken in (
            (Trust(), Cause.AGENT_LEFT, Cause.AGENT_LEFT),
            (Trust(failure=True), Cause.AGENT_FAILED, Cause.AGENT_LEFT),
            (Trust(failure=True, dismissal=True), Cause.AGENT_FAILED, Cause.DISMISSED),
        ):
            assert (believed.why(failed)[0], believed.why(taken)[0]) == (of_failed, of_taken)
            assert believed.why(gateway_pb2.Leave())[0] is Cause.AGENT_LEFT


class Failing:
    """Fails in one episode, as often as it is asked there."""

    def __init__(self, episode: int, where: str = "act") -> None:
        self.episode, self.where = episode, where

    async def reset(self, info: EpisodeInfo) -> None:
        self.now, self.steps = info.episode, 0
        if self.where == "reset" and self.now == self.episode:
            raise LookupError("no map")

    async def act(self, observation: Observation) -> Any:
        self.steps += 1
        if self.now == self.episode and self.where == "act" and self.steps == 3:
            raise LookupError("lost my map")
        if self.now == self.episode and self.where == "answer":
            return 17
        return 3


async def fail_session(service: Service, agent: str, where: str = "act", **changes: Any) -> str:
    """A session whose agent has failed in the third episode."""
    session = await service.create(5, agent=agent, **changes)
    async with aconnect(service.running.address) as client:
        with pytest.raises((LookupError, AnimalcatError)) as raised:
            await client.evaluate(Failing(2, where), session)
    (note,) = raised.value.__notes__
    assert "is paused at episode 2" in note
    assert "judge_failure(" in note
    return session


async def play(client: AsyncClient, session: str, last: int) -> None:
    """Let an agent play to the end of an episode; a last fit would take long."""

    class EnoughError(Exception):
        pass

    def tell(played: PlayedEpisode) -> None:
        if played.episode == last:
            raise EnoughError

    with pytest.raises(EnoughError):
        await client.evaluate(Failing(-1), session, on_episode=tell, same_agent=True)


async def profile(service: Service, session: str) -> dict[str, Any]:
    async with aconnect(service.running.address) as client:
        return await client.profile(session)


@pytest.mark.parametrize("where", ["act", "reset", "answer"])
async def test_code_that_fails_pauses_the_session(service: Service, where: str) -> None:
    session = await fail_session(service, f"ends:{where}", where)
    found = await service.get(session)
    assert (list(found.unjudged), found.paused, found.episodes) == ([2], True, 2)
    assert found.state == sessions_pb2.SESSION_STATE_WAITING
    assert found.waits_for == "a person who says what episode 2 counts as"
    last = (await service.list_episodes(session))[-1]
    assert (last.episode, last.attempt, last.outcome) == (2, 0, types_pb2.OUTCOME_VOID)
    assert (last.cause_kind, last.ruling) == (
        types_pb2.CAUSE_AGENT_FAILED,
        types_pb2.RULING_AWAITED,
    )
    assert last.cause.startswith("the agent's code failed: ")
    assert ("(test_early_ends.py, line " in last.cause) == (where != "answer")
    # Nothing begins before a person has spoken, whoever comes and whoever resumes.
    async with service.agent(session, agent=f"ends:{where}") as stream:
        assert "--as repeat" in (await stream.refused("UNJUDGED")).message
    resume = sessions_pb2.ResumeSessionRequest(name=session)
    with pytest.raises(grpc.aio.AioRpcError, match="say first what that counts as"):
        await service.sessions.ResumeSession(resume)
    await service.sessions.CancelSession(sessions_pb2.CancelSessionRequest(name=session))
    about = (await profile(service, session))["provenance"]["agent_failures"]
    assert (about["awaited"], about["seen"]) == (1, 0)
    assert "1 attempt: 1 not judged, and so not counted." in about["words"]


@pytest.mark.parametrize("said", ["repeat", "failure", "fault"])
async def test_a_person_says_what_it_counts_as(service: Service, said: Any) -> None:
    agent = f"ends:{said}"
    session = await fail_session(service, agent)
    async with aconnect(service.running.address) as client:
        for wrong in ("awaited", "void"):
            with pytest.raises(AnimalcatError, match="is not a ruling"):
                await client.judge_failure(session, wrong)  # pyright: ignore[reportArgumentType]
        judged = await client.judge_failure(session, said)
        assert (judged.unjudged, judged.paused) == ((), False)
        assert judged.episodes == (3 if said == "failure" else 2)
        with pytest.raises(AnimalcatError, match="waits to be judged"):
            await client.judge_failure(session, "fault")
        await play(client, session, 3)
        episodes = await client.episodes(session)
        about = (await client.profile(session))["provenance"]
        assert not (await client.verify_session(session)).problems
    tries = [one for one in episodes if one.number == 2]
    outcome = {"repeat": "void", "failure": "failure", "fault": "fault"}[said]
    assert (tries[0].outcome, tries[0].ruling, tries[0].seen) == (outcome, said, False)
    if said == "failure":
        assert len(tries) == 1
        assert tries[0].outcomes == {"success": 0.0}
    else:  # the same arena, and it is said that it is not fresh
        assert [one.instance for one in tries] == [tries[0].instance] * 2
        assert (tries[1].seen, tries[1].ruling) == (True, None)
        assert tries[1].outcome in ("success", "failure")
    counts = {key: about["agent_failures"][key] for key in ("repeat", "failure", "fault")}
    assert counts == {"repeat": 0, "failure": 0, "fault": 0, said: 1}
    assert about["agent_failures"]["seen"] == (said != "failure")
    assert about["episodes"] == 4
    assert about["failures_by_default"] == 0
    assert not any(one.seen for one in episodes if one.number != 2)


async def test_who_is_interrupted_has_not_failed(service: Service) -> None:
    """As by Ctrl-C in a notebook, twice in the same arena."""
    session = await service.create(2, agent="ends:interrupted")

    class Slow(Failing):
        async def act(self, observation: Observation) -> Any:
            acting.set()
            await asyncio.sleep(60)

    async with aconnect(service.running.address) as client:
        for _ in range(2):
            acting = asyncio.Event()
            playing = asyncio.ensure_future(client.evaluate(Slow(-1), session))
            await acting.wait()
            playing.cancel()
            await asyncio.wait({playing})
        await service.settled(session, "WAITING", asyncio.sleep)
        await play(client, session, 0)
    tries = await service.list_episodes(session)
    assert [e.cause_kind for e in tries[:2]] == [types_pb2.CAUSE_DISMISSED] * 2
    assert [e.outcome for e in tries[:2]] == [types_pb2.OUTCOME_VOID] * 2
    assert tries[2].outcome in (types_pb2.OUTCOME_SUCCESS, types_pb2.OUTCOME_FAILURE)
    assert not tries[2].cause


async def dismiss(service: Service, session: str, failure: str = "") -> sessions_pb2.Session:
    request = sessions_pb2.DismissAgentsRequest(name=session, failure=failure)
    return (await service.sessions.DismissAgents(request)).session


async def test_who_runs_agents_takes_them_off(service: Service) -> None:
    session = await service.create(1, agent="ends:dismissed")
    for _ in range(2):
        async with service.agent(session, agent="ends:dismissed") as stream:
            await stream.receive("welcome")
            await stream.receive("episode_start")
            await stream.send(action(0, 3))
            await stream.receive("ask")
            assert not (await dismiss(service, session)).paused
            await stream.refused("DISMISSED")
    causes = [(e.outcome, e.cause_kind) for e in await service.list_episodes(session)]
    assert causes == [(types_pb2.OUTCOME_VOID, types_pb2.CAUSE_DISMISSED)] * 2


async def test_a_process_that_died_has_failed(service: Service) -> None:
    """It could say nothing, and whoever started it says how it ended."""
    session = await service.create(2, agent="ends:died")
    async with leave_lease(service, session, agent="ends:died"):
        found = await dismiss(service, session, "its process was ended by SIGSEGV")
    assert list(found.unjudged) == [0]
    (only,) = await service.list_episodes(session)
    assert only.cause == "the agent's code failed: its process was ended by SIGSEGV"


async def test_other_slots_play_to_the_end_of_theirs(service: Service) -> None:
    session = await service.create(6, agent="ends:slots", slots=2)

    @asynccontextmanager
    async def seat_agent(process: str) -> AsyncGenerator[Stream]:
        async with service.agent(session, agent="ends:slots", instance=process) as stream:
            await stream.receive("welcome")
            await stream.receive("episode_start")
            yield stream

    async with seat_agent("one") as one, seat_agent("two") as two:
        leave = gateway_pb2.Leave(failure="LookupError: lost")
        await one.send(gateway_pb2.EvaluateRequest(leave=leave))
        assert await one.call.read() is grpc.aio.EOF
        assert list((await service.get(session)).unjudged) == [0]
        await two.send(action(0, 3))
        while not isinstance(frame := await two.receive(), gateway_pb2.EpisodeEnd):
            await two.send(action(frame.step, 3))
        await two.refused("SESSION_FAILED")
    await service.settled(session, "WAITING", asyncio.sleep)
    first, second = await service.list_episodes(session)
    assert first.ruling == types_pb2.RULING_AWAITED
    assert second.outcome in (types_pb2.OUTCOME_SUCCESS, types_pb2.OUTCOME_FAILURE)
