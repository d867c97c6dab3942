"""Posteriors as ArviZ has them, in memory and as netCDF, for versions before 1 and from 1 on.

Both generations read the same groups: `posterior`, `prior`, `posterior_predictive`,
`prior_predictive`, `log_likelihood`, `sample_stats`, `observed_data` and `constant_data`. Their
dimensions are chain, draw and episode. With several outcomes, `log_likelihood` holds one variable
for all of them, because an episode is left out with all that was observed of it.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import xarray as xr

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.nodes import Bernoulli, Binomial
from animalcat.layouts.model.spec import Layout
from animalcat.text.json_text import read_json

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
_SINGLE: Final = {"log_likelihood": np.dtype(np.float32)}
"""Groups that are kept in single precision: they are the largest, and it is enough for them."""
POINTWISE: Final = ("posterior_predictive", "prior_predictive", "log_likelihood")
"""Groups that have a number for every draw and episode."""
_ORDER: Final = (
    *("posterior", "prior", "sample_stats", *POINTWISE),
    *("observed_data", "constant_data"),
)
MOST_VALUES: Final = 40_000_000
"""Most numbers of a variable of these: 4,000 draws of 10,000 episodes. Beyond, draws are left out,
so that neither the file nor the time to write it grows without end."""
_BLOCK_VALUES: Final = 2_000_000
"""Numbers that are computed at a time."""
_CHUNK: Final = 64
"""Episodes that a file keeps, and a reader reads, together."""
_KEPT: Final = "draws_kept"
"""Attribute of a group that says which draws it keeps, where it does not keep all."""


@dataclass(frozen=True, eq=False)
class Sampled:
    """A posterior with what it was fitted to, from which groups of data are made.

    What has a number for every draw and episode is computed in blocks of episodes. Where there are
    more than `MOST_VALUES` of these, only draws at even distances are kept of it, and the group
    says which.

    Attributes:
        layout: The layout that was measured.
        draws: (chains, draws, latents), of the posterior.
        features: (instances, features) that it was fitted to.
        outcomes: (instances,) or (instances, outcomes), NaN where one is missing.
        weights: (instances,): how many outcomes each counts as, 0 where none was observed; None
            for one each.
        statistics: (chains, draws) each: the sampler's statistics, by ArviZ's names.
        episodes: Number of each instance's episode; empty for counted from 0.
        constants: What else is known of each episode, by name; one that is called like a feature
            has "_of_episode" added to its name.
        attributes: Facts about the whole, as text; they are kept in every group.
    """

    layout: Layout
    draws: Floats
    features: Floats
    outcomes: Floats
    weights: Floats | None = None
    statistics: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    episodes: Sequence[int] = ()
    constants: Mapping[str, Sequence[Any]] = field(default_factory=dict[str, Sequence[Any]])
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])

    def summaries(self) -> Groups:
        """All groups that have no number for every draw and episode, each as a whole."""
        layout = self.layout
        chains, count, _ = self.draws.shape
        groups: Groups = {
            "posterior": _finish_dataset(_latents(layout, self.draws), chains, range(count)),
            "prior": _finish_dataset(_latents(layout, self._prior), 1, range(_PRIOR_DRAWS)),
        }
        if self.statistics:
            each = {
                name: (_SAMPLES, _statistic(name, values))
                for name, values in self.statistics.items()
            }
            groups["sample_stats"] = _finish_dataset(xr.Dataset(each), chains, range(count))
        if len(self.features):
            seen = self._outcome_rows.reshape(len(self.features), -1).T
            observed = dict(zip(layout.outcome_names, seen, strict=True))
            groups["observed_data"] = xr.Dataset(
                {name: (("episode",), values) for name, values in observed.items()}
            )
            groups["constant_data"] = _constants(
                layout, self.features, self.weights, self.constants
            )
            for name in ("observed_data", "constant_data"):
                about: Any = groups[name]
                groups[name] = about.assign_coords(episode=self.numbers)
        return {name: data.assign_attrs(dict(self.attributes)) for name, data in groups.items()}

    def groups(self) -> Groups:
        """All groups, each as a whole."""
        groups = self.summaries()
        for name in POINTWISE if len(self.features) else ():
            parts: dict[str, list[npt.NDArray[Any]]] = {}
            for block in self.blocks(name):
                for variable, values in block.items():
                    parts.setdefault(variable, []).append(values)
            data = xr.Dataset(
                {
                    variable: ((*_SAMPLES, "episode"), np.concatenate(each, axis=-1))
                    for variable, each in parts.items()
                }
            )
            chains, kept = self.kept(name)
            made: Any = _finish_dataset(data, chains, kept)
            made = made.assign_coords(episode=self.numbers)
            groups[name] = made.assign_attrs(self.attributes_of(name))
        return {name: groups[name] for name in _ORDER if name in groups}

    def kept(self, group: str) -> tuple[int, range]:
        """Number of chains of a group of `POINTWISE`, and which draws of each it keeps."""
        chains, count = (1, _PRIOR_DRAWS) if group.startswith("prior") else self.draws.shape[:2]
        most = max(1, MOST_VALUES // (chains * max(1, len(self.features))))
        return chains, range(0, count, -(-count // most))

    def attributes_of(self, group: str) -> dict[str, str]:
        """The attributes of a group of `POINTWISE`: also which draws it keeps, if not all."""
        return {**self.attributes, **({_KEPT: words} if (words := self._omission(group)) else {})}

    @property
    def left_out(self) -> str:
        """Which draws the groups with a number for each episode keep; empty where they keep all."""
        words = {self._omission(group): group for group in POINTWISE if self._omission(group)}
        return "; ".join(f"{group}: {said}" for said, group in words.items())

    def blocks(self, group: str) -> Generator[dict[str, npt.NDArray[Any]]]:
        """Compute a group of `POINTWISE`, some episodes at a time.

        Yields:
            (chains, draws kept, episodes of the block) by variable.
        """
        chains, kept = self.kept(group)
        whole = self._prior if group.startswith("prior") else self.draws
        flat = whole[:, kept].reshape(-1, whole.shape[-1])
        flat.flags.writeable = False
        shape = (chains, len(kept))
        evaluator, rows = Evaluator(self.layout), rows_of_block(len(flat))
        name = self.layout.outcome_names[0] if len(self.layout.outcomes) == 1 else ALL_OUTCOMES
        for start in range(0, len(self.features), rows):
            part = slice(start, start + rows)
            columns = evaluator.columns(self.features[part])
            if group == "log_likelihood":
                values = evaluator.pointwise(flat, columns, self._outcome_rows[part]).T
                yield {name: values.reshape(*shape, len(columns))}
            else:
                simulated = evaluator.simulate(flat, columns, self._generators[group])
                yield _outcomes(self.layout, simulated, shape)

    def _omission(self, group: str) -> str:
        """Which draws a group keeps, in words; empty where it keeps all."""
        _, kept = self.kept(group)
        if kept.step == 1:
            return ""
        return (
            f"of each chain, draws 0, {kept.step}, {2 * kept.step}, ... are kept, {len(kept)} of "
            f"{kept.stop}, since there are {len(self.features)} episodes"
        )

    @cached_property
    def _outcome_rows(self) -> Floats:
        outcomes = np.array(self.outcomes, np.float64)
        if self.weights is not None:
            outcomes[self.weights == 0.0] = np.nan  # nothing was observed
        return outcomes

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """(instances,): number of each instance's episode."""
        return np.array(self.episodes or range(len(self.features)), np.int64)

    @cached_property
    def _generators(self) -> Mapping[str, np.random.Generator]:
        """Sources of randomness of simulated outcomes, by group."""
        return {
            group: rng(0, f"arviz {group}", len(self.features))
            for group in POINTWISE
            if group != "log_likelihood"
        }

    @cached_property
    def _prior(self) -> Floats:
        generator = rng(0, "arviz", len(self.features))
        z = generator.standard_normal((1, _PRIOR_DRAWS, len(self.layout.latents)))
        return self.layout.from_standard(z)


