"""Kills and stops every process of a session at named moments, and looks whether anything is lost.

A session is played with blows at planned moments (`kill_points`). The processes come to their
moments by themselves (`kill_inside`), so a plan meets the same moments on any machine. Afterwards
no outcome that the agent was told may be missing or there twice, every decision and outcome must be
that of the undisturbed session, and the session's chain of digests must hold.
"""

from __future__ import annotations

import json
import os
import signal
import socketserver
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Generator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import animalcat
from animalcat.envs.worker import COMM
from animalcat.errors import AnimalcatError
from animalcat.service.session.intact import look
from animalcat.service.storage.artefacts import Artefacts
from animalcat.service.storage.sql import SqlStore
from animalcat.text.names import session_name
from benchmarks import kill_points, postgres
from benchmarks.checkout import ROOT, environment
from benchmarks.kill_inside import EPISODES
from benchmarks.kill_points import Point, Target

POINTS: Final = 320
"""Points of a full run, half of them on each database."""
QUICK: Final = 30
SPARE: Final = 4
"""Episodes that the session has beyond those, so that it does not come to its last fit,
which takes ten seconds."""
SEED: Final = 22
SECRET: Final = "kill"
"""Of every session, so that each is the undisturbed one but for the blows."""
STOPPED_SECONDS: Final = 0.2
"""How long a process that is stopped stays so."""
STUCK_SECONDS: Final = 300.0
"""A session that is told of no episode for so long has come to a standstill."""
END_SECONDS: Final = 60.0
"""How long a process that was told to end may take for it."""
NAME: Final = "striker"
ARENA: Final = """!ArenaConfig
arenas:
  0: !Arena
    pass_mark: 0
    t: 15
    items:
    - !Item {{name: Agent, positions: [!Vector3 {{x: 20, y: 0, z: 3}}], rotations: [0]}}
    - !Item
      name: GoodGoal
      positions: [!Vector3 {{x: {x}, y: 0, z: {z}}}]
      sizes: [!Vector3 {{x: {size}, y: {size}, z: {size}}}]
"""


