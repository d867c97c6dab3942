"""The baselines that layouts are compared with."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from animalcat.layouts.checking import scores
from animalcat.layouts.checking.baselines import (
    GradientBoosting,
    Linear,
    Logistic,
    MissingPackageError,
    TabPFN,
)
from animalcat.layouts.checking.population import PopulationIRT
from animalcat.layouts.checking.predict import Assessor
from animalcat.layouts.model.instances import Instances, OutcomeTable


def instances(n: int, seed: int = 0) -> Instances:
    values = np.random.default_rng(seed).normal(size=(n, 2)) * [1.0, 100.0]
    return Instances(("near", "far"), values, names=tuple(f"i{k}" for k in range(n)))


def outcomes(p: np.ndarray, seed: int = 1) -> np.ndarray:
    return (np.random.default_rng(seed).uniform(size=p.shape) < p).astype(float)


def test_logistic_regression_finds_its_coefficients() -> None:
    x = instances(4000)
    p = 1 / (1 + np.exp(-(0.5 + 1.5 * x.column("near") - 0.01 * x.column("far"))))
    found = Logistic().fit(x, outcomes(p)).predict(x)
    assert np.abs(found - p).max() < 0.06
    # A feature that separates has an answer, and a constant one has no part.
    sure = Logistic().fit(x, (x.column("near") > 0).astype(float)).predict(x)
    assert np.isfinite(sure).all()
    assert scores.brier(sure, x.column("near") > 0) < 0.02
    flat = Instances(("near", "flat"), np.column_stack([x.column("near"), np.ones(4000)]))
    kept = Logistic().fit(flat, outcomes(p)).predict(flat)
    assert kept == pytest.approx(Logistic(("near",)).fit(x, outcomes(p)).predict(x), abs=1e-6)


def test_gradient_boosting_finds_what_a_line_cannot() -> None:
    pytest.importorskip("xgboost")
    x = instances(1500)
    p = np.where((x.column("near") > 0) == (x.column("far") > 0), 0.9, 0.1)
    y = outcomes(p)
    boosted = GradientBoosting().fit(x, y).predict(x)
    assert scores.brier(boosted, p) < 0.02 < 0.1 < scores.brier(Logistic().fit(x, y).predict(x), p)
    assert (GradientBoosting().fit(x, y).predict(x) == boosted).all()


@pytest.mark.parametrize(
    ("assessor", "words"),
    [(GradientBoosting(), r"pip install .*\[assessors\]"), (TabPFN(), "pip install tabpfn")],
)
def test_a_missing_package_is_named(
    assessor: Assessor, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("xgboost", "tabpfn"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingPackageError, match=words):
        assessor.fit(instances(4), np.array([0.0, 1.0, 1.0, 0.0]))


def test_a_missing_meta_feature_is_named() -> None:
    values = np.array([[1.0, 2.0], [3.0, np.nan]])
    for assessor in (Logistic(), Linear()):
        with pytest.raises(ValueError, match="meta-feature far of row 1 is missing"):
            assessor.fit(Instances(("near", "far"), values), np.array([0.0, 1.0]))


class TestPopulation:
    AGENTS = 60
    ITEMS = 80

    @pytest.fixture(scope="class")
    @classmethod
    def truth(cls) -> dict[str, np.ndarray]:
        generator = np.random.default_rng(4)
        slope, difficulty = generator.lognormal(0, 0.4, cls.ITEMS), generator.normal(size=cls.ITEMS)
        theta = generator.normal(size=cls.AGENTS)
        p = 1 / (1 + np.exp(-slope * (theta[:, np.newaxis] - difficulty)))
        return {"theta": theta, "difficulty": difficulty, "p": p, "y": outcomes(p)}

    def model(self, truth: dict[str, np.ndarray], agents: int) -> PopulationIRT:
        names = tuple(f"agent{k}" for k in range(agents))
        return PopulationIRT(OutcomeTable(instances(self.ITEMS), names, truth["y"][:agents]))

    def test_items_and_abilities_are_found(self, truth: dict[str, np.ndarray]) -> None:
        model = self.model(truth, 50)
        difficulty = model.items.difficulty
        assert np.corrcoef(difficulty, truth["difficulty"])[0, 1] > 0.9
        items = instances(self.ITEMS)
        found = [model.fit(items, truth["y"][a]) for a in range(50, 60)]
        theta = [f.ability[0] for f in found]
        assert np.corrcoef(theta, truth["theta"][50:])[0, 1] > 0.95
        assert all(0.1 < f.ability[1] < 0.6 for f in found)
        errors = [
            scores.rmse(f.predict(items), p) for f, p in zip(found, truth["p"][50:], strict=True)
        ]
        assert np.mean(errors) < 0.12

    def test_bad_input_is_named(self, truth: dict[str, np.ndarray]) -> None:
        with pytest.raises(ValueError, match="needs two agents"):
            self.model(truth, 1).fit(instances(2), np.ones(2))
        with pytest.raises(ValueError, match="takes outcomes 0 and 1"):
            self.model(truth, 5).fit(instances(2), np.array([0.5, 1.0]))
        with pytest.raises(ValueError, match="i80 is not among"):
            self.model(truth, 5).fit(instances(81), np.ones(81))
        nameless = Instances(("near",), np.zeros((3, 1)))
        with pytest.raises(ValueError, match="an instance without a name"):
            self.model(truth, 5).fit(nameless, np.ones(3))
        table = OutcomeTable(nameless, ("a", "b"), np.ones((2, 3)))
        with pytest.raises(ValueError, match="by their names"):
            PopulationIRT(table).fit(nameless, np.ones(3))
