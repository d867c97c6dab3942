"""A group of persons beside an agent, from the command line: what is said, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import animalcat
from animalcat.cli.main import build
from animalcat.outcomes import write_outcomes

from .conftest import Server

pytestmark = pytest.mark.xdist_group("nuts")


class Walker:
    """Walks on, or turns at times."""

    def __init__(self, every: int) -> None:
        self._every, self._steps = every, 0

    def reset(self, info: object) -> None:
        self._steps = 0

    def act(self, observation: object) -> int:
        self._steps += 1
        return 3 if self._steps % self._every else 4


@pytest.fixture(scope="module")
def sessions(server: Server) -> dict[str, str]:
    """The agent, four persons, and two that were measured otherwise."""
    measured: dict[str, dict[str, Any]] = {
        "agent": {"camera": 16},
        **{f"p{k}": {"camera": 32} for k in range(4)},
        "way": {"camera": 32, "layout_variant": "by-way"},
        "slow": {"camera": 32, "decision_period": 5},
    }
    made: dict[str, str] = {}
    with animalcat.connect(server.address) as client:
        for k, (name, own) in enumerate(measured.items()):
            options: Any = {"battery": "navigation", "layout": "aaio", "max_episodes": 3, **own}
            session = client.create_session(agent=name, certify=False, seed=k, **options)
            client.evaluate(Walker(5 + k), session, name=name)
            made[name] = session.id
    return made


def run(server: Server, *words: str) -> Any:
    line = ["profile", "compare", *words, "--server", server.address]
    return CliRunner().invoke(build(line), line)


@pytest.mark.slow
def test_a_group_stands_beside_an_agent(
    server: Server, sessions: dict[str, str], tmp_path: Path
) -> None:
    people = [sessions[f"p{k}"] for k in range(4)]
    with animalcat.connect(server.address) as client:
        table = pd.concat([client.outcomes(person) for person in people[:3]])
    write_outcomes(table, tmp_path / "outcomes.csv")
    page = tmp_path / "group.html"
    words = ("--group", str(tmp_path / "outcomes.csv"), "--group", people[3], "--mixed", "--json")
    given = ("--within", "navigationAbility=500", "-o", str(page))
    told = run(server, sessions["agent"], *words, *given)
    assert told.exit_code == 0, told.stderr
    found = json.loads(told.stdout)
    assert "The observation differs (agent: camera of 16 pixels a side" in found["notes"][-1]
    assert "typical of 4 persons: camera of 32" in found["notes"][-1]
    (group,) = (one for one in found["agents"] if one["agent"] == "typical of 4 persons")
    assert group["episodes"] == 12
    assert any("nine of ten persons: navigationAbility" in label for label in group["labels"])
    behind = {row["node"]: row["behind"] for row in found["standings"] if row["behind"]}
    assert behind["navigationAbility"]["alike"] == 1.0  # nobody can differ by half a kilometre
    assert behind["navigationAbility"]["verdict"].endswith("alike within 500 m")
    assert behind["visualAbility"]["alike"] is None
    assert "typical of 4 persons" in page.read_text()


def test_what_is_no_group_is_refused_before_it_is_fitted(
    server: Server, sessions: dict[str, str], tmp_path: Path
) -> None:
    people = [sessions[f"p{k}"] for k in range(4)]
    group = tuple(word for person in people for word in ("--group", person))
    for words, said in (
        (group[:4], "3 persons at least; 2 given"),
        ((*group, "--group", sessions["way"]), "was measured with layout aaio (by-way, digest"),
        ((*group, "--group", sessions["slow"]), "The decision period differs"),
        ((*group, "--group", sessions["agent"], "--mixed"), "is one of the group"),
        ((*group, people[0]), "give one agent beside the group, not 2"),
        ((*group, "--within", "sight=1"), "no node 'sight' to be alike in"),
        ((*group, "--within", "noiseLevel=0"), "give more than 0"),
        ((*group, "--within", "noiseLevel"), "give a name and a number"),
        (("--group", str(tmp_path / "no.csv")), "No such file"),
    ):
        refused = run(server, sessions["agent"], *words)
        assert (refused.exit_code, said in refused.stderr) == (2, True), (words, refused.stderr)
