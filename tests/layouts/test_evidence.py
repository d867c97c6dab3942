"""One digest for one set of evidence, whatever the order, and another for any other set."""

from __future__ import annotations

import numpy as np

from animalcat.layouts.inference.evidence import evidence_digest
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.library import load_layout

FEATURES = np.array([[12.5, 1.0], [30.1, 0.5], [12.5, 1.0]])
OUTCOMES = np.array([1.0, 0.0, 1.0])


def test_neither_order_nor_unit_nor_rows_that_tell_nothing_change_it() -> None:
    known = evidence_digest(FEATURES, OUTCOMES)
    assert evidence_digest(FEATURES[[2, 0, 1]], OUTCOMES[[2, 0, 1]]) == known
    assert evidence_digest(FEATURES * 100.0 / 100.0, OUTCOMES, np.ones(3)) == known
    assert evidence_digest(FEATURES * [3.28, 1.0] / [3.28, 1.0], OUTCOMES) == known
    more = np.vstack([FEATURES, [[5.0, 5.0], [6.0, 6.0]]])
    assert evidence_digest(more, [1, 0, 1, np.nan, 1], [1, 1, 1, 1, 0]) == known
    assert evidence_digest(-FEATURES * 0.0, OUTCOMES) == evidence_digest(FEATURES * 0.0, OUTCOMES)


def test_whatever_counts_changes_it() -> None:
    digests = {
        evidence_digest(FEATURES, OUTCOMES),
        evidence_digest(FEATURES, 1.0 - OUTCOMES),
        evidence_digest(FEATURES + np.array([1e-6, 0.0]), OUTCOMES),
        evidence_digest(FEATURES[:2], OUTCOMES[:2]),  # the same evidence twice is no longer there
        evidence_digest(FEATURES, OUTCOMES, [1.0, 1.0, 0.5]),
        evidence_digest(FEATURES, np.stack([OUTCOMES, OUTCOMES], axis=1)),
        evidence_digest(FEATURES[:0], OUTCOMES[:0]),
    }
    assert len(digests) == 7


def test_a_live_posterior_says_what_it_knows() -> None:
    layout = load_layout("one-capability")
    first, second = (LivePosterior(layout, seed, particles=100) for seed in (1, 2))
    rows = [([3.0], 1.0), ([8.0], 0.0)]
    for k, (row, seen) in enumerate(rows):
        first.update(row, seen, episode=k)
    for k, (row, seen) in enumerate(reversed(rows)):
        second.update(row, seen, episode=k)
    assert first.diagnostics["evidence"] == second.diagnostics["evidence"]
    assert first.as_fit().data is not None
    assert first.diagnostics["evidence"] == evidence_digest([[3.0], [8.0]], [1.0, 0.0])
