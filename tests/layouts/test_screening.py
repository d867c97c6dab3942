"""The gate of predictive power, as in the Melting Pot paper."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from importlib import resources

import jsonschema
import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.checking.predict import FittedLayout, HeldOutPredictions
from animalcat.layouts.checking.screening import Power, gate_profile, predictive_power
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import NOT_READ, Profile

Floats = npt.NDArray[np.float64]
Draw = Callable[[int, int], Floats]


def test_a_profile_that_predicts_nothing_is_not_read(aaio: Layout) -> None:
    generator = np.random.default_rng(2)
    p = generator.uniform(size=300)
    rows, repeat = np.arange(300), np.zeros(300, dtype=np.int64)
    known = predictive_power(
        HeldOutPredictions(rows, p, (generator.random(300) < p).astype(float), repeat)
    )
    blind = predictive_power(
        HeldOutPredictions(rows, p, (generator.random(300) < 0.5).astype(float), repeat)
    )
    assert known.readable
    assert not blind.readable
    assert "contradict" in blind.reason
    scores = np.where(generator.random(300) < 0.5, 0.4, 0.6)
    same = predictive_power(HeldOutPredictions(rows, p, np.full(300, 0.5), repeat))
    assert not same.readable
    assert "all equal" in same.reason
    dull = predictive_power(HeldOutPredictions(rows, p, scores, repeat))
    assert not dull.readable
    assert "is below 0.25" in dull.reason

    profile = Profile.of_fit(fit(FitRequest(aaio, np.empty((0, 4)), [], seed=1)))
    read, unread, silent = (gate_profile(profile, power) for power in (known, blind, same))
    assert read.status == {}
    assert dict(unread.status) == dict.fromkeys(["navigationAbility", "visualAbility"], NOT_READ)
    assert unread.diagnostics["predictive_power"]["readable"] is False
    text = (resources.files("animalcat") / "schemas" / "profile.schema.json").read_text("utf-8")
    for each in (read, unread, silent):
        jsonschema.validate(json.loads(each.to_json()), json.loads(text))
    assert math.isnan(same.r2.value)


def power_held_out(aaio: Layout, outcomes: Floats, features: Floats) -> Power:
    """What the gate says of a layout that 240 of 300 outcomes were told."""
    posterior = LivePosterior(aaio, 3, 500)
    posterior.update_all(features[:240], outcomes[:240])
    predicted = FittedLayout(aaio, posterior.particles, posterior.weights).predict(
        Instances(aaio.feature_names, features[240:])
    )
    rows, repeat = np.arange(240, 300), np.zeros(60, dtype=np.int64)
    return predictive_power(HeldOutPredictions(rows, predicted, outcomes[240:], repeat))


@pytest.mark.parametrize("agent", range(8))
def test_the_layout_of_a_true_agent_is_read_though_its_r2_is_low(
    aaio: Layout, draw_instances: Draw, agent: int
) -> None:
    features = draw_instances(300, 30 + agent)
    generator = np.random.default_rng([7, agent])
    z = generator.standard_normal((1, len(aaio.latents)))
    evaluator = Evaluator(aaio)
    columns = evaluator.columns(features)
    y = evaluator.simulate(aaio.from_standard(z), columns, generator)[:, 0]
    power = power_held_out(aaio, y, features)
    assert power.readable, power.reason


def test_a_layout_that_does_not_describe_the_agent_is_not_read(
    aaio: Layout, draw_instances: Draw
) -> None:
    """What decides is nothing that the layout knows of: 0 until it has learnt, and 1 from then."""
    features = draw_instances(300, 3)
    hidden = np.random.default_rng(1).random(300) < 0.5
    assert not power_held_out(aaio, hidden.astype(float), features).readable
    learnt = np.concatenate([np.zeros(240), np.ones(60)])
    found = power_held_out(aaio, learnt, features)
    assert "contradict" in found.reason
