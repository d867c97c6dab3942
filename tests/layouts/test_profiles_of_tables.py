"""Pictures and comparisons of many profiles from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from animalcat.cli.main import build
from animalcat.plots import forest
from tests.things import covered_outcomes

ROOT = Path(__file__).resolve().parents[2]
CLASS = ROOT / "docs" / "examples" / "class.csv"


def run(*words: object) -> tuple[int, str, str]:
    line = [str(word) for word in words]
    done = CliRunner().invoke(build(line), line)
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--kind", "graph"), "takes draws and episodes: a session, or a file of"),
        (("--kind", "forest"), "of one agent; 30 are given. --agent NAME takes one"),
        (("--kind", "comparison", "--agent", "reader-2"), "--agent 'reader-2': there is none"),
        (("--kind", "comparison", "--agent", "reader-02"), "of several agents; only one is given"),
    ],
)
def test_what_profiles_alone_do_not_give_is_said(
    words: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    file, out = ROOT / "docs" / "data" / "gallery" / "class.json", tmp_path / "x.svg"
    code, _, said = run("profile", "plot", file, *words, "-o", out)
    assert (code, told in said, out.exists()) == (2, True, False), said


def test_agents_of_a_file_are_chosen(tmp_path: Path) -> None:
    out = tmp_path / "two.svg"
    file = ROOT / "docs" / "data" / "gallery" / "class.json"
    words = ("--agent", "reader-02", "--agent", "reader-05", "-o", out)
    assert run("profile", "plot", file, "--kind", "comparison", *words)[0] == 0
    assert str(file) in out.read_text()
    code, shown, said = run("profile", "compare", file)
    assert (code, "24 agents between" in shown, "hold no draws" in shown) == (0, True, True), said


PROFILES: list[dict[str, Any]] = json.loads(
    (ROOT / "docs" / "data" / "gallery" / "class.json").read_text()
)


def test_the_profile_of_a_table_is_drawn() -> None:
    one: Any = forest(PROFILES[1])
    assert one._suptitle.get_text() == "reader-02, 120 outcomes"


def test_columns_are_chosen_by_patterns() -> None:
    found = covered_outcomes(CLASS, ["reader-30", "reader-0*", "reader-02"], [])
    assert found.table.agents == ("reader-30", *(f"reader-0{k}" for k in range(1, 10)))
    with pytest.raises(ValueError, match="no column fits 'writer-"):
        covered_outcomes(CLASS, ["writer-*"], [])
