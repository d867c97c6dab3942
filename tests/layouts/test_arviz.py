"""Posteriors in the form of ArviZ, in memory and as netCDF, as it is installed here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import arviz
import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.inference import arviz_data
from animalcat.layouts.inference.arviz_data import ALL_OUTCOMES, write_netcdf
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import Layout
from animalcat.service.measuring.kept_fits import keep_fit, kept_fit_key, load_fit
from animalcat.service.storage.artefacts import Artefacts

Floats = npt.NDArray[np.float64]
GROUPS = {
    "posterior",
    "prior",
    "posterior_predictive",
    "prior_predictive",
    "log_likelihood",
    "sample_stats",
    "observed_data",
    "constant_data",
}


@pytest.fixture(scope="module")
def fit_result(aaio: Layout, draw_instances: Callable[..., Floats], play: Any) -> FitResult:
    """A live posterior's draws in four chains, with a sampler's statistics."""
    posterior = LivePosterior(aaio, seed=3)
    features = draw_instances(30, 1)
    posterior.update_all(features, play(features, [3.0, 1.0, 0.0, 0.1], 1))
    made = posterior.as_fit()
    draws = made.draws.reshape(4, -1, made.draws.shape[-1])
    statistics = {"energy": np.zeros(draws.shape[:2]), "diverging": np.zeros(draws.shape[:2])}
    diagnostics = {**made.diagnostics, "outcomes": 30}
    return replace(made, draws=draws, statistics=statistics, diagnostics=diagnostics)


def test_the_object_in_memory_is_the_file(fit_result: FitResult, tmp_path: Path) -> None:
    constants = {"instance": [f"i/{k} \u00fc" for k in range(30)]}
    sampled = fit_result.sampled(constants, {"labels": "unfinished"})
    path = tmp_path / "posterior.nc"
    write_netcdf(path, sampled.summaries(), {"labels": "unfinished"}, sampled)
    read: Any = arviz.from_netcdf(path)
    made: Any = fit_result.to_arviz()
    for name in GROUPS:
        for variable in made[name].data_vars:
            close = 1e-6 if name == "log_likelihood" else 0.0
            np.testing.assert_allclose(read[name][variable], made[name][variable], rtol=close)
    assert list(read["constant_data"]["instance"].values) == constants["instance"]
    assert read["posterior"].attrs["labels"] == read.attrs["labels"] == "unfinished"
    assert read["posterior"]["navigationAbility"].attrs["units"] == "10 m"
    assert list(read["observed_data"]["episode"].values) == list(range(1, 31))


@pytest.mark.parametrize("rows", [2, 64])
def test_of_many_episodes_draws_at_even_distances_are_kept(
    fit_result: FitResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    whole: Any = fit_result.to_arviz()
    monkeypatch.setattr(arviz_data, "MOST_VALUES", 4 * 100 * 30)
    monkeypatch.setattr(arviz_data, "rows_of_block", lambda draws: rows)
    sampled = fit_result.sampled()
    path = tmp_path / "posterior.nc"
    write_netcdf(path, sampled.summaries(), {"left_out": sampled.left_out}, sampled)
    read: Any = arviz.from_netcdf(path)
    kept = list(range(0, 500, 5))
    for name in ("log_likelihood", "posterior_predictive"):
        assert list(read[name]["draw"].values) == kept
        assert (
            "draws 0, 5, 10, ... are kept, 100 of 500, since there are 30 episodes"
            in (read[name].attrs["draws_kept"])
        )
    assert "log_likelihood: of each chain" in read.attrs["left_out"]
    assert read["posterior"].sizes["draw"] == 500
    (name,) = read["log_likelihood"].data_vars
    some = whole["log_likelihood"][name].sel(draw=kept)
    np.testing.assert_allclose(read["log_likelihood"][name], some, rtol=1e-6)
    assert float(arviz.loo(read).elpd_loo) == pytest.approx(
        float(arviz.loo(whole).elpd_loo), abs=0.3
    )
    mean = read["posterior_predictive"].mean()[layout_outcome(fit_result)]
    assert float(mean) == pytest.approx(
        float(whole["posterior_predictive"].mean()[layout_outcome(fit_result)]), abs=0.03
    )


def layout_outcome(fit_result: FitResult) -> str:
    (name,) = fit_result.layout.outcome_names
    return name


def test_several_outcomes_are_left_out_together() -> None:
    layout = load_layout("navigation-speed")
    posterior = LivePosterior(layout, seed=1)
    low = [feature.low for feature in layout.features]
    high = [feature.high for feature in layout.features]
    features = np.random.default_rng(0).uniform(low, high, (6, len(low)))
    features[:, 2:] = np.round(features[:, 2:])
    outcomes = [[1.0, 0.5], [0.0, np.nan], [1.0, 0.9], [1.0, np.nan], [0.0, np.nan], [1.0, 0.2]]
    posterior.update_all(features, outcomes)
    data: Any = posterior.to_arviz()
    assert list(data["log_likelihood"].data_vars) == [ALL_OUTCOMES]
    assert set(data["observed_data"].data_vars) == set(layout.outcome_names)
    assert np.isfinite(data["log_likelihood"][ALL_OUTCOMES].values).all()


def test_resampled_draws_have_the_mean_of_the_particles(fit_result: FitResult) -> None:
    means = fit_result.flat_draws.mean(axis=0)
    for mean, node in zip(means, fit_result.nodes, strict=True):
        assert mean == pytest.approx(node.mean, abs=0.05 * node.sd)


def test_a_fit_is_kept_and_what_is_damaged_is_not_read(
    fit_result: FitResult, tmp_path: Path
) -> None:
    files = Artefacts(tmp_path)
    path = tmp_path / kept_fit_key("s")
    assert load_fit(files, "s", fit_result.layout) is None
    keep_fit(files, "s", fit_result)
    again = load_fit(files, "s", fit_result.layout)
    assert again is not None
    assert again.data is not None
    assert fit_result.data is not None
    np.testing.assert_array_equal(again.draws, fit_result.draws)
    np.testing.assert_array_equal(again.data.features, fit_result.data.features)
    assert (again.data.episodes, again.nodes) == (fit_result.data.episodes, fit_result.nodes)
    assert set(again.statistics) == {"energy", "diverging"}
    assert load_fit(files, "s", load_layout("object-permanence")) is None
    path.write_bytes(path.read_bytes()[:-9])
    assert load_fit(files, "s", fit_result.layout) is None
