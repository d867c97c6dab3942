"""Pairs: an arena and its control follow each other, and every propensity stays the truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.adaptive.policy import PAIR, Chooser
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.model.spec import Layout
from tests.layouts.adaptive.several import chances_of

Draw = Callable[[int, int], npt.NDArray[np.float64]]

NAMES = ["a", "a.glass", "b", "b.glass", "b.now", "c", "d"]
OF = ["", "a", "", "b", "b", "", "not here"]
POLICIES = (Policy(pairs=True), Policy("random", pairs=True), Policy("stratified", pairs=True))


@pytest.fixture
def bank(aaio: Layout, draw_instances: Draw) -> Bank:
    features = draw_instances(len(NAMES), 3)
    return Bank(aaio, features, ["x", "y", "x", "y", "y", "x", "x"], names=NAMES, control_of=OF)


def test_a_set_is_an_arena_with_the_controls_that_are_there(bank: Bank) -> None:
    assert bank.sets.tolist() == [0, 0, 2, 2, 2, 5, 6]
    fewer = bank.without(["b", "b.now"])
    assert fewer.control_of == ("", "a", "b", "", "not here")
    assert fewer.sets.tolist() == [0, 0, 2, 3, 4]


@pytest.mark.parametrize("policy", POLICIES)
def test_any_of_them_comes_first_equally_often(
    bank: Bank, posterior: LivePosterior, policy: Policy
) -> None:
    alone = chances_of(Chooser(bank, Policy(policy.name)), posterior, History())
    paired = chances_of(Chooser(bank, policy), posterior, History())
    assert paired.sum() == pytest.approx(1.0)
    assert paired[0] == paired[1] == pytest.approx((alone[0] + alone[1]) / 2.0)
    assert paired[2] == paired[3] == paired[4] == pytest.approx(alone[2:5].sum() / 3.0)
    np.testing.assert_allclose(paired[5:], alone[5:])


@pytest.mark.parametrize("policy", POLICIES)
def test_what_was_begun_decides_what_is_next(
    bank: Bank, posterior: LivePosterior, policy: Policy
) -> None:
    chooser = Chooser(bank, policy)

    def chances(*begun: int) -> list[float]:
        pending = chances_of(chooser, posterior, History((), begun))
        played = chances_of(chooser, posterior, History(begun))
        np.testing.assert_array_equal(pending > 0.0, played > 0.0)
        return played.tolist()

    assert chances(0) == [0, 1, 0, 0, 0, 0, 0]
    assert chances(1) == [1, 0, 0, 0, 0, 0, 0]
    assert chances(5, 4) == [0, 0, 0.5, 0.5, 0, 0, 0]
    assert chances(2, 4) == [0, 0, 0, 1, 0, 0, 0]
    assert np.count_nonzero(chances(2, 4, 3)) > 1
    second = chooser.choose(posterior, History((2,)), 1)
    assert second is not None
    assert (second.reason, second.propensity, second.wager) == (PAIR, 0.5, None)
    assert second.because == "it makes a pair with b"


def test_a_test_that_goes_on_chooses_as_one_that_never_stopped(bank: Bank) -> None:
    policy, rule = Policy(pairs=True), StoppingRule(len(NAMES))
    learner, played = Learner(bank, policy, rule, 5), list[str]()
    while choice := learner.ask():
        again = Learner(bank, policy, rule, 5)
        for number, name in enumerate(played):
            again.tell(name, number % 2, number)
        resumed = again.ask()
        assert resumed is not None
        assert (resumed.instance, resumed.propensity) == (choice.instance, choice.propensity)
        learner.tell(choice.instance, len(played) % 2)
        played.append(choice.instance)
    assert sorted(played) == NAMES
    assert abs(played.index("a") - played.index("a.glass")) == 1
    at = sorted(map(played.index, ("b", "b.glass", "b.now")))
    assert at == list(range(at[0], at[0] + 3))


def test_a_list_has_no_pairs_of_its_own() -> None:
    with pytest.raises(ValueError, match="list the controls too"):
        Policy("listed", order=("a",), pairs=True)
