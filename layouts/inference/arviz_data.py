"""Posteriors as ArviZ has them, in memory and as netCDF, for versions before 1 and from 1 on.

Both generations read the same groups: `posterior`, `prior`, `posterior_predictive`,
`prior_predictive`, `log_likelihood`, `sample_stats`, `observed_data` and `constant_data`. Their
dimensions are chain, draw and episode. With several outcomes, `log_likelihood` holds one variable
for all of them, because an episode is left out with all that was observed of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import xarray as xr

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.nodes import Bernoulli, Binomial
from animalcat.layouts.model.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]
Groups: TypeAlias = dict[str, xr.Dataset]
"""Datasets by the name of their group."""

ALL_OUTCOMES: Final = "outcomes"
"""Name of the log likelihood of an episode that has several outcomes."""
_SAMPLES: Final = ("chain", "draw")
_PRIOR_DRAWS: Final = 1000
_DOCUMENT: Final = "animalcat_"
"""Prefix of the names of documents."""
_COMPRESSION: Final = {"zlib": True, "complevel": 6, "shuffle": True}
_SINGLE: Final = ("log_likelihood",)
"""Groups that are kept in single precision: they are the largest, and it is enough for them."""


def datasets(
    layout: Layout,
    draws: Floats,
    features: Floats,
    outcomes: Floats,
    weights: Floats | None = None,
    statistics: Mapping[str, Floats] | None = None,
    *,
    episodes: Sequence[int] | None = None,
    constants: Mapping[str, Sequence[Any]] | None = None,
    attributes: Mapping[str, str] | None = None,
) -> Groups:
    """Return a posterior as groups of data.

    Args:
        layout: The layout that was measured.
        draws: (chains, draws, latents), of the posterior.
        features: (instances, features) that it was fitted to.
        outcomes: (instances,) or (instances, outcomes), NaN where one is missing.
        weights: (instances,): how many outcomes each counts as, 0 where none was observed; None
            for one each.
        statistics: (chains, draws) each: the sampler's statistics, by ArviZ's names.
        episodes: Number of each instance's episode; by default they are counted from 0.
        constants: What else is known of each episode, by name; one that is called like a feature
            has "_of_episode" added to its name.
        attributes: Facts about the whole, as text; they are kept in every group.
    """
    features = np.asarray(features, np.float64).reshape(-1, len(layout.features))
    outcomes = np.array(outcomes, np.float64)
    if weights is not None:
        outcomes[weights == 0.0] = np.nan  # nothing was observed
    chains, count, _ = draws.shape
    numbers = range(len(features)) if episodes is None else episodes
    coords: dict[str, npt.NDArray[np.int64]] = {
        "chain": np.arange(chains),
        "draw": np.arange(count),
        "episode": np.array(list(numbers), np.int64),
    }
    generator = rng(0, "arviz", len(features))
    z = generator.standard_normal((1, _PRIOR_DRAWS, len(layout.latents)))
    prior = layout.from_standard(z)
    groups: Groups = {
        "posterior": _latents(layout, draws),
        "prior": _latents(layout, prior),
    }
    if statistics:
        groups["sample_stats"] = xr.Dataset(
            {name: (_SAMPLES, _statistic(name, values)) for name, values in statistics.items()}
        )
    if len(features):
        evaluator = Evaluator(layout)
        columns = evaluator.columns(features)
        for group, sample in (("posterior_predictive", draws), ("prior_predictive", prior)):
            flat = sample.reshape(-1, sample.shape[-1])
            simulated = evaluator.simulate(flat, columns, generator)
            groups[group] = _outcomes(layout, simulated, sample.shape[:2])
        flat = draws.reshape(-1, draws.shape[-1])
        likelihood = evaluator.pointwise(flat, columns, outcomes).T
        name = layout.outcome_names[0] if len(layout.outcomes) == 1 else ALL_OUTCOMES
        shape = (chains, count, len(features))
        groups["log_likelihood"] = xr.Dataset(
            {name: ((*_SAMPLES, "episode"), likelihood.reshape(shape))}
        )
        groups["observed_data"] = xr.Dataset(
            {
                name: (("episode",), values)
                for name, values in zip(
                    layout.outcome_names, outcomes.reshape(len(features), -1).T, strict=True
                )
            }
        )
        groups["constant_data"] = _constants(layout, features, weights, constants or {})
    return {
        name: _finished(data, coords, attributes or {}, prior_draws=name.startswith("prior"))
        for name, data in groups.items()
    }


def with_documents(groups: Mapping[str, xr.Dataset], documents: Mapping[str, Any]) -> Groups:
    """Add JSON documents as texts to the constant data, where `documents_of` finds them.

    Args:
        groups: The groups.
        documents: JSON values by name.
    """
    constant: Any = groups.get("constant_data", xr.Dataset())
    texts = {
        f"{_DOCUMENT}{name}": ((), np.array(json.dumps(value), dtype=object))
        for name, value in documents.items()
    }
    return {**groups, "constant_data": constant.assign(texts)}


def documents_of(constant: xr.Dataset) -> dict[str, Any]:
    """Return the JSON documents among constant data, by name."""
    return {
        str(name).removeprefix(_DOCUMENT): json.loads(str(values.values))
        for name, values in constant.data_vars.items()
        if str(name).startswith(_DOCUMENT)
    }


def to_arviz(groups: Mapping[str, xr.Dataset]) -> Any:
    """Return groups as an `InferenceData`, or from ArviZ 1 on as a `DataTree`."""
    import arviz

    library: Any = arviz  # whose types are those of one generation
    if library.__version__.startswith("0."):
        return library.InferenceData(**groups)
    tree: Any = xr.DataTree
    return tree.from_dict({f"/{name}": data for name, data in groups.items()})


def netcdf_bytes(groups: Mapping[str, xr.Dataset], attributes: Mapping[str, str]) -> bytes:
    """Return groups as the content of one netCDF file (netCDF-4, which is HDF5).

    Args:
        groups: The groups.
        attributes: Facts about the whole, as text, for the file itself.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "posterior.nc"
        whole: Any = xr.Dataset(attrs=dict(attributes))
        whole.to_netcdf(path, mode="w", engine="h5netcdf")
        for name, data in groups.items():
            kept: dict[str, Any] = dict(_COMPRESSION)
            if name in _SINGLE:
                kept["dtype"] = "float32"
            encoding = {
                str(key): kept
                for key, variable in data.data_vars.items()
                if variable.dtype != object
            }
            group: Any = data
            group.to_netcdf(path, mode="a", group=name, engine="h5netcdf", encoding=encoding)
        return path.read_bytes()


