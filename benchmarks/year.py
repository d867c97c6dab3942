"""Opens a store with a year of work in it by every list, show and status command.

The store is made by `benchmarks.stores`: 5,000 sessions with 300,000 episodes on 50 batteries, a
tenth of them in 50 campaigns. What stands in the table is CPU time, since a wall clock tells of
other work too.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from animalcat.client import connect
from benchmarks import postgres
from benchmarks.stores import StoreMaker, year

SESSIONS: Final = 5000
EPISODES: Final = 300_000
BATTERIES: Final = 50
CAMPAIGNS: Final = 50
QUICK: Final = 25
"""How many times smaller a quick store is."""
SLOWEST: Final = 5
COMMANDS: Final = (
    *("server status", "session list", "session list --limit 1000"),
    *("session list --all", "session list --all --json"),
    *("session show FINISHED", "session show WAITING", "session verify FINISHED"),
    *("profile show FINISHED", "campaign list", "campaign list --all", "campaign show CAMPAIGN"),
    *("episode list", "episode list FINISHED", "battery list", "battery list --json"),
    *("layout list", "battery show BATTERY", "battery features BATTERY"),
)
"""What is run, with words for what it is run on."""


class Opened(NamedTuple):
    """What a command took.

    Attributes:
        command: The command.
        client: CPU seconds of the command.
        server: CPU seconds of the server meanwhile.
        wall: Seconds.
        printed: Bytes that it printed.
    """

    command: str
    client: float
    server: float
    wall: float
    printed: int

    @property
    def cpu(self) -> float:
        """CPU seconds of both."""
        return self.client + self.server


def run(quick: bool) -> list[dict[str, Any]]:
    """Make a year, and open it; rows for the making, the start and the slowest commands."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = ""
        if postgres.wanted():
            url = stack.enter_context(postgres.schema(stack.enter_context(postgres.running())))
        part = QUICK if quick else 1
        start = time.process_time()
        with StoreMaker(folder, url) as maker:
            campaigns = year(
                maker,
                sessions=SESSIONS // part,
                episodes=EPISODES // part,
                batteries=BATTERIES // part,
                campaigns=CAMPAIGNS // part,
            )
        made = time.process_time() - start
        rows = [{"name": "making the store", "value": made, "unit": "s of CPU"}]
        return rows + rows_of([*open_all(folder, url, campaigns[0])])


def rows_of(opened: Sequence[Opened]) -> list[dict[str, Any]]:
    """The start and the slowest commands, as rows."""
    first, *rest = opened
    slowest = sorted(rest, key=lambda one: -one.cpu)
    return [
        {
            "name": one.command,
            "value": one.cpu,
            "unit": "s of CPU",
            "note": f"client {one.client:.2f} s, server {one.server:.2f} s; {one.wall:.2f} s of "
            f"wall; {one.printed / 1e3:.0f} kB",
        }
        for one in (first, *slowest[:SLOWEST])
    ]


def open_all(data: Path, url: str, campaign: str) -> Generator[Opened]:
    """Start a server on a store, and run every list, show and status command.

    Args:
        data: The data directory.
        url: URL of the database; empty for SQLite.
        campaign: A campaign to show.

    Yields:
        The start of the server, whose client is nobody, and the commands one after another.
    """
    with _server(data, url) as (address, process, started):
        with connect(address) as client:
            finished = next(client.sessions(states=["finished"], limit=1))
            waiting = next(client.sessions(states=["waiting"], limit=1))
        named = {
            "FINISHED": finished.id,
            "WAITING": waiting.id,
            "CAMPAIGN": campaign,
            "BATTERY": finished.spec.battery,
        }
        yield started
        for command in COMMANDS:
            words = [named.get(word, word) for word in command.split()]
            yield _run(" ".join(words), address, process)


def _run(command: str, address: str, process: int) -> Opened:
    before, server, begun = _children(), _cpu(process), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "animalcat", *command.split(), "--server", address],
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    return Opened(
        command,
        _children() - before,
        _cpu(process) - server,
        time.monotonic() - begun,
        len(done.stdout),
    )


@contextmanager
def _server(data: Path, url: str) -> Generator[tuple[str, int, Opened]]:
    """Yield the address of a server on a store, its process, and what its start took."""
    begun = time.monotonic()
    server = subprocess.Popen(
        [sys.executable, "-m", "animalcat", "serve", "--port", "0", "--json", "--data", data],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"ANIMALCAT_STORE": url},
    )
    try:
        assert server.stdout is not None
        address: str = json.loads(server.stdout.readline())["address"]
        took = time.monotonic() - begun
        started = Opened("starting the server", 0.0, _cpu(server.pid), took, 0)
        yield address, server.pid, started
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate()


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cpu(process: int) -> float:
    """CPU seconds of a process that runs; 0 where it is not known."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
