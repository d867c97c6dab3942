"""Lets agents that stay play through a year of incidents, and looks what is lost or invented.

Each incident has to stand in the server's log, its audit log and its measurements. The server
speaks TLS, keeps its sessions in PostgreSQL, its files on a small disk of its own, and lives in a
control group of its own. It needs root on Linux, `openssl`, and an installed PostgreSQL.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count, pairwise
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
ROUNDS: Final = 4
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
DIARY: Final = """import os
import time

from animalcat.envs.agents.simple import RandomAgent


class Diary(RandomAgent):
    '''Acts at random, and writes down every episode that it begins and every action.'''

    def reset(self, info):
        super().reset(info)
        self._write(f"\\n{info.episode} ")

    def act(self, observation):
        time.sleep(0.02)
        self._write(".")
        return super().act(observation)

    def _write(self, text):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        if not hasattr(self, "_file"):
            self._file = os.open(os.environ["DIARY"], flags, 0o600)
        os.write(self._file, text.encode())
"""
"""An agent by whose own account of what it has done outcomes are judged."""
SAMPLE_SECONDS: Final = 0.5
WATCHED: Final = (
    *("animalcat_ready", "animalcat_uptime_seconds", "animalcat_certificate_ends"),
    *("animalcat_out_of_memory_kills", "animalcat_refusals"),
)
MOST_ASKED_AGAIN: Final = 3
"""How often an agent may be asked the same question again in an episode, after coming back."""
Record = tuple[str, int, int]
Sample = Mapping[str, float]
"""What the measurements said at one time, by name and labels."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What an incident has to leave behind.

    Attributes:
        log: Words in the log, one of which has to be there.
        audit: Actions and words in a line of the audit log, likewise.
        metrics: Whether some samples, one after another, tell of it.
    """

    log: tuple[str, ...]
    audit: tuple[tuple[str, str], ...]
    metrics: Callable[[Sequence[Sample]], bool]


def name_of(name: str, labels: Mapping[str, str]) -> str:
    """A measurement's name with its labels, as it stands on the page."""
    words = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return name + f"{{{words}}}" * bool(words)


def _fell(name: str) -> Callable[[Sequence[Sample]], bool]:
    """Whether a measurement fell, as one of a server that was started again."""
    return lambda seen: any(b[name] < a[name] for a, b in pairwise(seen) if name in a and name in b)


def _rose(*names: str) -> Callable[[Sequence[Sample]], bool]:
    """Whether one of some measurements rose."""
    return lambda seen: any(
        b.get(name, 0.0) > a.get(name, 0.0) for a, b in pairwise(seen) for name in names
    )


def _was(name: str, value: float) -> Callable[[Sequence[Sample]], bool]:
    """Whether a measurement had a value."""
    return lambda seen: any(sample.get(name) == value for sample in seen)


def _other(prefix: str) -> Callable[[Sequence[Sample]], bool]:
    """Whether a measurement changed."""
    return lambda seen: len({v for s in seen for n, v in s.items() if n.startswith(prefix)}) > 1


UPTIME: Final = "animalcat_uptime_seconds"
TRACES: Final[Mapping[str, Trace]] = {
    "kill": Trace(("it was killed",), (("StartServer", "killed"),), _fell(UPTIME)),
    "restart": Trace(("SIGTERM",), (("StopServer", ""),), _fell(UPTIME)),
    "certificate": Trace(
        ("were read again",), (("ReadSettings", ""),), _other("animalcat_certificate_ends")
    ),
    "full_disk": Trace(
        ("not ready: the disk",), (("LoseReadiness", "disk"),), _was("animalcat_ready", 0.0)
    ),
    "frozen": Trace(
        ("not ready: the database",), (("LoseReadiness", "database"),), _was("animalcat_ready", 0.0)
    ),
    "memory": Trace(
        ("for want of memory", "it was killed"),
        (("LoseProcesses", ""), ("StartServer", "killed")),
        _rose("animalcat_out_of_memory_kills_total"),
    ),
    "tokens": Trace(
        ("BAD_TOKEN", "UNAUTHENTICATED", "token"),
        (("RevokeToken", ""),),
        _rose(*(f'animalcat_refusals_total{{what="{w}"}}' for w in ("BAD_TOKEN", "NO_TOKEN"))),
    ),
}


