"""An agent sees its own folder, without what is none of its business there."""

from __future__ import annotations

import os
import re
import shutil
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from animalcat import data
from animalcat.apart import confine
from animalcat.apart import plan as apart
from animalcat.apart import process as agent_process
from animalcat.apart.plan import Permission, Way, way
from animalcat.apart.process import AgentProcess, ApartError, Bounds, run_agent
from animalcat.apart.view import MOST_BESIDE, MOST_WITHIN, View, beside
from animalcat.machine.files import write_whole
from animalcat.machine.marks import MARK
from animalcat.service.access.callers import Role
from animalcat.service.access.tokens import Tokens
from tests.command_line import call

from .conftest import MakeSession, Server


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of an agent, in which other things lie around."""
    for name, text in {
        "agent.py": "class A: ...",
        "settings.yaml": "layers: 2",
        "net/model.py": "x = 1",
        "weights/step-1/w.bin": "w",
        f"arenas/{MARK}": "",
        "arenas/1.yml": "!ArenaConfig",
        f"old/arenas/level/{MARK}": "",
        f"runs/d1/{MARK}": "",
        "runs/d1/access/tokens.json": "{}",
        f".animalcat/{MARK}": "",
        ".env": "KEY=1",
    }.items():
        path = tmp_path / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "home" / "door.sock"))
    (tmp_path / "home" / "linked").symlink_to(tmp_path / "home" / "runs")
    return tmp_path / "home"


def _names(paths: list[str]) -> set[str]:
    return {os.path.basename(path) for path in paths}


def test_beside_its_file_an_agent_sees_no_folder_in_which_we_have_written(home: Path) -> None:
    seen, left = beside(home / "agent.py")
    shown = {"agent.py", "settings.yaml", "net", "weights", "linked"}
    assert _names(seen) == shown
    assert _names(left) == {"arenas", "old", "runs", "door.sock"}
    seen, _ = beside(home / "agent.py", [home / "net" / "inner", home / "weights"])
    assert _names(seen) == shown - {"net", "weights"}


def test_where_we_have_written_beside_it_an_agent_sees_modules_and_folders(home: Path) -> None:
    """A backup or an export beside it, and every copy of one, whatever it is called."""
    (home / "helper.py").touch()
    write_whole(home / "profile.json", b"{}")
    (home / "profile.json").rename(home / "innocent.bin")
    seen, left = beside(home / "agent.py")
    assert _names(seen) == {"agent.py", "helper.py", "net", "weights", "linked"}
    assert {"innocent.bin", "settings.yaml"} < _names(left)


def test_what_we_write_marks_its_folder(home: Path, server: Server, client: Any) -> None:
    """A data directory, a backup, an exported battery, and a folder that made one."""
    assert (server.home / MARK).exists()
    Tokens(home / "new").create(Role.VIEWER, subject="vera")  # before any server
    data.backup(server.home, home / "backup" / "x.tar")
    done = call(
        "battery", "export", "navigation", "-o", home / "exported", "--server", server.address
    )
    assert done.exit_code == 0
    (home / "own" / "level").mkdir(parents=True)
    arena = next(iter((home / "exported" / "arenas").rglob("*.yaml")))
    shutil.copy(arena, home / "own" / "level" / "a.yaml")
    client.import_battery(home / "own", "own")
    _, left = beside(home / "agent.py")
    assert {"backup", "exported", "own", "new"} < _names(left)


def test_what_is_too_much_to_look_through_is_to_be_named(home: Path) -> None:
    for number in range(MOST_WITHIN + 1):
        (home / "weights" / f"{number}").touch()
    assert "weights" in _names(beside(home / "agent.py")[1])
    for number in range(MOST_BESIDE):
        (home / f"{number}.txt").touch()
    with pytest.raises(ValueError, match="--agent-sees"):
        beside(home / "agent.py")


def test_paths_mean_what_they_mean_outside(tmp_path: Path) -> None:
    real = tmp_path / "disk" / "files"
    real.mkdir(parents=True)
    (real / "w.bin").touch()
    (tmp_path / "link").symlink_to("disk")
    view = View()
    assert view.see(f"{tmp_path}/link/files/w.bin") == str(real / "w.bin")
    assert view.see(str(real)) == str(real)
    assert view.see(str(tmp_path / "away")) == ""
    told = [(one.path, one.kind, one.source) for one in view.ordered()]
    assert told == [
        (str(real), "see", str(real)),  # and the file in it needs no place of its own
        (f"{tmp_path}/link", "link", "disk"),
    ]


@pytest.fixture
def make_plan(client: Any, make_session: MakeSession, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the plan for an agent's process, which is not started."""

    def keep_plan(command: list[str], plan: apart.ProcessPlan, name: str) -> apart.ApartCommand:
        plans.append((command, plan))
        return apart.ApartCommand(("true",), {})

    plans: list[tuple[list[str], apart.ProcessPlan]] = []
    monkeypatch.setattr(agent_process, "launch_command", keep_plan)

    def start(agent: str, **bounds: Any) -> tuple[list[str], apart.ProcessPlan, str]:
        process = AgentProcess(client, make_session(agent=agent), agent, Bounds(**bounds))
        process.close()
        return (*plans[-1], process.note)

    return start


apart_here = pytest.mark.skipif(not way().name, reason=f"not here: {way().why}")


