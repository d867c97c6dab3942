"""Choosing: the score is the expected drop of variance, the propensity is the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.plan import Policy
from animalcat.layouts.adaptive.policy import DOUBT, Chooser
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.model.spec import Layout
from tests.layouts.adaptive.several import chances_of

Floats = npt.NDArray[np.float64]
Draw = Callable[[int, int], Floats]
Play = Callable[[Floats, list[float], int], Floats]

SHARPEST = Policy(random_share=0.0, sharpness=0.0)
PARADIGMS = ["a", "a", "a", "a", "b", "b", "b", "c", "c", "d"]


def variance(values: Floats, weights: Floats) -> Floats:
    mean = weights @ values
    return weights @ (values - mean) ** 2


def test_the_score_is_the_expected_drop_of_variance(
    aaio: Layout, draw_instances: Draw, posterior: LivePosterior
) -> None:
    features = draw_instances(10, 2)
    scores = Chooser(Bank(aaio, features, PARADIGMS)).gains.scores(posterior)
    p = Evaluator(aaio).probability(posterior.particles, features)
    ability, now = posterior.particles[:, :2], posterior.weights
    for i in range(10):
        chance = now @ p[:, i]
        after = sum(
            share * variance(ability, now * q / share)
            for q, share in ((p[:, i], chance), (1 - p[:, i], 1 - chance))
        )
        drop = variance(ability, now) - after
        np.testing.assert_allclose(scores.drops[i], drop, rtol=1e-3, atol=1e-7)
        assert scores.total[i] == pytest.approx(drop @ [5.3**-2, 1.9**-2], rel=1e-3)
        assert scores.predicted[i] == pytest.approx(chance, abs=1e-5)
    np.testing.assert_allclose(scores.variance, variance(ability, now))


def test_choices_follow_their_propensities(
    aaio: Layout, draw_instances: Draw, posterior: LivePosterior
) -> None:
    chooser = Chooser(Bank(aaio, draw_instances(10, 2), PARADIGMS))
    used = [0, 4]
    expected = chances_of(chooser, posterior, History(used))
    trials = 1500
    counts = np.zeros(10)
    reasons: Counter[str] = Counter()
    for episode in range(trials):
        choice = chooser.choose(posterior, History(used), episode)
        assert choice is not None
        assert choice.propensity == pytest.approx(expected[choice.index])
        counts[choice.index] += 1
        reasons[choice.reason] += 1
    error = np.sqrt(expected * (1 - expected) / trials)
    assert (np.abs(counts / trials - expected) <= 4.5 * error).all()
    assert reasons["random"] / trials == pytest.approx(0.15, abs=0.03)


def test_informative_choices_are_the_best_of_paradigms_that_are_due(
    aaio: Layout, draw_instances: Draw, posterior: LivePosterior
) -> None:
    chooser = Chooser(Bank(aaio, draw_instances(10, 2), PARADIGMS), SHARPEST)
    total = chooser.gains.scores(posterior).total
    first = chooser.choose(posterior, History(), 0)
    assert first is not None
    assert first.index == int(np.argmax(total))
    assert first.propensity == 1.0
    assert first.score == pytest.approx(total.max())
    # With two plays of a paradigm more than of another, it must wait.
    used = [0, 1]
    waiting = chooser.choose(posterior, History(used), 1)
    assert waiting is not None
    assert waiting.index == 4 + int(np.argmax(total[4:]))


def test_what_tells_more_is_likelier_by_the_power_of_sharpness(
    aaio: Layout, draw_instances: Draw, posterior: LivePosterior
) -> None:
    bank = Bank(aaio, draw_instances(10, 2), ["p"] * 10)
    chances = {
        sharpness: chances_of(
            Chooser(bank, Policy(random_share=0.0, sharpness=sharpness)), posterior, History([3])
        )
        for sharpness in (0.0, 1.0, 4.0, 100.0)
    }
    worth = Chooser(bank).gains.scores(posterior).total
    worth[3] = 0.0
    for sharpness in (1.0, 4.0):
        odds = worth**sharpness
        np.testing.assert_allclose(chances[sharpness], odds / odds.sum(), rtol=1e-9)
    assert chances[0.0][np.argmax(worth)] == 1.0
    assert chances[100.0].max() > chances[4.0].max() > chances[1.0].max()


def test_margins_are_ability_minus_demand(
    aaio: Layout, draw_instances: Draw, posterior: LivePosterior
) -> None:
    features = draw_instances(10, 2)
    choice = Chooser(Bank(aaio, features, PARADIGMS)).choose(posterior, History(), 3)
    assert choice is not None
    distance, size, behind, _ = features[choice.index]
    mean = {node.name: node.mean for node in posterior.summary()}
    assert choice.margins == pytest.approx(
        {
            "navigationAbility": mean["navigationAbility"] - distance / 10 * (1 + behind / 2),
            "visualAbility": mean["visualAbility"] - 1.9 * np.log10(5 / size),
        }
    )


def test_a_battery_that_is_used_up_gives_none(
    aaio: Layout, draw_instances: Draw, posterior: LivePosterior
) -> None:
    features = draw_instances(10, 2)
    chooser = Chooser(Bank(aaio, features, PARADIGMS))
    used: list[int] = []
    for episode in range(10):
        choice = chooser.choose(posterior, History(used), episode)
        assert choice is not None
        assert choice.index not in used
        used.append(choice.index)
    assert chooser.choose(posterior, History(used), 10) is None
    assert chances_of(chooser, posterior, History(used)).sum() == 0.0
    repeating = Chooser(Bank(aaio, features, PARADIGMS), Policy(exposures=0))
    assert repeating.choose(posterior, History(used), 10) is not None
    empty = Chooser(Bank(aaio, np.empty((0, 4)), []))
    assert empty.choose(posterior, History(), 0) is None


def test_probabilities_are_filled_again_only_after_a_move(
    aaio: Layout, draw_instances: Draw, play: Play
) -> None:
    """Cached scores always equal fresh ones, before and after moves."""
    features = draw_instances(30, 3)
    y = play(features, [4.0, 1.5, 0.0, 0.05], 3)
    posterior = LivePosterior(aaio, 1)
    chooser = Chooser(Bank(aaio, features, ["p"] * 30))
    moves: set[int] = set()
    for i in range(30):
        posterior.update(features[i], bool(y[i]), i)
        moves.add(posterior.moves)
        fresh = Chooser(Bank(aaio, features, ["p"] * 30)).gains.scores(posterior)
        np.testing.assert_array_equal(chooser.gains.scores(posterior).total, fresh.total)
    assert len(moves) > 1


def test_wrong_arguments_are_refused(aaio: Layout, draw_instances: Draw) -> None:
    with pytest.raises(ValueError, match="2 paradigms, 3 instances"):
        Chooser(Bank(aaio, draw_instances(3, 0), ["a", "b"]))
    with pytest.raises(ValueError, match="'best' is unknown; valid: variance, information"):
        Policy("best")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="random_share"):
        Policy(random_share=1.5)
    with pytest.raises(ValueError, match=r"sharpness -1.* is out of range; give 0 to 100"):
        Policy(sharpness=-1.0)


def test_random_draws_are_rarer_and_choices_sharper_without_doubt(
    aaio: Layout, draw_instances: Draw, posterior: LivePosterior
) -> None:
    chooser = Chooser(Bank(aaio, draw_instances(40, 2), 4 * PARADIGMS), Policy())
    reasons = {
        doubt: [
            choice.reason
            for episode in range(60)
            if (choice := chooser.choose(posterior, History(), episode, doubt=doubt))
        ]
        for doubt in (1.0, DOUBT, 0.0)
    }
    shares = [reasons[doubt].count("random") / 60 for doubt in (1.0, DOUBT, 0.0)]
    assert shares[0] > shares[1] > shares[2] == 0.0
