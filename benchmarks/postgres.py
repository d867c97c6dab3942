"""A PostgreSQL server on loopback that tests and benchmarks start, stop and kill."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

MISSING = "there is no PostgreSQL here; on Debian: apt-get install postgresql"


class PostgresMissingError(RuntimeError):
    """This machine has no PostgreSQL."""


class Postgres:
    """A server with an empty database cluster in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        """Make the cluster in a folder; nothing runs yet.

        Args:
            folder: Where; users other than this one must be able to enter it.

        Raises:
            PostgresMissingError: This machine has no PostgreSQL.
        """
        self._bin = _programs()
        self._data = folder / "cluster"
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            self._user = {"user": "postgres", "group": "postgres"}
            shutil.chown(folder, "postgres", "postgres")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._run(
            "initdb",
            *("--auth", "trust", "--username", "postgres", "--encoding", "UTF8"),
            *("--no-sync", "--no-instructions", "--locale", "C"),
        )

    @property
    def url(self) -> str:
        """URL of its database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="
        options += " -c fsync=off -c max_connections=50"
        self._run("pg_ctl", "start", "-w", "-s", "-o", options, "-l", str(self._data / "log"))

    def stop(self) -> None:
        """Stop it at once; clients lose their connections."""
        self._run("pg_ctl", "stop", "-m", "immediate", "-s")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to each of its processes, for example SIGSTOP and later SIGCONT."""
        first = int((self._data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for process in (first, *map(int, children)):
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(process, number)

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self._bin / program, "-D", self._data, *arguments],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd="/",
            timeout=120,
            **self._user,
        )


def _programs() -> Path:
    """Return the folder of PostgreSQL's programs."""
    found = [Path(found).resolve().parent for found in (shutil.which("postgres"),) if found]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in found:
        if all((folder / program).exists() for program in ("initdb", "pg_ctl", "postgres")):
            return folder
    raise PostgresMissingError(MISSING)


@contextmanager
def running() -> Generator[Postgres]:
    """Start a server for the block, in a folder of its own that other users may enter.

    Raises:
        PostgresMissingError: This machine has no PostgreSQL.
    """
    with tempfile.TemporaryDirectory(prefix="animalcat-postgres-", dir="/tmp") as folder:
        server = Postgres(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def schema(server: Postgres) -> Generator[str]:
    """Make an empty schema for the block; yields its URL."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server.url, autocommit=True) as db:
        db.execute(f"CREATE SCHEMA {name}")  # pyright: ignore[reportArgumentType,reportCallIssue]
    yield f"{server.url}?options=-csearch_path%3D{name}"
    with psycopg.connect(server.url, autocommit=True) as db:
        db.execute(f"DROP SCHEMA {name} CASCADE")  # pyright: ignore[reportArgumentType,reportCallIssue]
