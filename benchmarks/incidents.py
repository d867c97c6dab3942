"""Lets agents that stay play through a year of incidents, and looks whether anything is lost.

The server speaks TLS, keeps its sessions in PostgreSQL, its files on a small disk of its own, and
lives in a control group of its own. It needs root on Linux, `openssl`, and an installed PostgreSQL.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError

import animalcat
from animalcat.errors import AnimalcatError
from animalcat.service.access.callers import Role
from animalcat.service.access.tokens import Token, Tokens
from benchmarks import postgres
from benchmarks.checkout import environment

AGENTS: Final = 10
QUICK_AGENTS: Final = 3
EPISODES: Final = 400
"""Of a session: more than are played, but for agents that are quick."""
SECONDS: Final = 30.0
"""How long an incident lasts that passes by itself."""
STUCK_SECONDS: Final = 400.0
"""Agents that play nothing for so long have come to a standstill."""
HOG: Final = """import time
taken = []
for _ in range(400):
    taken.append(bytes(1) * (1 << 20))
    time.sleep(0.02)
time.sleep(3600)
"""
"""A program that takes 400 MiB."""
DISK_BYTES: Final = 900 << 20
SPARE_MIB: Final = 64
GROUPS: Final = Path("/sys/fs/cgroup")
BATTERY: Final = "navigation"
Record = tuple[str, int, int]


class Stage:
    """A server, its agents, and what is known of what they have played."""

    def __init__(self, folder: Path, database: postgres.Postgres, agents: int) -> None:
        self.folder, self.database, self.agents = folder, database, agents
        self.data = folder / "data"
        self.log = folder / "server.log"
        self.port, self.metrics = _free(), _free()
        self.address = f"localhost:{self.port}"
        self.server: subprocess.Popen[bytes] | None = None
        self.players: dict[int, subprocess.Popen[bytes]] = {}
        self.tokens: dict[int, Token] = {}
        self.known: dict[Record, dict[str, Any]] = {}
        self.group = _group()
        self.operator = ""

    def certify(self) -> None:
        """Put another certificate in the place of the server's."""
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"),
                *("ec_paramgen_curve:P-256", "-nodes", "-days", "400", "-subj", "/CN=localhost"),
                *("-addext", "subjectAltName=DNS:localhost"),
                *("-keyout", str(self.folder / "new.key"), "-out", str(self.folder / "new.pem")),
            ],
            check=True,
            capture_output=True,
        )
        # Agents trust both, as they would a CA that signed both.
        with (self.folder / "ca.pem").open("ab") as known:
            known.write((self.folder / "new.pem").read_bytes())
        (self.folder / "new.key").rename(self.folder / "server.key")
        (self.folder / "new.pem").rename(self.folder / "server.pem")

    def start(self) -> None:
        """Start the server in its control group, and wait until it listens."""
        config = self.folder / "server.toml"
        config.write_text(
            f'home = "{self.data}"\nhost = "0.0.0.0"\nport = {self.port}\n'
            f'tls_certificate = "{self.folder / "server.pem"}"\n'
            f'tls_key = "{self.folder / "server.key"}"\n'
            f'store = "{self.database.url}"\nmetrics = "{self.metrics}"\nlog = "json"\n'
            f"drain_seconds = 10\nclaim_seconds = 3\nspare_disk_bytes = {SPARE_MIB << 20}\n"
            f"spare_memory_bytes = {SPARE_MIB << 20}\n"
        )
        with self.log.open("ab") as log:
            self.server = subprocess.Popen(
                [sys.executable, "-m", "animalcat", "serve", "--config", str(config)],
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=log,
                preexec_fn=self.enter,
            )
        assert self.server.stdout is not None
        if not self.server.stdout.readline():
            raise RuntimeError(f"the server did not start: {self.log.read_text()[-2000:]}")

    def enter(self) -> None:
        """Put the process that calls it into the server's control group."""
        (self.group / "cgroup.procs").write_text(str(os.getpid()))

    def say(self, agent: int) -> list[str]:
        """What an agent has said."""
        return (self.folder / f"agent-{agent}.log").read_text().splitlines()

    def play(self, agent: int, text: str) -> None:
        """Start an agent that stays."""
        with (self.folder / f"agent-{agent}.log").open("ab") as log:
            self.players[agent] = subprocess.Popen(
                [
                    *(sys.executable, "-m", "animalcat", "agent", "run", "--stay"),
                    *("--connect", self.address, "--agent", "builtin:random"),
                    *("--name", f"agent-{agent}"),
                ],
                env=environment()
                | {"ANIMALCAT_TOKEN": text, "ANIMALCAT_CA": str(self.folder / "ca.pem")},
                stdout=log,
                stderr=log,
            )

    def client(self) -> animalcat.Client:
        """A client of an operator."""
        return animalcat.connect(self.address, token=self.operator, ca=self.folder / "ca.pem")

    def look(self) -> list[str]:
        """Compare what is stored with what was stored before; returns what is wrong."""
        wrong: list[str] = []
        with self.client() as client:
            seen: dict[Record, dict[str, Any]] = {}
            for session in client.list_sessions():
                counted: set[int] = set()
                for one in client.episodes(session):
                    if one.outcome is None:
                        continue
                    if one.counts and one.number in counted:
                        wrong.append(f"{session.id}/{one.number} counts twice")
                    if one.counts:
                        counted.add(one.number)
                    seen[session.id, one.number, one.attempt] = {
                        "outcome": str(one.outcome),
                        "return": one.episode_return,
                        "steps": one.steps,
                    }
        for record, what in self.known.items():
            if record not in seen:
                wrong.append(f"{record} is lost")
            elif seen[record] != what:
                wrong.append(f"{record} was {what}, and is {seen[record]}")
        self.known |= seen
        return wrong

    def until_all_play(self, agents: set[int]) -> float:
        """Wait until each of some agents has played on; returns after how many seconds."""
        began = time.monotonic()
        before: dict[int, int] = {}
        while time.monotonic() - began < STUCK_SECONDS:
            with suppress(AnimalcatError, OSError):
                now = self._played()
                if not before:
                    before = now
                if all(now.get(a, 0) > before.get(a, 0) for a in agents):
                    return time.monotonic() - began
            time.sleep(1.0)
        raise RuntimeError(f"agents play no more: {before}, {self._played()}")

    def _played(self) -> dict[int, int]:
        found: dict[int, int] = {}
        with self.client() as client:
            for session in client.list_sessions():
                agent = int(session.spec.agent.removeprefix("agent-"))
                found[agent] = found.get(agent, 0) + session.episodes
        return found

    def page(self, path: str) -> tuple[int, str]:
        """A page of the port of measurements; 0 where nobody answers."""
        try:
            url = f"http://127.0.0.1:{self.metrics}{path}"
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode().strip()
        except OSError:
            return 0, ""

    def until_page(self, status: int) -> str:
        """Wait until `/readyz` has a status; returns what it says."""
        end = time.monotonic() + STUCK_SECONDS
        while time.monotonic() < end:
            found, said = self.page("/readyz")
            if found == status:
                return said.strip()
            time.sleep(0.5)
        raise RuntimeError(f"/readyz never had {status}: {self.page('/readyz')}")


