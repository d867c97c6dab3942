"""Persons as a group: the density that is sampled, the posterior, and what is refused."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import expit, logit, ndtr

from animalcat.layouts.calibrating.group import fit_group, moved
from animalcat.layouts.checking.calibration import spread
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.fit import FitData
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.priors import HalfNormal, Normal, ScaledBeta
from animalcat.layouts.model.spec import Layout, from_dict
from tests.layouts.test_two_evaluators import sampled_gradient

Floats = npt.NDArray[np.float64]


def alone() -> Layout:
    """One uniform capability, and nothing else."""
    return from_dict(
        {
            "name": "alone",
            "variant": "",
            "features": {"difficulty": {"unit": "1", "low": 0, "high": 10}},
            "latents": {
                "ability": {
                    "kind": "capability",
                    "unit": "1",
                    "prior": {"scaled_beta": {"low": 0, "high": 10}},
                }
            },
            "derived": {
                "performance": {
                    "link": {
                        "logistic_margin": {
                            "ability": "ability",
                            "demand": "difficulty",
                            "slope": 1,
                        }
                    }
                }
            },
            "outcome": {"bernoulli": {"probability": "performance"}},
        }
    )


def persons_of(layout: Layout, abilities: list[float], episodes: int) -> list[FitData]:
    generator = np.random.default_rng(1)
    evaluator = Evaluator(layout)
    drawn: list[FitData] = []
    for ability in abilities:
        features = generator.uniform(0, 10, (episodes, 1))
        theta = np.array([[ability]])
        outcomes = evaluator.simulate(theta, evaluator.columns(features), generator)[:, 0]
        drawn.append(FitData(features, outcomes))
    return drawn


@pytest.mark.xdist_group("nuts")
@pytest.mark.parametrize(("gain", "rows"), [(Normal(0.0, 10.0), 256), (HalfNormal(10.0), 5)])
def test_the_density_is_that_of_the_model(gain: Normal | HalfNormal, rows: int) -> None:
    from animalcat.layouts.inference.backend import density

    layout = load_layout("aaio", "people").with_prior("practiceGain", gain)
    layout = layout.with_prior("lapseRate", ScaledBeta(0.0, 1.0))  # so that points are normal
    generator = np.random.default_rng(2)
    features = spread(layout, 12, generator)
    outcomes = generator.integers(2, size=12).astype(np.float64)
    weights = generator.uniform(0.2, 1.0, 12)
    persons = np.repeat(np.arange(3), [3, 4, 5])
    with mock.patch.object(density, "_ROWS", rows):
        tape = density.tape(layout, features, outcomes, weights, persons)
    evaluator, nodes = Evaluator(layout), len(layout.latents)
    assert int(tape[2]) == 5 * nodes

    def by_definition(x: Floats) -> float:
        """Log density, where normal variables are given as such, with the typical person's node."""
        each = x[nodes:].reshape(nodes, 4)
        scales = [np.pi / np.sqrt(3) if isinstance(n.prior, ScaledBeta) else 1.0
                  for n in layout.latents]  # fmt: skip
        spreads = HalfNormal(1.0).from_standard(each[:, 0]) * scales
        typical = layout.from_standard(x[np.newaxis, :nodes])[0]
        total = -0.5 * float((x**2).sum())
        for person in range(3):
            off = spreads * each[:, 1 + person]
            columns = zip(layout.latents, typical, off, strict=True)
            theta = np.array([[moved(n.prior, m, o) for n, m, o in columns]])
            own = persons == person
            part = evaluator.columns(features[own]), outcomes[own], weights[own]
            total += float(evaluator.log_likelihood(theta, *part)[0])
        return total

    points = generator.uniform(-1, 1, (3, 5 * nodes))
    found = [sampled_gradient(tape, point) for point in points]
    true = np.array([by_definition(point) for point in points])
    np.testing.assert_allclose(np.diff([value for value, _ in found]), np.diff(true), atol=1e-7)
    step = 1e-5 * np.eye(5 * nodes)
    rises = [(by_definition(points[0] + e) - by_definition(points[0] - e)) / 2e-5 for e in step]
    np.testing.assert_allclose(found[0][1], rises, atol=1e-5)


def likelihood_of(z: Floats, one: FitData) -> Any:
    signs = np.where(one.outcomes[:, None] == 1, 1.0, -1.0)
    return expit(signs * (10 * ndtr(z) - one.features)).prod(axis=0)


@pytest.mark.slow
@pytest.mark.xdist_group("nuts")
def test_the_posterior_is_that_of_a_grid() -> None:
    layout = alone()
    persons = persons_of(layout, [7.5, 8, 8, 8.5, 9, 9.5], 12)
    fitted, another = fit_group(layout, persons, 3)
    assert fitted.converged, fitted.diagnostics["reasons"]
    m, s, z = np.linspace(-3, 4, 141), np.geomspace(0.02, 4, 81), np.linspace(-6, 6, 1201)
    logs: Any = -0.5 * m[:, None] ** 2 - 0.5 * s**2 + np.log(s)  # steps of log s are even
    around: Any = (
        np.exp(-0.5 * ((logit(ndtr(z)) - logit(ndtr(m))[:, None, None]) / s[:, None]) ** 2)
        / s[:, None]
    )
    slope = np.gradient(logit(ndtr(z)), z)
    means: list[float] = []
    for one in persons:
        likelihood = likelihood_of(z, one)
        logs += np.log((around * slope * likelihood).sum(axis=2))
        means.append(np.average(10 * ndtr(z), weights=likelihood * np.exp(-0.5 * z**2)))
    weight = np.exp(logs - logs.max()).sum(axis=1)
    weight /= weight.sum()
    mean = weight @ (10 * ndtr(m))
    sd = np.sqrt(weight @ (10 * ndtr(m) - mean) ** 2)
    (node,) = fitted.nodes
    assert node.mean == pytest.approx(mean, abs=0.1 * sd)
    assert node.sd == pytest.approx(sd, rel=0.1)
    assert another.std() > node.sd
    assert np.mean(means) < mean  # that of profiles is drawn to the middle once for each person


def test_what_is_no_group_is_refused() -> None:
    layout = alone()
    with pytest.raises(ValueError, match="3 persons at least; here are 2"):
        fit_group(layout, persons_of(layout, [1, 2], 3))
    with pytest.raises(ValueError, match="other outcomes than success"):
        fit_group(load_layout("one-capability", "score"), persons_of(layout, [1, 2, 3], 3))
