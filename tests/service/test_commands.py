"""The commands that measure: in processes of their own, as a user runs them.

Commands that only look are run in this process, against a server that waits for them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from animalcat.apart.plan import way
from animalcat.apart.view import MOST_BESIDE
from animalcat.cli.main import build
from animalcat.service.host.private import server_for
from animalcat.service.host.settings import Settings

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
ARENA = """!ArenaConfig
arenas:
  0: !Arena
    pass_mark: 0
    t: 24
    items:
    - !Item {{name: Agent, positions: [!Vector3 {{x: 20, y: 0, z: 3}}], rotations: [0]}}
    - !Item {{name: GoodGoal, positions: [!Vector3 {{x: 20, y: 0, z: {z}}}]}}
"""


def animalcat(*arguments: str | Path, data: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "animalcat", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ANIMALCAT_HOME": str(data)},
    )


def look_once(*arguments: str | Path, data: Path) -> Result:
    """A command that finds the server of a data directory."""
    words = [*map(str, arguments), "--data", str(data)]
    done = CliRunner().invoke(build(words), words)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def arenas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Arenas whose names would be markup to rich, and end what is bold though nothing is."""
    folder = tmp_path_factory.mktemp("arenas") / "a[" / "b]"
    (folder / "navigation-[").mkdir(parents=True)
    for k in range(4):
        (folder / "navigation-[" / f"b]-{k}.yaml").write_text(ARENA.format(z=8 + 6 * k))
    return folder


def test_a_session_from_the_command_line(arenas: Path, tmp_path: Path) -> None:
    agent = "builtin:forward+lapses=0.1+delay=.2"
    done = animalcat(
        *("session", "run", "--agent", agent, "--battery", arenas, "--no-certify"),
        *("--max-episodes", "2", "--camera", "16", "--target-sd", "0.01", "--json"),
        data=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    out_of_reach = "visualAbility: its target cannot be reached with this battery for 19 of 20 "
    assert out_of_reach in done.stderr
    told = [line for line in done.stderr.splitlines() if " of 2 episodes: " in line]
    assert [line.split()[0] for line in told] == ["1", "2"]
    assert "visualAbility" in told[0]
    result = json.loads(done.stdout)
    assert (result["state"], result["episodes"]) == ("finished", 2)
    assert result["profile"]["provenance"]["agent"] == agent
    assert result["profile"]["nodes"]["visualAbility"]["status"] == "budget"
    assert len(list(Path(result["recordings"]).glob("*.mcap"))) == 2
    session = result["session"]

    extend = ("session", "resume", session, "--episodes", "1", "--agent")
    for mistyped in ("builtin:forwrd", "forward", "nowhere.py:Agent"):
        refused = animalcat(*extend, mistyped, data=tmp_path)
        assert refused.returncode, mistyped
        assert mistyped in refused.stderr

    listed = json.loads(animalcat("session", "list", "--json", data=tmp_path).stdout)
    assert [row["session"] for row in listed] == [session]
    assert (listed[0]["state"], listed[0]["reason"]) == (result["state"], result["reason"])
    page = tmp_path / "out" / "profile.html"
    with server_for(None, tmp_path):
        look_once("profile", "export", session, "--format", "html", "-o", page, data=tmp_path)
        text = page.read_text()
        assert "visualAbility" in text
        assert f"animalcat episode replay {session} 1" in text
        assert text.count("aria-label='Map of navigation-[/b]-") == 2
        shown = look_once("profile", "show", session, data=tmp_path)
        assert "navigationAbility" in shown.stdout
        assert "navigation-[/b]-" in look_once("episode", "list", session, data=tmp_path).stdout
        assert out_of_reach in look_once("session", "show", session, data=tmp_path).stdout
    assert not (Settings(home=tmp_path).home / "server.lock").read_bytes()


@pytest.mark.slow
def test_a_session_that_waits_for_its_agent(arenas: Path, tmp_path: Path) -> None:
    create = (
        "session",
        "run",
        "--elsewhere",
        "--agent",
        "mine",
        "--battery",
        arenas,
        "--max-episodes",
        "2",
    )
    done = animalcat(*create, data=tmp_path)
    assert done.returncode == 0, done.stderr
    (listed,) = json.loads(animalcat("session", "list", "--json", data=tmp_path).stdout)
    assert (listed["session"], listed["agent"]) == (done.stdout.strip(), "mine")
    assert (listed["state"], listed["episodes"], listed["max_episodes"]) == ("waiting", 0, 2)


def test_batteries_are_built_imported_and_listed(arenas: Path, tmp_path: Path) -> None:
    built = animalcat(
        "battery", "build", "navigation", "--instances", "20", "--json", data=tmp_path
    )
    assert json.loads(built.stdout)["instances"] == 20
    (tmp_path / "bad.yaml").write_text("arenas:\n  0: !Arena\n    t: [1\n")
    bad = animalcat("battery", "import", tmp_path / "bad.yaml", data=tmp_path)
    assert bad.returncode == 2
    assert bad.stderr.splitlines()[-1].startswith("error: ")  # a slow machine says "starting ..."
    assert "bad.yaml:4" in bad.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--agent", "builtin:nobody", "--battery", "navigation"], 2, "braitenberg"),
        (["--agent", "builtin:random+sigth=3", "--battery", "navigation"], 2, "there are: sight"),
        (
            ["--agent", "builtin:braitenberg+sight=3", "--camera", "16", "--battery", "navigation"],
            2,
            "play without a camera",
        ),
        (["--agent", "nobody.py:Agent", "--battery", "navigation"], 2, "nobody.py"),
        (["--agent", "nobody", "--battery", "navigation"], 2, "builtin:NAME"),
        (
            ["--agent", "builtin:random", "--battery", "x", "--server", "127.0.0.1:1"],
            4,
            "animalcat serve --port 1",
        ),
    ],
)
def test_what_cannot_be_run(arguments: list[str], code: int, words: str, tmp_path: Path) -> None:
    done = animalcat("session", "run", *arguments, data=tmp_path)
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_an_agent_that_does_not_start_leaves_no_session(arenas: Path, tmp_path: Path) -> None:
    """Its class is misspelt, its file cannot be imported, or there is too much beside it."""
    agent = arenas.parent / f"{tmp_path.name}.py"  # not in the data directory
    agent.write_text(
        "import not_there\n"
        "class Agent:\n"
        "    def reset(self, info): pass\n"
        "    def act(self, observation): return 3\n"
    )
    lost = arenas.parent / tmp_path.name / agent.name
    lost.parent.mkdir()
    shutil.copy(agent, lost)
    for number in range(MOST_BESIDE):
        (lost.parent / f"{number}.txt").touch()
    options = ("--max-episodes", "1", "--no-certify")
    with server_for(None, tmp_path):
        for reference, code, words in (
            (f"{agent}:Agnet", 2, "no such class in the file; there are: Agent"),
            (f"{agent}:Agent", 1, "no session was kept"),
            *([(f"{lost}:Agent", 2, "move it into a folder of its own")] if way().name else []),
        ):
            run = ["session", "run", "--agent", reference, "--battery", str(arenas)]
            run += [*options, "--data", str(tmp_path)]
            done = CliRunner().invoke(build(run), run)
            assert (done.exit_code, words in done.stderr) == (code, True), done.output
            assert json.loads(look_once("session", "list", "--json", data=tmp_path).stdout) == []


