"""Plays in real time with whoever looks: an even beat, the keys that are held, and when all was.

The server beats and sends a frame for each decision. The browser tells at once which keys go down
and up, and when it got and painted each frame, by its own clock; it measures how that differs from
the server's. What is played is no matter here: `play` is given what takes a decision.
"""

from __future__ import annotations

import asyncio
import json
import math
import struct
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from starlette.websockets import WebSocket, WebSocketDisconnect

AHEAD: Final = 50
"""Most frames that the browser may be behind; the beat waits for it then."""
SILENT_SECONDS: Final = 1.5
"""Nothing is heard of a browser for so long, and it counts as gone for the time being."""
GONE: Final = (WebSocketDisconnect, RuntimeError)
"""What is raised by sending something to a page that has gone."""
MOVES: Final[Mapping[str, int]] = {"ahead": 3, "back": 6}
TURNS: Final[Mapping[str, int]] = {"right": 1, "left": 2}
"""What keys add to an action, 3 x move + turn; both of a kind at once do nothing."""
MOST_KEYS: Final = 100
"""Presses and releases that are kept between two decisions; nobody's fingers are faster."""
_LENGTH: Final = struct.Struct("<I")
_TOO_MUCH: Final = (RecursionError, OverflowError)
"""Errors that JSON brings which is deep, or has numbers without end."""


class Key(NamedTuple):
    """A key that went down or up; by the browser's clock in ms, which goes on over a reload."""

    name: str
    down: bool
    at: float | None


class Frame(NamedTuple):
    """What is shown of a moment: pixels of three bytes, what stands beside it, whether it ends."""

    pixels: bytes
    state: Mapping[str, Any]
    over: bool


class Decision(NamedTuple):
    """What is held when a decision is due, and when the first key since the one before went down.

    That is in ms of the browser's clock; None where none did.
    """

    action: int
    key: float | None


@dataclass(slots=True)
class Timing:
    """When a frame was, in seconds of the server's clock; the browser's times are in ms of its own.

    Attributes:
        number: Number of the frame on its socket, from 0.
        due: When its decision was due.
        sent: When it went out.
        key: See `Decision`.
        received: When the browser had it.
        painted: When the browser had painted it; None where the page was not to be seen.
        offset: What to add to the browser's time to get the server's, in ms.
        round_trip: Duration of the fastest of the last questions for the time and back, in ms.
    """

    number: int
    due: float
    sent: float
    key: float | None
    received: float | None = None
    painted: float | None = None
    offset: float | None = None
    round_trip: float | None = None

    def here(self, browser: float | None) -> float | None:
        """Return a time of the browser by the server's clock, in seconds; None if unknown."""
        if browser is None or self.offset is None:
            return None
        return (browser + self.offset) / 1000.0


