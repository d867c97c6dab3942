"""Balance: paradigms are played in proportion to their shares of the battery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.plan import Policy
from animalcat.layouts.adaptive.policy import Chooser
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.model.spec import Layout

Floats = npt.NDArray[np.float64]

PARADIGMS = ["a"] * 60 + ["b"] * 30 + ["c"] * 10


def test_paradigms_have_the_shares_that_they_have_of_the_battery(
    aaio: Layout, draw_instances: Callable[[int, int], Floats]
) -> None:
    chooser = Chooser(Bank(aaio, draw_instances(100, 1), PARADIGMS), Policy("stratified"))
    posterior = LivePosterior(aaio, 2, particles=200)
    rows: list[int] = []
    for episode in range(1, 51):
        choice = chooser.choose(posterior, History(rows), episode)
        assert choice is not None
        rows.append(choice.index)
        counts = Counter(PARADIGMS[row] for row in rows)
        owed = {p: episode * PARADIGMS.count(p) / 100 for p in "abc"}
        assert all(counts[p] - owed[p] <= 1 for p in "abc")
    counts = Counter(PARADIGMS[row] for row in rows)
    assert counts["a"] > counts["b"] > counts["c"] > 0
