"""A profile of scores is read where its layout predicts held-out scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import Profile
from animalcat.service.measuring.gate import LEAST_OUTCOMES, through_gate

EVER = StoppingRule(1000, target_sd=0.0, futility=0.0)
UNREAD = "not to be read"


def bank(layout: Layout, n: int = 120) -> Bank:
    """Instances that ask for each thing or not, at random."""
    features = np.random.default_rng(0).integers(0, 2, (n, len(layout.features))).astype(float)
    return Bank(layout, features, ["pot"] * n, names=[str(k) for k in range(n)])


def profile_of(layout: Layout, score: Callable[[str], float], episodes: int) -> Profile:
    learner = Learner(bank(layout), rule=EVER, seed=1)
    for _ in range(episodes):
        choice = learner.ask()
        assert choice is not None
        value = score(choice.instance)
        if np.isnan(value):
            learner.tell_nothing(choice.instance)
        else:
            learner.tell(choice.instance, value)
    status = dict.fromkeys((layout.latents[k].name for k in layout.capabilities), "budget")
    return through_gate(Profile.of_live(learner.posterior, status), learner, 3)


def fails_at_the_first(instance: str) -> float:
    """An agent that keeps a fifth of its score where the first demand is asked for."""
    layout = load_layout("melting-pot")
    asked = bank(layout).features[int(instance), 0]
    noise = np.random.default_rng(int(instance)).uniform(-0.05, 0.05)
    return float(0.9 - 0.7 * asked + noise)


def at_random(instance: str) -> float:
    return float(np.random.default_rng(int(instance)).uniform(0.02, 0.98))


@pytest.mark.slow
def test_who_is_predicted_is_read() -> None:
    layout = load_layout("melting-pot")
    found = profile_of(layout, fails_at_the_first, 80)
    power = found.diagnostics["predictive_power"]
    assert power["readable"]
    assert power["r2"] > power["least"]
    assert set(found.status.values()) == {"budget"}


@pytest.mark.slow
def test_who_is_not_predicted_is_not_read() -> None:
    layout = load_layout("melting-pot")
    found = profile_of(layout, at_random, 80)
    power = found.diagnostics["predictive_power"]
    assert not power["readable"]
    assert "is below" in power["reason"]
    assert set(found.status.values()) == {UNREAD}


def test_few_outcomes_and_other_kinds_have_no_gate() -> None:
    layout = load_layout("melting-pot")
    few = profile_of(layout, at_random, LEAST_OUTCOMES - 1)
    assert "predictive_power" not in few.diagnostics
    unobserved = profile_of(layout, lambda _: np.nan, LEAST_OUTCOMES)
    assert "predictive_power" not in unobserved.diagnostics
    passes = profile_of(load_layout("one-capability"), lambda _: 1.0, LEAST_OUTCOMES)
    assert "predictive_power" not in passes.diagnostics
