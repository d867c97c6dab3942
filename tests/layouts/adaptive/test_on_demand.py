"""Instances made on demand: only where the battery tells too little, and what they save."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.offers import Offers
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.adaptive.policy import Chooser
from animalcat.layouts.adaptive.statuses import EXHAUSTED
from animalcat.layouts.adaptive.stopping import RuleStopper
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.model.spec import Layout
from tests.layouts.adaptive.several import chances_of
from tests.layouts.adaptive.vectors import DemandVectorGenerator

Floats = npt.NDArray[np.float64]
Draw = Callable[[int, int], Floats]

ASKING = Policy(random_share=0.0, generate=True)


@pytest.fixture
def bank(aaio: Layout, draw_instances: Draw) -> Bank:
    """Six instances that are nearly too easy to tell anything, and 200 that could be made."""
    easy = np.array([[1.0 + 0.1 * k, 5.0, 0.0, 0.0] for k in range(6)])
    offers = DemandVectorGenerator(draw_instances(50, 3), 200).offers(aaio)
    return Bank(aaio, easy, ["a", "a", "a", "b", "b", "b"], offers=offers)


def test_offers_stand_behind_the_battery(bank: Bank) -> None:
    assert len(bank) == 206
    assert bank.offered.sum() == 200
    assert not bank.offered[:6].any()
    assert {name: rows.tolist() for name, rows in bank.members.items()} == {
        "a": [0, 1, 2],
        "b": [3, 4, 5],
    }
    assert History([0, 3, 4, 100, 101]).plays(bank) == {"a": 1, "b": 2}


def test_the_best_that_can_be_made_is_where_the_battery_tells_too_little(
    bank: Bank, posterior: LivePosterior
) -> None:
    chooser = Chooser(bank, ASKING)
    choice = chooser.choose(posterior, History(), 0)
    assert choice is not None
    total = chooser.gains.scores(posterior).total
    assert choice.index == int(np.argmax(total))
    assert bank.offered[choice.index]
    assert choice.reason == "generated"
    share = total[:6].max() / total.max()
    assert share < 0.8
    assert choice.because == f"the best of the battery would tell {share:.0%} of what this does"
    # A battery that tells enough is left as it is.
    modest = Chooser(bank, Policy(random_share=0.0, generate=True, enough=0.9 * share))
    plain = Chooser(bank, Policy(random_share=0.0))
    np.testing.assert_allclose(
        chances_of(modest, posterior, History()), chances_of(plain, posterior, History())
    )


def test_a_used_up_battery_is_gone_on_from(bank: Bank, posterior: LivePosterior) -> None:
    used = History(range(6))
    chooser = Chooser(bank, Policy(generate=True))
    choice = chooser.choose(posterior, used, 6)
    assert choice is not None
    assert choice.because == EXHAUSTED
    stopper = RuleStopper(bank.layout, StoppingRule(futility=0.0))
    assert not stopper.verdict(posterior, chooser, used).stop
    # What the layout says is worth making is not to be trusted once it is contradicted.
    assert chooser.choose(posterior, used, 6, distrust=True) is None
    verdict = stopper.verdict(posterior, chooser, used, contradicted=True)
    assert verdict.reason == EXHAUSTED


def test_wrong_arguments_are_refused(aaio: Layout) -> None:
    with pytest.raises(ValueError, match="'random' asks for no instances"):
        Policy("random", generate=True)
    with pytest.raises(ValueError, match=r"enough 1\.5"):
        Policy(generate=True, enough=1.5)
    short = Offers(["one", "two"], np.array([[3.0, 1.0, 0.0, 0.0]]), ["x"])
    with pytest.raises(ValueError, match="3 names, 2 instances"):
        Bank(aaio, np.array([[3.0, 1.0, 0.0, 0.0]]), ["a"], offers=short)
