"""The alarm: silent while the layout is right, raised and pointing where it is wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import expit, logit

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.watching.alarm import (
    LEVEL,
    QUIET,
    SHIFTS,
    TILTS,
    Alarm,
    ScoredPrediction,
    log_factors,
)
from animalcat.layouts.watching.strata import known_stratifications, stratifications

Floats = npt.NDArray[np.float64]
Draw = Callable[[int, int], Floats]

PARADIGMS = ("a", "b", "c", "d")


def bets(predicted: float, success: bool) -> Floats:
    shifted = expit(logit(predicted) + SHIFTS)
    return np.log(shifted / predicted if success else (1 - shifted) / (1 - predicted))


def tell(alarm: Alarm, row: int, predicted: float, *, passed: bool) -> None:
    alarm.update(row, bets(predicted, passed), ScoredPrediction(predicted, float(passed)))


def watch(
    seed: int, truth: Callable[[int, int], float], predicted: float, episodes: int = 200
) -> Alarm:
    """An alarm that saw predictions of one value while success had its own, by row and episode."""
    generator = np.random.default_rng(seed)
    alarm = Alarm(
        stratifications([PARADIGMS[i % 4] for i in range(40)], {"size": np.arange(40) % 10})
    )
    for episode in range(episodes):
        row = int(generator.integers(40))
        tell(alarm, row, predicted, passed=generator.random() < truth(row, episode))
    return alarm


def test_no_bet_is_expected_to_win_when_the_prediction_is_true() -> None:
    for p in (0.02, 0.5, 0.9):
        expected = p * np.exp(bets(p, True)) + (1 - p) * np.exp(bets(p, False))
        np.testing.assert_allclose(expected, 1.0)


def test_a_paradigm_that_is_failed_is_found_and_named() -> None:
    alarm = watch(0, lambda row, episode: 0.1 if row % 4 == 2 else 0.7, 0.7)
    assert alarm.raised_at is not None
    assert alarm.raised_at < 100
    suspect = alarm.suspects()[0]
    assert (suspect.stratification, suspect.stratum, suspect.more) == ("paradigm", "c", False)
    assert suspect.evidence > LEVEL


def test_what_it_names_is_dated_by_the_numbers_that_episodes_have() -> None:
    """Repeats and episodes in which nothing was observed are among them."""
    alarm = Alarm()
    for k in range(120):
        passed = k < 48 and k % 10 < 7
        alarm.update(0, bets(0.7, passed), ScoredPrediction(0.7, float(passed)), 3 * k)
    assert alarm.raised_at is not None
    assert alarm.raised_at % 3 == 0
    assert alarm.raised_at >= 3 * 48
    wheres = [one.where for one in alarm.suspects() if one.where.startswith("after episode")]
    assert f"after episode {3 * 47}" in wheres  # from the 49th that it was told of


def test_the_first_outcomes_count_for_nothing() -> None:
    alarm = Alarm(stratifications(PARADIGMS, {}))
    for _ in range(QUIET):
        tell(alarm, 0, 0.01, passed=True)
    assert alarm.evidence == pytest.approx(1.0)
    tell(alarm, 0, 0.01, passed=True)
    assert alarm.evidence > 1.0


def test_it_stays_raised() -> None:
    alarm = watch(3, lambda row, episode: 0.0, 0.7, 60)
    at = alarm.raised_at
    assert at is not None
    for _ in range(400):
        tell(alarm, 0, 0.7, passed=True)
        tell(alarm, 1, 0.7, passed=False)
    assert alarm.raised
    assert alarm.raised_at == at


def test_strata_of_meta_features() -> None:
    redness = np.array([0, 0, 0, 0, 10, 20, 30, 40, 50, 60, 70, np.nan])
    (scheme,) = stratifications(["one"] * 12, {"redness": redness, "constant": np.ones(12)})
    assert scheme.strata[0] == "0"
    assert len(scheme.strata) == 4
    assert set(scheme.labels[:4]) == {0}
    assert scheme.labels[-1] == -1, "a missing value is no stratum"
    sizes = np.bincount(scheme.labels[4:-1], minlength=4)[1:]
    assert sizes.min() >= 2


def test_factors_follow_the_prediction(aaio: Layout, draw_instances: Draw) -> None:
    posterior, evaluator = LivePosterior(aaio, 3, particles=500), Evaluator(aaio)
    features = draw_instances(1, 4)
    columns = evaluator.columns(features)
    predicted = float(
        posterior.weights @ evaluator.probability(posterior.particles, features)[:, 0]
    )
    for y in (0.0, 1.0):
        found = log_factors(posterior, evaluator, columns, y, 1)
        np.testing.assert_allclose(found, bets(predicted, bool(y)), rtol=1e-9)


def test_scores_have_bets_that_are_expected_to_win_nothing() -> None:
    layout = load_layout("melting-pot")
    posterior, evaluator = LivePosterior(layout, 1, particles=500), Evaluator(layout)
    columns = evaluator.columns(np.array([[f.high for f in layout.features]]))
    generator = np.random.default_rng(0)
    chosen = generator.choice(len(posterior.particles), 400, p=posterior.weights)
    scores = evaluator.simulate(posterior.particles[chosen], columns, generator).ravel()
    factors = np.exp(
        [log_factors(posterior, evaluator, columns, float(y), i) for i, y in enumerate(scores)]
    )
    assert factors.shape == (400, len(TILTS))
    error = factors.std(axis=0) / np.sqrt(len(factors))
    assert (np.abs(factors.mean(axis=0) - 1.0) < 4.0 * error).all()


def knowledge_of(
    seed: int, truth: Callable[[int, int, bool], float], episodes: int = 240, predicted: float = 0.6
) -> Alarm:
    """An alarm on two known features, where predictions are of one value."""
    generator = np.random.default_rng(seed)
    lava, ramp = np.arange(40) % 2, np.arange(40) // 2 % 2
    ways = known_stratifications({"lava": lava.astype(float), "ramp": ramp.astype(float)})
    alarm = Alarm((*stratifications([PARADIGMS[i % 3] for i in range(40)], {}), *ways))
    failed = False
    for episode in range(episodes):
        row = int(generator.integers(40))
        passed = bool(generator.random() < truth(row, episode, failed))
        failed = not passed
        tell(alarm, row, predicted, passed=passed)
    return alarm


@pytest.mark.parametrize("sessions", [20, pytest.param(80, marks=pytest.mark.slow)])
def test_true_predictions_hardly_ever_raise_it_by_known_features_either(sessions: int) -> None:
    raised = [
        knowledge_of(seed, lambda row, episode, failed: 0.6, 80).raised for seed in range(sessions)
    ]
    assert sum(raised) <= sessions / 20


def test_a_pair_of_known_features_is_named_with_its_figures() -> None:
    alarm = knowledge_of(1, lambda row, episode, failed: 0.1 if row % 4 == 3 else 0.75)
    first = alarm.suspects()[0]
    assert first.where == "where lava is 1 and ramp is 1"
    assert (first.group, first.more) == ("pair", False)
    assert first.observed < first.predicted
    assert first.predicted == pytest.approx(0.6 * first.episodes)
    assert first.evidence > LEVEL


@pytest.mark.parametrize(
    ("truth", "where"),
    [
        (lambda row, episode, failed: 0.9 if episode < 30 else 0.05, "after episode"),
        (lambda row, episode, failed: 0.3 if failed else 0.95, "after a "),
        (lambda row, episode, failed: 0.15 if episode // 15 % 2 else 0.95, "on bad days"),
    ],
)
def test_time_is_named(truth: Callable[[int, int, bool], float], where: str) -> None:
    alarm = knowledge_of(2, truth)
    assert alarm.raised
    first = alarm.suspects()[0]
    assert first.group == "time"
    assert where in first.where
