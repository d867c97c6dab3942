"""Made-up layouts of every link, prior and outcome: definitions, program and PyMC graph agree."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.library import LAYOUTS, load_layout, variants
from animalcat.layouts.model.links import (
    LINKS,
    ONE,
    SURE,
    Formula,
    Gate,
    Link,
    LogisticMargin,
    LogScaling,
    NoiseMixture,
    OddsShift,
    Product,
    Scaling,
    WeightedSum,
)
from animalcat.layouts.model.nodes import KINDS, LIKELIHOODS, default_source
from animalcat.layouts.model.priors import PRIORS, HalfNormal, Normal, ScaledBeta
from animalcat.layouts.model.spec import (
    Bernoulli,
    Beta,
    Binomial,
    Derived,
    Feature,
    Latent,
    Layout,
    Likelihood,
    OutcomeNode,
)

Floats = npt.NDArray[np.float64]
Meaning = Callable[[dict[str, Any]], Any]

MEANINGS: dict[str, Meaning] = {}
"""What the formulas that were made up mean, by their text."""


def logistic(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def node_values(layout: Layout, theta: Floats, features: Floats) -> dict[str, Any]:
    """Every node, (draws, instances), by the definitions of the links and nothing else."""
    values: dict[str, Any] = {n: features[:, i] for i, n in enumerate(layout.feature_names)}
    values |= {n: theta[:, i, np.newaxis] for i, n in enumerate(layout.latent_names)}
    for node in layout.ordered:
        match node.link:
            case Scaling(a, factor):
                value = factor * values[a]
            case LogScaling(a, easiest, hardest, top):
                value = top * np.log(easiest / values[a]) / math.log(easiest / hardest)
            case WeightedSum(inputs, weights, constant):
                value = constant + sum(w * values[a] for a, w in zip(inputs, weights, strict=True))
            case Product(inputs):
                value = math.prod(values[a] for a in inputs)
            case LogisticMargin(a, b, slope, shift):
                value = logistic(slope * (values[a] - values[b] + values.get(shift, 0.0)))
            case Gate(a, when, otherwise):
                value = np.where(values[when] == 1.0, values[a], values.get(otherwise, 1.0))
            case NoiseMixture(a, b, nu):
                chance = values[nu] if isinstance(nu, str) else nu
                value = (1.0 - values[b]) * values[a] + values[b] * chance
            case OddsShift(a, b, sharpness):
                odds = np.exp(values[b])
                p, sharp = values[a], 1.0
                if sharpness:
                    p, sharp = np.clip(p, SURE, 1.0 - SURE), values[sharpness]
                passed, failed = p**sharp * odds, (1.0 - p) ** sharp
                value = passed / (passed + failed)
            case Formula(text):
                value = MEANINGS[text](values)
            case other:
                raise AssertionError(other)
        values[node.name] = value
    return values


def by_definition(layout: Layout, theta: Floats, features: Floats, outcome: int = 0) -> Floats:
    values = node_values(layout, theta, features)
    root = layout.outcomes[outcome].parents[0]
    return np.broadcast_to(values[root], (len(theta), len(features)))


def log_densities_by_definition(
    layout: Layout, theta: Floats, features: Floats, y: Floats
) -> Floats:
    """(outcomes, draws, instances): 0 where an outcome is missing."""
    values = node_values(layout, theta, features)
    made: list[Floats] = []
    for k, each in enumerate(y.reshape(len(features), -1).T):
        p = by_definition(layout, theta, features, k)
        match layout.outcomes[k].likelihood:
            case Bernoulli():
                density = stats.bernoulli.logpmf(each, p)
            case Binomial(_, trials):
                density = stats.binom.logpmf(each, values[trials], p)
            case Beta(_, sample_size, edge):
                a, b = p * values[sample_size], (1.0 - p) * values[sample_size]
                within = stats.beta.logpdf(each, a, b)
                upper = np.where(each >= 1.0 - edge, stats.beta.logsf(1.0 - edge, a, b), within)
                density = np.where(each <= edge, stats.beta.logcdf(edge, a, b), upper)
        made.append(np.where(np.isnan(each), 0.0, density))
    return np.array(made)


@st.composite
def formulas(draw: st.DrawFn, names: list[str]) -> Formula:
    """Formulas of shares, made share again by a logistic at the end."""

    def leaf() -> tuple[str, Meaning]:
        if draw(st.booleans()):
            name = draw(st.sampled_from(names))
            return name, lambda v: v[name]
        number = round(draw(st.floats(0.1, 3.0)), 3)
        return str(number), lambda v: number

    def tree(depth: int) -> tuple[str, Meaning]:
        if depth == 0:
            return leaf()
        kind = draw(st.sampled_from(["+", "-", "*", "/", "**", "max", "clip", "sqrt", "exp"]))
        (a, fa), (b, fb) = tree(depth - 1), leaf()
        match kind:
            case "+":
                return f"({a} + {b})", lambda v: fa(v) + fb(v)
            case "-":
                return f"({a} - {b})", lambda v: fa(v) - fb(v)
            case "*":
                return f"({a}) * -({b})", lambda v: fa(v) * -fb(v)
            case "/":
                return f"({a}) / (1 + abs({b}))", lambda v: fa(v) / (1.0 + np.abs(fb(v)))
            case "**":
                return f"({a}) ** 2", lambda v: fa(v) ** 2
            case "max":
                return f"max(min({a}, {b}), 0.2)", lambda v: np.maximum(
                    np.minimum(fa(v), fb(v)), 0.2
                )
            case "clip":
                return f"clip({a}, -0.5, 0.9)", lambda v: np.clip(fa(v), -0.5, 0.9)
            case "sqrt":
                return f"sqrt(abs({a}))", lambda v: np.sqrt(np.abs(fa(v)))
            case _:
                return f"log(2 + exp(-abs({a})))", lambda v: np.log(2 + np.exp(-np.abs(fa(v))))

    text, meaning = tree(draw(st.integers(1, 3)))
    text = f"logistic({text})"
    MEANINGS[text] = lambda v: logistic(meaning(v))
    return Formula(text)


@st.composite
def layouts(draw: st.DrawFn, covered: bool = False) -> Layout:
    """Layouts of one to three capabilities with all that the specification offers.

    Args:
        draw: Draws.
        covered: Whether only with what is sampled without a compiled PyMC model.
    """
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
                    Scaling(f"x{i}", draw(number)),
                    LogScaling(f"x{i}", 5.0, 0.5, draw(number)),
                ]
            )
        )
        name = add(f"demand{i}", demand, "u")
        if draw(st.booleans()):
            name = add(f"more{i}", WeightedSum((name,), (draw(number),), draw(number)), "u")
        shift = ""
        if draw(st.booleans()):
            features.append(Feature(f"side{i}", ONE, -1.0, 1.0))
            bias = Normal(draw(number), draw(number))
            if draw(st.booleans()):
                bias = HalfNormal(bias.sd)
            latents.append(Latent(f"bias{i}", "bias", "u", bias))
            shift = add(f"effect{i}", Product((f"bias{i}", f"side{i}")), "u")
        margin = LogisticMargin(f"ability{i}", name, draw(number), shift)
        last = add(f"performance{i}", margin)
        if draw(st.booleans()):
            features.append(Feature(f"present{i}", ONE, 0.0, 1.0))
            otherwise = draw(st.sampled_from(["", *performances[:1]]))
            last = add(f"gated{i}", Gate(last, f"present{i}", otherwise))
        performances.append(last)
    inputs = tuple(performances)
    combination = draw(
        st.sampled_from([Product(inputs), WeightedSum(inputs, (1.0 / count,) * count)])
    )
    last = add("all", combination)
    if draw(st.booleans()):
        formula = draw(formulas([last]))
        if last in formula.parents:
            last = add("own", formula)
    if draw(st.booleans()):
        latents.append(Latent("noise", "robustness", ONE, ScaledBeta(0.0, 1.0)))
        nu: float | str = draw(st.floats(0.0, 1.0))
        if draw(st.booleans()):
            features.append(Feature("chance", ONE, 0.0, 1.0))
            nu = "chance"
        last = add("noisy", NoiseMixture(last, "noise", nu))
    if draw(st.booleans()):
        features.append(Feature("easiness", ONE, -8.0, 8.0))
        sharpness = ""
        if draw(st.booleans()):
            sharpness = "sharpness"
            features.append(Feature(sharpness, ONE, 0.1, 10.0))
        last = add("eased", OddsShift(last, "easiness", sharpness))
    outcomes: list[OutcomeNode] = []
    kinds = [kind for kind in KINDS if not covered or kind not in ("count", "score")]
    for k, kind in enumerate(draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3))):
        root = draw(st.sampled_from([last, *performances])) if k else last
        likelihood: Likelihood = Bernoulli(root)
        if kind == "count":
            if "trials" not in [feature.name for feature in features]:
                features.append(Feature("trials", ONE, 1.0, 9.0))
            likelihood = Binomial(root, "trials")
        elif kind == "score":
            size = HalfNormal(draw(number) * 9.0)
            latents.append(Latent(f"size{k}", "robustness", ONE, size))
            likelihood = Beta(root, f"size{k}", 0.01)
        outcomes.append(OutcomeNode(f"outcome{k}", kind, default_source(kind), likelihood))
    return Layout("made-up", "", tuple(features), tuple(latents), tuple(derived), tuple(outcomes))


def random_values(layout: Layout, draws: int, instances: int) -> tuple[Floats, Floats]:
    g = np.random.default_rng(1)
    z = g.standard_normal((draws, len(layout.latents)))
    theta = np.column_stack([n.prior.from_standard(z[:, i]) for i, n in enumerate(layout.latents)])
    low = [f.low for f in layout.features]
    high = [f.high for f in layout.features]
    features = g.uniform(low, high, (instances, len(low)))
    for i, name in enumerate(layout.feature_names):
        if name in layout.gates or name == "trials":
            features[:, i] = np.round(features[:, i])
    return theta, features


def some_outcomes(layout: Layout, theta: Floats, features: Floats) -> Floats:
    """Outcomes of the first draw; of several some are missing, never all of an instance."""
    evaluator, g = Evaluator(layout), np.random.default_rng(2)
    drawn = evaluator.simulate(theta[:1], evaluator.columns(features), g)[:, 0]
    if drawn.ndim == 2:
        missing = g.random(drawn.shape) < 0.3
        missing[np.arange(len(drawn)), g.integers(drawn.shape[1], size=len(drawn))] = False
        drawn[missing] = np.nan
    return layout.check_outcomes(drawn, features)


@settings(max_examples=80, deadline=None)
@given(layouts())
def test_made_up_layouts_follow_the_definitions(layout: Layout) -> None:
    theta, features = random_values(layout, 300, 7)
    evaluator = Evaluator(layout)
    for k in range(len(layout.outcomes)):
        expected = by_definition(layout, theta, features, k)
        np.testing.assert_allclose(evaluator.probability(theta, features, k), expected, atol=1e-10)
    y = some_outcomes(layout, theta, features)
    got = evaluator.pointwise(theta, evaluator.columns(features), y).T
    each = log_densities_by_definition(layout, theta, features, y)
    wanted = each.sum(axis=0)
    # Below, the evaluator keeps outcomes possible on purpose.
    sane = (each > -25.0).all(axis=0)
    of_edge = ((y <= 0.01) | (y >= 0.99)).reshape(len(y), -1).any(axis=1)
    at_edge = np.broadcast_to(of_edge, got.shape)
    for some, tolerance in ((sane & ~at_edge, 1e-6), (sane & at_edge, 1e-4)):  # there by a series
        np.testing.assert_allclose(got[some], wanted[some], atol=tolerance, rtol=tolerance)
    total = evaluator.log_likelihood(theta, evaluator.columns(features), y)
    np.testing.assert_allclose(total, got.sum(axis=1), atol=1e-8, rtol=1e-9)
    shares = np.linspace(0.2, 1.0, len(y))
    partly = evaluator.log_likelihood(theta, evaluator.columns(features), y, shares)
    np.testing.assert_allclose(partly, got @ shares, atol=1e-8, rtol=1e-9)


@settings(max_examples=40, deadline=None)
@given(layouts())
def test_what_instances_share_is_worked_out_once_and_right(layout: Layout) -> None:
    theta, features = random_values(layout, 20, 300)
    least = [f.low for f in layout.features]
    features[:, 1:] = np.maximum(np.round(features), least)[:, 1:]  # the first differs everywhere
    evaluator = Evaluator(layout)
    expected = by_definition(layout, theta, features)
    np.testing.assert_allclose(evaluator.probability(theta, features), expected, atol=1e-10)
    single = evaluator.by_instance(theta, evaluator.columns(features), np.float32)
    np.testing.assert_allclose(single.T, expected, atol=1e-3)


def pymc_log_density(layout: Layout, theta: Floats, features: Floats, y: Floats) -> Any:
    """P and log density, both (outcomes, draws, instances), from the PyMC graph."""
    import pymc
    import pytensor

    from animalcat.layouts.inference.backend.graph import build_model

    graph = build_model(layout)
    pm: Any = pymc
    model: Any = graph.model
    with model:
        pm.set_data(graph.data(layout.check_features(features), y))
    nodes = [model[name] for name in layout.latent_names]
    function: Any = pytensor.function(
        nodes,
        [*map(pytensor.tensor.as_tensor, graph.probabilities), *graph.densities],
        mode="FAST_COMPILE",
        on_unused_input="ignore",
    )
    made = [function(*row) for row in theta]
    whole = np.array([[np.broadcast_to(values, len(y)) for values in row] for row in made])
    p, density = np.split(whole.swapaxes(0, 1), 2)
    return p, np.where(np.isnan(y.reshape(len(y), -1).T)[:, np.newaxis], 0.0, density)


def agree(layout: Layout) -> None:
    theta, features = random_values(layout, 4, 5)
    y = some_outcomes(layout, theta, features)
    p, each = pymc_log_density(layout, theta, features, y)
    evaluator = Evaluator(layout)
    for k in range(len(layout.outcomes)):
        np.testing.assert_allclose(evaluator.probability(theta, features, k), p[k], atol=1e-6)
    got = evaluator.pointwise(theta, evaluator.columns(features), y).T
    log_density = each.sum(axis=0)
    sane = (each > -25.0).all(axis=0)
    np.testing.assert_allclose(got[sane], log_density[sane], atol=1e-6, rtol=1e-6)


def pymc_gradient(
    layout: Layout, features: Floats, y: Floats, weights: Floats | None, points: list[Floats]
) -> list[tuple[float, Floats]]:
    """Log density and its gradient at unconstrained points, from the PyMC graph."""
    import pymc
    import pytensor

    from animalcat.layouts.inference.backend.graph import build_model

    graph = build_model(layout, weighted=weights is not None)
    pm: Any = pymc
    tensor: Any = pytensor.tensor
    model: Any = graph.model
    with model:
        pm.set_data(graph.data(features, y, weights))
    # Summed as one array, since NumPy adds no more than 32 at once.
    total = tensor.stack([term.sum() for term in model.logp(sum=False)]).sum()
    function: Any = pytensor.function(
        model.value_vars,
        [total, *tensor.grad(total, model.value_vars)],
        mode=pytensor.compile.mode.Mode(linker="py", optimizer=None),
        on_unused_input="ignore",
    )
    made = [function(*point) for point in points]
    return [(float(value), np.array(slopes)) for value, *slopes in made]


def gradients_agree(layout: Layout) -> None:
    """What nutpie is given equals the PyMC model, which defines it."""
    from animalcat.layouts.inference.backend import density

    theta, features = random_values(layout, 1, 9)
    features[4:8] = features[:4]  # so that some have a combination of features in common
    features = layout.check_features(features)
    y = some_outcomes(layout, theta, features)
    points = [density.starts(len(layout.latents), seed) for seed in range(3)]
    for weights in (None, np.linspace(0.0, 1.0, len(y))):
        whole = density.tape(layout, features, y, weights)
        there = [unconstrain(layout, whole, point) for point in points]
        wanted = pymc_gradient(layout, features, y, weights, [u for u, _, _ in there])
        for rows in (4096, 5):  # in one tape, and in several
            with mock.patch.object(density, "_ROWS", rows):
                tape = density.tape(layout, features, y, weights)
            each = zip(points, wanted, there, strict=True)
            for point, (value, slopes), (_, grown, bent) in each:
                got, gradient = sampled_gradient(tape, point)
                # PyTensor has some constants in float32.
                assert got == pytest.approx(value + np.log(grown).sum(), rel=1e-6, abs=1e-6)
                np.testing.assert_allclose(
                    gradient, slopes * grown + bent / grown, rtol=1e-5, atol=1e-5
                )


def unconstrain(layout: Layout, tape: Floats, point: Floats) -> tuple[Floats, Floats, Floats]:
    """A point that is sampled as PyMC has it, and by what it grows with the point, and bends."""
    from animalcat.layouts.inference.backend.density import expand

    call: Any = expand.ctypes
    size = len(point)

    def at(shift: float) -> Floats:
        values = np.empty(size)
        arrays = zip((point + shift, values, tape), call.argtypes[2:], strict=True)
        call(size, size, *(array.ctypes.data_as(kind) for array, kind in arrays))
        return np.array(
            [
                np.log((value - node.prior.low) / (node.prior.high - value))
                if isinstance(node.prior, ScaledBeta)
                else (np.log(value) if isinstance(node.prior, HalfNormal) else value)
                for node, value in zip(layout.latents, values, strict=True)
            ]
        )

    step = 1e-3
    (a, b, c, d, e) = (at(k * step) for k in (-2, -1, 0, 1, 2))
    grown = (a - 8.0 * b + 8.0 * d - e) / (12.0 * step)
    bent = (-a + 16.0 * b - 30.0 * c + 16.0 * d - e) / (12.0 * step**2)
    return c, grown, bent


def sampled_gradient(tape: Floats, point: Floats) -> tuple[float, Floats]:
    """Log density and gradient, as nutpie calls for them."""
    from animalcat.layouts.inference.backend.density import log_density

    value, gradient = np.empty(1), np.empty(len(point))
    call: Any = log_density.ctypes
    arrays = zip((point, gradient, value, tape), call.argtypes[1:], strict=True)
    call(len(point), *(array.ctypes.data_as(kind) for array, kind in arrays))
    return float(value[0]), gradient


@settings(max_examples=2, deadline=None, derandomize=True)
@given(layouts(covered=True))
@pytest.mark.xdist_group("nuts")
def test_what_is_sampled_equals_the_pymc_graph(layout: Layout) -> None:
    gradients_agree(layout)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(layouts())
@pytest.mark.xdist_group("nuts")
def test_made_up_layouts_equal_their_pymc_graph(layout: Layout) -> None:
    agree(layout)


@pytest.mark.xdist_group("nuts")
@pytest.mark.parametrize(
    ("name", "variant"),
    [
        pytest.param(name, variant, marks=pytest.mark.slow if k else ())
        for name in LAYOUTS
        for k, variant in enumerate(variants(name))
    ],
)
def test_shipped_layouts_equal_their_pymc_graph(name: str, variant: str) -> None:
    from animalcat.layouts.inference.backend.density import covers

    layout = load_layout(name, variant)
    agree(layout)
    if covers(layout):
        gradients_agree(layout)


def test_the_made_up_layouts_hold_everything_that_a_specification_may() -> None:
    seen: set[type[Any]] = set()
    counts: set[int] = set()

    @settings(max_examples=120, deadline=None, derandomize=True, database=None)
    @given(layouts())
    def collect(layout: Layout) -> None:
        seen.update(type(node.link) for node in layout.derived)
        seen.update(type(node.prior) for node in layout.latents)
        seen.update(type(outcome.likelihood) for outcome in layout.outcomes)
        counts.add(len(layout.outcomes))

    collect()
    assert seen == {*LINKS.values(), *PRIORS.values(), *LIKELIHOODS.values()}
    assert counts == {1, 2, 3}
