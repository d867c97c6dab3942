"""Lists come in pages, each after the last, and tokens belong to their list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import grpc
import pytest

from animalcat.layouts.library import LAYOUTS, load_layout
from animalcat.service.errors import Code, ServiceError
from animalcat.service.model import LayoutRecord
from animalcat.service.rpc.paging import MOST, PAGE, page_of_list
from animalcat.v1 import layouts_pb2, sessions_pb2

from .conftest import FILES, Service

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAMES = [f"{k:04}" for k in range(2500)]


def ask(size: int = 0, token: str = "", parent: str = "p") -> sessions_pb2.ListInstancesRequest:
    return sessions_pb2.ListInstancesRequest(parent=parent, page_size=size, page_token=token)


def whole(items: Callable[[], Sequence[str]], size: int) -> list[str]:
    """Everything that pages of a size show, the list looked up anew for each."""
    found: list[str] = []
    token = ""
    while True:
        page = page_of_list(items(), str, ask(size, token))
        found += page
        token = page.next
        if not token:
            return found


async def test_pages_show_everything_once() -> None:
    assert whole(lambda: NAMES, 7) == whole(lambda: NAMES, 0) == NAMES
    assert len(page_of_list(NAMES, str, ask())) == PAGE
    assert len(page_of_list(NAMES, str, ask(100_000))) == MOST
    assert page_of_list([], str, ask()).next == ""


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (ask(7, "nonsense"), "not belong to this list"),
        (ask(7, page_of_list(NAMES, str, ask(7)).next, "another"), "not belong to this list"),
        (ask(7, page_of_list(["gone", "b"], str, ask(1)).next), "no longer in the list"),
    ],
)
async def test_a_token_of_another_list_is_refused(request_: Any, says: str) -> None:
    with pytest.raises(ServiceError, match=says) as caught:
        page_of_list(NAMES, str, request_)
    assert caught.value.code is Code.BAD_PAGE


async def test_instances_have_their_features(service: Service) -> None:
    await service.import_files()
    found: list[sessions_pb2.Instance] = []
    request = sessions_pb2.ListInstancesRequest(parent="batteries/small", page_size=10)
    while True:
        answer = await service.batteries.ListInstances(request)
        found += answer.instances
        request.page_token = answer.next_page_token
        if not request.page_token:
            break
    assert [one.name for one in found] == [path.removesuffix(".yaml") for path, _ in FILES]
    ahead = next(one for one in found if one.name == "navigation-00")
    assert ahead.features["rewardDistance"] == pytest.approx(3.0, abs=0.5)
    assert (ahead.pass_mark, ahead.time_limit_steps) == (0.0, 120)
    told = await service.batteries.GetBattery(
        sessions_pb2.GetBatteryRequest(name="batteries/small")
    )
    assert told.battery.instances == len(FILES)
    units = {feature.name: feature.unit for feature in told.features}
    assert units["rewardDistance"] == "m"
    assert set(ahead.features) <= set(units)


async def test_shipped_layouts_are_told_by_digest_and_by_name(service: Service) -> None:
    listed = (await service.layouts.ListLayouts(layouts_pb2.ListLayoutsRequest())).layouts
    assert {one.title for one in listed if one.shipped} == set(LAYOUTS)
    assert all(not one.text for one in listed)
    aaio = load_layout("aaio")
    for name in (aaio.identity, "aaio"):
        request = layouts_pb2.GetLayoutRequest(name=f"layouts/{name}")
        found = (await service.layouts.GetLayout(request)).layout
        assert (found.name, found.digest) == (f"layouts/{aaio.identity}", aaio.identity)
        assert "rewardDistance" in found.text
    with pytest.raises(grpc.aio.AioRpcError, match="no layout is named 'nope'"):
        await service.layouts.GetLayout(layouts_pb2.GetLayoutRequest(name="layouts/nope"))


async def test_layouts_that_the_store_keeps_are_told_by_digest(service: Service) -> None:
    kept = LayoutRecord("ab" * 32, "aaio", "", "name: aaio\n")
    service.running.engines.parts.store.put_layout(kept)
    listed = (await service.layouts.ListLayouts(layouts_pb2.ListLayoutsRequest())).layouts
    assert kept.digest in [one.digest for one in listed if not one.shipped]
    request = layouts_pb2.GetLayoutRequest(name=f"layouts/{kept.digest}")
    assert (await service.layouts.GetLayout(request)).layout.text == kept.text
    request = layouts_pb2.GetLayoutRequest(name="layouts/aaio")
    assert (await service.layouts.GetLayout(request)).layout.shipped


async def test_sessions_are_listed_by_what_is_asked_for(service: Service) -> None:
    made = [await service.create(1, seed=seed, agent="lists:own") for seed in range(5)]
    await service.play(made[2], agent="lists:own")
    finished = [sessions_pb2.SESSION_STATE_FINISHED]

    async def pages(**asked: Any) -> list[list[str]]:
        request = sessions_pb2.ListSessionsRequest(page_size=2, agent="lists:own", **asked)
        found: list[list[str]] = []
        while True:
            answer = await service.sessions.ListSessions(request)
            found.append([one.name for one in answer.sessions])
            request.page_token = answer.next_page_token
            if not request.page_token:
                return found

    every = await pages()
    assert [len(page) for page in every] == [2, 2, 1]
    assert sorted(name for page in every for name in page) == sorted(made)
    assert await pages(states=finished) == [[made[2]]]
    assert await pages(states=finished, battery="batteries/small") == [[made[2]]]
    assert await pages(battery="batteries/another") == [[]]
    bad = sessions_pb2.ListSessionsRequest(page_token="nonsense")
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await service.sessions.ListSessions(bad)
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
