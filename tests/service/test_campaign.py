"""Campaigns: what several agents play in common, who plays on, and going on after a stop."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from animalcat.v1 import campaigns_pb2, operations_pb2, sessions_pb2

from .conftest import Service, walk

pytestmark = pytest.mark.asyncio(loop_scope="session")

FINISHED = sessions_pb2.SESSION_STATE_FINISHED
Start = Callable[[Path], Any]
POLICIES: dict[str, Callable[[np.random.Generator], int]] = {
    "walks": walk,
    "walks too": walk,
    "stands": lambda rng: 0,
}


def campaign_spec(**changes: Any) -> campaigns_pb2.CampaignSpec:
    fields: dict[str, Any] = {
        "agents": list(POLICIES),
        "session": sessions_pb2.SessionSpec(
            battery="batteries/small", layout="aaio", seed=3, certify=False
        ),
        "budget": 20,
        "common": 3,
        "block": 2,
        "alike": 0.02,
        **changes,
    }
    return campaigns_pb2.CampaignSpec(**fields)


async def create(
    service: Service, *, max_workers: int = 0, **changes: Any
) -> campaigns_pb2.Campaign:
    await service.import_files()
    request = campaigns_pb2.CreateCampaignRequest(
        spec=campaign_spec(**changes), max_workers=max_workers
    )
    return (await service.campaigns.CreateCampaign(request)).campaign


async def get(service: Service, campaign: str) -> campaigns_pb2.Campaign:
    request = campaigns_pb2.GetCampaignRequest(name=campaign)
    return (await service.campaigns.GetCampaign(request)).campaign


async def play(service: Service, campaign: campaigns_pb2.Campaign) -> list[int]:
    """Let all agents play side by side; how their sessions ended."""
    ends = await asyncio.gather(
        *(
            service.play(session.name, POLICIES[session.spec.agent], agent=session.spec.agent)
            for session in campaign.sessions
        )
    )
    return [end.state for end in ends]


async def outcomes(service: Service, campaign: campaigns_pb2.Campaign) -> list[list[Any]]:
    return [
        [
            (e.episode, e.instance, e.decision.propensity, e.outcome)
            for e in await service.list_episodes(session.name)
            if e.outcome <= 2
        ]
        for session in campaign.sessions
    ]


@pytest.mark.slow
async def test_a_budget_is_shared_and_a_stop_changes_nothing(start: Start, tmp_path: Path) -> None:
    async with start(tmp_path / "whole") as service:
        campaign = await create(service)
        assert [session.allowed for session in campaign.sessions] == [3, 3, 3]
        assert await play(service, campaign) == [FINISHED] * 3
        ended = await get(service, campaign.name)
        assert sum(session.episodes for session in ended.sessions) == 20
        assert ended.reason == "the budget of 20 episodes is used up"
        assert {session.reason for session in ended.sessions} == {ended.reason}
        assert {c.status for s in ended.sessions for c in s.capabilities} <= {
            sessions_pb2.MEASURING_STATUS_BUDGET,
            sessions_pb2.MEASURING_STATUS_MEASURED,
        }
        whole = await outcomes(service, ended)
        common = [[instance for _, instance, _, _ in played[:3]] for played in whole]
        assert common[0] == common[1] == common[2]
        assert len(set(common[0])) == 3
        # The same again is the same campaign, and it has ended.
        assert await create(service) == ended

    data = tmp_path / "stopped"
    async with start(data) as service:
        assert (await create(service)).name == campaign.name
        playing = asyncio.create_task(play(service, campaign))
        while sum(s.episodes for s in (await get(service, campaign.name)).sessions) < 11:
            await asyncio.sleep(0.02)
    (cut,) = await asyncio.gather(playing, return_exceptions=True)
    assert isinstance(cut, BaseException)
    async with start(data) as service:
        resumed = await get(service, campaign.name)
        assert resumed.reason == ""
        assert 11 <= sum(session.episodes for session in resumed.sessions) < 20
        assert await play(service, resumed) == [FINISHED] * 3
        assert await outcomes(service, resumed) == whole


@contextmanager
def refusing(data: Path, name: str, what: str) -> Iterator[None]:
    """The database of a data directory refuses a kind of write for a while."""
    with closing(sqlite3.connect(data / "animalcat.sqlite", isolation_level=None)) as database:
        database.execute(
            f"CREATE TRIGGER {name} BEFORE {what} BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        yield
        database.execute(f"DROP TRIGGER {name}")


@pytest.mark.slow
async def test_errors_change_nothing_and_do_not_end_a_campaign(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A round is handed out whole or not at all, and what failed is tried again."""
    async with start(tmp_path) as service:
        campaign = await create(service, agents=["walks", "stands"], budget=10)
        ids = [session.name.removeprefix("sessions/") for session in campaign.sessions]
        with refusing(tmp_path, "profile", f"INSERT ON profiles WHEN NEW.session = '{ids[0]}'"):
            allowing = f"UPDATE OF allowed ON sessions WHEN NEW.id = '{ids[1]}'"
            with refusing(tmp_path, "allowing", allowing):
                playing = asyncio.create_task(play(service, campaign))
                while "IntegrityError" not in caplog.text:
                    await asyncio.sleep(0.02)
                held = await asyncio.to_thread(service.running.engines.parts.store.sessions)
                assert [(s.episodes, s.allowed) for s in held] == [(3, 3)] * 2
            while (await service.get(campaign.sessions[1].name)).state != FINISHED:
                await asyncio.sleep(0.02)
            assert (await service.get(campaign.sessions[0].name)).state != FINISHED
        while (await service.get(campaign.sessions[0].name)).state != FINISHED:
            await asyncio.sleep(0.02)
        await asyncio.gather(playing, return_exceptions=True)
        ended = await get(service, campaign.name)
        assert sum(session.episodes for session in ended.sessions) == 10
        assert {session.reason for session in ended.sessions} == {ended.reason}