def _latents(layout: Layout, draws: Floats) -> xr.Dataset:
    return xr.Dataset(
        {
            node.name: (_SAMPLES, draws[..., i], {"units": node.unit, "kind": node.kind})
            for i, node in enumerate(layout.latents)
        }
    )


def _outcomes(layout: Layout, simulated: Floats, samples: tuple[int, ...]) -> xr.Dataset:
    """Simulated outcomes, (instances, draws) or (instances, draws, outcomes), by name."""
    each = simulated.reshape(*simulated.shape[:2], -1)
    kept: dict[str, Any] = {}
    for k, outcome in enumerate(layout.outcomes):
        values = each[..., k].T.reshape(*samples, len(each))
        match outcome.likelihood:
            case Bernoulli():
                values = values.astype(np.int8)
            case Binomial():
                values = values.astype(np.int32)
            case _:
                pass
        kept[outcome.name] = ((*_SAMPLES, "episode"), values)
    return xr.Dataset(kept)


def _constants(
    layout: Layout,
    features: Floats,
    weights: Floats | None,
    constants: Mapping[str, Sequence[Any]],
) -> xr.Dataset:
    kept: dict[str, Any] = {
        feature.name: (("episode",), features[:, i], {"units": feature.unit})
        for i, feature in enumerate(layout.features)
    }
    even = np.ones(len(features)) if weights is None else weights
    for name, values in {"weight": even, **constants}.items():
        array = np.asarray(values)
        if array.dtype.kind in "US":
            array = array.astype(object)
        kept[f"{name}_of_episode" if name in kept else name] = (("episode",), array)
    return xr.Dataset(kept)


def _statistic(name: str, values: Floats) -> npt.NDArray[Any]:
    match name:
        case "diverging":
            return values.astype(np.bool_)
        case "n_steps" | "tree_depth":
            return values.astype(np.int64)
        case _:
            return values


def _finished(
    data: Any,
    coords: Mapping[str, npt.NDArray[np.int64]],
    attributes: Mapping[str, str],
    *,
    prior_draws: bool,
) -> xr.Dataset:
    own = {name: values for name, values in coords.items() if name in data.dims}
    if prior_draws:
        own |= {"chain": np.arange(1), "draw": np.arange(_PRIOR_DRAWS)}
    return data.assign_coords(own).assign_attrs(dict(attributes))
