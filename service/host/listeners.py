"""Guards all ports of a process by one rule, so that no caller takes the connections of others.

Neither gRPC nor the others tell of connections, so the sockets of this process are looked at: twice
a second, and by the ports of asyncio whenever they have taken many connections.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import os
import resource
import socket
import stat
import struct
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from animalcat.service.refusals import Refusals

LOOK_SECONDS: Final = 0.5
"""How often the connections are looked at."""
FLOODED_SECONDS: Final = 0.05
"""How often they are looked at after some were ended."""
BEGIN_SECONDS: Final = 10.0
"""Within this time a call has come over a connection, a request with all of its body."""
KEPT_SECONDS: Final = 30
"""For how long a page's connection without a request is kept, before the next one has to begin."""
GONE_SECONDS: Final = 2.0
"""Within this time one is gone that was ended."""
FLOOD_SECONDS: Final = 10.0
FLOOD_CALLS: Final = 200
"""A connection with more calls than this in that time by which nobody proves anything is ended."""
MOST_OF_AGENT: Final = 64
"""Most connections of an agent's process that was started here, with all that come from it."""
LEAST_SHARE: Final = 4
"""Strangers have at most this part of the descriptors that there are for connections."""
MANY: Final = 1 << 20
"""Stands for as many descriptors as one likes."""
WAITING: Final = 2048
"""Connections that may wait to be taken."""
FILES: Final = "/dev/fd"
"""Where a process sees its own descriptors."""
EVICTED: Final = "connections ended"
"""What is counted of connections that were ended."""
OF_MACHINE: Final = "an agent of this machine"
"""What is said of who came by the socket for agents that were started here."""

_WHO: Final = struct.Struct("3i")
"""What the system tells of who made a connection: process, user, group."""
_SPARE: Final = 4
"""Descriptors that are kept for the look itself."""
Address = tuple[str, int]
"""Host and port of who called; of a unix socket, nothing and the number of the connection."""


