"""The largest of many values are what a whole sort says, with equals among them."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.portable import arrays as portable


@pytest.mark.parametrize("number", [1, 7, 500, 20_000])
@pytest.mark.parametrize("count", [1, 5, 60, 900])
def test_the_largest(number: int, count: int) -> None:
    values = np.random.default_rng(number).integers(0, number // 2 + 2, number).astype(np.float64)
    values[values < 1.0] = -np.inf
    down = np.sort(values)[::-1]
    assert np.array_equal(portable.descending(values, count), down[:count])
    rows = np.argsort(-values, kind="stable")[:count]
    assert np.array_equal(portable.largest(values, count), np.sort(rows))
    distinct = np.unique(values)[::-1]
    expected = distinct[count - 1] if len(distinct) > count else None
    assert portable.distinct_rank(values, count) == expected
