"""Agents that cheat; they are run in processes of their own, and say what they got as JSON."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import animalcat
from animalcat.errors import AnimalcatError
from animalcat.machine.folders import cache_folder

HOME = Path(os.environ["ANIMALCAT_AGENT_HOME"])
"""The data directory, which a real agent would have to find first."""
CACHE = cache_folder("")
"""What animalcat has built and measured."""
PORT = int(os.environ["ANIMALCAT_AGENT_PORT"])
"""The server's port, likewise."""
OTHER = os.environ["ANIMALCAT_AGENT_OTHER"]
"""A session of another agent."""


def attempts(**tries: Callable[[], Any]) -> None:
    """Try all of it, say what came of it, and end."""
    got: dict[str, Any] = {}
    for name, attempt in tries.items():
        try:
            got[name] = attempt()
        except (OSError, sqlite3.Error, AnimalcatError) as error:
            got[name] = f"error: {getattr(error, 'code', '')} {error}"
    print("GOT", json.dumps(got), file=sys.stderr)
    sys.stderr.flush()
    os._exit(0)


def client() -> animalcat.Client:
    """A client with all that the agent's process has: its address and its ticket."""
    return animalcat.connect(sys.argv[sys.argv.index("--connect") + 1])


def own_session() -> str:
    return sys.argv[sys.argv.index("--session") + 1]


class Agent:
    """Plays nothing: `cheat` comes first."""

    def reset(self, info: Any) -> None:
        self.cheat()

    def act(self, observation: Any) -> int:
        return 3

    def cheat(self) -> None:
        raise NotImplementedError


class ReadsAnswers(Agent):
    def cheat(self) -> None:
        attempts(
            files=lambda: [str(path) for path in HOME.rglob("*")],
            database=lambda: (HOME / "animalcat.sqlite").read_bytes()[:6].decode(),
            key=lambda: len((HOME / "access" / "ticket.key").read_bytes()),
            batteries=lambda: os.listdir(CACHE / "batteries"),
            climb=lambda: os.listdir(HOME / ".." / HOME.name),
            through_proc=lambda: os.listdir(f"/proc/{os.getppid()}/root{HOME}"),
            unmount=lambda: os.system(f"umount {HOME} 2>/dev/null") == 0,
        )


class WritesResults(Agent):
    def cheat(self) -> None:
        def edit_database() -> str:
            with sqlite3.connect(HOME / "animalcat.sqlite") as db:
                db.execute("UPDATE episodes SET outcome = 'SUCCESS'")
            return "edited"

        def move(path: Path) -> str:
            """Make room for a door of one's own, where other agents come in."""
            path.rename(path.with_name("moved"))
            return "moved"

        door = Path(sys.argv[sys.argv.index("--connect") + 1].removeprefix("unix:"))
        package = Path(animalcat.__file__).parent
        attempts(
            database=edit_database,
            file=lambda: (HOME / "mine").write_text("x"),
            package=lambda: (package / "hostile.py").write_text("x"),
            batteries=lambda: (CACHE / "mine").write_text("x"),
            other_caches=lambda: (CACHE.parent / "hostile").write_text("x"),
            door=lambda: move(door),
            server=lambda: move(door.parent),
            servers=lambda: move(door.parents[1]),
            judge=lambda: os.utime(package / "outcomes.py"),
            interpreter=lambda: (Path(sys.prefix) / "hostile.pth").write_text("x"),
        )


class ReachesEvaluator(Agent):
    def cheat(self) -> None:
        def end_all() -> int:
            ended = 0
            for entry in os.listdir("/proc"):
                if entry.isdigit() and int(entry) not in (os.getpid(), os.getppid(), 1):
                    os.kill(int(entry), signal.SIGKILL)
                    ended += 1
            return ended

        def memory() -> str:
            with open("/proc/1/mem", "rb") as file:
                return f"read {len(file.read(1))}"

        def port() -> str:
            with socket.create_connection(("127.0.0.1", PORT), 2):
                return "connected"

        def calls() -> dict[str, str]:
            told: dict[str, str] = {}
            with client() as own:
                tries: dict[str, Callable[[], Any]] = {
                    "instances": lambda: list(own.instances("navigation")),
                    "profile": lambda: own.profile(own_session()),
                    "episodes": lambda: own.episodes(own_session()),
                    "cancel": lambda: own.cancel_session(own_session()),
                    "create": lambda: own.create_session(agent="x", battery="navigation"),
                    "delete": lambda: own.delete_session(own_session()),
                    "ticket": lambda: own.get_ticket(OTHER),
                    "other": lambda: own.get_session(OTHER),
                    "capabilities": lambda: list(own.get_session(own_session()).capabilities),
                    "sessions": lambda: [one.id for one in own.list_sessions()],
                }
                for name, call in tries.items():
                    try:
                        told[name] = repr(call())
                    except AnimalcatError as error:
                        told[name] = f"error: {error.code} {error}"
            return told

        attempts(
            memory=memory,
            processes=lambda: len([one for one in os.listdir("/proc") if one.isdigit()]),
            end_all=end_all,
            port=port,
            calls=calls,
        )


class LearnsFromErrors(Agent):
    def cheat(self) -> None:
        def ask(session: str) -> str:
            with client() as own:
                try:
                    return repr(own.get_session(session))
                except AnimalcatError as error:
                    return f"error: {error.code} {error}"

        def play(session: str, name: str) -> str:
            with client() as own:
                try:
                    return repr(own.evaluate(Plays(), session, name=name))
                except AnimalcatError as error:
                    return f"error: {error.code} {error}"

        attempts(
            other=lambda: ask(OTHER),
            nothing=lambda: ask("there-is-none"),
            malformed=lambda: ask("sessions/../x"),
            play_other=lambda: play(OTHER, "x"),
            play_own=lambda: play(own_session(), "not-my-name"),
        )


class Leaves(Agent):
    """Leaves in mid-episode, to see the same arena again."""

    def reset(self, info: Any) -> None:
        self.left = 3

    def act(self, observation: Any) -> int:
        self.left -= 1
        if not self.left:
            os._exit(0)
        return 3


class Stalls(Agent):
    """Does not answer in time."""

    def reset(self, info: Any) -> None:
        pass

    def act(self, observation: Any) -> int:
        time.sleep(5)
        os._exit(0)


class Plays(Agent):
    def reset(self, info: Any) -> None:
        pass