class Stage:
    """One session that is played under blows, and what keeps it going.

    Attributes:
        data: The data directory.
        struck: The points whose moment has come.
        database: The PostgreSQL server that the session is kept in; None for SQLite.
        conducted: Whether the session is played by `animalcat session resume`.
    """

    def __init__(self, folder: Path, points: Sequence[Point], store: str, relayed: bool) -> None:
        """Prepare.

        Args:
            folder: Where its data and sockets are to be.
            points: When to strike what.
            store: URL of the database; empty for SQLite.
            relayed: Whether agents are to play through the server rather than with the worker.
        """
        self.data = folder / "data"
        self.struck: list[Point] = []
        self.database: postgres.Postgres | None = None
        self.conducted = any(point.target == "conductor" for point in points)
        self._folder = folder
        self._socket = str(folder / "gate")
        self._told = folder / "acknowledged"
        self._points = list(points)
        self._lock = threading.Lock()
        self._session = ""
        self._url = store
        self._address = ""
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._environment = environment() | {"ANIMALCAT_DIRECT": "0" if relayed else "1"}
        if store:
            self._environment["ANIMALCAT_STORE"] = store

    def play(self) -> list[str]:
        """Play the session whatever happens, and return what is wrong with it."""
        session = self._session = self._create_session()
        with self._gate(), self._ending_all():
            end = time.monotonic() + STUCK_SECONDS
            seen = 0
            while not self._over(session):
                if self._told.exists() and (told := self._told.stat().st_size) > seen:
                    seen, end = told, time.monotonic() + STUCK_SECONDS
                if time.monotonic() > end:
                    return [f"the session came to a standstill; struck so far: {self.struck}"]
                time.sleep(0.005)
        return self._differences()

    def counted(self) -> list[Any]:
        """What must not depend on blows: decisions and outcomes that count, in order."""
        with self._store() as store:
            return [
                (one.number, one.decision, one.outcome, one.episode_return, one.steps)
                for one in store.episodes(self._session)
                if one.counts and one.number < EPISODES
            ]

    @contextmanager
    def _store(self) -> Generator[SqlStore]:
        store = SqlStore(self._url) if self._url else SqlStore.in_directory(self.data)
        try:
            yield store
        finally:
            store.close()

    def _create_session(self) -> str:
        arenas = self._folder / "arenas"
        arenas.mkdir(parents=True)
        for k in range(EPISODES + 2 * SPARE):
            text = ARENA.format(x=14 + 3 * (k % 5), z=12 + k % 9, size=1 + k % 4)
            (arenas / f"navigation-{k:02}.yaml").write_text(text)
        planned = sorted({(point.moment, point.episode) for point in self._points})
        (self._folder / "plan").write_text(json.dumps(planned))
        with self._serving() as client:
            client.import_battery(arenas, "quick")
            made = client.create_session(
                agent=NAME,
                battery="quick",
                layout="aaio",
                max_episodes=EPISODES + SPARE,
                target_sd=0.0,
                futility=0.0,
                seed=SEED,
                secret=SECRET,
                lease_seconds=1.0,  # an agent whose server was killed waits no longer for it
                certify=False,
            )
            return made.id

    @contextmanager
    def _serving(self) -> Generator[animalcat.Client]:
        """Serve the data undisturbed for the block."""
        server = self._start_command([sys.executable, "-m", "animalcat", *self._serve()])
        try:
            with animalcat.connect(_address(server), wait_seconds=20.0) as client:
                yield client
        finally:
            server.send_signal(signal.SIGINT)
            _finish(server)

    def _serve(self) -> list[str]:
        return ["serve", "--port", "0", "--json", "--data", str(self.data)]

    def _start_command(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=(self._folder / "errors").open("ab"),
            env=self._environment,
        )

    def _over(self, session: str) -> bool:
        """Start again whatever has ended; return whether the session is over."""
        inside = [sys.executable, "-m", "benchmarks.kill_inside"]
        if self._told.exists() and f'{{"episode": {EPISODES - 1},' in self._told.read_text():
            return True
        if self.conducted:
            self._keep("conductor", self._conduct(session))
            return False
        if self._keep("server", [*inside, "server", self._socket, *self._serve()]):
            address = _address(self._processes["server"])
            with self._lock:
                self._address = address
        agent = [*inside, "agent", self._socket, session_name(session), NAME, str(self._told)]
        self._keep("agent", agent)
        return False

    def _keep(self, name: str, command: Sequence[str]) -> bool:
        """Start a process unless it is running; returns whether it was started."""
        process = self._processes.get(name)
        if process is not None and process.poll() is None:
            return False
        if process is not None and process.stdout is not None:
            process.stdout.close()
        with self._lock:
            self._address = "" if name == "server" else self._address
            self._processes[name] = self._start_command(command)
        return True

    def _conduct(self, session: str) -> list[str]:
        agent = self._folder / "striker.py"
        if not agent.exists():  # one that runs may be reading it
            agent.write_text(
                f"import sys\n\nsys.path.append({str(ROOT)!r})\n"
                "from benchmarks.kill_inside import StoppingAgent\n\n\n"
                "class Striker(StoppingAgent):\n"
                f"    socket = {self._socket!r}\n"
                f"    acknowledged = {str(self._told)!r}\n"
            )
        command = [sys.executable, "-m", "animalcat", "session", "resume", session, "--json"]
        return [
            *command,
            "--agent",
            f"{agent}:Striker",
            "--agent-may",
            "all",
            "--data",
            str(self.data),
        ]

    @contextmanager
    def _gate(self) -> Generator[None]:
        """Answer the processes at their moments."""
        stage = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                answer = stage.answer(json.loads(self.rfile.readline()))
                with suppress(OSError):  # who asked was killed
                    self.wfile.write(f"{answer}\n".encode())

        class Server(socketserver.ThreadingUnixStreamServer):
            daemon_threads = True
            request_queue_size = 64

        with Server(self._socket, Handler) as server:
            threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
            try:
                yield
            finally:
                server.shutdown()

    def answer(self, question: dict[str, Any]) -> str:
        """Tell a process where the server is, or let it go on, after a blow if one is due."""
        if "where" in question:
            end = time.monotonic() + STUCK_SECONDS
            while time.monotonic() < end:
                with self._lock:
                    server = self._processes.get("server")
                    if self._address and server is not None and server.poll() is None:
                        return self._address
                time.sleep(0.005)
            return ""
        with self._lock:
            due = [p for p in self._points if p.meets(**question)]
            for point in due:
                self._points.remove(point)
        met = [point for point in due if self._strike(point)]
        with self._lock:
            self.struck += met
        return "go"

    def _strike(self, point: Point) -> bool:
        """Strike, and return whether that met anybody."""
        if point.target == "database":
            return self._strike_database(point)
        with self._lock:
            server = self._processes.get("server")
            struck = self._processes.get(point.target)
        pids = [struck.pid] if struck is not None else []
        if point.target == "worker" and server is not None:
            pids = workers_of(server.pid)
        met = _send(pids, signal.SIGKILL if point.blow == "kill" else signal.SIGSTOP)
        if point.blow == "stop":
            threading.Timer(STOPPED_SECONDS, _send, [pids, signal.SIGCONT]).start()
        elif struck is not None:
            struck.wait()
        return met

    def _strike_database(self, point: Point) -> bool:
        if self.database is None:
            # SQLite has no process: another one holds its lock.
            taken = Future[bool]()
            threading.Thread(target=_hold, args=[self.data / "animalcat.sqlite", taken]).start()
            return taken.result(STUCK_SECONDS)
        if point.blow == "kill":
            self.database.stop()
            self.database.start()
        else:
            self.database.signal(signal.SIGSTOP)
            threading.Timer(STOPPED_SECONDS, self.database.signal, [signal.SIGCONT]).start()
        return True

    @contextmanager
    def _ending_all(self) -> Generator[None]:
        """End all processes after the block, whatever happened in it."""
        try:
            yield
        finally:
            for name, process in sorted(self._processes.items()):  # the agent first
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL if name == "agent" else signal.SIGINT)
                _finish(process)

    def _differences(self) -> list[str]:
        """Look at what is stored beside what the agent was told; the digests too."""
        with self._store() as store:
            found = list(look(store, Artefacts(self.data), self._session).problems)
            episodes = [one for one in store.episodes(self._session) if one.counts]
        times = Counter(one.number for one in episodes)
        found += [f"episode {number} counts {n} times" for number, n in times.items() if n > 1]
        stored = {one.number: one for one in episodes}
        for line in self._told.read_text().splitlines():
            told = json.loads(line)
            kept = stored.get(told["episode"])
            if kept is None:
                found.append(f"episode {told['episode']} was acknowledged and is lost")
            elif kept.steps != told["steps"] or (
                abs(kept.episode_return - told.get("return", kept.episode_return)) > 1e-4
            ):
                found.append(f"episode {told['episode']} was acknowledged as {told}, and is {kept}")
        return found


