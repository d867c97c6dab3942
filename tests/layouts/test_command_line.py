"""`animalcat layout`: list, show, fit; and the 30 real entrants of the Animal-AI Olympics."""

from __future__ import annotations

import csv
import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from scipy.stats import spearmanr
from typer.testing import Result

from animalcat.layouts.library import LAYOUTS, load_layout, variants
from animalcat.layouts.model.tables import TableError
from animalcat.outcomes import outcomes_bytes, read_outcomes
from benchmarks.papers.olympics import INSTANCES
from tests.command_line import call
from tests.things import covered_outcomes

# Means of navigationAbility and visualAbility and the success rate that Burden et al. 2023 print in
# Figure 9, for the entrants whose outcomes are in the data folder.
FIGURE_9 = {
    "AirbrainNM": (1.5, 1.32, 0.54),
    "Araya": (1.92, 0.55, 0.45),
    "ARF-RL": (4.63, 1.8, 0.88),
    "aSphericalChicken": (0.33, 0.22, 0.23),
    "bamasa_team": (0.35, 0.31, 0.26),
    "BLAI": (3.9, 1.73, 0.68),
    "Bonum": (4.29, 1.8, 0.88),
    "CHROMA": (3.84, 1.72, 0.78),
    "DeepFox": (4.64, 1.82, 0.93),
    "dhr": (0.36, 0.3, 0.26),
    "fep-bot": (0.67, 0.38, 0.32),
    "forest": (3.2, 1.79, 0.77),
    "GoGoAI": (4.01, 1.73, 0.75),
    "Gyutan": (4.19, 1.78, 0.83),
    "hhq126152": (0.36, 0.32, 0.26),
    "Horsepower": (2.94, 1.71, 0.72),
    "ice-play": (0.1, 0.13, 0.04),
    "INAOE1": (2.44, 1.74, 0.7),
    "ironbar": (4.88, 1.84, 0.99),
    "KMU-AIL": (3.55, 1.52, 0.64),
    "Koozyt_Hiperdyne": (1.97, 0.8, 0.49),
    "MadStorks": (0.39, 0.32, 0.28),
    "mmIA": (4.78, 1.83, 0.93),
    "Oltau.ai/Psidon": (4.75, 1.85, 0.99),
    "oreleus": (4.73, 1.84, 0.96),
    "Qodiak": (4.15, 1.63, 0.72),
    "Tetravoxel": (0.25, 0.39, 0.25),
    "TheAnimalsEscapedFromPenn": (2.18, 0.44, 0.45),
    "Thursday": (0.71, 0.34, 0.3),
    "y.yang": (3.82, 1.68, 0.7),
}

ARENA = """!ArenaConfig
arenas:
  0: !Arena
    timeLimit: 250
    passMark: 0
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {x: 20, y: 0, z: 5}]
      rotations: [0]
    - !Item
      name: GoodGoal
      positions: [!Vector3 {x: 20, y: 0, z: 15}]
      sizes: [!Vector3 {x: 1, y: 1, z: 1}]
"""


def run(*arguments: object) -> Result:
    return call("layout", *arguments)


def schema() -> dict[str, Any]:
    path = resources.files("animalcat") / "schemas" / "layout_fit.schema.json"
    return json.loads(path.read_text("utf-8"))


def test_list() -> None:
    rows = json.loads(run("show", "--json").stdout)
    assert [(row["name"], row["variant"]) for row in rows] == [
        (name, variant) for name in LAYOUTS for variant in variants(name)
    ]
    assert rows[0]["capabilities"] == ["navigationAbility", "visualAbility"]
    assert "as-printed" in run("show").stdout


def test_show() -> None:
    text = run("show", "aaio").stdout
    for word in ("navigationAbility", "Uniform(0, 8)", "15 m", "logistic(1.302", "lava above 0"):
        assert word in text
    assert "10 m" in run("show", "aaio", "--variant", "scaled").stdout
    assert "logistic(1 x" in run("show", "aaio", "--variant", "as-printed").stdout
    data = json.loads(run("show", "aaio", "--json").stdout)
    assert data["derived"]["taskPerformance"]["link"]["noise_mixture"]["nu"] == 0.5
    assert "fine where occluderPresence is 0" in run("show", "object-permanence").stdout
    for wrong in (("show", "aiao"), ("show", "none.yaml"), ("show", "aaio", "--variant", "steep")):
        result = run(*wrong)
        assert result.exit_code == 2
        assert "valid: " in result.stderr or "No such file" in result.stderr


