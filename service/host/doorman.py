"""Keeps strangers from taking all connections of a server: those over which nobody proves anything.

gRPC tells nobody of connections, so the sockets of this process are looked at.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import resource
import socket
import stat
import struct
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import unquote

from animalcat.service.refusals import Refusals

LOOK_SECONDS: Final = 0.5
"""How often the connections are looked at."""
FLOOD_SECONDS: Final = 10.0
FLOOD_CALLS: Final = 200
"""A connection with more calls than this in that time by which nobody proves anything is ended."""
FLOODED_SECONDS: Final = 0.05
"""How often they are looked at while an agent of this machine makes too many."""
MOST_OF_AGENT: Final = 64
"""Most connections of an agent's process that was started here, with all that come from it."""
LEAST_SHARE: Final = 4
"""Strangers have at most this part of the descriptors that there are for connections."""
MANY: Final = 1 << 20
"""Stands for as many descriptors as one likes."""
FILES: Final = "/dev/fd"
"""Where a process sees its own descriptors."""
EVICTED: Final = "connections ended"
"""What is counted of connections that were ended."""

_WHO: Final = struct.Struct("3i")
"""What the system tells of who made a connection: process, user, group."""
OF_MACHINE: Final = "an agent of this machine"
"""What is said of who came by the socket for agents that were started here."""
Address = tuple[str, int]
"""Host and port of who called."""