def run(quick: bool) -> list[dict[str, Any]]:
    """Play through the incidents; a row for each."""
    if os.geteuid() != 0:
        raise RuntimeError("the incidents need root: they mount a disk, and limit memory")
    agents = QUICK_AGENTS if quick else AGENTS
    rounds = 1 if quick else 4
    with (
        postgres.running() as database,
        tempfile.TemporaryDirectory(prefix="animalcat-incidents-") as name,
    ):
        stage = Stage(Path(name), database, agents)
        with _disk(stage.data):
            try:
                return [row for _ in range(rounds) for row in _incidents(stage)]
            finally:
                for process in [*stage.players.values(), stage.server]:
                    if process is not None:
                        process.kill()
                        process.wait()
                _keep(stage)


def _incidents(stage: Stage) -> Generator[dict[str, Any]]:
    """Strike once by each incident."""
    if stage.server is None:
        stage.certify()
        made = Tokens(stage.data)
        stage.operator = made.create(Role.OPERATOR)[1]
        stage.start()
        for agent in range(stage.agents):
            stage.tokens[agent], text = made.create(Role.AGENT, agent=f"agent-{agent}")
            stage.play(agent, text)
    with stage.client() as client:
        open_for = {s.spec.agent for s in client.list_sessions() if not s.over}
        for agent in range(stage.agents):
            if f"agent-{agent}" not in open_for:
                client.create_session(
                    agent=f"agent-{agent}", battery=BATTERY, max_episodes=EPISODES, target_sd=0.0
                )
    everybody = set(range(stage.agents))
    stage.until_all_play(everybody)
    assert stage.server is not None

    def kill() -> str:
        assert stage.server is not None
        stage.server.kill()
        stage.server.wait()
        time.sleep(5.0)
        stage.start()
        return "killed, and started after 5 s"

    def restart() -> str:
        assert stage.server is not None
        stage.server.terminate()
        draining = stage.until_page(503)
        stage.server.wait()
        stage.start()
        return f"/readyz: {draining}"

    def certificate() -> str:
        assert stage.server is not None
        stage.certify()
        stage.server.send_signal(signal.SIGHUP)
        _until(lambda: "were read again" in stage.log.read_text())
        return "read again after SIGHUP"

    def full_disk() -> str:
        filler = stage.data / "filler"
        with filler.open("wb") as file, suppress(OSError):
            while True:
                file.write(bytes(1 << 20))
        said = stage.until_page(503)
        time.sleep(SECONDS)
        filler.unlink()
        stage.until_page(200)
        return f"/readyz: {said}"

    def frozen() -> str:
        stage.database.signal(signal.SIGSTOP)
        said = stage.until_page(503)
        alive = stage.page("/livez")[0]
        time.sleep(SECONDS)
        stage.database.signal(signal.SIGCONT)
        stage.until_page(200)
        return f"/readyz: {said}; /livez: {alive}"

    def memory() -> str:
        before, used = _kills(stage.group), _used(stage.group)
        _limit(stage.group, used + (100 << 20))
        hog = subprocess.Popen([sys.executable, "-c", HOG], preexec_fn=stage.enter)
        time.sleep(SECONDS)
        hog.kill()
        hog.wait()
        _limit(stage.group, 0)
        kills = _kills(stage.group) - before
        if stage.server is not None and stage.server.poll() is not None:
            stage.start()
            return f"{kills} processes killed, the server among them"
        return f"{kills} processes killed"

    def tokens() -> str:
        made, agent = Tokens(stage.data), 0
        made.revoke(stage.tokens[agent].id)
        code = stage.players[agent].wait(STUCK_SECONDS)
        said = stage.say(agent)[-1]
        stage.tokens[agent], text = made.create(Role.AGENT, agent=f"agent-{agent}")
        stage.play(agent, text)
        return f"the agent ended with code {code}: {said}"

    for strike in (kill, restart, certificate, full_disk, frozen, memory, tokens):
        wrong = stage.look()
        before = len(stage.known)
        found = strike()
        seconds = stage.until_all_play(everybody)
        wrong += stage.look()
        ended = [a for a, p in stage.players.items() if p.poll() is not None]
        yield {
            "incident": strike.__name__.replace("_", " "),
            "seen": found,
            "outcomes before": before,
            "all play after s": round(seconds),
            "agents that ended": len(ended),
            "lost or changed": len(wrong),
            "wrong": wrong[:5],
        }
    with stage.client() as client:
        broken = [
            f"{session.id}: {problem}"
            for session in client.list_sessions()
            for problem in client.verify_session(session).problems
        ]
    yield {"incident": "session verify", "lost or changed": len(broken), "wrong": broken[:5]}


