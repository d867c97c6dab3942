"""Frames to a page in real time: a slow one is waited for, one that has gone is not."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.testclient import TestClient, WebSocketTestSession
from starlette.websockets import WebSocket, WebSocketDisconnect

from animalcat.doors.study.realtime import (
    AHEAD,
    Decision,
    Frame,
    Key,
    Screen,
    Timing,
    with_screen,
)

FRAME = Frame(bytes(12), {"resolution": 2}, over=False)
STAY = Decision(0, None)


def page_given_to(work: Callable[[Screen], Awaitable[None]]) -> TestClient:
    """A page whose socket is given to some work."""

    async def offer(socket: WebSocket) -> None:
        await socket.accept()
        screen = Screen(socket)
        if (failed := await with_screen(screen, lambda: work(screen))) is not None:
            raise failed
        with suppress(RuntimeError):  # the page has closed it already
            await socket.close()

    return TestClient(Starlette(routes=[WebSocketRoute("/", offer)]))


def number_of(page: WebSocketTestSession) -> int:
    data = page.receive_bytes()
    return json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])["number"]


async def many(screen: Screen) -> None:
    for _ in range(AHEAD + 3):
        await screen.show(FRAME, 0.0, STAY)


def test_a_slow_page_is_waited_for() -> None:
    with page_given_to(many).websocket_connect("/") as page:
        numbers = [number_of(page) for _ in range(AHEAD + 1)]
        page.send_json({"seen": numbers[-1], "received": 1.0, "painted": 2.0})
        numbers += [number_of(page), number_of(page)]
    assert numbers == list(range(AHEAD + 3))


@pytest.mark.timeout(20)
def test_a_page_that_has_gone_is_not_waited_for() -> None:
    ended: list[type[BaseException]] = []

    async def watch_it(screen: Screen) -> None:
        try:
            await many(screen)
        except WebSocketDisconnect as error:
            ended.append(type(error))
            raise

    with page_given_to(watch_it).websocket_connect("/") as page:
        for _ in range(AHEAD + 1):
            number_of(page)
        with pytest.raises(WebSocketDisconnect):  # it says nothing, and the server ends
            page.receive_bytes()
    assert ended == [WebSocketDisconnect]


def test_a_key_pressed_before_there_is_anything_to_see_answers_nothing() -> None:
    decisions: list[Decision] = []
    keys: list[Key] = []

    async def begin(screen: Screen) -> None:
        await screen.asked()
        await screen.show(FRAME, 0.0, None)
        await screen.tell(t="seen")
        for _ in range(2):
            await screen.asked()
            decisions.append(screen.decide())
        keys.extend(screen.keys)

    with page_given_to(begin).websocket_connect("/") as page:
        page.send_json({"key": "ahead", "down": True, "at": 10.0})
        page.send_json({"do": "start"})
        number_of(page)
        assert page.receive_json() == {"t": "seen"}
        page.send_json({"do": "go on"})
        for down, at in ((False, 1000.0), (True, 1010.0), (False, 1055.0), (True, 1060.0)):
            page.send_json({"key": "ahead", "down": down, "at": at})
        page.send_json({"do": "go on"})
        with pytest.raises(WebSocketDisconnect):
            page.receive_json()
    # It is still held, and no key is new. Then the first press counts, and no release.
    assert decisions == [Decision(3, None), Decision(3, 1010.0)]
    assert keys[0] == ("ahead", True, 10.0)  # held since before the first frame
    assert [(key.down, key.at) for key in keys[-2:]] == [(False, 1055.0), (True, 1060.0)]


def test_a_time_that_is_no_number_is_not_kept() -> None:
    kept: list[Timing] = []

    async def show(screen: Screen) -> None:
        kept.append(await screen.show(FRAME, 0.0, STAY))
        await many(screen)

    with page_given_to(show).websocket_connect("/") as page:
        page.send_text(f'{{"seen": {number_of(page)}, "received": NaN}}')
        with suppress(WebSocketDisconnect):
            while page.receive_bytes():
                pass
    assert kept[0].received is None
