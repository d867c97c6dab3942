"""Campaigns: what several agents play in common, and going on after a stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from animalcat.v1 import campaigns_pb2, sessions_pb2

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
        **changes,
    }
    return campaigns_pb2.CampaignSpec(**fields)


async def create(service: Service, **changes: Any) -> campaigns_pb2.Campaign:
    await service.import_files()
    request = campaigns_pb2.CreateCampaignRequest(spec=campaign_spec(**changes))
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
        assert await play(service, campaign) == [FINISHED] * 3
        ended = await get(service, campaign.name)
        assert [session.episodes for session in ended.sessions] == [6, 6, 6]  # of 20
        assert (ended.episodes, ended.over) == (18, True)
        whole = await outcomes(service, ended)
        common = [[instance for _, instance, _, _ in played[:3]] for played in whole]
        assert common[0] == common[1] == common[2]
        assert len(set(common[0])) == 3
        # The same again is the same campaign, and it has ended.
        assert await create(service) == ended
        listed = await service.campaigns.ListCampaigns(campaigns_pb2.ListCampaignsRequest())
        ended.ClearField("sessions")  # a list leaves them out
        assert list(listed.campaigns) == [ended]

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
        assert not resumed.over
        assert 11 <= sum(session.episodes for session in resumed.sessions) < 18
        assert await play(service, resumed) == [FINISHED] * 3
        assert await outcomes(service, resumed) == whole


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"agents": ["one"]}, "give 2 to 100"),
        ({"agents": ["one", "one"]}, "each once"),
        ({"budget": 8}, "give at least 9"),
        ({"budget": 0}, "budget"),
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
