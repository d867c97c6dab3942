"""`animalcat agent` and `animalcat episode` as programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import Result

import animalcat
from animalcat.envs.backends import make_environment
from animalcat.envs.replay import replay
from animalcat.service.recording.reader import read_episode
from animalcat.service.recording.verify import load_arena
from animalcat.service.recording.writer import EpisodeRecorder
from animalcat.service.versions import MOTION, versions
from animalcat.v1 import results_pb2
from animalcat.wire.steps import observation_from_proto, spec_from_proto
from tests.command_line import call

from .conftest import MakeSession, Server

AGENT = """
from animalcat import Actions

class Turning:
    def reset(self, info): self.info = info
    def act(self, observation): return Actions([1] * 50)

class Broken(Turning):
    def act(self, observation): raise LookupError("lost my map")
"""


def episode(*words: str):
    return call("episode", *words)


def test_an_agent_runs_and_its_episodes_play_again(
    server: Server, client: animalcat.Client, make_session: MakeSession, tmp_path: Path
) -> None:
    file = tmp_path / "my_agent.py"
    file.write_text(AGENT)
    session = make_session(agent=f"{file}:Turning").name.removeprefix("sessions/")

    def run(reference: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "animalcat", "agent", "run", "--connect", server.address]
        command += ["--session", session, "--json", "--agent", reference, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    other = run("builtin:forward")
    assert other.returncode == 2
    assert "is for the agent" in other.stderr
    assert other.stderr.count("\n") == 1
    broken = run(f"{file}:Broken", "--name", f"{file}:Turning")
    assert broken.returncode == 1
    assert "LookupError: lost my map" in broken.stderr
    assert f"animalcat session resume {session} --as repeat" in broken.stderr
    unjudged = run(f"{file}:Turning")
    assert unjudged.returncode == 2
    assert "say first what that counts as" in unjudged.stderr
    assert client.judge_failure(session, "repeat").unjudged == ()
    done = run(f"{file}:Turning")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["state"], summary["counted"]) == ("finished", 2)

    result = episode("list", session, "--server", server.address, "--json")
    assert result.exit_code == 0, result.output
    listed = json.loads(result.stdout)
    told = [(e["episode"], e["attempt"], e["outcome"], e["ruling"], e["seen"]) for e in listed]
    assert told == [
        (0, 0, "void", "repeat", False),
        (0, 1, "failure", "", True),
        (1, 0, "failure", "", False),
    ]
    offline = episode("replay", session, "--verify", "--json", "--data", str(server.home))
    assert offline.exit_code == 0, offline.output
    rows = json.loads(offline.stdout)
    assert [row["verification"]["equal"] for row in rows] == [True] * 3
    assert [row["steps"] for row in rows] == [e["steps"] for e in listed]
    streamed = episode("replay", session, "0", "--server", server.address, "--verify", "--json")
    assert streamed.exit_code == 0, streamed.output
    assert [row["attempt"] for row in json.loads(streamed.stdout)] == [1]


def test_an_agent_that_we_start_and_whose_code_fails_pauses_its_session(
    server: Server, client: animalcat.Client, tmp_path: Path
) -> None:
    """`session run` prints the traceback, where it was and what to do; `resume` waits for that."""
    file = tmp_path / "my_agent.py"
    turn = "return Actions([1] * 50)"
    third = f"if self.info.episode == 2: raise LookupError('lost my map')\n        {turn}"
    file.write_text(AGENT.replace(turn, f"\n        {third}", 1))

    def on_server(*words: str) -> Result:
        return call("session", *words, "--server", server.address)

    options = ["--agent", f"{file}:Turning", "--battery", "navigation", "--no-certify"]
    ran = on_server("run", *options, "--max-episodes", "4")
    assert ran.exit_code == 1, ran.output
    assert f'File "{file}", line ' in ran.stderr
    assert "LookupError: lost my map" in ran.stderr
    (session,) = [s for s in client.list_sessions() if s.spec.agent == f"{file}:Turning"]
    assert (session.unjudged, session.paused, session.episodes) == ((2,), True, 2)
    judging = f"animalcat session resume {session.id} --as repeat"
    assert judging in ran.stderr
    waits = on_server("resume", session.id)
    assert waits.exit_code == 1
    assert judging in waits.stderr
    file.write_text(AGENT)  # which is mended
    assert on_server("resume", session.id, "--as", "failure", "--same-agent").exit_code == 0
    shown = on_server("show", session.id).output
    assert "The agent's code failed in 1 attempt: 1 judged to be a failure." in shown
    assert "judged by a person: failure" in shown


def short_recording(folder: Path, *, nudge: float = 0.0) -> Path:
    """Three steps in an empty arena, with one number of the last changed by `nudge`."""
    header = results_pb2.EpisodeHeader(
        name="sessions/s/episodes/4-1",
        attempt=1,
        instance="empty",
        arena_yaml="!ArenaConfig\narenas:\n  0: !Arena\n    timeLimit: 100\n    items: []\n",
        seed=3,
        backend="sim",
        agent="hand",
    )
    header.observation_spec.decision_period = 2
    header.versions[MOTION] = versions()[MOTION]
    spec = spec_from_proto(header.observation_spec)
    recorder = EpisodeRecorder(folder / "s" / "4-1.mcap", header)
    actions = bytes([3, 4, 5])
    steps = list(replay(make_environment("sim", spec), load_arena(header), 3, actions))
    for step, action in zip(steps, [None, *actions], strict=True):
        if step is steps[-1]:
            step = step._replace(reward=step.reward + nudge)
        recorder.step(step, action)
    recorder.close()
    last = read_episode(recorder.path).steps[-1]
    assert observation_from_proto(last.observation, spec).position[2] != 0
    return recorder.path


def test_a_number_that_does_not_come_out_again_is_named(tmp_path: Path) -> None:
    found = episode("replay", str(short_recording(tmp_path, nudge=1e-3)), "--verify")
    assert found.exit_code == 1
    assert "differs at step 3: reward was -0.0030" in found.stdout
    assert "now -0.0040" in found.stdout
    assert "cut short, 3 decisions" in found.stdout
    assert "sapien was absent, here it is" in found.stdout


def test_frames_are_pictures(tmp_path: Path) -> None:
    path = short_recording(tmp_path)
    shots = tmp_path / "shots"
    done = episode("replay", str(path), "--frames", str(shots), "--resolution", "20", "--verify")
    assert done.exit_code == 0
    pictures = sorted(shots.glob("[!.]*"))
    assert [p.name for p in pictures] == [f"4-1-{n:04}.png" for n in range(4)]
    with Image.open(pictures[0]) as picture:
        assert picture.size == (20, 20)
        assert len(picture.getcolors() or []) > 3


def test_what_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANIMALCAT_HOME", str(tmp_path))
    (tmp_path / "torn.mcap").write_bytes(b"\x89MCAP0\r\n")
    (tmp_path / "recordings" / "s").mkdir(parents=True)
    short_recording(tmp_path / "recordings")
    for words, message in (
        (["no-such-session"], "no recordings of session 'no-such-session'"),
        (["s", "5"], "session 's' has no episode 5; there are: 0 to 4"),
        (["s", "4-0"], "session 's' has no episode 4-0"),
        (["s", "four"], "four"),
        (["absent.mcap"], "absent.mcap: No such file"),
        ([str(tmp_path / "torn.mcap")], "cut before its header"),
        (["../../etc"], "../../etc"),
    ):
        done = episode("replay", *words)
        assert done.exit_code == 2
        assert message in done.stderr
        assert done.stderr.count("\n") == 1
    assert episode("replay", "s", "4").exit_code == 0


def test_a_session_is_held_and_an_outcome_taken_back(
    server: Server, client: animalcat.Client, make_session: MakeSession
) -> None:
    """An agent that left is counted by demand."""
    session = make_session(max_episodes=20, agent="held")

    class Leaves:
        played = 0

        def reset(self, info: object) -> None:
            self.played += 1

        def act(self, observation: object) -> int:
            if self.played > 1:
                raise LookupError("lost my map")
            return 3

    with pytest.raises(LookupError):
        client.evaluate(Leaves(), session)
    assert client.judge_failure(session, "repeat").unjudged == ()

    def runs(*words: str) -> str:
        done = call("session", *words, "--server", server.address)
        assert done.exit_code == 0, done.output
        return done.output

    assert client.pause_session(session).paused
    shown = json.loads(runs("show", session.id, "--json"))
    assert shown["paused"]
    for demand in shown["voids_by_demand"]:
        assert demand["voids_below"] + demand["voids_from"] == 1
        assert demand["attempts_below"] + demand["attempts_from"] == 2
    assert "Attempts that the agent voided, by demand: " in runs("show", session.id)
    client.invalidate_episode(session, 0, "the light went out")
    assert client.get_session(session).episodes == 0
    assert [e.invalid for e in client.episodes(session)] == ["the light went out", ""]
