"""A test that goes on from an earlier one knows what one test on all outcomes would know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.model.spec import Layout

FIRST, SECOND = range(12), range(12, 24)


@pytest.fixture(scope="module")
def begin(
    aaio: Layout, draw_instances: Callable[[int, int], npt.NDArray[np.float64]]
) -> Callable[..., Learner]:
    """Makes a learner on some rows of a bank that was told some of them."""
    features = draw_instances(24, 4)

    def begin(
        rows: Sequence[int], told: Sequence[int], *, repeats: int = 1, **more: Any
    ) -> Learner:
        names = [f"a{row}" for row in rows]
        bank = Bank(aaio, features[list(rows)], ["p"] * len(rows), names=names)
        rule = StoppingRule(60, target_sd=0.0, futility=0.0)
        return tell(Learner(bank, Policy("random", exposures=repeats), rule, 3, **more), told)

    return begin


def tell(one: Learner, rows: Sequence[int]) -> Learner:
    for row in rows:
        passed = one.features_of(f"a{row}")[0] < 25.0
        one.tell(f"a{row}", float(passed), one.n)
    return one


@pytest.mark.parametrize("repeats", [1, 3])
def test_two_stages_know_what_one_test_on_all_outcomes_knows(
    begin: Callable[..., Learner], repeats: int
) -> None:
    played = [*SECOND] * repeats
    first = begin(FIRST, FIRST)
    second = begin(SECOND, played, repeats=repeats, earlier=first.data())
    whole = begin([*FIRST, *SECOND], [*FIRST, *played], repeats=repeats)
    for mine, theirs in zip(second.data(), whole.data(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(second.posterior.particles, whole.posterior.particles)
    np.testing.assert_array_equal(second.posterior.weights, whole.posterior.weights)
    assert second.summary() == whole.summary()
    assert second.seen == whole.seen
    numbers = [told.episode for told in second.posterior.tells]
    assert numbers == [*range(-len(FIRST), len(played))]
    # What is known of this bank alone, and bets on it, begin anew.
    assert second.n == len(second.data(own=True).outcomes) == len(played)
    assert len(second.forecasts) == len(SECOND)
    assert second.battery_rate.played == second.battery_rate.instances == len(SECOND)


def test_it_is_restored_reseeded_and_corrected_with_what_was_found_before(
    begin: Callable[..., Learner],
) -> None:
    earlier = begin(FIRST, FIRST).data()
    one, other = begin(SECOND, SECOND[:4], earlier=earlier), begin(SECOND, (), earlier=earlier)
    one.reseed(begin(FIRST, FIRST).posterior.resampled(), 0)
    other.restore(tell(one, SECOND[4:6]).save())
    assert one.ask() == other.ask()
    np.testing.assert_array_equal(one.posterior.particles, other.posterior.particles)
    with pytest.raises(ValueError, match="another earlier"):
        begin(SECOND, ()).restore(one.save())
    third, fourth = (begin(SECOND, SECOND[:k], earlier=earlier) for k in (5, 6))
    fourth.invalidate(5)
    np.testing.assert_array_equal(fourth.posterior.particles, third.posterior.particles)
