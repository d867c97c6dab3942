"""The asynchronous client, and both clients where an event loop runs already, as in a notebook."""

from __future__ import annotations

import ast
import asyncio
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any

import pytest

import animalcat
from animalcat.envs.types import Observation

from .conftest import MakeSession, Server, interrupt_next_call


class Forward:
    """Goes forward, and notes in which thread it thinks."""

    def __init__(self) -> None:
        self.threads = set[int]()

    def reset(self, info: animalcat.EpisodeInfo) -> None:
        self.threads.add(threading.get_ident())

    def act(self, observation: Observation) -> animalcat.Actions:
        self.threads.add(threading.get_ident())
        return animalcat.Actions([3] * 50)


class Asking:
    """Waits for what it asks, on the event loop."""

    def __init__(self) -> None:
        self.asked = 0

    async def reset(self, info: animalcat.EpisodeInfo) -> None:
        await asyncio.sleep(0)

    async def act(self, observation: Observation) -> animalcat.Actions:
        await asyncio.sleep(0)
        self.asked += 1
        return animalcat.Actions([3] * 50)


async def test_a_session_from_beginning_to_end(server: Server) -> None:
    agent = Forward()
    async with animalcat.aconnect(server.address) as client:
        session = await client.create_session(
            agent="async", battery="navigation", max_episodes=2, certify=False
        )
        summary = await client.evaluate(agent, session)
        assert (summary.state, summary.counted) == ("finished", 2)
        assert threading.get_ident() not in agent.threads
        episodes = await client.episodes(session)
        assert [episode.number for episode in episodes] == [0, 1]
        events = [event async for event in client.watch_session(session, from_start=True)]
        assert [event.episode for event in events if event.episode] == episodes
        assert events[-1].session == await client.get_session(session.id)
        recorded = [part async for part in client.stream_episode(session, 0)]
        assert len(recorded) == episodes[0].steps + 3
        assert session.id in [one.id async for one in client.sessions(agent="async")]
        assert "nodes" in await client.profile(session)
        instances = [one async for one in client.instances("navigation")]
        battery = await client.get_battery("navigation")
        assert len(instances) == battery.instances == 12
        assert set(instances[0].features) <= {feature.name for feature in battery.features}


async def test_an_agent_may_be_made_of_coroutines(
    server: Server, make_session: MakeSession
) -> None:
    session, agent = make_session(max_episodes=1), Asking()
    async with await animalcat.aconnect(server.address) as client:
        assert (await client.evaluate(agent, session)).counted == 1
    assert agent.asked > 0
    with animalcat.connect(server.address) as blocking:
        again = make_session(max_episodes=1, seed=1)
        assert blocking.evaluate(Asking, again).counted == 1


async def test_two_agents_play_at_once_on_one_connection(
    server: Server, make_session: MakeSession
) -> None:
    sessions = [make_session(agent=f"at-once-{k}", max_episodes=1) for k in range(2)]
    meeting = threading.Barrier(2)

    class Meeting(Forward):
        def reset(self, info: animalcat.EpisodeInfo) -> None:
            meeting.wait(60)  # each waits for the other, so both must be playing

    async with animalcat.aconnect(server.address) as client:
        both = await asyncio.gather(*(client.evaluate(Meeting(), one) for one in sessions))
    assert [summary.state for summary in both] == ["finished", "finished"]


async def test_whoever_stops_watching_ends_the_call(
    server: Server, make_session: MakeSession
) -> None:
    session = make_session()
    async with animalcat.aconnect(server.address) as client:
        async with aclosing(client.watch_session(session)) as events:
            assert (await anext(events)).session.state == "waiting"
            waiting = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert (await client.cancel_session(session)).state == "cancelled"


async def cell(source: str, names: dict[str, Any]) -> None:
    """Run a cell in the loop that runs, as a notebook's kernel does; it may await."""
    code = compile(source, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, names)  # noqa: S307  the cells are below
    if code.co_flags & inspect.CO_COROUTINE:
        await result


def test_both_clients_work_in_one_notebook(server: Server) -> None:
    """The blocking one in a thread of its own; the loop and its channels stay from cell to cell."""
    names: dict[str, Any] = {"address": server.address, "Forward": Forward, "Asking": Asking}

    async def notebook() -> None:
        await cell("import animalcat\nclient = animalcat.connect(address)", names)
        await cell(
            "spec = dict(battery='navigation', max_episodes=1, certify=False)\n"
            "session = client.create_session(agent='in-a-notebook', **spec)\n"
            "watched = client.watch_session(session)\n"
            "first = next(watched)",
            names,
        )
        await cell("summary = client.evaluate(Forward(), session)", names)
        await cell("after = [event.session.state for event in watched]", names)
        await cell("other = await animalcat.aconnect(address)", names)
        await cell(
            "session = await other.create_session(agent='in-a-notebook', seed=1, **spec)\n"
            "again = await other.evaluate(Asking, session)\n"
            "played = client.episodes(session)\n"
            "same = [one async for one in other.sessions(agent='in-a-notebook')]",
            names,
        )
        await cell("await other.close()\nclient.close()", names)

    asyncio.run(notebook())
    assert names["first"].session.state == "waiting"
    assert names["summary"].counted == names["again"].counted == 1
    assert names["after"][-1] == "finished"
    assert len(names["played"]) == 1
    assert names["same"][0].id == names["session"].id


@pytest.mark.usefixtures("heeded")
@pytest.mark.parametrize("in_a_loop", [False, True])
def test_a_call_that_was_interrupted_is_given_up(
    server: Server, make_session: MakeSession, in_a_loop: bool
) -> None:
    """As by Ctrl-C, or a notebook's button; the connection goes on."""
    session = make_session()
    client = animalcat.connect(server.address)
    events = client.watch_session(session)
    assert next(events).session.state == "waiting"  # nothing more comes until somebody plays

    async def notebook() -> None:
        next(events)

    interrupt_next_call(client)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        if in_a_loop:
            asyncio.new_event_loop().run_until_complete(notebook())
        else:
            next(events)
    assert client.cancel_session(session).state == "cancelled"
    client.close()


def test_an_interrupt_while_a_thread_takes_a_call_leaves_the_connection_free(
    server: Server, make_session: MakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call is in the thread then, and its caller has no future to wait for."""
    session = make_session()
    client = animalcat.connect(server.address)
    submit = ThreadPoolExecutor.submit

    def submit_and_interrupt(self: ThreadPoolExecutor, *call: Any, **named: Any) -> Any:
        monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)
        submit(self, *call, **named)
        raise KeyboardInterrupt

    async def notebook() -> None:
        next(client.watch_session(session))

    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        asyncio.new_event_loop().run_until_complete(notebook())
    assert client.cancel_session(session).state == "cancelled"
    client.close()
