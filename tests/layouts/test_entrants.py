"""The benchmark of entrants: forms of layouts, chosen on one half and scored on the other."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.layouts.checking.baselines import ChosenLogistic, Logistic
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances, OutcomeTable
from benchmarks import entrants
from benchmarks.entrants import BEFORE, FORMER, NOW, formed, forms_scored, order_of_play, reached

NAMES = tuple(f"01-{task:02}-{variation:02}" for task in range(1, 25) for variation in (1, 2, 3))


@pytest.fixture(scope="module")
def table() -> OutcomeTable:
    """Twelve agents, of whom half master everything, on 24 tasks with three variations."""
    layout = load_layout("aaio")
    g = np.random.default_rng(4)
    values = np.column_stack(
        [g.uniform(5, 50, 72), g.uniform(0.5, 5, 72), g.choice([0, 0.5, 1], 72), np.zeros(72)]
    )
    instances = Instances(layout.feature_names, values, names=NAMES)
    theta = np.column_stack(
        [np.tile([8.0, 2.0], 6), np.full(12, 2.85), np.zeros(12), np.full(12, 0.02)]
    )
    evaluator = Evaluator(layout)
    outcomes = evaluator.simulate(theta, evaluator.columns(values), g).T
    return OutcomeTable(instances, tuple(f"agent {i}" for i in range(12)), outcomes)


def test_what_is_predicted_is_of_other_tasks_than_what_is_told() -> None:
    told, held = order_of_play(NAMES, 0, 1)
    assert sorted(told + held) == list(range(72))
    assert len(held) == 18
    assert not {NAMES[i][:5] for i in told} & {NAMES[i][:5] for i in held}
    assert order_of_play(NAMES, 0, 2)[1] != held


def test_forms_are_scored_and_one_is_chosen(
    table: OutcomeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entrants, "QUICK_DRAWS", 1000)
    rows = {row["name"]: row for row in forms_scored("aaio", load_layout("aaio"), table, True)}
    now, before = (rows[f"aaio, {form}: Brier score after 30"] for form in (NOW, BEFORE))
    assert now["value"] < before["value"]  # half of the agents are able
    assert now["low"] < now["value"] - now["baseline"] < now["high"]
    assert now["baseline"] == before["baseline"]
    assert len([name for name in rows if "mean of all three" in name]) == 14
    chosen = rows["aaio, chosen on one half, scored on the other"]
    assert chosen["note"].split(";")[0] in entrants.FORMS["aaio"]


def test_the_prior_describes_able_agents_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entrants, "QUICK_AGENTS", 2)
    monkeypatch.setattr(entrants, "PARTICLES", 300)
    layout = load_layout("one-capability")
    before = formed(layout, BEFORE, FORMER["one-capability"])
    instances = Instances(("difficulty",), np.linspace(0, 10, 101)[:, np.newaxis])
    rows = {row["name"]: row for row in reached(layout, before, instances, True)}
    able = rows["one-capability: chance of the prior above 0.9"]
    assert able["met"]
    assert able["baseline"] == 0.0
    passes = rows["one-capability: able, 0.98, expected to pass after 60"]
    assert passes["value"] > passes["baseline"]


def test_the_strength_of_a_ridge_is_chosen_by_what_was_told() -> None:
    g = np.random.default_rng(2)
    x = g.standard_normal((80, 6))
    instances = Instances(tuple("abcdef"), x)
    clear = (x[:, 0] + 0.3 * g.standard_normal(80) > 0).astype(float)
    chance = (g.random(80) < 0.5).astype(float)
    weak, strong = Logistic(penalty=1.0), Logistic(penalty=100.0)
    for outcomes, nearer, farther in ((clear, weak, strong), (chance, strong, weak)):
        chosen = ChosenLogistic().fit(instances, outcomes).predict(instances)
        apart = [
            np.abs(chosen - one.fit(instances, outcomes).predict(instances)).max()
            for one in (nearer, farther)
        ]
        assert apart[0] < apart[1]
    alone = ChosenLogistic(penalties=(3.0,)).fit(instances, clear).predict(instances)
    usual = Logistic(penalty=3.0).fit(instances, clear).predict(instances)
    np.testing.assert_allclose(alone, usual, atol=1e-2)
    same = ChosenLogistic().fit(instances, np.ones(80)).predict(instances)
    assert same[0] == pytest.approx(80.5 / 81.0)
