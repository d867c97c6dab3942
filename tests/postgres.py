"""A PostgreSQL server that tests start on loopback, and stop."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class Postgres:
    """A server with an empty database cluster in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        """Make the cluster in a folder; nothing runs yet."""
        self._bin = _programs()
        self._data = folder / "cluster"
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            self._user = {"user": "postgres", "group": "postgres"}
            shutil.chown(folder, "postgres", "postgres")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
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
    """The folder of PostgreSQL's programs; the test is skipped where there is none."""
    found = [Path(found).resolve().parent for found in (shutil.which("postgres"),) if found]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in found:
        if all((folder / program).exists() for program in ("initdb", "pg_ctl", "postgres")):
            return folder
    pytest.skip("there is no PostgreSQL here; on Debian: apt-get install postgresql")


@contextmanager
def running() -> Iterator[Postgres]:
    """Start a server for the block, in a folder of its own.

    It is not one of pytest's folders, which other users may not enter.
    """
    with tempfile.TemporaryDirectory(prefix="animalcat-postgres-", dir="/tmp") as folder:
        server = Postgres(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def schema(server: Postgres) -> Iterator[str]:
    """An empty schema for the block; its URL."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server.url, autocommit=True) as db:
        db.execute(f"CREATE SCHEMA {name}")  # pyright: ignore[reportArgumentType,reportCallIssue]
        yield f"{server.url}?options=-csearch_path%3D{name}"
        db.execute(f"DROP SCHEMA {name} CASCADE")  # pyright: ignore[reportArgumentType,reportCallIssue]