def test_a_layout_of_ones_own_is_shown_and_drawn(tmp_path: Path) -> None:
    text = (resources.files("animalcat") / "layouts/library/one-capability.yaml").read_text("utf-8")
    own = tmp_path / "own.yaml"
    own.write_text(text.replace("name: one-capability", "name: mine"))
    assert run("show", own).stdout.startswith("mine (success)")
    drawn = run("show", own, "--variant", "trials", "-o", tmp_path / "own.svg")
    assert (drawn.stdout, drawn.stderr) == ("", f"graph -> {tmp_path / 'own.svg'}\n")
    assert "trials" in (tmp_path / "own.svg").read_text()
    assert run("show", own, "-o", tmp_path / "own.doc").exit_code == 2
    own.write_text(text.replace("demand: difficulty", "demand: dificulty"))
    wrong = run("show", own)
    assert wrong.exit_code == 2
    for word in ("own.yaml", "node performance", "'dificulty'", "difficulty"):
        assert word in wrong.stderr
    alone = run("show", "docs/examples/garden.yaml").stdout
    assert alone.startswith("garden: ")
    assert "Variants" not in alone
    own.write_text("features: [")
    assert "own.yaml:1: " in run("show", own).stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "battery").mkdir()
    (tmp_path / "battery" / "01-01-01.yaml").write_text(ARENA)
    (tmp_path / "battery" / "01-02-01.yml").write_text(ARENA.replace("z: 15", "z: 35"))
    (tmp_path / "out.csv").write_text("instance,me,you\n01-01-01,0.9,\n01-02-01,-1,0.5\n")
    (tmp_path / "marks.csv").write_text("instance,pass_mark\n01-01-01,0\n01-02-01,0\n")
    return tmp_path


def fit(folder: Path, *more: object) -> Result:
    given = ["--battery", folder / "battery", "--outcomes", folder / "out.csv"]
    return run("fit", "aaio", *given, "--pass-marks", folder / "marks.csv", *more)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("out.csv", None, "out.csv: No such file"),
        ("out.csv", "task,me\n01-01-01,1\n", "no column `instance`"),
        ("out.csv", "", "the table is empty"),
        ("out.csv", "instance\n01-01-01\n", "no agent 'me'; agents: ."),
        ("out.csv", "instance,me\n01-01-01,good\n", "column me: 'good' is not a finite number"),
        ("out.csv", "instance,me\n01-01-01,nan\n", "not a finite number"),
        ("out.csv", "instance,me\n01-01-01,inf\n", "not a finite number"),
        ("out.csv", "instance,me\n01-01-01,1\n01-01-01,1\n", "01-01-01 has 2 rows"),
        ("out.csv", "instance,me\n99-01-01,1\n", "no arena file of an instance with outcomes"),
        ("out.csv", "instance,you\n01-01-01,1\n", "no agent 'me'; agents: you"),
        ("marks.csv", "instance,pass_mark\n01-01-01,0\n", "01-02-01 has no pass mark"),
        ("marks.csv", "instance,mark\n01-01-01,0\n", "no column `pass_mark`"),
        ("battery/01-01-01.yaml", "!ArenaConfig {arenas: [", "01-01-01.yaml"),
    ],
)
def test_bad_input_is_named(folder: Path, file: str, content: str | None, words: str) -> None:
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content)
    result = fit(folder, "--agent", "me")
    assert result.exit_code == 2
    assert words in result.stderr


