"""Priors: their maps to and from a standard normal variable."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

from animalcat.layouts.model.priors import HalfNormal, Normal, Prior, ScaledBeta

PRIORS: list[Prior] = [
    ScaledBeta(0.0, 5.3),
    ScaledBeta(-2.0, 3.0, 2.0, 5.0),
    ScaledBeta(0.0, 4.0, 1.0, 9.0),
    ScaledBeta(0.0, 6.0, 2.0, 1.0),
    Normal(-1.0, 0.5),
    HalfNormal(5.0),
]


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_standard_normal_values_become_the_prior(prior: Prior) -> None:
    z = ndtri((np.arange(20_000) + 0.5) / 20_000)
    values = prior.from_standard(z)
    assert values.mean() == pytest.approx(prior.mean, abs=1e-3)
    assert values.std() == pytest.approx(prior.sd, rel=2e-3)
    assert values.min() >= prior.low
    assert values.max() <= prior.high
    assert (np.diff(values) > 0).all()


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_there_and_back_again(prior: Prior) -> None:
    z = np.linspace(-4, 4, 101)
    np.testing.assert_allclose(prior.to_standard(prior.from_standard(z)), z, atol=1e-6)


def test_values_at_an_edge_stay_finite() -> None:
    assert np.isfinite(ScaledBeta(0.0, 1.0).to_standard(np.array([0.0, 1.0]))).all()