@pytest.mark.slow
def test_an_agent_that_breaks_is_shown_and_the_session_can_go_on(
    arenas: Path, tmp_path: Path
) -> None:
    agent = arenas.parent / f"{tmp_path.name}.py"  # not in the data directory
    agent.write_text(
        "class Agent:\n"
        "    def reset(self, info): pass\n"
        "    def act(self, observation): raise RuntimeError('no idea')\n"
    )
    arguments = ("session", "run", "--agent", f"{agent}:Agent", "--battery", arenas)
    done = animalcat(*arguments, data=tmp_path)
    assert done.returncode == 1
    assert "no idea" in done.stderr
    assert "animalcat session resume" in done.stderr
    (row,) = json.loads(animalcat("session", "list", "--json", data=tmp_path).stdout)
    assert (row["state"], row["episodes"]) == ("waiting", 0)


@pytest.mark.slow
def test_a_calibration_takes_sessions_of_its_battery_alone(arenas: Path, tmp_path: Path) -> None:
    agent = ("--agent", "builtin:forward", "--max-episodes", "2", "--no-certify", "--json")
    done = animalcat("session", "run", *agent, "--battery", arenas, data=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(animalcat("session", "list", "--json", data=tmp_path).stdout)
    other = tmp_path / "other" / arenas.name
    shutil.copytree(arenas, other)
    (other / "navigation-[" / "b]-0.yaml").write_text(ARENA.format(z=9))
    for battery, words in ((other, "with another content"), (arenas, "a population needs 2")):
        told = ("--name", "few", "--sessions", row["session"])
        done = animalcat("battery", "calibrate", battery, *told, data=tmp_path)
        assert done.returncode == 2
        assert words in " ".join(done.stderr.split())


@pytest.mark.slow
def test_a_campaign_from_the_command_line(arenas: Path, tmp_path: Path) -> None:
    run = ("campaign", "run", "--agent", "builtin:forward", "--agent", "builtin:random")
    budget = ("--battery", arenas, "--budget", "6", "--common", "2", "--no-certify")
    done = animalcat(*run, *budget, "--json", data=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["episodes"], result["over"]) == (6, True)
    assert [len(passed) for passed in result["common"].values()] == [2, 2]
    both = {"builtin:forward", "builtin:random"}
    assert {row["agent"] for row in result["comparison"]["standings"]} == both

    with server_for(None, tmp_path):
        listed = json.loads(look_once("campaign", "show", "--json", data=tmp_path).stdout)
        assert [row["campaign"] for row in listed] == [result["campaign"]]
        shown = look_once("campaign", "show", result["campaign"], data=tmp_path)
        assert "Agents side by side" in shown.stdout


@pytest.mark.slow
def test_a_campaign_with_a_layout_and_demands_of_ones_own(tmp_path: Path) -> None:
    run = ("campaign", "run", "--agent", "builtin:forward", "--agent", "builtin:random")
    own = ("--battery", EXAMPLES / "garden", "--features", EXAMPLES / "garden.csv")
    layout = ("--layout", EXAMPLES / "garden.yaml", "--budget", "6", "--common", "2")
    done = animalcat(*run, *own, *layout, "--no-certify", "--json", data=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["layout"], result["battery"]) == ("garden", "garden")
    assert (result["episodes"], result["over"]) == (6, True)
    nodes = ["reach", "openness", "haste", "evenness"]
    assert [list(found["nodes"]) for found in result["profiles"].values()] == [nodes, nodes]
    assert result["comparison"]["nodes"] == nodes
    told = [line for line in done.stderr.splitlines() if " of 6 episodes: " in line]
    assert told
    assert "builtin:random" in told[-1]
