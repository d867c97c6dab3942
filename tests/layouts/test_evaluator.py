"""The compiled evaluator: right on AAIO, on made-up layouts, and equal to the PyMC graph."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animalcat.layouts.evaluator import Evaluator
from animalcat.layouts.links import (
    ONE,
    Link,
    LogisticMargin,
    LogScaled,
    NoiseMixture,
    Product,
    Scaled,
    WeightedSum,
)
from animalcat.layouts.priors import Normal, ScaledBeta
from animalcat.layouts.spec import Bernoulli, Derived, Feature, Latent, Layout

Floats = npt.NDArray[np.float64]


def by_definition(layout: Layout, theta: Floats, features: Floats) -> Floats:
    """P(success), (draws, instances), by the definitions of the links and nothing else."""
    values: dict[str, Any] = {n: features[:, i] for i, n in enumerate(layout.feature_names)}
    values |= {n: theta[:, i, np.newaxis] for i, n in enumerate(layout.latent_names)}
    for node in layout.ordered:
        match node.link:
            case Scaled(a, factor):
                value = factor * values[a]
            case LogScaled(a, easiest, hardest, top):
                value = top * np.log(easiest / values[a]) / math.log(easiest / hardest)
            case WeightedSum(inputs, weights, constant):
                value = constant + sum(w * values[a] for a, w in zip(inputs, weights, strict=True))
            case Product(inputs):
                value = math.prod(values[a] for a in inputs)
            case LogisticMargin(a, b, slope, shift):
                margin = values[a] - values[b] + (values[shift] if shift else 0.0)
                value = 1.0 / (1.0 + np.exp(-slope * margin))
            case NoiseMixture(a, b, float() as nu):
                value = (1.0 - values[b]) * values[a] + values[b] * nu
            case other:
                raise AssertionError(other)
        values[node.name] = value
    return np.broadcast_to(values[layout.outcome.probability], (len(theta), len(features)))


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Layouts of one to three capabilities, with and without bias, noise and odd arithmetic."""
    count = draw(st.integers(1, 3))
    number = st.floats(0.1, 3.0).map(lambda x: round(x, 3))
    features = [Feature(f"x{i}", "m", 0.1, 5.0) for i in range(count)]
    latents: list[Latent] = []
    derived: list[Derived] = []

    def add(name: str, link: Link, unit: str = ONE) -> str:
        derived.append(Derived(name, unit, link))
        return name

    performances: list[str] = []
    for i in range(count):
        prior = ScaledBeta(0.0, draw(number), draw(number), draw(number))
        latents.append(Latent(f"ability{i}", "capability", "u", prior))
        demand = draw(
            st.sampled_from(
                [
                    Scaled(f"x{i}", draw(number)),
                    LogScaled(f"x{i}", 5.0, 0.5, draw(number)),
                ]
            )
        )
        name = add(f"demand{i}", demand, "u")
        if draw(st.booleans()):
            name = add(f"more{i}", WeightedSum((name,), (draw(number),), draw(number)), "u")
        shift = ""
        if draw(st.booleans()):
            features.append(Feature(f"side{i}", ONE, -1.0, 1.0))
            latents.append(Latent(f"bias{i}", "bias", "u", Normal(draw(number), draw(number))))
            shift = add(f"effect{i}", Product((f"bias{i}", f"side{i}")), "u")
        margin = LogisticMargin(f"ability{i}", name, draw(number), shift)
        performances.append(add(f"performance{i}", margin))
    if draw(st.booleans()):
        last = add("all", Product(tuple(performances)))
    else:
        weights = (1.0 / count,) * count
        last = add("average", WeightedSum(tuple(performances), weights))
    if draw(st.booleans()):
        latents.append(Latent("noise", "robustness", ONE, ScaledBeta(0.0, 1.0)))
        last = add("noisy", NoiseMixture(last, "noise", draw(st.floats(0.0, 1.0))))
    outcome = Bernoulli(last)
    return Layout("made-up", "", tuple(features), tuple(latents), tuple(derived), outcome)


def random_values(layout: Layout, draws: int, instances: int) -> tuple[Floats, Floats]:
    g = np.random.default_rng(1)
    z = g.standard_normal((draws, len(layout.latents)))
    theta = np.column_stack([n.prior.from_standard(z[:, i]) for i, n in enumerate(layout.latents)])
    low = [f.low for f in layout.features]
    high = [f.high for f in layout.features]
    return theta, g.uniform(low, high, (instances, len(low)))


