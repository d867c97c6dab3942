"""Telling two agents apart by what they did on the same instances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betaln

from animalcat.layouts.adaptive.paired import DECISIVE, compare, e_value


@pytest.mark.parametrize(("ahead", "behind"), [(0, 0), (1, 0), (7, 0), (5, 3), (40, 25)])
def test_evidence_is_jeffreys_mixture(ahead: int, behind: int) -> None:
    """Of wins and losses alone, the capital has a closed form: Beta(1/2 + wins, 1/2 + losses)."""
    exact = np.exp(
        betaln(ahead + 0.5, behind + 0.5) - betaln(0.5, 0.5) + (ahead + behind) * np.log(2)
    )
    drawn = [1.0] * ahead + [0.0] * 9 + [-1.0] * behind
    found = compare(drawn)
    assert e_value(drawn) == found.e_value == pytest.approx(exact, rel=1e-9)
    assert (found.pairs, found.ahead, found.behind) == (ahead + behind + 9, ahead, behind)


def test_the_interval_excludes_equality_when_the_evidence_does() -> None:
    none = compare([])
    assert (none.low, none.high, none.e_value) == (-1.0, 1.0, 1.0)
    clear = compare([1.0] * 12)
    assert clear.e_value > DECISIVE
    assert clear.apart
    assert 0.0 < clear.low < clear.difference == clear.high == 1.0
    unclear = compare([1.0, -1.0, 0.0, 0.5])
    assert not unclear.apart
    assert unclear.low < 0.0 < unclear.high
    mirrored = compare([-1.0, 1.0, 0.0, -0.5])
    assert (mirrored.low, mirrored.high) == pytest.approx((-unclear.high, -unclear.low))


def test_intervals_hold_at_all_times_together() -> None:
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(20):
        drawn = rng.choice([1.0, 0.0, -1.0], p=[0.35, 0.5, 0.15], size=60)
        ends = [compare(drawn[:n]) for n in range(10, 61, 10)]
        missed += any(not one.low <= 0.2 <= one.high for one in ends)
    assert missed <= 3  # 1 expected at most; 4 or more have a probability of 2 %


def test_what_is_no_difference_is_refused() -> None:
    with pytest.raises(ValueError, match="between -1 and 1"):
        compare([1.5])
    with pytest.raises(ValueError, match="between -1 and 1"):
        e_value([float("nan")])
