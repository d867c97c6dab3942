"""Things belong to who made them: who sees, runs and deletes what."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import animalcat
from animalcat.cli.main import build
from animalcat.client.async_client import AsyncClient
from animalcat.errors import AnimalcatError
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.service.access.callers import Role
from animalcat.service.access.tokens import Tokens
from animalcat.service.model import BatteryRecord, LayoutRecord
from animalcat.service.storage.listing import Page, SessionFilter, WhoseFilter
from animalcat.service.storage.sql import SqlStore
from animalcat.values import OwnerFilter, SessionSpec, SessionState

from .conftest import NOW, Guarded, Service

pytestmark = pytest.mark.asyncio(loop_scope="session")

PEOPLE: dict[str, Role] = {
    "ann": Role.RESEARCHER,
    "bob": Role.RESEARCHER,
    "eve": Role.RESEARCHER,
    "vera": Role.VIEWER,
    "otto": Role.OPERATOR,
    "ada": Role.ADMINISTRATOR,
}


class People(dict[str, AsyncClient]):
    """A client of each person, by name."""

    def __init__(self, clients: dict[str, AsyncClient], data: Path, address: str) -> None:
        super().__init__(clients)
        self.data, self.address = data, address


@pytest.fixture
def people(guarded: Guarded) -> Callable[[Path], Any]:
    @asynccontextmanager
    async def start_one(data: Path) -> AsyncIterator[People]:
        tokens = Tokens(data, lambda: NOW)
        async with guarded(data) as connected, AsyncExitStack() as stack:
            service: Service = connected("")
            clients: dict[str, AsyncClient] = {}
            for name, role in PEOPLE.items():
                text = tokens.create(role, subject=name)[1]
                pending = animalcat.aconnect(service.running.address, token=text)
                clients[name] = await stack.enter_async_context(pending)
            yield People(clients, data, service.running.address)

    return start_one


async def code(call: Any) -> str:
    """The code of the error with which a call ends; empty if it is answered."""
    try:
        await call
    except AnimalcatError as error:
        return error.code if error.request_id else "no id of the request"
    return ""


async def agents_seen_by(people: People, **whose: Any) -> dict[str, list[str]]:
    """Agents of the sessions that each person is shown."""
    return {
        name: sorted(s.spec.agent for s in await client.list_sessions(OwnerFilter(**whose)))
        for name, client in people.items()
    }


async def test_what_one_makes_nobody_else_sees_but_those_who_run_the_server(
    people: Callable[[Path], Any], tmp_path: Path
) -> None:
    async with people(tmp_path) as who:
        await who["ann"].build_battery("navigation", 6, name="hers", seed=3)
        options: dict[str, Any] = {"battery": "hers", "max_episodes": 3}
        session = await who["ann"].create_session(agent="a", request_id="x", **options)
        await who["eve"].build_battery("navigation", 6, name="eves", seed=4)
        await who["eve"].create_session(agent="e", battery="eves", max_episodes=3)
        assert session.owner == "ann"
        nobody = {"bob": [], "vera": []}
        both = {"otto": ["a", "e"], "ada": ["a", "e"]}
        assert await agents_seen_by(who) == {"ann": ["a"], "eve": ["e"], **nobody, **both}
        mine = await agents_seen_by(who, mine=True)
        assert mine == {"ann": ["a"], "eve": ["e"], **nobody, "otto": [], "ada": []}

        # Nothing of it is told: not that it is there, and not by its battery or request id.
        other, none = "UNKNOWN_SESSION", "UNKNOWN_BATTERY"
        for name in ("bob", "vera", "eve"):
            assert await code(who[name].get_session(session)) == other
            assert await code(who[name].profile(session)) == other
            assert await code(who[name].get_battery("hers")) == none
        with pytest.raises(AnimalcatError) as there:
            await who["bob"].get_session(session)
        with pytest.raises(AnimalcatError) as not_there:
            await who["bob"].get_session("not-there")
        assert str(there.value).replace(session.id, "not-there") == str(not_there.value)
        with pytest.raises(AnimalcatError) as refused:
            await who["bob"].create_session(agent="b", battery="nothing")
        assert "hers" not in str(refused.value)
        assert await code(who["bob"].create_session(agent="b", **options)) == none
        assert await code(who["bob"].build_battery("navigation", 6, name="hers")) == "NAME_TAKEN"
        assert [b.id for b in await who["bob"].list_batteries()] == []

        # Those who run the server see and run all, and delete nothing of others.
        assert (await who["otto"].pause_session(session)).paused
        assert await code(who["otto"].delete_session(session)) == "FORBIDDEN"
        # A viewer reads what is its subject's.
        await who["ada"].hand_over(session.name, "vera")
        await who["ada"].hand_over("batteries/hers", "vera")
        assert (await who["vera"].get_session(session)).owner == "vera"
        assert await code(who["vera"].pause_session(session)) == "FORBIDDEN"
        # What belongs to nobody all may read, and measure with.
        await who["ada"].hand_over("batteries/hers", "")
        twin = await who["bob"].create_session(agent="b", request_id="y", **options)
        assert twin.owner == "bob"
        assert await code(who["bob"].create_session(agent="a", request_id="x", **options)) == (
            "REQUEST_ID_REUSED"
        )
        replacing = who["bob"].build_battery("navigation", 5, name="hers", replace=True)
        assert await code(replacing) == "NAME_TAKEN"
        assert await code(who["eve"].cancel_session(session)) == other
        assert (await who["otto"].cancel_session(session)).state == "cancelled"

        # What was handed over is the other's, and no longer one's own.
        assert await code(who["ann"].hand_over(session.name, "eve")) == "FORBIDDEN"
        assert (await who["ada"].hand_over(session.name, "eve")).owner == "eve"
        assert await code(who["ann"].get_session(session)) == other
        await who["eve"].delete_session(session)
        assert await code(who["ada"].hand_over(session.name, "ann")) == other


async def test_a_campaign_takes_its_sessions_along(
    people: Callable[[Path], Any], tmp_path: Path
) -> None:
    async with people(tmp_path) as who:
        await who["ann"].build_battery("navigation", 8, name="hers")
        options: dict[str, Any] = {"battery": "hers", "budget": 6, "common": 1, "seed": 1}
        campaign = await who["ann"].create_campaign(agents=["a", "b"], **options)
        assert {session.owner for session in campaign.sessions} == {"ann"} == {campaign.owner}
        assert await code(who["bob"].get_campaign(campaign.id)) == "UNKNOWN_CAMPAIGN"
        await who["ada"].hand_over("batteries/hers", "")
        # Another one just like it would be the same, and so have the same sessions.
        assert await code(who["eve"].create_campaign(agents=["a", "b"], **options)) == "NAME_TAKEN"
        assert [one async for one in who["eve"].campaigns()] == []
        await who["ada"].hand_over(campaign.name, "bob")
        assert len((await agents_seen_by(who))["bob"]) == 2
        assert {s.owner for s in await who["bob"].list_sessions(OwnerFilter(mine=True))} == {"bob"}


async def test_an_agents_token_with_a_subject_plays_that_subjects_sessions_alone(
    guarded: Guarded, tmp_path: Path
) -> None:
    tokens = Tokens(tmp_path)
    async with guarded(tmp_path) as connected:

        def of(role: Role, **fields: Any) -> Service:
            return connected(tokens.create(role, **fields)[1])

        hers = await of(Role.RESEARCHER, subject="ann").create(2)
        other = await of(Role.ADMINISTRATOR, subject="ada").create(2, seed=6)
        agent = of(Role.AGENT, agent="tests:agent", subject="ann")
        async with agent.agent(other) as stream:
            await stream.refused("UNKNOWN_SESSION")
        assert (await agent.play("")).session == hers  # the only one of hers that waits


async def test_commands_of_several_people(
    people: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with people(tmp_path) as who:
        await who["ann"].build_battery("navigation", 6, name="hers")
        session = await who["ann"].create_session(agent="a", battery="hers", max_episodes=3)
        tokens = Tokens(who.data, lambda: NOW)

        async def run(name: str, *words: str) -> Any:
            text = tokens.create(PEOPLE[name], subject=name)[1]
            monkeypatch.setenv("ANIMALCAT_TOKEN", text)
            full = [*words, "--server", who.address]
            return await asyncio.to_thread(CliRunner().invoke, build(full), full)

        listed = json.loads((await run("bob", "session", "list", "--everybody", "--json")).stdout)
        assert listed == []
        listed = json.loads((await run("otto", "session", "list", "--json")).stdout)
        assert listed == []
        listed = json.loads((await run("otto", "session", "list", "--everybody", "--json")).stdout)
        assert [row["owner"] for row in listed] == ["ann"]
        assert "ann" in (await run("ada", "session", "list", "--owner", "ann")).stdout
        assert "hers" in (await run("ann", "battery", "show")).stdout
        assert "hers" not in (await run("bob", "battery", "show")).stdout
        await who["ada"].hand_over(session.name, "bob")
        done = await run("bob", "delete", session.id)
        assert "nothing was deleted" in done.stdout
        assert "0 episodes of a on hers" in done.stdout
        done = await run("otto", "delete", session.id, "--yes")
        assert (done.exit_code, "only its owner or an administrator" in done.stderr) == (1, True)
        done = await run("ann", "delete", "batteries/hers", "--yes")
        assert (done.exit_code, "was made with battery hers" in done.stderr) == (1, True)
        done = await run("ada", "delete", "batteries/hers", session.id, "--yes", "--json")
        told = json.loads(done.stdout)["items"]
        assert [(row["name"], row["kept"]) for row in told] == [
            (f"sessions/{session.id}", None),
            ("batteries/hers", None),
        ]
        assert await who["ada"].list_sessions() == []
        done = await run("ada", "delete", f"layouts/{session.spec.layout_digest}")
        assert (done.exit_code, "names nothing that can be deleted" in done.stderr) == (2, True)
        # What a researcher may not know of the server does not keep from asking whether it is well.
        assert (await run("ann", "server", "status")).exit_code == 0


def test_the_same_layout_brought_by_two_is_seen_by_all(tmp_path: Path) -> None:
    store = SqlStore.in_directory(tmp_path)
    for owner, then in (("ann", "ann"), ("", "ann"), ("ann", "ann"), ("bob", ""), ("ann", "")):
        store.put_layout(LayoutRecord("d", "own", "", "text", owner=owner))
        assert store.owners.of("layouts/d") == then
    assert len(store.layouts(Page(), (), WhoseFilter(seen_by="eve"))) == 1
    store.close()


def test_pages_of_lists_hold_what_one_may_see(tmp_path: Path) -> None:
    store = SqlStore.in_directory(tmp_path)
    spec = SessionSpec("a", "b", "", "", "", Policy(), StoppingRule())
    for k in range(24):
        owner = ("", "ann", "bob", "ann")[k % 4]
        store.put_battery(BatteryRecord(f"b{k:02}", f"{k:064}", 1, owner=owner))
        store.put_layout(LayoutRecord(f"{k:064}", "own", "", "text", owner=owner))
        store.create_session(f"s{k:02}", spec, NOW, owner=owner)
    filters = [
        WhoseFilter(),
        WhoseFilter(seen_by="ann"),
        WhoseFilter(seen_by="ann", mine="ann"),
        WhoseFilter(owner="bob", seen_by="ann"),
        WhoseFilter(mine="bob"),
        WhoseFilter(owner="ann"),
        WhoseFilter(seen_by="eve"),
        WhoseFilter(seen_by=""),
    ]
    waiting = (SessionState.WAITING, SessionState.FINISHED)
    lists: list[tuple[bool, Callable[[Page, WhoseFilter], Any]]] = [
        (True, lambda page, whose: store.batteries(page, "b", whose)),
        (True, lambda page, whose: store.layouts(page, ["f"], whose)),
        (False, lambda page, whose: store.sessions(SessionFilter(whose=whose), page)),
        (
            False,
            lambda page, whose: store.sessions(SessionFilter(states=waiting, whose=whose), page),
        ),
    ]
    numbers = set[int]()

    for common, pages in lists:
        everything = pages(Page(), WhoseFilter())
        for whose in filters:
            seen = [one for one in everything if whose.takes(one.owner, common=common)]
            listed, page = list[Any](), Page(5)
            while True:
                found = pages(page, whose)
                assert len(found) == 5 or not found.next
                listed += found
                if not found.next:
                    break
                page = Page(5, found.next)
            assert listed == seen, (whose, common)
            numbers.add(len(seen))
    assert len(numbers) > 4
    store.close()