@dataclass(frozen=True, slots=True)
class Found:
    """What a look at the store has found.

    Attributes:
        lost: Outcomes that are missing or changed, a sentence each.
        invented: Outcomes that count twice, or that no agent has played.
        outcomes: How many are stored.
    """

    lost: list[str]
    invented: list[str]
    outcomes: int


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
        self.administrator = ""
        self.samples: list[Sample] = []
        (folder / "diary.py").write_text(DIARY)

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
            f"drain_seconds = 10\nspare_disk_bytes = {SPARE_MIB << 20}\n"
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
                    *("--connect", self.address, "--agent", f"{self.folder / 'diary.py'}:Diary"),
                    *("--name", f"agent-{agent}"),
                ],
                env=environment()
                | {
                    "ANIMALCAT_TOKEN": text,
                    "ANIMALCAT_CA": str(self.folder / "ca.pem"),
                    "DIARY": str(self.folder / f"diary-{agent}"),
                },
                stdout=log,
                stderr=log,
            )

    def client(self) -> animalcat.Client:
        """A client of an administrator."""
        ca = self.folder / "ca.pem"
        return animalcat.connect(self.address, token=self.administrator, ca=ca)

    def look(self) -> Found:
        """Compare what is stored with what was stored before, and with what agents say."""
        found = Found([], [], 0)
        seen: dict[Record, dict[str, Any]] = {}
        counted: list[tuple[int, str, int, int]] = []
        with self.client() as client:
            for session in client.list_sessions():
                agent = int(session.spec.agent.removeprefix("agent-"))
                for one in client.episodes(session):
                    if one.outcome is None:
                        continue
                    if one.counts:
                        counted.append((agent, session.id, one.number, one.steps))
                    seen[session.id, one.number, one.attempt] = {
                        "outcome": str(one.outcome),
                        "return": one.episode_return,
                        "steps": one.steps,
                    }
        # Read afterwards: who plays an episode writes it down before its outcome is stored.
        played = {agent: self._diary(agent) for agent in range(self.agents)}
        twice = Counter((session, number) for _, session, number, _ in counted)
        found.invented.extend(f"{one} counts twice" for one, times in twice.items() if times > 1)
        for agent, session, number, steps in counted:
            # Who comes back within a lease is asked the same question again.
            told = played[agent].get(number, [])
            if not any(0 <= actions - steps <= MOST_ASKED_AGAIN for actions in told):
                found.invented.append(f"{session}/{number}: {steps} steps, {told} were played")
        for record, what in self.known.items():
            if record not in seen:
                found.lost.append(f"{record} is lost")
            elif seen[record] != what:
                found.lost.append(f"{record} was {what}, and is {seen[record]}")
        self.known |= seen
        return replace(found, outcomes=len(seen))

    def _diary(self, agent: int) -> dict[int, list[int]]:
        """How many actions an agent says it has taken, in each episode that it says was begun."""
        found: dict[int, list[int]] = {}
        with suppress(FileNotFoundError):
            for line in (self.folder / f"diary-{agent}").read_text().splitlines()[1:]:
                episode, _, actions = line.partition(" ")
                found.setdefault(int(episode), []).append(len(actions))
        return found

    def watch(self) -> None:
        """Read the measurements again and again, as Prometheus does."""
        from prometheus_client.parser import text_string_to_metric_families as read

        while True:
            status, text = self.page("/metrics")
            if status == 200:
                self.samples.append(
                    {
                        name_of(sample.name, sample.labels): sample.value
                        for family in read(text)
                        for sample in family.samples
                        if sample.name.startswith(WATCHED)
                    }
                )
            time.sleep(SAMPLE_SECONDS)

    def stands(self, incident: str, since: datetime, log: int, sample: int) -> dict[str, str]:
        """Say where an incident stands.

        Args:
            incident: Its name.
            since: When it began.
            log: Where the log ended then.
            sample: The last measurement before it.
        """
        trace = TRACES[incident]
        with self.log.open("rb") as file:
            file.seek(log)
            said = file.read().decode(errors="replace")
        with self.client() as client:
            lines = [*client.audit(since=since)]
        in_audit = any(
            line.action == action and words in line.words
            for action, words in trace.audit
            for line in lines
        )
        return {
            "log": _yes(any(words in said for words in trace.log)),
            "audit": _yes(in_audit),
            "metrics": _yes(trace.metrics(self.samples[max(0, sample) :])),
        }

    def feed(self) -> None:
        """Make a session for every agent that has none to play."""
        with self.client() as client:
            sessions = client.list_sessions()
            busy = {session.spec.agent for session in sessions if not session.over}
            for agent in range(self.agents):
                if f"agent-{agent}" not in busy:
                    client.create_session(
                        agent=f"agent-{agent}",
                        battery=BATTERY,
                        max_episodes=EPISODES,
                        target_sd=0.0,
                        certify=False,
                        seed=len(sessions) + agent,
                    )

    def until_all_play(self, agents: set[int]) -> float:
        """Wait until each of some agents has played on; returns after how many seconds."""
        began = time.monotonic()
        before: dict[int, int] = {}
        while time.monotonic() - began < STUCK_SECONDS:
            with suppress(AnimalcatError, OSError):
                self.feed()
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


