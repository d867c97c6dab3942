"""R-hat and effective sample sizes are those of ArviZ."""

from __future__ import annotations

import arviz
import numpy as np
import pytest

from animalcat.layouts.inference.convergence import ess, rhat

KINDS = ("independent", "walk", "rounded", "sticky", "swinging", "still")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("chains", "draws"), [(4, 1000), (4, 401), (2, 50), (1, 200), (4, 4)])
def test_they_are_those_of_arviz(kind: str, chains: int, draws: int) -> None:
    values = np.random.default_rng(3).normal(size=(chains, draws))
    pull = {"walk": 1.0, "sticky": 0.9, "swinging": -0.7}.get(kind, 0.0)
    for k in range(1, draws):
        values[:, k] += pull * values[:, k - 1]
    values = np.round(values, 1) if kind == "rounded" else values
    values = np.ones_like(values) if kind == "still" else values
    expected = [arviz.ess(values, method="bulk")]
    expected += [arviz.ess(values, method="tail", prob=(0.05, 0.95))]
    found = [ess(values, "bulk"), ess(values, "tail")]
    if chains > 1:
        expected.append(arviz.rhat(values))
        found.append(rhat(values))
    assert found == pytest.approx([float(each) for each in expected], rel=1e-9, nan_ok=True)


def test_what_is_no_number_tells_nothing() -> None:
    values = np.full((4, 100), np.nan)
    assert np.isnan([rhat(values), ess(values, "bulk"), ess(values, "tail")]).all()
