"""The information bound: what a battery can tell at most, and what is said of targets beyond it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.bound import InformationBound, information_bounds, information_of
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.likelihood import log_density
from animalcat.layouts.model.spec import Layout

Floats = npt.NDArray[np.float64]
Draw = Callable[[int, int], Floats]


def bounds(
    layout: Layout, features: Floats, rule: StoppingRule, plays: int = 1
) -> dict[str, InformationBound]:
    bank = Bank(layout, features, ["p"] * len(features))
    return {r.name: r for r in information_bounds(bank, rule, plays)}


@pytest.mark.parametrize("variant", ["success", "trials", "score"])
def test_counts_and_scores_have_a_bound_too(variant: str) -> None:
    """It is near what is left: counts of several attempts tell more than single ones."""
    layout = load_layout("one-capability", variant)
    low, high = np.array([[f.low, f.high] for f in layout.features]).T
    generator = np.random.default_rng(5)
    features = layout.check_features(low + (high - low) * generator.random((30, len(low))))
    names = layout.feature_names
    if "trials" in names:
        features[:, names.index("trials")] = 10.0
    found = bounds(layout, features, StoppingRule())
    evaluator = Evaluator(layout)
    columns = evaluator.columns(features)
    left: list[float] = []
    for agent in range(12):
        z = np.random.default_rng([4, agent]).standard_normal((1, len(layout.latents)))
        truth = [n.prior.from_standard(z[:, i])[0] for i, n in enumerate(layout.latents)]
        posterior = LivePosterior(layout, agent, particles=500)
        outcomes = evaluator.simulate([truth], columns, np.random.default_rng(agent))[:, 0]
        posterior.update_all(features, outcomes)
        left.append(posterior.summary()[layout.capabilities[0]].sd)
    bound = found[layout.latents[layout.capabilities[0]].name]
    assert 0.6 * np.median(left) < bound.sd < 1.4 * np.median(left)
    assert np.mean(np.array(left) < 0.9 * bound.best) < 0.1


def test_information_of_scores_is_the_variance_of_the_score_function() -> None:
    """By mean and sample size: derivatives of the density that outcomes are told by, drawn."""
    layout = load_layout("one-capability", "score")
    mean, size, step = 0.3, 10.0, 1e-4
    y = np.random.default_rng(0).beta(mean * size, (1.0 - mean) * size, 400_000)

    def logs(m: float, n: float) -> Floats:
        means, sizes = np.full((len(y), 1), m), np.full((len(y), 1), n)
        each = log_density(layout.outcome, means, sizes, np.empty((len(y), 1)), y[:, np.newaxis])
        return each[:, 0, 0]

    by_mean = (logs(mean + step, size) - logs(mean - step, size)) / (2 * step)
    by_size = (logs(mean, size + step) - logs(mean, size - step)) / (2 * step)
    expected = np.array([[[mean]], [[size]]])
    found = information_of(layout, np.zeros((1, 1)), expected)[:, :, 0, 0]
    np.testing.assert_allclose(found, np.cov(by_mean, by_size), rtol=0.02)


def test_a_target_beyond_the_bound_is_said(aaio: Layout) -> None:
    """Huge rewards that are near tell nothing of sight; of navigation they tell a little."""
    features = np.tile([2.0, 10.0, 0.0, 0.0], (20, 1))
    found = bounds(aaio, features, StoppingRule(target_sd=0.05))
    sight = found["visualAbility"]
    assert sight.target == pytest.approx(0.05 * 1.9)
    assert sight.agents == 0.0
    assert sight.limit == (
        "cannot be reached with this battery for 19 of 20 agents drawn from the layout's priors: "
        "after all of its arenas the SD is still at least 28 % of the range, and the target is 5 %"
    )
    assert found["navigationAbility"].limit.startswith("cannot be reached with this battery")


def test_nothing_is_said_where_nothing_is_wanted_or_all_can_be_had(
    aaio: Layout, draw_instances: Draw
) -> None:
    features = draw_instances(400, 1)
    for rule in (StoppingRule(target_sd=0.0), StoppingRule(target_sd=0.2)):
        assert {r.limit for r in bounds(aaio, features, rule).values()} == {""}


def test_blocks_of_instances_add_up(aaio: Layout, draw_instances: Draw) -> None:
    """Twice the battery tells as much as the battery twice, also beyond a block."""
    features = draw_instances(700, 2)
    rule = StoppingRule()
    shifted = np.add(features, [1e-7, 0.0, 0.0, 0.0])
    twice = bounds(aaio, np.vstack([features, shifted]), rule)
    again = bounds(aaio, features, rule, plays=2)
    for name, one in again.items():
        assert twice[name].sd == pytest.approx(one.sd, rel=1e-4)
