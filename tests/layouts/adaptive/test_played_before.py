"""A layout that counts what an agent has played before: the learner fills it in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.fitting.fits import fit
from animalcat.layouts.library import load_layout

LAYOUT = load_layout("aaio", "people")
ROUND = LAYOUT.feature_names.index("round")
ITEMS = pd.DataFrame(
    {
        "wayLength": np.linspace(2.0, 45.0, 40),
        "rewardSize": np.tile([1.0, 4.0], 20),
        "instance": [f"a{k}" for k in range(40)],
    }
)


def learner(played_before: int = 0) -> Learner:
    bank = Bank.of(LAYOUT, ITEMS).at(played_before)
    return Learner(bank, Policy(), StoppingRule(20, target_sd=0.0), seed=3)


def rounds(of: Learner) -> list[float]:
    return of.data().features[:, ROUND].tolist()


def test_rounds_are_counted_as_they_are_played() -> None:
    one = learner(5)
    for k in range(6):
        choice = one.ask()
        assert choice is not None
        one.tell(choice.instance, k % 2)
    assert rounds(one) == [5, 6, 7, 8, 9, 10]
    assert one.bank.features[:, ROUND].tolist() == [11.0] * 40
    assert one.features_of("a3", 2)[ROUND] == 2.0


def test_what_is_told_otherwise_moves_the_count() -> None:
    """A void between two outcomes is practice; the choice after it knows so."""
    one = learner()
    first = one.ask()
    assert first is not None
    one.tell(first.instance, 1)
    later, now = one.ask(played_before=60), one.ask()
    assert later is not None
    assert now is not None
    assert one.bank.played_before == 1  # a question changes nothing
    assert later.score != now.score or later.instance != now.instance
    one.tell(now.instance, 0, played_before=2)
    assert (rounds(one), one.bank.played_before) == ([0, 2], 3)


def test_it_goes_on_from_what_was_saved_and_forgets_by_what_was_told() -> None:
    one, other = learner(), learner()
    for k, count in enumerate([0, 1, 4, 5]):
        choice = one.ask(played_before=count)
        assert choice is not None
        one.tell(choice.instance, k % 2)
    asked = one.ask()
    other.restore(one.save())
    assert other.ask() == asked
    assert rounds(other) == rounds(one) == [0, 1, 4, 5]
    np.testing.assert_array_equal(other.posterior.particles, one.posterior.particles)
    one.invalidate(3)
    assert (rounds(one), one.bank.played_before) == ([0, 1, 4], 6)


def test_a_count_is_never_taken_to_be_0() -> None:
    given = ITEMS.assign(success=np.arange(40) % 2)
    with pytest.raises(ValueError, match="round of instance a0 is not known"):
        fit(LAYOUT, given)
    with pytest.raises(ValueError, match="counts it while an agent plays"):
        Bank.of(LAYOUT, ITEMS.assign(round=0))
    kept = fit(LAYOUT, given.assign(round=range(40)), chains=1, draws=50, tune=50)
    assert kept.data is not None
    assert kept.data.features[:, ROUND].tolist() == [*range(40)]
