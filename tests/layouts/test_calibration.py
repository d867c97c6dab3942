"""Simulation-based calibration: right layouts pass, wrong ones are named."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import betainc, gammaln
from typer.testing import Result

from animalcat.cli.layout.calibration import PARTICLES
from animalcat.layouts.checking.calibration import (
    SimulationBasedCalibration,
    problems,
    simulate_calibration,
    spread,
)
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import LAYOUTS, load_layout, variants
from animalcat.layouts.model.likelihood import log_beyond
from animalcat.layouts.model.spec import Layout
from tests.command_line import call

EVERY = [(name, variant) for name in LAYOUTS for variant in variants(name)]


def calibrate_some(
    layout: Layout, agents: int = 40, outcomes: int = 20, seed: int = 3
) -> SimulationBasedCalibration:
    instances = spread(layout, 200, np.random.default_rng(0))
    return simulate_calibration(
        layout, instances, agents=agents, outcomes=outcomes, seed=seed, particles=400
    )


@pytest.mark.parametrize(("name", "variant"), EVERY)
def test_instances_are_spread_over_the_declared_ranges(name: str, variant: str) -> None:
    layout = load_layout(name, variant)
    values = layout.check_features(spread(layout, 300, np.random.default_rng(1)))
    for feature, column in zip(layout.features, values.T, strict=True):
        if feature.name in layout.gates:
            assert set(column) == {0.0, 1.0}
        else:
            assert len(set(column.tolist())) > 5


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYOUTS)
def test_shipped_layouts_are_calibrated(name: str) -> None:
    # A quick version: the results of 1,000 agents a variant are in docs/research/reproduction.md.
    found = calibrate_some(load_layout(name))
    assert found.problems == ()
    assert found.covered.shape == found.places.shape == (40, len(found.layout.latents))
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_wrong_posterior_is_found_out() -> None:
    good = calibrate_some(load_layout("one-capability"), agents=200, outcomes=5)
    assert good.problems == ()
    # Half of the truths moved to where the posterior has nothing: intervals miss them.
    places, covered = good.places.copy(), good.covered.copy()
    places[::2, 0], covered[::2, 0] = 1.0, False
    found = replace(good, places=places, covered=covered).problems
    assert [text.split(":")[0] for text in found[:2]] == ["ability", "ability"]
    assert "uneven" in found[1]
    assert "pooled coverage" in found[2]


def test_nodes_are_judged_by_all_nodes_of_a_run() -> None:
    right = calibrate_some(load_layout("one-capability"), agents=200, outcomes=5)
    covered = right.covered.copy()
    covered[:, 0] = np.arange(200) < 166  # p 0.0021 alone, 0.0042 of two nodes
    odd = replace(right, covered=covered)
    assert [text.split(":")[0] for text in odd.problems] == ["ability"]
    assert odd.to_dict()["nodes"]["ability"]["corrected"]["coverage"] == pytest.approx(
        2.0 * odd.misses[0]
    )
    assert problems([odd])[0] == odd.problems
    # Among 40 nodes one that far off is to be expected.
    assert problems([odd, *[right] * 19]) == [()] * 20
    assert problems([odd, right])[1] == ()


@pytest.mark.slow
def test_agents_lose_some_of_several_outcomes() -> None:
    layout = load_layout("navigation-speed")
    instances = spread(layout, 200, np.random.default_rng(0))
    whole, some = (
        simulate_calibration(
            layout, instances, agents=20, outcomes=20, seed=3, particles=400, missing=share
        )
        for share in (0.0, 0.6)
    )
    assert some.problems == ()
    assert some.to_dict()["missing"] == 0.6
    assert not np.array_equal(some.places, whole.places)
    with pytest.raises(ValueError, match="missing outcomes is not in"):
        simulate_calibration(layout, instances, agents=1, outcomes=5, seed=3, missing=1.0)


@pytest.mark.slow
def test_nuts_is_calibrated_too() -> None:
    layout = load_layout("aaio", "scaled")
    instances = spread(layout, 200, np.random.default_rng(0))
    found = simulate_calibration(layout, instances, agents=25, outcomes=40, seed=5, engine="nuts")
    assert found.problems == ()
    assert len(found.covered) + found.left_out == 25


@pytest.mark.parametrize(
    ("a", "b"), [(0.01, 3.0), (0.5, 20.0), (2.0, 900.0), (5.0, 0.01), (30, 0.3)]
)
def test_what_a_score_at_the_edge_says(a: float, b: float) -> None:
    ours = log_beyond(np.float64(a), np.float64(b), 1e-3, np.log, gammaln, np.maximum)
    assert ours == pytest.approx(np.log(betainc(a, b, 1e-3)), abs=1e-5)


def check(*arguments: object) -> Result:
    return call("layout", "check", *arguments)


def test_the_command() -> None:
    given = ["one-capability", "--simulated", 4, "--episodes", 5, "--seed", 2]
    report = json.loads(check(*given, "--json").stdout)
    layout = load_layout("one-capability")
    again = simulate_calibration(
        layout,
        spread(layout, 2000, rng(2, "spread", 0)),
        agents=4,
        outcomes=5,
        seed=2,
        particles=PARTICLES,
    )
    assert report == again.to_dict()
    assert "4 agents, 5 outcomes" in check(*given).stdout
    every = ["navigation-speed", "--variant", "all", "--missing", 0.2, *given[1:]]
    both = json.loads(check(*every, "--json").stdout)
    assert [one["layout"]["variant"] for one in both] == list(variants("navigation-speed"))
    assert [one["missing"] for one in both] == [0.2, 0.2]
    assert check("one-capability").exit_code == 2
    assert "--simulated AGENTS" in check("one-capability").stderr