@apart_here
def test_an_agent_is_given_its_folder_the_door_and_what_is_named(
    make_plan: Any, home: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home.parent)
    command, plan, note = make_plan("home/agent.py:A+lapses=0.1", sees=(home / "runs" / "d1",))
    assert command[1:4] == ["-P", "-m", "animalcat"]
    assert f"{home}/agent.py:A+lapses=0.1" in command
    places = {one.path: one for one in plan.mounts}
    assert places[f"{home}/agent.py"].kind == "see"
    assert places[f"{home}/linked"].kind == "link"
    assert f"{home}/runs/d1" in places
    assert not [one for one in places if "arenas" in one or ".env" in one or "secret" in one]
    assert not [one for one in places if one.startswith(str(server.home))]
    door = command[command.index("--connect") + 1].removeprefix("unix:")
    assert [one for one in places if one == str(Path(door).parent)]
    assert not plan.network
    assert note == "the agent is not shown arenas, door.sock, old, runs, beside its file"
    _, plan, note = make_plan("builtin:forward")
    assert not [one for one in plan.mounts if one.path.startswith(str(home))]
    assert not note


@apart_here
def test_the_data_directory_is_never_shown(make_plan: Any, home: Path, server: Server) -> None:
    for path in (server.home.parent, server.home, server.home / "access"):
        with pytest.raises(ApartError, match="data directory"):
            make_plan(f"{home}/agent.py:A", sees=(path,))


def test_where_agents_cannot_be_kept_apart_anothers_is_not_begun(
    server: Server, client: Any, home: Path, monkeypatch: pytest.MonkeyPatch, make_session: Any
) -> None:
    monkeypatch.setattr(agent_process, "way", lambda: Way("", "there is no way"))
    sessions = len(client.list_sessions())

    def run(*words: str) -> Any:
        given = ["run", "--battery", "navigation", "--server", server.address, *words]
        return call("session", *given)

    refused = run("--agent", f"{home}/agent.py:A")
    told = " ".join(refused.stderr.split())
    assert refused.exit_code == 2
    assert "there is no way" in told
    assert "--agent-may all" in told
    assert len(client.list_sessions()) == sessions
    agent_process.check_apart(["builtin:forward"], Bounds())
    agent_process.check_apart([f"{home}/agent.py:A"], Bounds(Permission.ALL))
    process = AgentProcess(client, make_session(agent="builtin:forward"), "builtin:forward")
    process.close()
    assert "is ours, is not kept apart here" in process.note


def test_what_is_named_is_checked_before_anything_begins(
    server: Server, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, told in {
        ("--agent-sees", "away.bin"): "there is no such file",
        ("--agent-env", "NOT_SET_ANYWHERE"): "it is not set here",
        ("--agent-sees", str(home), "--agent-may", "all"): "leave --agent-sees out",
    }.items():
        given = ["run", "--battery", "navigation", "--server", server.address, *words]
        done = call("session", *given, "--agent", f"{home}/agent.py:A")
        assert done.exit_code == 2
        assert told in " ".join(done.stderr.split())


def test_a_server_elsewhere_names_no_socket_of_this_machine(tmp_path: Path) -> None:
    """Else it could have an agent use docker's, and see the folder in which that is."""
    with socket.socket(socket.AF_UNIX) as door, socket.socket(socket.AF_UNIX) as other:
        folder = tmp_path / "animalcat-x"
        folder.mkdir()
        door.bind(str(folder / "agents"))
        other.bind(str(tmp_path / "docker.sock"))
        for address, at, found in (
            ("127.0.0.1:1", folder / "agents", folder / "agents"),
            ("127.0.0.1:1", tmp_path / "docker.sock", None),
            ("elsewhere.example:1", folder / "agents", None),
        ):
            client: Any = SimpleNamespace(address=address)
            ticket: Any = SimpleNamespace(local_address=f"unix:{at}")
            assert agent_process._door(client, ticket) == found  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("path", "device"),
    [
        ("/dev/nvidia0", True),
        ("/dev/dri", True),
        ("/dev/shm/weights", False),
        ("/dev/shm", False),
        ("/home/x/dev/y", False),
    ],
)
def test_what_programs_share_is_no_device(path: str, device: bool) -> None:
    """A device may be written to, and a file that is shown may not."""
    assert confine.is_device(path) is device


SECURITY = Path(__file__).parents[2] / "docs" / "security.md"
MINE = """
import os

class Mine:
    def reset(self, info):
        self.seen = sorted(os.listdir("%(folder)s/weights"))
        try:
            os.listdir("%(home)s")
        except OSError:
            return
        raise RuntimeError("it sees the data directory")

    def act(self, observation):
        return 3
"""


@apart_here
def test_the_pages_lines_run_an_agent_apart(
    server: Server,
    client: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = SECURITY.read_text().partition("### From Python")[2]
    lines = page.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights").mkdir()
    (tmp_path / "agent.py").write_text(MINE % {"folder": tmp_path, "home": server.home})
    exec(lines.replace("localhost:50051", server.address), {})
    assert re.fullmatch(r"finished \d of 3\n", capsys.readouterr().out)

    (tmp_path / "agent.py").write_text(
        "class Mine:\n    def reset(self, info): 1 / 0\n    act = reset"
    )
    session = client.create_session(agent="fails", battery="navigation", max_episodes=1)
    with pytest.raises(ApartError, match=r"ended before its session[\s\S]*ZeroDivisionError"):
        run_agent(client, session, "agent.py:Mine")
    with pytest.raises(ApartError, match="there is no file away"):
        run_agent(client, session, "away.py:Mine")
    client.cancel_session(session)