class Screen:
    """A browser at the other end of a socket.

    Attributes:
        running: Whether the person lets time pass.
        hidden: How often the page was not to be seen, or had lost its keys.
        heard: When it last told anything; a page that is there does so each second.
        keys: Which keys went down and up, until somebody takes them from here.
    """

    def __init__(self, socket: WebSocket, clock: Callable[[], float] = time.monotonic) -> None:
        """Use a socket that was accepted."""
        self.clock = clock
        self.running = False
        self.hidden = 0
        self.heard = clock()
        self.keys: list[Key] = []
        self._socket = socket
        self._held = set[str]()
        self._tapped = set[str]()
        self._key: float | None = None
        self._shown = 0
        self._unseen: dict[int, Timing] = {}
        self._gone = False
        self._said: asyncio.Queue[dict[str, Any]] = asyncio.Queue(100)
        self._changed = asyncio.Event()

    def decide(self) -> Decision:
        """Return what is held now, or was pressed since the last time: a short tap counts too."""
        on = self._held | self._tapped
        action = sum(
            next(iter(amounts)) if len(amounts) == 1 else 0
            for kind in (MOVES, TURNS)
            for amounts in [{kind[name] for name in on & kind.keys()}]
        )
        self._tapped.clear()
        key, self._key = self._key, None
        return Decision(action, key)

    async def show(self, frame: Frame, due: float, decision: Decision | None) -> Timing:
        """Send a frame; None as what led to it makes it the first one.

        Returns:
            When it was; the browser's times stand in it once the browser has told of them.

        Raises:
            WebSocketDisconnect: The browser has gone.
        """
        while len(self._unseen) > AHEAD:  # it is slow, or its network is: time waits for it
            if self._gone or self.clock() - self.heard > SILENT_SECONDS:
                raise WebSocketDisconnect(1006, "it has gone")
            self._changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), SILENT_SECONDS)
        if decision is None:  # what was pressed before there was anything to see is no answer to it
            self._tapped.clear()
            self._key = None
            held = {key.name: key for key in self.keys if key.down and key.name in self._held}
            self.keys = list(held.values())
        number, self._shown = self._shown, self._shown + 1
        # Pictures of arenas are plain: a third of a millisecond leaves 3 % of the bytes.
        data = zlib.compress(frame.pixels, 3)
        sent = self.clock()
        text = json.dumps({**frame.state, "number": number}).encode()
        key = None if decision is None else decision.key
        timing = self._unseen[number] = Timing(number, due, sent, key)
        await self._socket.send_bytes(_LENGTH.pack(len(text)) + text + data)
        return timing

    async def tell(self, **said: Any) -> None:
        """Send words instead of a frame; the page's `onTold` is given them."""
        await self._socket.send_text(json.dumps(said))

    async def asked(self, until: float | None = None) -> dict[str, Any] | None:
        """Wait for what the person asks for, such as {"do": "restart"}; None if nothing by then."""
        try:
            left = None if until is None else max(0.0, until - self.clock())
            return await asyncio.wait_for(self._said.get(), left)
        except TimeoutError:
            return None

    async def listen(self) -> None:
        """Take in what the browser tells, until it has gone.

        Raises:
            WebSocketDisconnect: It has gone, or talks nonsense.
        """
        try:
            while True:
                text = await self._socket.receive_text()
                self.heard = self.clock()
                try:
                    await self._take(json.loads(text))
                except (AttributeError, TypeError, ValueError, LookupError, *_TOO_MUCH):
                    raise WebSocketDisconnect(1003, "nonsense") from None
        finally:
            self._gone = True
            self._changed.set()

    async def _take(self, said: dict[str, Any]) -> None:
        if "clock" in said:
            await self.tell(clock=float(said["clock"]), server=1000.0 * self.clock())
        elif "seen" in said:
            seen = int(said["seen"])
            timing = self._unseen[seen]
            for number in [each for each in self._unseen if each <= seen]:
                del self._unseen[number]
            timing.received, timing.painted = _ms(said, "received"), _ms(said, "painted")
            timing.offset, timing.round_trip = _ms(said, "offset"), _ms(said, "round_trip")
            self._changed.set()
        elif "key" in said:
            name = str(said["key"])
            if name in MOVES or name in TURNS:
                (self._held.add if said["down"] else self._held.discard)(name)
                key = Key(name, bool(said["down"]), _ms(said, "at"))
                if key.down:
                    self._tapped.add(name)
                    self._key = key.at if self._key is None else self._key
                self.keys = [*self.keys, key][-MOST_KEYS:]
        elif "hidden" in said:
            self.hidden += 1
            self.keys += [Key(name, False, _ms(said, "at")) for name in sorted(self._held)]
            self._held.clear()
        else:
            with suppress(asyncio.QueueFull):
                self._said.put_nowait(said)


def _ms(said: Mapping[str, Any], field: str) -> float | None:
    value = said.get(field)
    if value is not None and not math.isfinite(value := float(value)):
        raise ValueError(field)
    return value


async def play(
    screen: Screen,
    first: Frame,
    act: Callable[[int], Awaitable[Frame]],
    restart: Callable[[], Awaitable[Frame]],
    period: float,
) -> None:
    """Beat until the browser has gone; time passes only while the person lets it.

    The page asks by {"do": "start"}, "pause" and "restart". A beat that is late puts off those
    after it, so that a decision never lasts less than it should. `listen` has to run beside this.
    """
    frame, due = first, screen.clock()
    await screen.show(frame, due, None)
    while True:
        asked = await screen.asked(due if screen.running else None)
        if asked is None:
            decision = screen.decide()
            frame = await act(decision.action)
            await screen.show(frame, due, decision)
            due = max(due + period, screen.clock())
            screen.running = screen.running and not frame.over
        elif asked.get("do") == "restart":
            screen.running = False
            frame = await restart()
            await screen.show(frame, screen.clock(), None)
        elif asked.get("do") == "start" and not frame.over and not screen.running:
            screen.running, due = True, screen.clock()
        elif asked.get("do") == "pause":
            screen.running = False


async def with_screen(screen: Screen, work: Callable[[], Awaitable[None]]) -> BaseException | None:
    """Do something with a browser, which is cancelled when that has gone.

    Returns:
        What the work failed with; None if the browser has gone, or the work was done.
    """
    listening = asyncio.ensure_future(screen.listen())
    working = asyncio.ensure_future(work())
    both = (listening, working)
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)
    if working.cancelled() or isinstance(working.exception(), WebSocketDisconnect):
        return None
    return working.exception()
