"""Who gets a simulator next where there are few."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from animalcat.service.session.room import Room


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


async def test_a_campaign_has_no_more_than_its_quota() -> None:
    guests = Guests(Room(quota=2))
    await guests.ask("one", "one", "one", "two")
    assert guests.let_in == ["one", "one", "two"]
    assert guests.room.hindrance("one") == "one of the 2 simulators of its campaign"
    assert guests.room.waited_for
    await guests.leave("one")
    assert guests.let_in == ["one", "one", "two", "one"]


async def test_only_so_many_are_on_their_way() -> None:
    room = Room(abreast=1)
    await room.enter("one")
    second = asyncio.create_task(room.enter("two"))
    await asyncio.sleep(0)
    assert not second.done()
    assert room.hindrance("three") == "its turn for a simulator"
    room.arrive()
    await second
    room.leave("two", arrived=False)
    assert (room.coming, room.hindrance("three")) == (0, "")


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
