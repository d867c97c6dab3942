"""A layout beside assessors that do not explain, and pictures of many profiles from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from animalcat.cli.layout.outcomes import covered_outcomes
from animalcat.cli.main import build
from animalcat.layouts import Assessment, assess
from animalcat.plots import assessors, forest

ROOT = Path(__file__).resolve().parents[2]
READING, CLASS = (ROOT / "docs" / "examples" / name for name in ("reading.yaml", "class.csv"))
READERS = ["reader-02", "reader-05", "reader-04", "reader-21"]


def run(*words: object) -> tuple[int, str, str]:
    line = [str(word) for word in words]
    done = CliRunner().invoke(build(line), line)
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture(scope="module")
def assessed() -> Assessment:
    return assess(READING, pd.read_csv(CLASS), READERS, repeats=1)


def test_all_assessors_predict_the_same_outcomes(assessed: Assessment) -> None:
    names = [score.name for score in assessed.scores]
    assert names[:3] == ["reading (plain)", "aggregate", "logistic regression"]
    assert names[-1] == "population IRT (2PL)"
    layout, aggregate, *_ = assessed.scores
    assert layout.behind is None
    assert aggregate.behind is not None
    gap = aggregate.brier - layout.brier
    assert aggregate.behind.low < aggregate.behind.value < aggregate.behind.high
    assert aggregate.behind.value == pytest.approx(gap)
    assert gap > 0.01  # the readers are of the layout's own prior
    frame = pd.read_csv(CLASS)
    for score in assessed.scores:
        assert [one.agent for one in score.agents] == READERS
        assert [one.passed for one in score.agents] == pytest.approx(list(frame[READERS].mean()))
        assert np.mean([one.brier for one in score.agents]) == pytest.approx(score.brier)
        assert score.calibration + score.refinement == pytest.approx(score.brier)
    assert any("population model is told what the other agents did" in n for n in assessed.notes)
    assert assessed.screening is not None
    assert assessed.screening.kept == ("words", "facts")
    assert len(assessed.to_frame()) == len(READERS) * len(names)


def test_what_an_agent_lacks_is_left_out() -> None:
    frame = pd.read_csv(CLASS)
    frame.loc[5:, "reader-05"] = np.nan
    found = assess(READING, frame, ["reader-02", "reader-05"], repeats=1)
    assert [one.agent for one in found.scores[0].agents] == ["reader-02"]
    assert found.notes[0] == "reader-05 is left out: it has 5 outcomes, and 10 are needed."
    assert "population IRT (2PL)" not in [score.name for score in found.scores]
    frame = frame.assign(**{"reader-02": 1})  # nothing to screen by
    assert assess(READING, frame, ["reader-02"], repeats=1).screening is None
    with pytest.raises(ValueError, match="no agent has 10 outcomes or more"):
        assess(READING, frame.head(4), ["reader-02"])
    with pytest.raises(TypeError, match="give what assess"):
        assessors({})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


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