async def test_agents_wait_for_what_is_handed_out_and_an_end_gives_profiles(
    service: Service,
) -> None:
    """An agent that has played what it was given waits for the others; one never came."""
    campaign = await create(service, budget=50, agents=["walks", "stands", "absent"])
    first, second, third = campaign.sessions
    playing = [
        asyncio.create_task(service.play(s.name, POLICIES[s.spec.agent], agent=s.spec.agent))
        for s in (first, second)
    ]
    while [s.episodes for s in (await get(service, campaign.name)).sessions] != [3, 3, 0]:
        await asyncio.sleep(0.02)
    assert not any(task.done() for task in playing)
    request = campaigns_pb2.EndCampaignRequest(name=campaign.name)
    done = await service.done((await service.campaigns.EndCampaign(request)).operation)
    assert (done.state, done.resource) == (operations_pb2.OPERATION_STATE_DONE, campaign.name)
    ended = await get(service, campaign.name)
    assert ended.reason == "the campaign was ended"
    assert [s.state for s in ended.sessions] == [
        sessions_pb2.SESSION_STATE_FINISHED,
        sessions_pb2.SESSION_STATE_FINISHED,
        sessions_pb2.SESSION_STATE_CANCELLED,
    ]
    assert [(await task).state for task in playing] == [FINISHED, FINISHED]
    assert (await service.get(third.name)).episodes == 0
    listed = await service.campaigns.ListCampaigns(campaigns_pb2.ListCampaignsRequest())
    ended.ClearField("sessions")  # a list leaves them out
    assert ended in listed.campaigns


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"agents": ["one"]}, "give 2 to 100"),
        ({"agents": ["one", "one"]}, "each once"),
        ({"budget": 8}, "give at least 9"),
        ({"budget": 0}, "budget"),
        ({"alike": 1.5}, "alike"),
        (
            {"session": sessions_pb2.SessionSpec(battery="batteries/none", layout="aaio")},
            "none",
        ),
        (
            {
                "session": sessions_pb2.SessionSpec(
                    battery="batteries/small",
                    layout="aaio",
                    policy=sessions_pb2.SelectionPolicy(
                        name=sessions_pb2.POLICY_NAME_LISTED, order=["navigation-00"]
                    ),
                )
            },
            "leave out the list",
        ),
    ],
)
async def test_what_is_no_campaign(service: Service, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match=words):
        await create(service, **changes)


async def test_an_unknown_campaign_is_named(service: Service) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match="named 'nobody'"):
        await get(service, "campaigns/nobody")
