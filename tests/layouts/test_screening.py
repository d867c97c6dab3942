"""Demand screening and the gate of predictive power, as in the Melting Pot paper."""

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
from animalcat.layouts.checking.screening import Power, gated, predictive_power, screen_demands
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import NOT_READ, Profile

Floats = npt.NDArray[np.float64]
Draw = Callable[[int, int], Floats]

REAL = (
    "prosocial_newcomers",
    "visitor",
    "time_pressure",
    "convention_following",
    "teaching",
    "forgiveness",
    "reciprocity",
)
"""The seven demands that the paper keeps of 16."""
TWINS = {"partner_choice": "time_pressure", "ostracism": "time_pressure", "sanctioning": "teaching"}
"""Demands that are present in the same scenarios, as the paper says."""
HARMLESS = ("resident", "cooperation", "public_goods", "turn_taking", "trust", "fairness")
"""Six that do not go with lower scores; the paper does not name them."""


def melting_pot() -> tuple[Instances, np.ndarray]:
    """51 scenarios with 16 demands and the scores of 20 agents, 16 blocks each averaged."""
    generator = np.random.default_rng(12)
    columns = {name: (generator.random(51) < 0.3).astype(float) for name in (*REAL, *HARMLESS)}
    ability = generator.uniform(0.3, 0.8, size=(20, len(REAL)))
    hard = np.prod(
        [np.where(columns[d] > 0, ability[:, [j]], 1.0) for j, d in enumerate(REAL)], axis=0
    )
    easy = 0.12 * sum(columns[name] for name in HARMLESS)
    y = np.clip(0.3 * hard + easy + generator.normal(0, 0.02, hard.shape), 0, 1)
    columns |= {twin: columns[name] for twin, name in TWINS.items()}
    return Instances(tuple(columns), np.array(list(columns.values())).T), y


def test_sixteen_demands_become_seven() -> None:
    instances, y = melting_pot()
    assert len(instances.columns) == 16
    found = screen_demands(instances, y)
    assert found.kept == REAL
    by_name = {demand.name: demand for demand in found.demands}
    assert {d.name: d.of for d in found.demands if d.verdict == "duplicate"} == TWINS
    assert "rises and falls with time_pressure" in by_name["ostracism"].reason
    assert [d.name for d in found.demands if d.verdict == "no demand"] == list(HARMLESS)
    for demand in found.demands:
        assert demand.correlation is not None
        direct = np.corrcoef(np.tile(instances.column(demand.name), len(y)), y.ravel())[0, 1]
        assert demand.correlation.value == pytest.approx(direct)
        assert demand.correlation.low < direct < demand.correlation.high
    # One may say which of two to keep.
    other = screen_demands(instances, y, prefer=["sanctioning"])
    assert set(other.kept) == set(REAL) - {"teaching"} | {"sanctioning"}


def test_what_was_not_played_is_left_out() -> None:
    instances, y = melting_pot()
    y[np.random.default_rng(1).random(y.shape) < 0.3] = np.nan
    found = screen_demands(instances, y, demands=["visitor"])
    played = np.isfinite(y)
    x = np.tile(instances.column("visitor"), (len(y), 1))[played]
    assert found.demands[0].correlation is not None
    assert found.demands[0].correlation.value == pytest.approx(np.corrcoef(x, y[played])[0, 1])


def test_bad_input_is_named() -> None:
    instances = Instances(("a",), np.array([[1.0], [np.nan]]))
    with pytest.raises(ValueError, match="demand a of row 1 is missing"):
        screen_demands(instances, [0, 1])
    good = Instances(("a",), np.array([[1.0], [2.0]]))
    with pytest.raises(ValueError, match="outcomes that differ"):
        screen_demands(good, [1, 1])
    with pytest.raises(ValueError, match=r"shape \(1, 3\) for 2 instances"):
        screen_demands(good, [0, 1, 1])


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
    read, unread, silent = (gated(profile, power) for power in (known, blind, same))
    assert read.status == {}
    assert dict(unread.status) == dict.fromkeys(["navigationAbility", "visualAbility"], NOT_READ)
    assert unread.diagnostics["predictive_power"]["readable"] is False
    text = (resources.files("animalcat") / "schemas" / "profile.schema.json").read_text("utf-8")
    for each in (read, unread, silent):
        jsonschema.validate(json.loads(each.to_json()), json.loads(text))
    assert math.isnan(same.r2.value)


def held_out_by(aaio: Layout, outcomes: Floats, features: Floats) -> Power:
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
    power = held_out_by(aaio, y, features)
    assert power.readable, power.reason


def test_a_layout_that_does_not_describe_the_agent_is_not_read(
    aaio: Layout, draw_instances: Draw
) -> None:
    """What decides is nothing that the layout knows of: 0 until it has learnt, and 1 from then."""
    features = draw_instances(300, 3)
    hidden = np.random.default_rng(1).random(300) < 0.5
    assert not held_out_by(aaio, hidden.astype(float), features).readable
    learnt = np.concatenate([np.zeros(240), np.ones(60)])
    found = held_out_by(aaio, learnt, features)
    assert "contradict" in found.reason
