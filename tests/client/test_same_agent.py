"""An agent that was changed is not taken for the one that began, by any door."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import animalcat
from animalcat.cli.shared.same_agent import check_campaign
from animalcat.values import Campaign
from tests.command_line import call

from .conftest import MakeSession, Server

AGENT = """
from pathlib import Path
import animalcat
import helper_of_a_test
HERE = Path(__file__).parent

class A:
    played = 0
    def reset(self, info):
        (HERE / "weights.bin").read_bytes()
        self.played += 1
        if self.played > 1 and not (HERE / "on.txt").exists():
            raise KeyboardInterrupt
    def act(self, observation):
        return animalcat.Actions([helper_of_a_test.ACTION] * 50)
"""


def test_commands_refuse_an_agent_whose_files_have_changed(
    server: Server, make_session: MakeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S9 a changed file, and S10 another agent."""
    (tmp_path / "agent.py").write_text(AGENT)
    helper, weights = tmp_path / "helper_of_a_test.py", tmp_path / "weights.bin"
    helper.write_text("ACTION = 1")
    weights.write_bytes(b"1")
    session = make_session(agent="agent.py:A", max_episodes=3).id
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "animalcat", "agent", "run", "--connect", server.address]
        command += ["--session", session, "--agent", "agent.py:A", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def show() -> dict[str, object]:
        found = call("session", "show", session, "--server", server.address, "--json")
        return json.loads(found.stdout)

    assert run().returncode == 130
    before = show()
    known = before["agent_fingerprint"]
    assert isinstance(known, dict)
    assert set(known["files"]) == {"agent.py", helper.name, weights.name}  # pyright: ignore[reportUnknownArgumentType]
    assert (before["episodes"], known["source"]) == (1, "computed")
    helper.write_text("ACTION = 2")
    there = call("session", "resume", session, "--server", server.address)
    assert (there.exit_code, there.stderr.count("\n")) == (2, 1)
    assert "helper_of_a_test.py has other content" in there.stderr
    words = ["resume", session, "--agent", "builtin:scout", "--server", server.address]
    other = call("session", *words)
    assert other.exit_code == 2
    assert "has 1 episode of another agent" in other.stderr
    refused = run()
    assert refused.returncode == 2
    assert "helper_of_a_test.py has other content" in refused.stderr
    assert "--same-agent" in refused.stderr
    helper.write_text("ACTION = 1")
    weights.write_bytes(b"2")  # what only the first reset reads
    assert "weights.bin has other content" in run().stderr
    assert show() == before
    (tmp_path / "on.txt").write_text("")
    done = run("--same-agent")
    assert done.returncode == 0, done.stderr
    after = show()
    assert after["agent_fingerprint"] == known
    assert "weights.bin has other content" in str(after["agent_changes"])
    shown = call("session", "show", session, "--server", server.address)
    assert f"{str(known['digest'])[:8]} (computed" in shown.stdout  # pyright: ignore[reportUnknownArgumentType]


class Standing:
    """Stands still, and breaks off after so many episodes."""

    def __init__(self, episodes: int = 99) -> None:
        self.left = episodes

    def reset(self, info: animalcat.EpisodeInfo) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt

    def act(self, observation: animalcat.Observation) -> animalcat.Actions:
        return animalcat.Actions([0] * 50)


class Turning(Standing):
    """Another agent."""

    def act(self, observation: animalcat.Observation) -> animalcat.Actions:
        return animalcat.Actions([1] * 50)


def test_agents_in_memory_go_on_as_what_they_are(
    client: animalcat.Client, make_session: MakeSession
) -> None:
    session = make_session(max_episodes=4)
    agent = Standing(1)
    with pytest.raises(KeyboardInterrupt):
        client.evaluate(agent, session)
    for changes in ({}, {"fingerprint": animalcat.AgentFingerprint.declared("t", version="1")}):
        with pytest.raises(animalcat.AnimalcatError, match=r"episodes? of another agent"):
            client.evaluate(Turning(), session, **changes)  # pyright: ignore[reportArgumentType]
    with pytest.raises(KeyboardInterrupt):
        client.evaluate(agent, session)  # as play has left it
    agent.left = 7
    with pytest.raises(animalcat.AnimalcatError, match=r"self\.left has other content"):
        client.evaluate(agent, session)
    with pytest.raises(KeyboardInterrupt):
        client.evaluate(Standing(1), session)  # as it was when it began
    done = client.evaluate(Turning(), session, same_agent=True)
    assert done.state == "finished"
    found = client.get_session(session)
    assert found.identity.changes[0].startswith("from episode 2 on: ")
    profile = client.profile(session)
    assert profile["provenance"]["agent_changes"] == list(found.identity.changes)
    assert any("said to be the same" in label for label in profile["labels"])


def test_what_a_client_declares_is_known_again(
    client: animalcat.Client, make_session: MakeSession
) -> None:
    session = make_session(max_episodes=2)
    first = animalcat.AgentFingerprint.declared("ppo", version="7", options={"lr": 0.1})
    with pytest.raises(KeyboardInterrupt):
        client.evaluate(Standing(1), session, fingerprint=first)
    other = animalcat.AgentFingerprint.declared("ppo", version="7", options={"lr": 0.2})
    with pytest.raises(animalcat.AnimalcatError) as refused:
        client.evaluate(Standing(), session, fingerprint=other)
    assert refused.value.code == "AGENT_CHANGED"
    assert "lr is 0.2 and was 0.1" in str(refused.value)
    client.evaluate(Turning(), session, fingerprint=first)
    assert client.get_session(session).identity.fingerprint == first


def test_another_take_is_another_campaign(client: animalcat.Client, tmp_path: Path) -> None:
    def make(take: int | None = None) -> Campaign:
        agents = ("take.py:A", "builtin:random")
        return client.create_campaign(
            agents=agents, battery="navigation", budget=4, common=2, certify=False, take=take
        )

    first = make()
    assert make(1).id == first.id
    second = make(2)
    assert (second.id == first.id, second.spec.take) == (False, 2)
    assert not {one.id for one in first.sessions} & {one.id for one in second.sessions}
    check_campaign(first, same_agent=False)  # nobody came yet
    with pytest.raises(animalcat.AnimalcatError, match="take"):
        make(0)
