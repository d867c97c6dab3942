"""`animalcat arena solve` lists the arenas that the planner does not solve."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from animalcat.cli.arena.commands import app

ARENA = """\
!ArenaConfig
arenas:
  0: !Arena
    timeLimit: 60
    passMark: {mark}
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {{x: 20, y: 0, z: 20}}]
      rotations: [0]
    - !Item
      name: GoodGoal
      positions: [!Vector3 {{x: 20, y: 0, z: 26}}]
      sizes: [!Vector3 {{x: 1, y: 1, z: 1}}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, mark in (("easy", 0), ("never", 2)):
        (tmp_path / f"{name}.yml").write_text(ARENA.format(mark=mark))
    (tmp_path / "wrong.yml").write_text("!ArenaConfig {arenas: 3}\n")
    return tmp_path


def test_it_lists_what_is_not_solved(folder: Path) -> None:
    done = CliRunner().invoke(app, ["solve", str(folder)])
    assert done.exit_code == 1
    assert "no play returns more than the pass mark" in done.stdout
    assert "1 of 3 solved" in done.stdout
    assert "easy" not in done.stdout
    assert CliRunner().invoke(app, ["solve", str(folder / "easy.yml")]).exit_code == 0


def test_json_follows_its_schema(folder: Path) -> None:
    done = CliRunner().invoke(app, ["solve", str(folder), "--seeds", "2", "--json"])
    rows = json.loads(done.stdout)
    schema = json.loads((files("animalcat") / "schemas" / "arena_solve.schema.json").read_text())
    Draft202012Validator(schema).validate(rows)
    found = [(row["instance"], row["seed"], row["solved"]) for row in rows]
    assert found[:2] == [("easy", 0, True), ("easy", 1, True)]
    assert [row["episode_return"] for row in rows[-2:]] == [None, None]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["solve", str(tmp_path / "nowhere")])
    assert done.exit_code == 2
    assert "nowhere" in done.stderr