def run(quick: bool, minutes: float | None = None) -> list[dict[str, Any]]:
    """Play through the incidents; a row for each.

    Args:
        quick: Whether to go through them once, with few agents.
        minutes: How long to go through them again and again; None for four times.
    """
    if os.geteuid() != 0:
        raise RuntimeError("the incidents need root: they mount a disk, and limit memory")
    agents = QUICK_AGENTS if quick else AGENTS
    rounds = 1 if quick else ROUNDS
    began = time.monotonic()
    with (
        postgres.running() as database,
        tempfile.TemporaryDirectory(prefix="animalcat-incidents-") as name,
    ):
        stage = Stage(Path(name), database, agents)
        with _disk(stage.data):
            rows: list[dict[str, Any]] = []
            try:
                for round_ in count(1):
                    for row in _incidents(stage):
                        rows.append({"round": round_, **row})
                        _keep(stage, rows)
                    spent = (time.monotonic() - began) / 60.0
                    if round_ >= rounds if minutes is None else spent >= minutes:
                        return rows
                raise AssertionError
            finally:
                for process in [*stage.players.values(), stage.server]:
                    if process is not None:
                        process.kill()
                        process.wait()
                _keep(stage, rows)


def _incidents(stage: Stage) -> Generator[dict[str, Any]]:
    """Strike once by each incident."""
    if stage.server is None:
        stage.certify()
        made = Tokens(stage.data)
        stage.administrator = made.create(Role.ADMINISTRATOR)[1]
        stage.start()
        for agent in range(stage.agents):
            stage.tokens[agent], text = made.create(Role.AGENT, agent=f"agent-{agent}")
            stage.play(agent, text)
        threading.Thread(target=stage.watch, daemon=True).start()
    stage.feed()
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
        draining = "it drained too quickly to be seen"
        while stage.server.poll() is None:
            status, said = stage.page("/readyz")
            draining = said if status == 503 else draining
            time.sleep(0.02)
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
        before = stage.look()
        mark = datetime.now(UTC), stage.log.stat().st_size, len(stage.samples) - 1
        said = strike()
        seconds = stage.until_all_play(everybody)
        time.sleep(2.0 * SAMPLE_SECONDS + 2.0)  # until it is measured and audited
        after = stage.look()
        lost, invented = before.lost + after.lost, before.invented + after.invented
        yield {
            "incident": strike.__name__.replace("_", " "),
            "seen": said,
            "outcomes before": before.outcomes,
            "all play after s": round(seconds),
            "agents that ended": sum(p.poll() is not None for p in stage.players.values()),
            "lost": len(lost),
            "invented": len(invented),
            **stage.stands(strike.__name__, *mark),
            "wrong": [*lost[:5], *invented[:5]],
        }
    with stage.client() as client:
        broken = [
            f"{session.id}: {problem}"
            for session in client.list_sessions()
            for problem in client.verify_session(session).problems
        ]
        broken += client.verify_audit().problems
    yield {"incident": "verified", "lost": len(broken), "wrong": broken[:5]}


def _yes(stands: bool) -> str:
    return "yes" if stands else "NO"


def _keep(stage: Stage, rows: Sequence[Mapping[str, Any]]) -> None:
    """Keep what a run has found so far, and its logs, where a variable says so."""
    if folder := os.environ.get("INCIDENTS_LOGS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        for file in (*stage.folder.glob("*.log"), *stage.folder.glob("diary-*")):
            (Path(folder) / file.name).write_bytes(file.read_bytes())
        known = {"/".join(map(str, k)): v for k, v in stage.known.items()}
        (Path(folder) / "rows.json").write_text(json.dumps(rows, indent=1))
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
