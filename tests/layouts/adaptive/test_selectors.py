"""Selectors: every policy is a distribution over what is allowed; combinators narrow or mix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.plan import POLICIES, Policy
from animalcat.layouts.adaptive.policy import Chooser
from animalcat.layouts.adaptive.selectors import (
    AIM_WIDTH,
    REST,
    SPREAD,
    Aimed,
    Best,
    CoolDown,
    Information,
    ListOrder,
    Mixture,
    SelectionContext,
    StratifiedRandom,
    Threshold,
    UniformRandom,
    VarianceDrop,
    cap_chances,
    propensities,
)
from animalcat.layouts.checking.calibration import spread
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import Layout
from tests.layouts.adaptive.several import chances_of

from .several import choose_several

Floats = npt.NDArray[np.float64]
Draw = Callable[[int, int], Floats]
PARADIGMS = ["a", "a", "a", "a", "b", "b", "b", "c", "c", "d"]


@pytest.fixture
def chooser(aaio: Layout, draw_instances: Draw) -> Chooser:
    variants = [f"v{i // 2}" for i in range(10)]
    bank = Bank(
        aaio, draw_instances(10, 2), PARADIGMS, variants=variants, seconds=np.arange(1.0, 11.0)
    )
    return Chooser(bank)


def view(
    chooser: Chooser, posterior: LivePosterior, played: tuple[int, ...] = ()
) -> SelectionContext:
    return SelectionContext(posterior, chooser.bank, History(played), chooser.gains)


EVERY = np.ones(10, dtype=np.bool_)


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "plugin"])
def test_every_policy_is_a_distribution_over_what_is_left(
    name: str, chooser: Chooser, posterior: LivePosterior
) -> None:
    order = ("3", "9", "1") if name == "listed" else ()
    policy = Policy(name, order=order)  # pyright: ignore[reportArgumentType]
    other = Chooser(chooser.bank, policy)
    chances = chances_of(other, posterior, History([3, 4]))
    assert chances.sum() == pytest.approx(1.0)
    assert not chances[[3, 4]].any()
    choice = other.choose(posterior, History([3, 4]), 3)
    assert choice is not None
    assert choice.propensity == pytest.approx(chances[choice.index])
    assert choice.instance not in {name for name, _ in choice.alternatives}
    scores = [score for _, score in choice.alternatives]
    assert scores == sorted(scores, reverse=True)


def test_what_comes_first_under_any_policy(chooser: Chooser, posterior: LivePosterior) -> None:
    bank = chooser.bank
    first = Chooser(bank, Policy(order=("3", "9")))
    played: list[int] = []
    for number in range(2):
        choice = first.choose(posterior, History(played), number)
        assert choice is not None
        assert (choice.reason, choice.propensity) == ("listed", 1.0)
        played.append(choice.index)
    assert [bank.names[row] for row in played] == ["3", "9"]
    after = chances_of(first, posterior, History(played))
    assert after == pytest.approx(chances_of(Chooser(bank, Policy()), posterior, History(played)))
    with pytest.raises(ValueError, match="'nobody'"):
        Chooser(bank, Policy(order=("nobody",)))


def test_a_list_is_played_in_its_order_and_ends(chooser: Chooser, posterior: LivePosterior) -> None:
    listed = Chooser(chooser.bank, Policy("listed", order=("3", "3", "1"), exposures=2))
    played: list[int] = []
    while (choice := listed.choose(posterior, History(played), len(played))) is not None:
        assert choice.propensity == 1.0
        played.append(choice.index)
    assert played == [3, 3, 1]


def test_nearest_threshold_is_the_least_margin(
    chooser: Chooser, posterior: LivePosterior, aaio: Layout
) -> None:
    mean = posterior.weights @ posterior.particles[:, :2]
    margins = (mean - chooser.bank.demands) / [5.3, 1.9]
    distance = np.abs(margins.min(axis=1))
    nearest = np.isclose(distance, distance.min())
    (branch,) = Best(Threshold()).branches(view(chooser, posterior), EVERY)
    np.testing.assert_allclose(branch.probabilities, nearest / nearest.sum())


def test_information_is_mutual_information_with_binned_abilities(
    chooser: Chooser, posterior: LivePosterior, aaio: Layout, draw_instances: Draw
) -> None:
    worth = Information(("visualAbility",)).worth(view(chooser, posterior))
    p = Evaluator(aaio).probability(posterior.particles, draw_instances(10, 2))
    weights, ability = posterior.weights, posterior.particles[:, 1]
    order = np.argsort(ability)
    before = np.cumsum(weights[order]) - weights[order] / 2
    bins = np.empty(len(order), dtype=int)
    bins[order] = np.minimum(8 * before, 7).astype(int)

    def entropy(q: float) -> float:
        return -sum(x * np.log(x) for x in (q, 1 - q) if x > 0)

    for i in range(10):
        within = 0.0
        for b in range(8):
            share = weights[bins == b].sum()
            within += share * entropy(float(weights[bins == b] @ p[bins == b, i] / share))
        assert worth[i] == pytest.approx(entropy(float(weights @ p[:, i])) - within, abs=1e-5)
    both = Information().worth(view(chooser, posterior))
    other = Information(("navigationAbility",)).worth(view(chooser, posterior))
    np.testing.assert_allclose(both, worth + other, atol=1e-6)
    with pytest.raises(ValueError, match="not a capability; there are: navigationAbility"):
        Information(("rightLeftBias",)).worth(view(chooser, posterior))


def test_an_aim_prefers_what_is_passed_at_its_rate(
    chooser: Chooser, posterior: LivePosterior
) -> None:
    looked = view(chooser, posterior)
    predicted, plain = looked.scores.predicted, VarianceDrop().worth(looked)
    worth = Aimed(VarianceDrop(), 0.7).worth(looked)
    near = int(np.abs(predicted - 0.7).argmin())
    assert worth[near] / plain[near] == (worth / plain).max()
    expected = plain * np.exp(-0.5 * ((predicted - 0.7) / AIM_WIDTH) ** 2)
    np.testing.assert_allclose(worth, expected)
    aimed = Chooser(chooser.bank, Policy(aim=0.7, random_share=0.0))
    plainly = Chooser(chooser.bank, Policy(random_share=0.0))
    rates = [
        abs(float(chances_of(c, posterior, History(())) @ predicted) - 0.7)
        for c in (aimed, plainly)
    ]
    assert rates[0] < rates[1]
    with pytest.raises(ValueError, match="aim goes with variance and information"):
        Policy("random", aim=0.7)


def test_variants_rest_while_there_is_anything_else(
    chooser: Chooser, posterior: LivePosterior
) -> None:
    rested = CoolDown(UniformRandom(), episodes=2)
    chances = propensities(rested.branches(view(chooser, posterior, (0, 4, 9)), EVERY), 10)
    np.testing.assert_allclose(chances, [1 / 6] * 4 + [0, 0] + [1 / 6] * 2 + [0, 0])
    only = np.arange(10) == 5
    chances = propensities(rested.branches(view(chooser, posterior, (4,)), only), 10)
    assert chances[5] == 1.0


def test_a_list_of_unknown_instances_is_refused_with_near_names(
    aaio: Layout, draw_instances: Draw
) -> None:
    names = [f"maze-{i:02}" for i in range(10)]
    bank = Bank(aaio, draw_instances(10, 2), PARADIGMS, names=names)
    with pytest.raises(ValueError, match=r"'maze-3', .* 10 instances; nearest to it are maze-03"):
        Chooser(bank, Policy("listed", order=("maze-00", "maze-3")))


def test_stratified_random_gives_paradigms_equal_chances(
    chooser: Chooser, posterior: LivePosterior
) -> None:
    chances = propensities(StratifiedRandom().branches(view(chooser, posterior), EVERY), 10)
    np.testing.assert_allclose(chances, [1 / 16] * 4 + [1 / 12] * 3 + [1 / 8] * 2 + [1 / 4])


def test_a_mixture_without_one_part_is_the_others(
    chooser: Chooser, posterior: LivePosterior
) -> None:
    mixed = Mixture(((0.5, ListOrder(())), (0.5, UniformRandom())))
    (branch,) = mixed.branches(view(chooser, posterior), EVERY)
    assert (branch.share, branch.reason) == (1.0, "random")
    with pytest.raises(ValueError, match="sum to 1"):
        Mixture(((0.5, UniformRandom()),))


def test_pending_episodes_count(
    aaio: Layout, posterior: LivePosterior, draw_instances: Draw
) -> None:
    """What is being played tells less a second time, by exactly what its outcomes would tell."""
    features = draw_instances(6, 4)
    bank = Bank(aaio, features, ["p"] * 6)
    gains = Chooser(bank).gains
    scores = gains.scores(posterior, (2,))
    p = Evaluator(aaio).probability(posterior.particles, features)
    expected = np.zeros((6, 2))
    for chances in (p[:, 2], 1.0 - p[:, 2]):
        weights = posterior.weights * chances
        share, weights = weights.sum(), weights / weights.sum()
        centred = posterior.particles[:, :2] - weights @ posterior.particles[:, :2]
        mean = weights @ p
        covariance = (weights[:, np.newaxis] * centred).T @ p
        expected += share * (covariance**2 / (mean * (1 - mean))).T
    np.testing.assert_allclose(scores.drops, expected, rtol=2e-3, atol=1e-7)
    assert scores.total[2] < gains.scores(posterior).total[2]


def test_several_slots_get_different_instances(chooser: Chooser, posterior: LivePosterior) -> None:
    choices = choose_several(chooser, posterior, History([1]), 2, 4)
    rows = [choice.index for choice in choices]
    assert len(set(rows)) == 4
    assert 1 not in rows
    assert len(choose_several(chooser, posterior, History(list(range(8))), 9, 4)) == 2


@pytest.mark.parametrize("layout", ["aaio", "object-permanence"])
def test_a_large_bank_is_searched_in_two_looks(layout: str) -> None:
    """The best of a large bank is nearly as good as the best by all particles."""
    spec = load_layout(layout)
    generator = np.random.default_rng(0)
    lows = np.array([f.low for f in spec.features])
    highs = np.array([min(f.high, f.low + 60) for f in spec.features])
    features = lows + (highs - lows) * generator.uniform(size=(6000, len(lows)))
    binary = [i for i, f in enumerate(spec.features) if (f.low, f.high) == (0, 1)]
    features[:, binary] = features[:, binary].round()
    bank = Bank(spec, features, [f"p{i % 3}" for i in range(6000)])
    posterior = LivePosterior(spec, 3)
    found = Chooser(bank).gains.scores(posterior).total
    half = Bank(spec, features[:3000], ["p"] * 3000), Bank(spec, features[3000:], ["p"] * 3000)
    full = np.concatenate([Chooser(part).gains.scores(posterior).total for part in half])
    best = int(np.argmax(found))
    assert found[best] == full[best]
    assert full[best] >= 0.95 * full.max()


@pytest.mark.parametrize(
    ("name", "variant", "least", "alike"),
    [
        ("one-capability", "trials", 0.9, 0.99),
        ("one-capability", "score", 0.8, 0.97),
        # Six draws have 0.51 to 0.67 of the drop, and are correlated by 0.954 to 0.991.
        pytest.param("melting-pot", "", 0.5, 0.95, marks=pytest.mark.slow),
    ],
)
def test_drops_by_the_best_guess_are_nearly_those_of_drawn_outcomes(
    name: str, variant: str, least: float, alike: float
) -> None:
    """A guess from the outcome has at most the whole drop; instances are ranked alike."""
    spec = load_layout(name, variant)
    generator = np.random.default_rng(1)
    features = spread(spec, 15, generator)
    bank = Bank(spec, features, ["p"] * 15)
    posterior = LivePosterior(spec, 4, particles=1000)
    columns = bank.evaluator.columns(features)
    agent = posterior.particles[:1]
    posterior.update_all(features, bank.evaluator.simulate(agent, columns, generator)[:, 0])
    theta, weights = posterior.particles, posterior.weights
    ability = theta[:, list(spec.capabilities)]
    drawn = bank.evaluator.simulate(
        theta[generator.choice(1000, 500, p=weights)], columns, generator
    )
    whole = np.empty((15, ability.shape[1]))
    for i, y in enumerate(drawn):
        each = np.repeat(columns[[i]], len(y), axis=0)
        likelihood = np.exp(bank.evaluator.pointwise(theta, each, y)) * weights
        mean = likelihood @ ability / likelihood.sum(axis=1, keepdims=True)
        whole[i] = np.mean((mean - weights @ ability) ** 2, axis=0)
    found = Chooser(bank).gains.scores(posterior).drops
    assert least <= found.sum() / whole.sum() <= 1.05
    assert np.corrcoef(found.sum(axis=1), whole.sum(axis=1))[0, 1] >= alike


def test_most_choices_are_among_the_best_and_none_is_out_of_reach(
    aaio: Layout, draw_instances: Draw
) -> None:
    """Variants count as one; drawn by the power alone, the many others would have more."""
    features = draw_instances(5 * SPREAD, 3).repeat(2, axis=0)
    bank = Bank(aaio, features, ["p"] * len(features))
    posterior, history = LivePosterior(aaio, 1), History([5])
    policy = Policy(random_share=0.0, sharpness=1.5)
    left = np.arange(len(features)) != 5
    worth = np.where(left, Chooser(bank).scores(posterior, history).total, 0.0)
    best = worth >= np.unique(worth)[-SPREAD]
    assert best.sum() >= 2 * SPREAD - 1
    now = chances_of(Chooser(bank, policy), posterior, history)
    assert now[best].sum() == pytest.approx(1.0 - REST)
    assert (now[left] > 0.0).all()
    power = worth**policy.sharpness
    assert power[best].sum() < (1.0 - REST) * power.sum()
    for rows in (best, left & ~best):  # within both, likelier the more they tell
        np.testing.assert_allclose(now[rows] / now[rows].sum(), power[rows] / power[rows].sum())


def test_a_cap_lowers_chances_and_gives_the_rest_to_the_others() -> None:
    allowed = np.array([True, True, True, True, False])
    chances = np.array([0.7, 0.2, 0.1, 0.0, 0.0])
    found = cap_chances(chances, 0.5, allowed)
    np.testing.assert_allclose(found, [0.5, 1 / 3, 1 / 6, 0.0, 0.0])
    np.testing.assert_allclose(cap_chances(chances, 0.4, allowed), [0.4, 0.4, 0.2, 0.0, 0.0])
    # All that have a chance are full: the rest goes to what is allowed, or it is even.
    np.testing.assert_allclose(cap_chances(chances, 0.3, allowed), [0.3, 0.3, 0.3, 0.1, 0.0])
    np.testing.assert_allclose(cap_chances(chances, 0.2, allowed), [0.25, 0.25, 0.25, 0.25, 0.0])
    assert cap_chances(chances, 0.7, allowed) is chances
