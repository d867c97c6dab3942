"""The layout of the whole testbed, and how it is compared with rates and regressions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from animalcat.arena_configs.features import FEATURES
from animalcat.layouts.checking.baselines import Aggregate
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.library import load_layout, variants
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.measuring import Plan, measure_files
from animalcat.service.measuring.coverage import check_units
from benchmarks.reproduce.__main__ import app
from benchmarks.reproduce.testbed import (
    CategoryRate,
    EntrantResult,
    by_category,
    by_task,
    category_of,
    compare,
    in_the_middle,
    task_of,
    told_apart,
    with_categories,
    work_on,
    work_out,
)
from benchmarks.reproduce.testbed_report import print_testbed

LAYOUT = load_layout("testbed")
PLAIN = {
    "lavaToAvoid": 0.0,
    "raisedRewards": 0.0,
    "rewards": 1.0,
    "endingRewards": 1.0,
    "darkness": 0.0,
    "wayLength": 0.0,
    "goalSize": 5.0,
    "mustPush": 0.0,
}
"""A large goal right here; what it does not name is missing."""
PERFECT = {
    node.name: 0.0 if node.kind == "robustness" else node.prior.high for node in LAYOUT.latents
}


def passed(arena: Mapping[str, float | None], **agent: float) -> float:
    """Probability of success of an agent that is perfect but for what is given."""
    known = {key: value for key, value in {**PLAIN, **arena}.items() if value is not None}
    row = [known.get(name, np.nan) for name in LAYOUT.feature_names]
    theta = [{**PERFECT, **agent}[name] for name in LAYOUT.latent_names]
    return float(Evaluator(LAYOUT).probability([theta], [row])[0, 0])


def test_its_demands_are_measured_ones() -> None:
    check_units(LAYOUT, {})
    assert set(LAYOUT.feature_names) <= set(FEATURES)
    for feature in LAYOUT.features:
        measured = FEATURES[feature.name]
        assert measured.low <= feature.low
        assert feature.high <= measured.high
    assert variants("testbed") == ("graded", "flat")


@pytest.mark.parametrize(
    ("arena", "node", "without"),
    [
        ({"rampNeeded": 1}, "rampAbility", 0.0),
        ({"platformNeeded": 1}, "platformAbility", 0.0),
        ({"lavaToAvoid": 1}, "avoidanceAbility", 0.0),
        ({"hotOnWay": 2}, "avoidanceAbility", 0.0),
        ({"goalSeen": 0}, "searchAbility", 0.0),
        ({"choiceWays": 2, "choiceRight": 1}, "choiceAbility", 0.5),
        ({"choiceWays": 4, "choiceRight": 3}, "choiceAbility", 0.75),
        ({"hiddenStanding": 1.5}, "trackingAbility", 0.0),
        ({"raisedRewards": 1}, "trackingAbility", 0.0),
        ({"mustPush": 1}, "pushAbility", 0.0),
        ({"mustPush": None, "wayLength": None}, "pushAbility", 0.0),
        ({"darkness": 0.3}, "darknessAbility", 0.0),
        ({"rewards": 2}, "patienceAbility", 0.0),
    ],
)
def test_a_demand_asks_for_its_ability(
    arena: Mapping[str, float | None], node: str, without: float
) -> None:
    assert passed(arena) > 0.98
    assert passed(arena, **{node: 0.0}) == pytest.approx(without, abs=0.01)
    assert passed({}, **{node: 0.0}) > 0.98


def test_graded_demands() -> None:
    assert passed({"wayLength": 40}, navigationAbility=4) == pytest.approx(0.5, abs=0.01)
    assert passed({"wayLength": 20}, navigationAbility=4) > 0.85
    assert passed({"goalSize": 0.625}, visualAbility=3) == pytest.approx(0.5, abs=0.01)
    bend = {"wayTurns": 1.0, "detour": 1.5}
    assert passed({**bend, "glassInSight": 1.0}, detourAbility=1.5) < 0.5
    assert passed(bend, detourAbility=1.5) > 0.5
    assert passed({"detour": 1.001}, detourAbility=0) > 0.98
    heap = {"rewards": 4, "endingRewards": 0}
    assert passed(heap, collectingAbility=2) == pytest.approx(0.5, abs=0.01)
    assert passed({"endingRewards": 0}, collectingAbility=0) == pytest.approx(0.5, abs=0.01)
    # Of two rewards that end the episode one is taken: nothing is to be collected, none waits.
    two = {"rewards": 2, "endingRewards": 2}
    assert passed(two, collectingAbility=0, patienceAbility=0) > 0.98


def test_an_arena_without_rewards_asks_for_nothing_on_the_way() -> None:
    nothing = {"rewards": 0.0, "endingRewards": 0.0} | dict.fromkeys(
        ("wayLength", "goalSize", "mustPush"), None
    )
    assert passed(nothing, navigationAbility=4, visualAbility=4, pushAbility=0) > 0.95


def silent(done: int, total: int) -> None:
    """Progress that nobody looks at."""


@pytest.mark.data
def test_it_covers_all_categories(data_dir: Path) -> None:
    folder = data_dir / "animal-ai-competition"
    files = [
        next(folder.rglob(f"{category:02}-{task:02}-01.y*ml"))
        for category, task in ((1, 24), (2, 9), (9, 13), (10, 3))
    ]
    rows = measure_files(files, Plan(0, "animalcat", "4.x"), processes=1, cache=None, tick=silent)
    for row in rows:
        assert row.features is not None
        assert LAYOUT.why_not(row.features, row.missing) == ""
    push = [row.features is not None and "mustPush" not in row.features for row in rows]
    assert push[-1]  # no safe way


NAMES = tuple(
    f"{category:02}-{task:02}-{variation:02}"
    for category in (1, 2, 3)
    for task in range(1, 11)
    for variation in (1, 2)
)


def test_variations_of_a_task_stay_together() -> None:
    assert (task_of("03-12-01"), category_of("03-12-01")) == ("03-12", "03")
    parts = by_task(NAMES, seed=4, repeats=5)
    tasks = np.array([task_of(name) for name in NAMES])
    held = [frozenset(tasks[part.test]) for part in parts]
    assert len(set(held)) > 1
    for part, out in zip(parts, held, strict=True):
        assert not out & set(tasks[part.train])
        assert len(part.train) + len(part.test) == len(NAMES)
        assert sorted(category_of(task) for task in out) == ["01", "01", "02", "02", "03", "03"]
    whole = by_category(NAMES)
    assert [{NAMES[row][:2] for row in part.test} for part in whole] == [{"01"}, {"02"}, {"03"}]
    assert all(len(part.train) == 40 for part in whole)


def test_rate_by_category() -> None:
    instances = Instances(("x",), np.zeros((4, 1)), ("01", "01", "02", "03"))
    fitted = CategoryRate().fit(instances.rows([0, 1, 2]), np.array([1.0, 0.0, 1.0]))
    np.testing.assert_allclose(fitted.predict(instances), [0.5, 0.5, 1.0, 2 / 3])


def test_compare_is_paired() -> None:
    scores = [{"ours": 0.1, "rate": 0.2}, {"ours": 0.2, "rate": 0.26}, {"ours": 0.3, "rate": 0.3}]
    found = compare(scores)
    (rate,) = found.others
    assert (found.entrants, found.layout) == (3, pytest.approx(0.2))
    assert rate.difference == pytest.approx(-0.16 / 3)
    # Student's t with 2 degrees of freedom: 2.92 for 90 %.
    half = 2.91999 * np.std([-0.1, -0.06, 0.0], ddof=1) / np.sqrt(3)
    assert rate.high - rate.difference == pytest.approx(half, rel=1e-4)
    assert rate.better == 2
    with pytest.raises(ValueError, match="1 entrants"):
        compare(scores[:1])


@pytest.fixture(scope="module")
def table() -> OutcomeTable:
    """Three simulated entrants on 60 arenas: lava in the second category, ramps in the third."""
    generator = np.random.default_rng(0)
    n = len(NAMES)
    values = dict.fromkeys(LAYOUT.feature_names, np.full(n, np.nan))
    values |= {key: np.full(n, value) for key, value in PLAIN.items()}
    category = np.array([category_of(name) for name in NAMES])
    values["wayLength"] = generator.uniform(2, 60, n)
    values["goalSize"] = generator.choice([0.5, 1.0, 3.0], n)
    values["lavaToAvoid"] = (category == "02").astype(float)
    values["rampNeeded"] = (category == "03").astype(float)
    features = np.stack([values[name] for name in LAYOUT.feature_names], axis=1)
    agents = [
        {"navigationAbility": 4.0},
        {"navigationAbility": 6.0, "rampAbility": 0.0, "visualAbility": 4.0},
        {"navigationAbility": 3.0, "avoidanceAbility": 0.1},
    ]
    theta = [[{**PERFECT, **one}[name] for name in LAYOUT.latent_names] for one in agents]
    p = Evaluator(LAYOUT).probability(theta, features)
    outcomes = (generator.random(p.shape) < p).astype(float)
    instances = Instances(LAYOUT.feature_names, features, names=NAMES)
    return OutcomeTable(instances, ("far", "flat", "bold"), outcomes)


@pytest.fixture(scope="module")
def worked(table: OutcomeTable) -> list[EntrantResult]:
    pytest.importorskip("xgboost")
    return work_out(work_on(LAYOUT, table, 3, repeats=2, particles=300))


def test_simulated_entrants_are_predicted(worked: list[EntrantResult]) -> None:
    found = compare([one.scores.by_task for one in worked])
    assert [one.name for one in found.others] == [
        *("aggregate rate", "rate by category", "logistic regression", "gradient boosting")
    ]
    assert found.layout < found.others[0].score - 0.03
    for one in worked:
        scores = one.scores
        assert set(scores.each_category) == {"01", "02", "03"}
        mean = np.mean([of["testbed (graded)"] for of in scores.each_category.values()])
        assert scores.by_category["testbed (graded)"] == pytest.approx(mean)  # of equal size
        # A category that is held out has no rate of its own.
        assert scores.by_category["rate by category"] == scores.by_category["aggregate rate"]
    assert [one.scores.name for one in in_the_middle(worked)] == [
        one.scores.name for one in worked if 0.2 <= one.scores.success <= 0.7
    ]


def test_scores_follow_from_the_seed(table: OutcomeTable, worked: list[EntrantResult]) -> None:
    tasks = work_on(LAYOUT, table, 3, repeats=2, particles=300)
    (again,) = work_out(tasks[1:2])
    assert again.scores == worked[1].scores
    np.testing.assert_array_equal(again.covariance, worked[1].covariance)


def test_which_nodes_are_told_apart(table: OutcomeTable, worked: list[EntrantResult]) -> None:
    nodes, pairs = told_apart(LAYOUT, with_categories(table.instances, LAYOUT), worked)
    known = {node.node: node for node in nodes}
    assert tuple(known) == LAYOUT.latent_names
    assert known["rampAbility"].arenas == known["avoidanceAbility"].arenas == 20
    assert known["darknessAbility"].arenas == known["choiceAbility"].arenas == 0
    assert known["navigationAbility"].contraction > 0.5
    assert abs(known["darknessAbility"].contraction) < 0.3
    assert len(pairs) == 14 * 13 // 2
    sizes = [abs(pair.correlation) for pair in pairs]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] <= 1.0


def test_tables_that_do_not_fit_are_named(table: OutcomeTable) -> None:
    few = table.instances.rows(np.arange(20))
    one = OutcomeTable(few, ("far",), table.outcomes[:1, :20])
    with pytest.raises(ValueError, match="far: arenas of one category only"):
        work_on(LAYOUT, one, 0)
    nameless = Instances(table.instances.columns, table.instances.values)
    with pytest.raises(ValueError, match="arenas need names"):
        with_categories(nameless, LAYOUT)
    assert Aggregate("x").name == "x"


ARENA = """!ArenaConfig
arenas:
  0: !Arena
    t: 250
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {x: 20, y: 0, z: 5}]
      rotations: [0]
    - !Item
      name: NAME
      positions: [!Vector3 {x: 20, y: 0, z: FAR}]
      sizes: [!Vector3 {x: SIZE, y: SIZE, z: SIZE}]
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two categories of three tasks with two variations, and three entrants."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "animal-ai-competition"
    folder.mkdir()
    (tmp_path / "aaio").mkdir()
    rewards, marks = ["instance,near,far,none"], ["instance,pass_mark"]
    for category, goal in (("01", "GoodGoal"), ("02", "GoodGoalMulti")):
        for task, far in (("01", 10), ("02", 20), ("03", 35)):
            for variation, size in (("01", 1), ("02", 3)):
                name = f"{category}-{task}-{variation}"
                text = ARENA.replace("NAME", goal).replace("FAR", str(far))
                (folder / f"{name}.yaml").write_text(text.replace("SIZE", str(size)))
                rewards.append(f"{name},{0.9 if far < 30 else -1},0.9,-1")
                marks.append(f"{name},0")
    rewards.append("03-01-01,1,1,1")  # no file
    (tmp_path / "aaio" / "final_rewards.csv").write_text("\n".join(rewards) + "\n")
    (tmp_path / "aaio" / "pass_marks.csv").write_text("\n".join(marks) + "\n")
    return tmp_path


def test_the_command(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("xgboost")
    given = ["testbed", "--data", data, "--quick", "--processes", 1, "--repeats", 1]
    result = run(*given, "--json", "-o", data / "report.json")
    assert result.exit_code == 0, result.output
    report: dict[str, Any] = json.loads(result.stdout)
    assert report == json.loads((data / "report.json").read_text())
    assert (report["arenas"], report["splits"], report["quick"]) == (12, 1, True)
    assert report["layout"]["digest"] == LAYOUT.digest
    assert [one["name"] for one in report["entrants"]] == ["none", "near", "far"]
    assert [one["success"] for one in report["entrants"]] == pytest.approx([0.0, 2 / 3, 1.0])
    assert set(report["categories"]) == {"01", "02"}
    assert set(report["by_task"]) == {"all", "others"}  # one alone is between 0.2 and 0.7
    print_testbed(report)
    shown = capsys.readouterr().out
    for words in ("all entrants (3)", "testbed (graded)", "rate by category", "navigationAbility"):
        assert words in shown