def _keep(stage: Stage) -> None:
    """Keep the logs of a run where a variable says so."""
    if folder := os.environ.get("INCIDENTS_LOGS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        for file in stage.folder.glob("*.log"):
            (Path(folder) / file.name).write_bytes(file.read_bytes())
        known = {"/".join(map(str, k)): v for k, v in stage.known.items()}
        (Path(folder) / "outcomes.json").write_text(json.dumps(known, indent=1))


@contextmanager
def _disk(folder: Path) -> Generator[None]:
    """A small disk at a folder for the block."""
    folder.mkdir()
    options = f"size={DISK_BYTES},mode=0700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def _group() -> Path:
    """Make a control group for the server."""
    top = GROUPS / "memory" if (GROUPS / "memory").exists() else GROUPS
    group = top / f"animalcat-incidents-{os.getpid()}"
    group.mkdir()
    return group


def _limit(group: Path, bytes_: int) -> None:
    """Limit the memory of a group; 0 for no limit."""
    if (group / "memory.max").exists():
        (group / "memory.max").write_text(str(bytes_ or "max"))
        return
    (group / "memory.limit_in_bytes").write_text(str(bytes_ or -1))


def _used(group: Path) -> int:
    names = ("memory.current", "memory.usage_in_bytes")
    return next(int((group / name).read_text()) for name in names if (group / name).exists())


def _kills(group: Path) -> int:
    for name in ("memory.events", "memory.oom_control"):
        with suppress(OSError):
            for line in (group / name).read_text().splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    return 0


def _until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + STUCK_SECONDS
    while not true():
        if time.monotonic() > end:
            raise RuntimeError("it did not come to pass")
        time.sleep(0.2)


def _free() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