def test_instances_that_are_not_covered_are_told_by_reason(folder: Path) -> None:
    for file in (folder / "battery").iterdir():
        file.write_text(ARENA.replace("GoodGoal", "Wall"))
    (folder / "out.csv").write_text("instance,me\n01-01-01,-1\n01-02-01,-1.5\n")
    result = fit(folder, "--agent", "me")
    assert result.exit_code == 2
    words = "aaio covers none of the instances with outcomes: 2 of 2: no play can pass it"
    assert words in result.stderr


@pytest.mark.slow
def test_fit_of_a_small_table(folder: Path) -> None:
    result = fit(folder, "--json", "-o", folder / "fit.json")
    assert result.exit_code == 0, result.output
    assert "fitting aaio (metres-15) to me: 0 of 2" in result.stderr
    assert f"2 profiles -> {folder / 'fit.json'}" in result.stderr
    entries = json.loads(result.stdout)
    assert json.loads((folder / "fit.json").read_text()) == entries
    jsonschema.validate(entries, schema())
    counts = [(e["agent"], e["successes"], e["instances"]) for e in entries]
    assert counts == [("me", 1, 2), ("you", 1, 1)]


def test_exported_outcomes_are_a_table_for_layouts(tmp_path: Path) -> None:
    text = (
        "instance,paradigm,outcome,agent,goalSize [m]\n"
        "a,p,success,me,1.5\nb,p,failure,me,2\na,p,fault,me,1.5\na,p,failure,you,1.5\n"
    )
    content = outcomes_bytes(read_outcomes(text.encode()), "parquet")
    (tmp_path / "mine.parquet").write_bytes(content)
    layout = load_layout("one-capability")
    found = covered_outcomes(tmp_path / "mine.parquet", [], [layout])
    assert found.notes == (
        "left out 1 of 4 rows as no evidence: 1 fault",
        "no difficulty: 5 is taken (if_missing)",
    )
    table = found.table
    assert table.agents == ("me", "you")
    played, y = table.of("me")
    assert (played.names, y.tolist()) == (("a", "b"), [1.0, 0.0])
    assert played.column("goalSize").tolist() == [1.5, 2.0]
    yours = covered_outcomes(tmp_path / "mine.parquet", ["you"], [layout]).table
    assert yours.of("you")[1].tolist() == [0.0]
    with pytest.raises(TableError, match="no agent 'her'; agents: me, you"):
        covered_outcomes(tmp_path / "mine.parquet", ["her"], [layout])


@pytest.mark.slow
@pytest.mark.data
def test_the_real_entrants_come_out_in_the_order_of_figure_9(
    data_dir: Path, tmp_path: Path
) -> None:
    aaio = data_dir / "aaio"
    # The figure is of the paper's instances; the layout covers a few others beside them.
    head, *rows = (aaio / "final_rewards.csv").read_text().splitlines()
    paper = [row for row in rows if row.split(",")[0] in INSTANCES]
    (tmp_path / "outcomes.csv").write_text("\n".join((head, *paper)))
    result = run(
        "fit",
        "aaio",
        *("--variant", "figure-9"),
        *("--battery", data_dir / "animal-ai-competition"),
        *("--outcomes", tmp_path / "outcomes.csv"),
        *("--pass-marks", aaio / "pass_marks.csv"),
        "--json",
    )
    assert result.exit_code == 0, result.output
    entries = {entry["agent"]: entry for entry in json.loads(result.stdout)}
    jsonschema.validate(list(entries.values()), schema())
    assert entries.keys() == FIGURE_9.keys()
    with (aaio / "final_rewards.csv").open() as file:
        assert next(csv.reader(file))[1:] == list(entries)
    for name, (_, _, rate) in FIGURE_9.items():
        entry = entries[name]
        assert entry["instances"] == 69
        assert entry["diagnostics"]["converged"]
        assert any(note.startswith("no chance: 1 less the average") for note in entry["notes"])
        assert entry["successes"] / 69 == pytest.approx(rate, abs=0.0051)
    for column, node in ((0, "navigationAbility"), (1, "visualAbility")):
        ours = [entries[name]["nodes"][node]["mean"] for name in FIGURE_9]
        theirs = [row[column] for row in FIGURE_9.values()]
        assert spearmanr(ours, theirs).statistic >= 0.9, node