@settings(max_examples=250, deadline=None)
@given(layouts())
def test_made_up_layouts_follow_the_definitions(layout: Layout) -> None:
    theta, features = random_values(layout, 300, 7)
    expected = by_definition(layout, theta, features)
    got = Evaluator(layout).probability(theta, features)
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_aaio_by_hand(aaio: Layout) -> None:
    theta = [[3.0, 1.0, 0.5, 0.2]]
    features = [[20.0, 1.0, 1.0, -1.0]]
    navigation = 1 / (1 + math.exp(-6.9 / 5.3 * (3.0 - 2.0 * 1.5 - 0.5)))
    visual = 1 / (1 + math.exp(-6.9 / 1.9 * (1.0 - 1.9 * math.log10(5.0))))
    expected = 0.8 * navigation * visual + 0.2 * 0.5
    assert Evaluator(aaio).probability(theta, features)[0, 0] == pytest.approx(expected, abs=1e-12)


def test_extreme_margins_saturate(aaio: Layout) -> None:
    theta = [[5.3, 1.9, 900.0, 0.0], [0.0, 0.0, -900.0, 0.0]]
    p = Evaluator(aaio).probability(theta, [[1.0, 10.0, 0.0, 1.0]])[:, 0]
    assert p[0] == pytest.approx(1.0, abs=1e-3)
    assert 0.0 <= p[1] < 1e-300


def test_likelihood_is_that_of_the_probabilities(
    aaio: Layout, draw_instances: Callable[[int, int], Floats]
) -> None:
    theta, _ = random_values(aaio, 700, 1)
    features = draw_instances(53, 2)
    y = np.random.default_rng(0).integers(0, 2, 53).astype(np.float64)
    evaluator = Evaluator(aaio)
    p = by_definition(aaio, theta, features)
    expected = np.log(np.where(y == 1.0, p, 1.0 - p)).sum(axis=1)
    got = evaluator.log_likelihood(theta, evaluator.columns(features), y)
    np.testing.assert_allclose(got, expected, atol=1e-9)
    nothing = evaluator.log_likelihood(theta, evaluator.columns(np.empty((0, 4))), np.empty(0))
    assert (nothing == 0.0).all()


def test_demands_are_in_the_unit_of_the_ability(aaio: Layout) -> None:
    evaluator = Evaluator(aaio)
    demands = evaluator.demands(evaluator.columns([[20.0, 5.0, 1.0, 0.0], [10.0, 0.5, 0.0, 0.0]]))
    np.testing.assert_allclose(demands, [[3.0, 0.0], [1.0, 1.9]], atol=1e-12)


def test_wrong_shapes_say_what_is_wanted(aaio: Layout) -> None:
    with pytest.raises(ValueError, match="navigationAbility, visualAbility"):
        Evaluator(aaio).probability([[1.0, 2.0]], [[10.0, 1.0, 0.0, 0.0]])


def pymc_probability(layout: Layout, theta: Floats, features: Floats) -> Floats:
    """The same from the PyMC graph, draw by draw."""
    import pymc as pm
    import pytensor

    from animalcat.layouts.backend.graph import probability

    with pm.Model():
        rows = pm.Data("features", features)
        p: Any = probability(layout, rows)
        nodes: list[Any] = [pm.modelcontext(None)[name] for name in layout.latent_names]
    function: Any = pytensor.function(nodes, p, mode="FAST_COMPILE", on_unused_input="ignore")
    return np.array([function(*row) for row in theta])


@pytest.mark.slow
def test_equals_the_pymc_graph_on_aaio(aaio: Layout) -> None:
    theta, features = random_values(aaio, 50, 20)
    got = Evaluator(aaio).probability(theta, features)
    np.testing.assert_allclose(got, pymc_probability(aaio, theta, features), atol=1e-6)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(layouts())
def test_equals_the_pymc_graph_on_made_up_layouts(layout: Layout) -> None:
    theta, features = random_values(layout, 5, 4)
    got = Evaluator(layout).probability(theta, features)
    np.testing.assert_allclose(got, pymc_probability(layout, theta, features), atol=1e-6)