class Budget(NamedTuple):
    """How many connections there may be at once.

    Attributes:
        connections: All at the ports; the rest of the descriptors is for simulators, recordings and
            the database.
        local: All at the address for agents that were started here.
        strangers: Those over which nobody has shown a token.
    """

    connections: int
    local: int
    strangers: int

    @property
    def address(self) -> int:
        """How many of the strangers' may come from one address."""
        return (self.strangers + 1) // 2

    @classmethod
    def of(cls, descriptors: int, strangers: int) -> Budget:
        """Return the budget of a process that may open so many descriptors."""
        connections = max(8, descriptors // 2)
        return cls(
            connections,
            max(8, descriptors // 8),
            max(4, min(strangers, connections // LEAST_SHARE)),
        )


@dataclass(slots=True)
class _Connection:
    """What is known of a connection.

    Attributes:
        since: When it was seen first.
        due: When the next call has to have come.
        used: When somebody called over it for the last time; 0 if nobody has.
        caller: Who called over it and proved that; None if nobody has.
        most: Most connections of that caller, or of a stranger's address; 0 for no limit.
        calls: Calls that go on.
        began: When calls of strangers were last counted from 0.
        strange: Calls since then by which nobody proved anything.
        ended: When it was ended, so that it is about to be gone; 0 if it was not.
    """

    since: float
    due: float
    used: float = 0.0
    caller: str | None = None
    most: int = 0
    calls: int = 0
    began: float = 0.0
    strange: int = 0
    ended: float = 0.0


class Listeners:
    """Ends connections beyond the limits; used on one event loop only.

    Who has shown a token, or is admitted without one as of this machine, stays within the limit of
    one caller. Of the others those go first that have been silent for longest.

    Attributes:
        ports: The ports of this process that are guarded.
        doors: Paths of the sockets for agents that were started here, and for commands.
    """

    def __init__(self, budget: Budget, refusals: Refusals) -> None:
        """Begin without knowing anybody.

        Args:
            budget: How many connections there may be.
            refusals: Counts those that are ended.
        """
        self.ports = set[int]()
        self.doors = set[str]()
        self._budget = budget
        self._refusals = refusals
        self._known: dict[Address, _Connection] = {}
        self._spare = list[int]()
        self._look_at = 0

    def listen(self, host: str, port: int) -> Listening:
        """Listen at an address for asyncio; whoever comes before it takes connections waits.

        Raises:
            OSError: One cannot; its file name says where.
        """
        listening = Listening(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listening.guard = self
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((host, port))
            listening.listen()
            listening.setblocking(False)
        except OSError as error:
            listening.close()
            error.filename = f"{host}:{port}"
            raise
        self.ports.add(listening.getsockname()[1])
        return listening

    def takes(self, opened: socket.socket) -> bool:
        """Make room for a connection that was taken; return whether there is any.

        The system gives the least free number to each descriptor, so a connection's own tells how
        many are in use.
        """
        number, most = opened.fileno(), self._budget.connections
        if number < most:
            self._look_at = most
        elif number >= self._look_at:
            self._look_at = number + most // 8  # what this look ends is gone a moment later
            self.look()
        return number < most + most // 2

    @contextmanager
    def admitted(
        self, peer: str | Address, caller: str | None, most: int, idle: float = math.inf
    ) -> Generator[None]:
        """Know a connection for that of somebody who may call, for the block's call and after.

        Args:
            peer: Its address, also as gRPC writes it.
            caller: Id of the caller; empty for those of this machine, None for a stranger.
            most: Most connections of the caller; 0 for no limit.
            idle: Seconds that it may be without a call afterwards.
        """
        connection = self._of(peer)
        if connection is None:
            yield
            return
        if caller is not None:
            connection.caller, connection.most = caller, most
        connection.calls += 1
        try:
            yield
        finally:
            connection.calls -= 1
            connection.used = time.monotonic()
            connection.due = connection.used + idle

    def strange(self, peer: str | Address) -> bool:
        """Count a call by which nobody proved anything; returns whether its connection was ended.

        Args:
            peer: Its address, also as gRPC writes it.
        """
        connection = self._of(peer)
        if connection is None:
            return False
        if connection.used - connection.began > FLOOD_SECONDS:
            connection.began, connection.strange = connection.used, 0
        connection.strange += 1
        if connection.strange <= FLOOD_CALLS or connection.caller is not None:
            return False
        self.end(peer, f"more than {FLOOD_CALLS} calls in {FLOOD_SECONDS:g} s without token")
        return True

    def end(self, peer: str | Address, why: str) -> None:
        """End a connection over which somebody calls.

        Args:
            peer: Its address, also as gRPC writes it.
            why: Is counted and logged.
        """
        address = _address(peer)
        if address in self._known:
            self._end({address: why})

    async def watch(self) -> None:
        """Look at the connections for as long as the ports are open; ends by being cancelled."""
        try:
            while True:
                flooded = self.look()
                await asyncio.sleep(FLOODED_SECONDS if flooded else LOOK_SECONDS)
        finally:
            self._give_spare()

    def look(self) -> bool:
        """Look at the connections, and end those beyond the limits; return whether any were."""
        self._give_spare()
        try:
            beyond = self._beyond(time.monotonic())
            self._end(beyond)
            return bool(beyond)
        finally:
            with suppress(OSError):  # none is left: what is ended now makes room
                self._spare += [os.open(os.devnull, os.O_RDONLY) for _ in range(_SPARE)]

    def _give_spare(self) -> None:
        while self._spare:
            os.close(self._spare.pop())

    def _beyond(self, now: float) -> dict[Address, str]:
        """Return the connections that are beyond a limit, and beyond which."""
        here = set[Address]()
        for address, opened in self._connections():
            here.add(address)
            before = self._known.get(address)
            # One that was ended and is there has come again, from the same port.
            if before is None or (before.ended and now - before.ended > GONE_SECONDS):
                place = "" if address[0] else _place(opened)
                most = MOST_OF_AGENT if place else 0
                # Calls over the socket are not told apart, so the newest of an agent go first.
                local = _Connection(now, math.inf, -now, place, most)
                stranger = _Connection(now, now + BEGIN_SECONDS, most=self._budget.address)
                self._known[address] = stranger if address[0] else local
        for gone in self._known.keys() - here:
            connection = self._known[gone]
            # One that is in use is there, though no descriptor was left to see it; one that was
            # used just now may be too new to see.
            if not connection.calls and now - connection.used > LOOK_SECONDS:
                del self._known[gone]
        known = {a: self._known[a] for a in here if not self._known[a].ended}
        idle = sorted(
            (a for a, connection in known.items() if not connection.calls),
            key=lambda a: (known[a].used, known[a].since),
        )
        late = f"no call within {BEGIN_SECONDS:g} s"
        beyond = {a: late for a in idle if now > known[a].due}

        def limit(held: Iterable[Address], most: int, words: str) -> None:
            left = set(held) - beyond.keys()
            if (over := len(left) - most) > 0:
                why = f"more than {most} {words}"
                beyond.update(dict.fromkeys([a for a in idle if a in left][:over], why))

        words = "over which nobody shows a token"
        groups = defaultdict[str, list[Address]](list)
        for address, connection in known.items():
            caller = connection.caller
            group = f"from {address[0]} {words}" if caller is None else f"of {caller}"
            groups[group].append(address)
        for group, its in groups.items():
            if most := max(known[a].most for a in its):
                limit(its, most, group)
        strangers = (a for a, connection in known.items() if connection.caller is None)
        limit(strangers, self._budget.strangers, words)
        limit((a for a in known if a[0]), self._budget.connections, "in all")
        return beyond

    def _of(self, peer: str | Address) -> _Connection | None:
        address = _address(peer)
        if address is None:
            return None
        now = time.monotonic()
        stranger = _Connection(now, math.inf, most=self._budget.address)
        connection = self._known.setdefault(address, stranger)
        connection.used, connection.due = now, math.inf
        return connection

    def _end(self, beyond: dict[Address, str]) -> None:
        """End connections, and count them by the hosts that they came from."""
        number = Counter[tuple[str, str]]()
        for address, opened in self._connections() if beyond else ():
            if address in beyond:
                self._known[address].ended = time.monotonic()
                with suppress(OSError):  # it is gone
                    opened.shutdown(socket.SHUT_RDWR)
                number[address[0] or OF_MACHINE, beyond[address]] += 1
        for (host, why), ended in number.items():
            self._refusals.count(EVICTED, host, why, ended)

    def _connections(self) -> Iterator[tuple[Address, socket.socket]]:
        """Yield who is connected to this process, and the connection."""
        for opened in _sockets(socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
            with suppress(OSError):  # it listens, or is gone
                if opened.family == socket.AF_UNIX:
                    if opened.getsockname() in self.doors and opened.getpeername() is not None:
                        yield ("", os.fstat(opened.fileno()).st_ino), opened
                elif opened.getsockname()[1] in self.ports:
                    host, port = opened.getpeername()[:2]
                    yield (_plain(host), port), opened


class Listening(socket.socket):
    """A port of asyncio's, whose connections are counted when they are taken."""

    guard: Listeners

    def listen(self, backlog: int = WAITING, /) -> None:
        """Let as many wait as ever may: what asyncio says is how many it takes at a time."""
        super().listen(max(backlog, WAITING))

    def accept(self) -> tuple[socket.socket, Any]:
        """Take a connection, and close it where there is no room."""
        opened, address = super().accept()
        if not self.guard.takes(opened):
            opened.close()
            raise ConnectionAbortedError
        return opened, address


def descriptors() -> int:
    """Return how many descriptors this process may open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else MANY


def all_descriptors() -> None:
    """Let this process open as many descriptors as it may ask for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):  # some systems refuse what they name as the limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def host_of(peer: str) -> str:
    """Return the host of a caller's address as gRPC writes it; "" if it came by a unix socket."""
    address = _address(peer)
    return "" if address is None else address[0]


def _address(peer: str | Address) -> Address | None:
    if isinstance(peer, tuple):
        return _plain(peer[0]), peer[1]
    family, _, rest = peer.partition(":")
    host, _, port = unquote(rest).rpartition(":")
    if family not in ("ipv4", "ipv6") or not port.isdecimal():
        return None
    return _plain(host.strip("[]")), int(port)


def _plain(host: str) -> str:
    """Return an address of version 4 as such, also where it is written as one of version 6."""
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _place(opened: socket.socket) -> str:
    """Return in what the agent is kept apart that made a connection by a unix socket.

    Empty for what is not kept apart, as commands are not.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return ""
    try:
        who = opened.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _WHO.size)
        process, user, _ = _WHO.unpack(who)
        inside = os.readlink(f"/proc/{process}/ns/pid")
        if inside != os.readlink("/proc/self/ns/pid"):
            return f"one process ({inside})"
    except OSError:  # it has ended, or is somebody else's
        return ""
    return "" if user == os.geteuid() else f"user {user}"


def _sockets(*families: int) -> Iterator[socket.socket]:
    """Yield copies of this process's sockets of some families.

    A descriptor may be closed and taken again at any time by gRPC's threads, so each is looked at
    by a copy of its own.
    """
    try:
        numbers = os.listdir(FILES)
    except OSError:  # no descriptors are left for the look itself, or the system does not tell
        return
    for number in numbers:
        # Only sockets are copied. To close the copy of a file gives up all locks of this process on
        # it, and SQLite needs its own to keep others from removing the log of the database.
        try:
            if not stat.S_ISSOCK(os.fstat(int(number)).st_mode):
                continue
            copy = os.dup(int(number))
        except OSError:
            continue
        if not stat.S_ISSOCK(os.fstat(copy).st_mode):  # taken again within this moment
            continue  # it stays open, for the reason above
        opened = socket.socket(fileno=copy)
        with opened:
            if opened.family in families:
                yield opened
