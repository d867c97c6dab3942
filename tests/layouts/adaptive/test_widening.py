"""A widened layout: the same outside contradicted strata, a rate of its own inside."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.widening import INSIDE, widened, with_strata
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import Layout

Floats = npt.NDArray[np.float64]
Draw = Callable[[int, int], Floats]


def test_outside_nothing_changes_and_inside_a_share_has_its_rate(
    aaio: Layout, draw_instances: Draw
) -> None:
    features = draw_instances(6, 1)
    theta = LivePosterior(aaio, 0, particles=100).particles
    before = Evaluator(aaio).probability(theta, features)
    wide = Evaluator(widened(aaio))
    inside = np.array([0, 0, 0, 1, 1, 1])
    after = wide.probability(
        np.column_stack([theta, np.full(100, 0.4), np.full(100, 0.9)]),
        with_strata(features, inside),
    )
    np.testing.assert_allclose(after[:, :3], before[:, :3])
    np.testing.assert_allclose(after[:, 3:], 0.6 * before[:, 3:] + 0.4 * 0.9)


@pytest.mark.parametrize("name", ["aaio", "object-permanence", "melting-pot"])
def test_every_layout_can_be_widened(name: str) -> None:
    layout = load_layout(name)
    wide = widened(layout)
    assert wide.feature_names == (*layout.feature_names, INSIDE)
    assert wide.capabilities == layout.capabilities
    assert wide.digest != layout.digest


def test_a_widened_refit_keeps_the_capabilities_that_a_contradiction_would_spoil(
    aaio: Layout, draw_instances: Draw
) -> None:
    """An able agent fails wherever something that the layout does not know is in the way."""
    truth = np.array([4.0, 1.5, 0.0, 0.05])
    features = draw_instances(120, 2)
    generator = np.random.default_rng(3)
    p = Evaluator(aaio).probability(truth[np.newaxis], features)[0]
    inside = np.arange(120) % 3 == 0
    y = (generator.random(120) < np.where(inside, 0.0, p)).astype(float)
    plain, wide = LivePosterior(aaio, 1), LivePosterior(widened(aaio), 1)
    for episode, (row, more, outcome) in enumerate(
        zip(features, with_strata(features, inside), y, strict=True), 1
    ):
        plain.update(row, outcome, episode)
        wide.update(more, outcome, episode)
    spoilt = abs(plain.summary()[0].mean - truth[0])
    kept = wide.summary()[0]
    assert abs(kept.mean - truth[0]) < spoilt
    assert kept.hdi[0] <= truth[0] <= kept.hdi[1]
    share = wide.summary()[len(aaio.latents)]
    assert share.name == "contradictedShare"
    assert share.mean > 0.6
