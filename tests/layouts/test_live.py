"""The live posterior: its laws, and that it is the posterior."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior, TellError
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout
from benchmarks.agents import LayoutAgent

Floats = npt.NDArray[np.float64]
Draw = Callable[[int, int], Floats]
Play = Callable[[Floats, list[float], int], Floats]

AGENT = [3.0, 1.3, 0.4, 0.15]


def tell_all(layout: Layout, features: Floats, y: Floats, order: npt.ArrayLike, seed: int = 1):
    posterior = LivePosterior(layout, seed)
    for i in np.asarray(order).tolist():
        posterior.update(features[i], bool(y[i]), i + 1)
    return posterior


def moments(posterior: LivePosterior) -> tuple[Floats, Floats]:
    summary = posterior.summary()
    return np.array([n.mean for n in summary]), np.array([n.sd for n in summary])


def by_importance(
    layout: Layout, features: Floats, y: Floats, draws: int = 1_000_000
) -> tuple[Floats, Floats]:
    """Mean and standard deviation by weighted draws of the prior."""
    z = np.random.default_rng(5).standard_normal((draws, len(layout.latents)))
    theta = np.column_stack([n.prior.from_standard(z[:, i]) for i, n in enumerate(layout.latents)])
    evaluator = Evaluator(layout)
    log_likelihood = evaluator.log_likelihood(theta, evaluator.columns(features), y)
    weights = np.exp(log_likelihood - log_likelihood.max())
    weights /= weights.sum()
    assert 1.0 / np.sum(weights**2) > 2_000  # else the reference itself is no reference
    mean = weights @ theta
    return mean, np.sqrt(weights @ (theta - mean) ** 2)


def test_sampled_anew_the_same_tells_give_the_same_bits(
    aaio: Layout, draw_instances: Draw, play: Play
) -> None:
    features = draw_instances(30, 3)
    y = play(features, AGENT, 3)
    first, second = (tell_all(aaio, features, y, range(30)) for _ in range(2))
    moves = first.moves
    first.restart()
    second.restart()
    assert first.moves == moves + 1
    np.testing.assert_array_equal(first.particles, second.particles)


@pytest.mark.parametrize(
    ("variant", "agent", "trials"), [("trials", [6.0, 0.2], [20.0]), ("score", [4.0, 8.0], [])]
)
def test_counts_and_scores_sampled_anew_give_the_posterior(
    variant: str, agent: list[float], trials: list[float]
) -> None:
    layout = load_layout("one-capability", variant)
    generator = np.random.default_rng(3)
    features = np.array([[demand, *trials] for demand in generator.uniform(0.0, 10.0, 24)])
    player = LayoutAgent(layout, np.array(agent))
    instances = Instances(layout.feature_names, features)
    y = player.outcomes(instances, generator)
    posterior = LivePosterior(layout, 1)
    posterior.update_all(features, y)
    posterior.restart()
    mean, sd = moments(posterior)
    expected_mean, expected_sd = by_importance(layout, features, y, 300_000)
    assert (np.abs(mean - expected_mean) / expected_sd).max() < 0.12
    assert np.abs(np.log(sd / expected_sd)).max() < 0.12


@pytest.mark.parametrize(
    ("name", "variant", "agent", "rows"),
    [
        ("one-capability", "trials", [6.0, 0.2], [[d, n] for d in (2, 5, 7) for n in (1, 5, 20)]),
        ("one-capability", "score", [4.0, 8.0], [[d] for d in (0, 2, 3, 4, 6, 8, 10)]),
        (
            "object-permanence",
            "corrected",
            [20.0, 2.5, 3.0, 0.5, 0.6, 0.7, 30.0, 0.5, 0.2],
            [
                [r, 0, 1 - r, d, 2, s, 0, np.nan, np.nan]
                for r in (0, 1)
                for d, s in ((9, 1), (20, 0))
            ]
            + [[0, r, 0, 10, 4, 0, 1, 4 * r, p] for r in (0, 1) for p in (1, 8)],
        ),
    ],
)
def test_it_is_the_posterior_of_any_layout_and_kind_of_outcome(
    name: str, variant: str, agent: list[float], rows: list[list[float]]
) -> None:
    layout = load_layout(name, variant)
    evaluator = Evaluator(layout)
    features = layout.check_features(np.tile(np.array(rows, dtype=np.float64), (3, 1)))
    drawn = evaluator.simulate([agent], evaluator.columns(features), np.random.default_rng(3))
    y = drawn[:, 0]
    posterior = LivePosterior(layout, 1)
    for i, row in enumerate(features):
        posterior.update(row, y[i], i + 1)
    assert [tell.outcome for tell in posterior.tells] == y.tolist()
    mean, sd = moments(posterior)
    expected_mean, expected_sd = by_importance(layout, features, y, draws=300_000)
    assert (np.abs(mean - expected_mean) / expected_sd).max() < 0.12
    assert np.abs(np.log(sd / expected_sd)).max() < 0.12


def test_an_outcome_of_another_kind_is_refused() -> None:
    posterior = LivePosterior(load_layout("one-capability", "score"), 0)
    with pytest.raises(ValueError, match="within 0 and 1"):
        posterior.update([3.0], 1.5, 1)
    posterior.update([3.0], 1.0, 1)
    assert posterior.tells[0].outcome == 0.999
    with pytest.raises(ValueError, match="success is 1"):
        LivePosterior(load_layout("one-capability"), 0).update([3.0], 0.5, 1)


def test_the_order_of_tells_does_not_matter(aaio: Layout, draw_instances: Draw, play: Play) -> None:
    features = draw_instances(60, 5)
    y = play(features, AGENT, 5)
    mean, sd = moments(tell_all(aaio, features, y, range(60)))
    shuffled = np.random.default_rng(0).permutation(60)
    other_mean, other_sd = moments(tell_all(aaio, features, y, shuffled))
    assert (np.abs(mean - other_mean) / sd).max() < 0.15
    assert np.abs(np.log(sd / other_sd)).max() < 0.15


def test_reseeding_mends_a_posterior_and_takes_in_what_came_later(
    aaio: Layout, draw_instances: Draw, play: Play
) -> None:
    features = draw_instances(60, 8)
    y = play(features, AGENT, 8)
    good = tell_all(aaio, features, y, range(40))
    draws = good.particles[
        np.random.default_rng(0).choice(len(good.particles), 4000, p=good.weights)
    ]
    mended = tell_all(aaio, features, y, range(40), seed=77)
    for i in range(40, 60):
        mended.update(features[i], bool(y[i]), i + 1)
    mended.reseed(draws, 40)
    mean, sd = moments(mended)
    expected_mean, expected_sd = moments(tell_all(aaio, features, y, range(60), seed=3))
    assert (np.abs(mean - expected_mean) / expected_sd).max() < 0.15
    assert np.abs(np.log(sd / expected_sd)).max() < 0.15

    # Reseeding as soon as the outcomes were told, or later, is the same.
    early = tell_all(aaio, features, y, range(40), seed=77)
    early.reseed(draws, 40)
    for i in range(40, 60):
        early.update(features[i], bool(y[i]), i + 1)
    assert (early.particles == mended.particles).all()
    assert (early.weights == mended.weights).all()


def test_wrong_tells_change_nothing(aaio: Layout, draw_instances: Draw) -> None:
    features = draw_instances(2, 9)
    posterior = LivePosterior(aaio, 0)
    posterior.update(features[0], True, 1)
    weights = posterior.weights
    with pytest.raises(TellError, match="episode 1 was told already"):
        posterior.update(features[1], True, 1)
    with pytest.raises(ValueError, match="rewardDistance"):
        posterior.update([float("nan"), 1.0, 0.0, 0.0], True, 2)
    with pytest.raises(ValueError, match="features"):
        posterior.update([1.0, 1.0], True, 2)
    with pytest.raises(ValueError, match="3 outcomes"):
        posterior.reseed(posterior.particles, 3)
    assert posterior.weights is weights
    assert [tell.episode for tell in posterior.tells] == [1]
    with pytest.raises(ValueError, match="read-only"):
        posterior.weights[0] = 1.0


def test_the_path_of_an_episode_never_imports_pymc() -> None:
    modules = (
        *("inference.live", "inference.fit", "inference.fitter", "inference.certificate"),
        *("reporting.profile", "library"),
        *("adaptive.policy", "adaptive.stopping", "watching.alarm", "adaptive.bound"),
    )
    code = (
        f"import sys; [__import__('animalcat.layouts.' + m) for m in {modules}];"
        "print(sorted({'pymc', 'pytensor', 'nutpie', 'arviz', 'grpc'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