def rows_of_block(draws: int) -> int:
    """Return how many episodes are computed at a time, so that arrays stay small.

    Args:
        draws: Number of draws.
    """
    return max(1, _BLOCK_VALUES // max(1, draws) // _CHUNK) * _CHUNK


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
        str(name).removeprefix(_DOCUMENT): read_json(str(values.values))
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


def write_netcdf(
    path: Path,
    groups: Mapping[str, xr.Dataset],
    attributes: Mapping[str, str],
    pointwise: Sampled | None = None,
) -> None:
    """Write groups as one netCDF file (netCDF-4, which is HDF5).

    Args:
        path: The file.
        groups: The groups that are written as a whole.
        attributes: Facts about the whole, as text, for the file itself.
        pointwise: From what the groups of `POINTWISE` are made, block by block; None to leave
            them out.
    """
    whole: Any = xr.Dataset(attrs=dict(attributes))
    whole.to_netcdf(path, mode="w", engine="h5netcdf")
    for name, data in groups.items():
        encoding = {
            str(key): dict(_COMPRESSION)
            for key, variable in data.data_vars.items()
            if variable.dtype != object
        } | {
            # Texts as letters: HDF5 compresses none whose lengths differ.
            str(key): {**_COMPRESSION, "dtype": "S1"}
            for key, variable in data.data_vars.items()
            if variable.dtype == object and variable.dims and any(variable.values)
        }
        group: Any = data
        group.to_netcdf(path, mode="a", group=name, engine="h5netcdf", encoding=encoding)
    if pointwise is not None and len(pointwise.features):
        for name in POINTWISE:
            _write_blocks(path, name, pointwise)


def _write_blocks(path: Path, name: str, sampled: Sampled) -> None:
    """Append a group that has a number for every draw and episode to a netCDF file."""
    library: Any = import_module("h5netcdf")
    chains, kept = sampled.kept(name)
    coords = _coords(chains, kept) | {"episode": sampled.numbers}
    with library.File(path, "a") as file:
        group = file.create_group(name)
        group.dimensions = {key: len(values) for key, values in coords.items()}
        group.attrs.update(sampled.attributes_of(name))
        for key, values in coords.items():
            group.create_variable(key, (key,), values.dtype, data=values)
        start = 0
        for block in sampled.blocks(name):
            for variable, values in block.items():
                dtype = _SINGLE.get(name, values.dtype)
                if not start:
                    group.create_variable(
                        variable,
                        (*_SAMPLES, "episode"),
                        dtype,
                        chunks=(1, len(kept), min(_CHUNK, len(sampled.features))),
                        compression="gzip",
                        compression_opts=_COMPRESSION["complevel"],
                        shuffle=True,
                    )
                group[variable][:, :, start : start + values.shape[-1]] = values.astype(dtype)
            start += next(iter(block.values())).shape[-1]


def _latents(layout: Layout, draws: Floats) -> xr.Dataset:
    return xr.Dataset(
        {
            node.name: (_SAMPLES, draws[..., i], {"units": node.unit, "kind": node.kind})
            for i, node in enumerate(layout.latents)
        }
    )


def _outcomes(
    layout: Layout, simulated: Floats, samples: tuple[int, ...]
) -> dict[str, npt.NDArray[Any]]:
    """Simulated outcomes, (instances, draws) or (instances, draws, outcomes), by name."""
    each = simulated.reshape(*simulated.shape[:2], -1)
    kept: dict[str, npt.NDArray[Any]] = {}
    for k, outcome in enumerate(layout.outcomes):
        values = each[..., k].T.reshape(*samples, len(each))
        match outcome.likelihood:
            case Bernoulli():
                values = values.astype(np.int8)
            case Binomial():
                values = values.astype(np.int32)
            case _:
                pass
        kept[outcome.name] = values
    return kept


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


def _coords(chains: int, draws: range) -> dict[str, npt.NDArray[np.int64]]:
    return {"chain": np.arange(chains), "draw": np.array(draws, np.int64)}


def _finish_dataset(data: Any, chains: int, draws: range) -> xr.Dataset:
    return data.assign_coords(_coords(chains, draws))