class Budget(NamedTuple):
    """How many connections there may be at once.

    Attributes:
        connections: All at the server's address; the rest of the descriptors is for simulators,
            recordings and the database.
        local: All at the address for agents that were started here.
        strangers: Those over which nobody has shown a token.
    """

    connections: int
    local: int
    strangers: int

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
        used: When somebody called over it for the last time.
        caller: Id of the token that was shown over it; None if none was.
        most: Most connections of that caller; 0 for no limit.
        calls: Calls that go on by somebody who has shown a token.
        began: When calls were last counted from 0.
        strange: Calls since then by which nobody proved anything.
    """

    since: float
    used: float
    caller: str | None = None
    most: int = 0
    calls: int = 0
    began: float = 0.0
    strange: int = 0


class Doorman:
    """Ends connections beyond the budget; used on one event loop only.

    Who has shown a token, or is admitted without one as of this machine, stays. Of the others
    those go first that have been silent for longest.
    """

    def __init__(self, budget: Budget, refusals: Refusals) -> None:
        """Begin without knowing anybody.

        Args:
            budget: How many connections there may be.
            refusals: Counts those that are ended.
        """
        self._budget = budget
        self._refusals = refusals
        self._connections: dict[Address, _Connection] = {}
        self._local: dict[int, str] = {}
        self._beyond = set[int]()
        self._flooded = False
        self.port = 0
        self.door = ""

    @contextmanager
    def admitted(self, peer: str, caller: str, most: int) -> Generator[None]:
        """Know a connection for that of somebody who may call, for the block's call and after.

        Args:
            peer: Its address, as gRPC writes it.
            caller: Id of the caller; empty for those of this machine.
            most: Most connections of the caller; 0 for no limit.
        """
        connection = self._of(peer)
        if connection is None:
            yield
            return
        connection.caller, connection.most, connection.used = caller, most, time.monotonic()
        connection.calls += 1
        try:
            yield
        finally:
            connection.calls -= 1
            connection.used = time.monotonic()

    def strange(self, peer: str) -> bool:
        """Count a call by which nobody proved anything; returns whether its connection was ended.

        Args:
            peer: Its address, as gRPC writes it.
        """
        connection, now = self._of(peer), time.monotonic()
        if connection is None:
            return False
        connection.used = now
        if now - connection.began > FLOOD_SECONDS:
            connection.began, connection.strange = now, 0
        connection.strange += 1
        if connection.strange <= FLOOD_CALLS or connection.caller is not None:
            return False
        address = _address(peer)
        assert address is not None, "it was found"
        self._end([address], f"more than {FLOOD_CALLS} calls in {FLOOD_SECONDS:g} s without token")
        return True

    async def watch(self) -> None:
        """Look at the connections for as long as the server lives; ends by being cancelled."""
        while True:
            await asyncio.sleep(FLOODED_SECONDS if self._flooded else LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        """Look at the connections, and end those beyond the budget."""
        self._look_at_door()
        now = time.monotonic()
        here = {address for address, _ in _connections(self.port)}
        for gone in self._connections.keys() - here:
            connection = self._connections[gone]
            # One that is in use is there, though no descriptor was left to see it; one that was
            # used just now may be too new to see.
            if not connection.calls and now - connection.used > LOOK_SECONDS:
                del self._connections[gone]
        for address in here:
            self._connections.setdefault(address, _Connection(now, now - LOOK_SECONDS))
        known = {a: self._connections[a] for a in here}
        strangers = [a for a, connection in known.items() if connection.caller is None]
        strangers.sort(key=lambda a: (known[a].used, known[a].since))
        if (beyond := len(strangers) - self._budget.strangers) > 0:
            why = f"more than {self._budget.strangers} over which nobody shows a token"
            self._end(strangers[:beyond], why)
        held = Counter(connection.caller for connection in known.values() if connection.most)
        for caller, number in held.items():
            its = [a for a, connection in known.items() if connection.caller == caller]
            most = max(known[a].most for a in its)
            idle = sorted((a for a in its if not known[a].calls), key=lambda a: known[a].used)
            if number > most and idle:
                self._end(idle[: number - most], f"more than {most} of the token {caller}")

    def _look_at_door(self) -> None:
        """End what an agent of this machine has too many of, so that others come in, too.

        gRPC does not tell calls of such connections apart, so the newest go.
        """
        if not self.door:
            return
        known = dict[int, str]()
        for number, process, user, _ in _local_connections(self.door):
            place = self._local.get(number)
            known[number] = _place(process, user) if place is None else place
        held, beyond = Counter[str](), set[int]()
        for number in sorted(known, key=lambda number: number not in self._local):
            held[known[number]] += 1
            if known[number] and held[known[number]] > MOST_OF_AGENT:
                beyond.add(number)
        self._local, self._flooded = known, bool(beyond)
        new, self._beyond = beyond - self._beyond, beyond  # gRPC needs a while to close one
        if new:
            for number, _, _, connection in _local_connections(self.door):
                if number in new:
                    with suppress(OSError):  # it is gone
                        connection.shutdown(socket.SHUT_RDWR)
            why = f"more than {MOST_OF_AGENT} of one process"
            self._refusals.count(EVICTED, OF_MACHINE, why, len(new))

    def _of(self, peer: str) -> _Connection | None:
        address = _address(peer)
        if address is None:
            return None
        now = time.monotonic()
        return self._connections.setdefault(address, _Connection(now, now))

    def _end(self, addresses: list[Address], why: str) -> None:
        """End connections, and count them by the hosts that they came from."""
        wanted = set(addresses)
        ended = Counter[str]()
        for address, connection in _connections(self.port):
            if address in wanted:
                with suppress(OSError):  # it is gone
                    connection.shutdown(socket.SHUT_RDWR)
                ended[address[0]] += 1
        for address in addresses:
            self._connections.pop(address, None)
        for host, number in ended.items():
            self._refusals.count(EVICTED, host, why, number)


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


def _address(peer: str) -> Address | None:
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


def _connections(port: int) -> Iterator[tuple[Address, socket.socket]]:
    """Yield who is connected to a port of this process, and the connection."""
    for opened in _sockets(socket.AF_INET, socket.AF_INET6):
        with suppress(OSError):  # it listens, or is gone
            if opened.getsockname()[1] == port:
                host, its_port = opened.getpeername()[:2]
                yield (_plain(host), its_port), opened


def _local_connections(path: str) -> Iterator[tuple[int, int, int, socket.socket]]:
    """Yield connections to a unix socket of this process.

    Each with its number, the process that made it, and the number of that one's user.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return
    for opened in _sockets(socket.AF_UNIX):
        with suppress(OSError):  # it listens, or is gone
            if opened.getsockname() == path and opened.getpeername() is not None:
                who = opened.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _WHO.size)
                process, user, _ = _WHO.unpack(who)
                yield os.fstat(opened.fileno()).st_ino, process, user, opened


def _place(process: int, user: int) -> str:
    """Return in what an agent is kept apart; empty for what is not, as commands are not."""
    try:
        inside = os.readlink(f"/proc/{process}/ns/pid")
        if inside != os.readlink("/proc/self/ns/pid"):
            return inside
    except OSError:  # it has ended, or is somebody else's
        pass
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