def run(quick: bool) -> list[dict[str, Any]]:
    """Strike on both databases; one row for each target, and what was wrong at all."""
    return strike(QUICK if quick else POINTS)


def strike(number: int) -> list[dict[str, Any]]:
    """Strike at a number of points, half of them on each database.

    Args:
        number: How many.

    Returns:
        A row for each database and target: how often it was struck, and what came of it.
    """
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kill-", dir="/tmp")))
        whole = Stage(folder / "whole", (), "", relayed=False)
        problems = whole.play()
        if problems:
            raise RuntimeError(f"the undisturbed session: {problems}")
        wanted = whole.counted()
        for store in ("SQLite", "PostgreSQL"):
            database: postgres.Postgres | None = None
            if store == "PostgreSQL":
                try:
                    database = stack.enter_context(postgres.running())
                except postgres.PostgresMissingError as error:
                    rows.append({"name": store, "value": 0, "met": False, "note": str(error)})
                    continue
            rows += _rows(store, database, folder, number // 2, wanted)
    return rows


def _rows(
    store: str,
    database: postgres.Postgres | None,
    folder: Path,
    number: int,
    wanted: list[Any],
) -> list[dict[str, Any]]:
    """Strike at a database's share of the points."""
    kills: list[Target] = ["server", "worker", "agent", "conductor"]
    if database is not None:
        kills.append("database")
    sessions = kill_points.plan(number, 1, EPISODES - 2, SEED + len(kills), kills)
    struck: Counter[Target] = Counter()
    missed = 0
    problems: list[str] = []
    for k, points in enumerate(sessions):
        with ExitStack() as stack:
            url = stack.enter_context(postgres.schema(database)) if database is not None else ""
            stage = Stage(folder / f"{store}-{k}", points, url, relayed=k % 2 == 1)
            stage.database = database
            found = stage.play()
            if not found and stage.counted() != wanted:
                found = ["decisions or outcomes are not those of the undisturbed session"]
        problems += [f"{store}, session {k}: {one}" for one in found]
        struck.update(point.target for point in stage.struck)
        missed += len(points) - len(stage.struck)
    rows: list[dict[str, Any]] = [
        {"name": f"{store}: blows at the {target}", "value": n, "unit": "points"}
        for target, n in sorted(struck.items())
    ]
    rows.append(
        {
            "name": f"{store}: lost, doubled or decided otherwise, in {len(sessions)} sessions",
            "value": len(problems),
            "target": 0,
            "met": not problems and not missed,
            "note": "; ".join(problems) or (f"{missed} blows met nobody" if missed else ""),
        }
    )
    return rows


def _address(server: subprocess.Popen[bytes]) -> str:
    assert server.stdout is not None  # a pipe
    line = server.stdout.readline()
    if not line:
        raise AnimalcatError(f"a server did not start; it ended with code {server.wait()}")
    return str(json.loads(line)["address"])


def _send(pids: Sequence[int], number: signal.Signals) -> bool:
    """Send a signal, and return whether there was anybody to get it."""
    met = False
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
            met = True
    return met


def workers_of(server: int) -> list[int]:
    """Processes of a server that simulate; its fork server has started most of them."""
    found: list[int] = []
    waiting = [server]
    while waiting:
        process = Path(f"/proc/{waiting.pop()}")
        with suppress(OSError):  # it has ended meanwhile
            if (process / "comm").read_text().strip() == COMM:
                found.append(int(process.name))
            for task in (process / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return found


def _hold(file: Path, taken: Future[bool]) -> None:
    """Hold the lock of an SQLite database for a while; say whether it was got."""
    db = sqlite3.connect(file, isolation_level=None, timeout=10.0)
    try:
        db.execute("BEGIN IMMEDIATE")
        taken.set_result(True)
        time.sleep(STOPPED_SECONDS)
        db.execute("ROLLBACK")
    except sqlite3.OperationalError:
        if not taken.done():
            taken.set_result(False)
    finally:
        db.close()


def _finish(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end of a process that was told to end, and kill it where it does not."""
    try:
        process.communicate(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
