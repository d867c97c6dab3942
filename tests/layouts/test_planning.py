"""Agents of the prior take a test beforehand, and what they end with is what sessions end with."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.library import load_layout
from animalcat.layouts.simulation.planning import (
    Course,
    courses,
    endings,
    less_noisy,
    share_known,
)

LAYOUT = load_layout("one-capability", "success")


def bank() -> Bank:
    rows = np.linspace(0.0, 10.0, 60).reshape(-1, 1)
    return Bank(LAYOUT, rows, ["a"] * 60, seconds=np.full(60, 3.0))


@pytest.fixture(scope="module")
def found() -> list[Course]:
    return courses(bank(), Policy(), StoppingRule(25, target_sd=0.08, futility=0.0), 9, seed=2)


def test_a_longer_test_tells_more_and_its_time_is_that_of_its_episodes(
    found: list[Course],
) -> None:
    assert all(one.seconds == 3.0 * one.episodes for one in found)
    assert max(one.episodes for one in found) == 25
    short = courses(bank(), Policy(), StoppingRule(5, target_sd=0.08, futility=0.0), 9, seed=2)
    for one, other in zip(found, short, strict=True):
        np.testing.assert_array_equal(one.truth, other.truth)
        assert one.episodes > other.episodes == 5
    sd = LAYOUT.latents[0].prior.sd
    assert share_known(found, 0, sd) >= share_known(short, 0, sd)
    assert np.mean([one.nodes[0].sd for one in found]) < np.mean([one.nodes[0].sd for one in short])


def test_agents_are_told_by_what_is_true_of_them(found: list[Course]) -> None:
    low, middle, high = endings(found, 0)
    assert (low.third, high.third) == ("low", "high")
    assert low.truth < middle.truth < high.truth
    assert low.hdi[0] < high.hdi[1]
    quiet = less_noisy(found, LAYOUT)
    assert len(quiet) == 4
    loud = [one for one in found if all(one is not other for other in quiet)]
    assert max(one.truth[1] for one in quiet) <= min(one.truth[1] for one in loud)


def test_several_outcomes_are_told_as_the_instances_give_them() -> None:
    layout = load_layout("navigation-speed", "reward")
    rows = np.column_stack([np.linspace(5, 50, 12), np.full(12, 20.0)])
    several = Bank(layout, rows, ["a"] * 12)
    found = courses(several, Policy(), StoppingRule(4, futility=0.0), 3)
    assert [one.episodes for one in found] == [4, 4, 4]
