"""Who gets a simulator next where there are few, and what the others are told."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import pytest
from typer.testing import CliRunner

from animalcat.cli.main import build
from animalcat.service.host.settings import Settings
from animalcat.service.rpc.server import create_server
from animalcat.service.session.room import Room
from animalcat.v1 import gateway_pb2, operations_pb2
from tests.service.conftest import AGENT, NOW, Helpers, Service, Stream, action
from tests.service.test_campaign import create


class Guests:
    """Groups that ask for places, and who has been let in so far."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.let_in: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def ask(self, *groups: str) -> None:
        self.tasks += [asyncio.create_task(self._enter(group)) for group in groups]
        await asyncio.sleep(0)

    async def leave(self, group: str) -> None:
        self.room.leave(group)
        await asyncio.sleep(0)

    async def _enter(self, group: str) -> None:
        await self.room.enter(group)
        self.room.arrive()
        self.let_in.append(group)


async def test_a_place_goes_to_the_campaign_that_holds_fewest() -> None:
    guests = Guests(Room(most=3))
    await guests.ask("big", "big", "big", "big", "small", "late")
    assert guests.let_in == ["big"] * 3
    assert guests.room.hindrance("small") == "one of the 3 simulators of the server"
    for _ in range(3):
        await guests.leave("big")
    # The one that waits longest comes first among those that hold as many.
    assert guests.let_in == ["big"] * 3 + ["small", "late", "big"]
    assert not guests.room.waited_for


@pytest.mark.parametrize("admitted", [False, True])
async def test_one_that_goes_away_leaves_no_place_taken(admitted: bool) -> None:
    guests = Guests(Room(most=1))
    await guests.ask("one", "gone", "next")
    if admitted:  # it was let in, and cancelled before it heard of that
        guests.room.leave("one")
    guests.tasks[1].cancel()
    await asyncio.sleep(0)
    if not admitted:
        await guests.leave("one")
    await asyncio.sleep(0)
    assert guests.let_in == ["one", "next"]


@pytest.mark.parametrize("order", [["a", "b", "a", "b"], ["b", "b", "a", "a"]])
async def test_turns_go_round(order: Sequence[str]) -> None:
    """With one place, two campaigns that both wait always have it in turn."""
    guests = Guests(Room(most=1))
    await guests.ask("a", *order)
    for _ in order:
        await guests.leave(guests.let_in[-1])
    assert sorted(guests.let_in[1:]) == sorted(order)


async def finish(stream: Stream, step: int = 0) -> None:
    """Play an episode to its end by standing still."""
    await stream.send(action(step, 0))
    while isinstance(frame := await stream.receive(), gateway_pb2.Ask):
        await stream.send(action(frame.step, 0))
    assert isinstance(frame, gateway_pb2.EpisodeEnd)


@pytest.mark.asyncio(loop_scope="session")
async def test_sessions_share_one_simulator_and_say_so(fitter: Helpers, tmp_path: Path) -> None:
    """Each has it for an episode at a time; who waits is told for what, and so is who asks."""
    settings = Settings(home=tmp_path, port=0, max_workers=1)
    async with (
        create_server(settings, lambda: NOW, fitter, fitter.simulators) as running,
        grpc.aio.insecure_channel(running.address) as channel,
    ):
        service = Service(running, tmp_path, channel)
        first, second = [await service.create(3, seed=seed) for seed in (5, 6)]

        async def place_all() -> tuple[list[tuple[str, str]], dict[str, str]]:
            request = operations_pb2.GetPlacementRequest()
            found = await service.operations.GetPlacement(request)
            backlog = {one.session: one.waits_for for one in found.backlog}
            return [(one.session, one.node) for one in found.workers], backlog

        async def until_waits(session: str, what: str) -> None:
            while (await service.get(session)).waits_for != what:
                await asyncio.sleep(0.02)

        full = "one of the 1 simulators of the server"
        await until_waits(first, "an agent")
        async with AsyncExitStack() as stack:
            one = await stack.enter_async_context(service.agent(first))
            await one.receive("welcome")
            await one.receive("episode_start")
            two = await stack.enter_async_context(service.agent(second, instance="2"))
            await until_waits(second, full)
            assert await place_all() == ([(first, socket.gethostname())], {second: full})
            for player, other, waits in ((one, two, second), (two, one, first)):
                await until_waits(waits, full)
                await finish(player)
                if other is two:
                    await other.receive("welcome")
                await other.receive("episode_start")
            await until_waits(second, full)
            assert await place_all() == ([(first, socket.gethostname())], {second: full})
            command = ["server", "status", "--server", running.address]
            app = build(["server"])
            told = await asyncio.to_thread(CliRunner().invoke, app, [*command, "--json"])
            found = json.loads(told.stdout)
            assert [w["session"] for w in found["workers"]] == [first.removeprefix("sessions/")]
            assert [one["waits_for"] for one in found["backlog"]] == [full]
            told = await asyncio.to_thread(CliRunner().invoke, app, command)
            assert "simulators: engine local, at most 1" in told.stdout
            assert full in told.stdout


@pytest.mark.asyncio(loop_scope="session")
async def test_a_campaign_at_its_quota_leaves_room_for_others(
    fitter: Helpers, tmp_path: Path
) -> None:
    settings = Settings(home=tmp_path, port=0, campaign_workers=1)
    async with (
        create_server(settings, lambda: NOW, fitter, fitter.simulators) as running,
        grpc.aio.insecure_channel(running.address) as channel,
        AsyncExitStack() as stack,
    ):
        service = Service(running, tmp_path, channel)
        campaign = await create(service, agents=["walks", "stands"], budget=6)

        async def come(session: str, agent: str) -> Stream:
            stream = service.agent(session, agent=agent, instance=agent)
            return await stack.enter_async_context(stream)

        first, second = [session.name for session in campaign.sessions]
        walks = await come(first, "walks")
        await walks.receive("welcome")
        await walks.receive("episode_start")
        await come(second, "stands")
        while not (await service.get(second)).waits_for.endswith("simulators of its campaign"):
            await asyncio.sleep(0.02)
        other = await come(await service.create(2), AGENT)
        await other.receive("welcome")
        await other.receive("episode_start")
        await finish(walks)
        while (await service.get(second)).waits_for:
            await asyncio.sleep(0.02)
