"""Reads what a session found out from the netCDF file that `profile export` writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from animalcat.layouts.inference.arviz_data import documents_of
from animalcat.layouts.inference.fit import FitData, FitResult
from animalcat.layouts.inference.summary import summarise
from animalcat.layouts.model.spec import Layout, from_dict
from animalcat.plots.prediction import with_observed


class Results(NamedTuple):
    """What a session found out about its agent.

    Attributes:
        profile: The profile, as JSON.
        fitted: The posterior with its draws and data.
        table: One row for each episode that counts, with the columns of `animalcat.outcomes` that
            belong to episodes, and what predictions are compared with (`with_observed`).
    """

    profile: Mapping[str, Any]
    fitted: FitResult
    table: pd.DataFrame

    @property
    def agent(self) -> str:
        """Name of the agent."""
        return str(self.profile.get("provenance", {}).get("agent", "agent"))


def read_results(content: Path | bytes) -> Results:
    """Read a file that `profile export --format netcdf` wrote.

    Args:
        content: The file, or its content.

    Raises:
        ValueError: It is no such file.
        OSError: The file cannot be read.
    """
    data = content if isinstance(content, bytes) else content.read_bytes()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "posterior.nc"
        path.write_bytes(data)
        posterior, constant = _group(path, "posterior"), _group(path, "constant_data")
        documents = documents_of(constant)
        if not {"profile", "layout"} <= documents.keys():
            raise ValueError("this netCDF file is none of `profile export`: it holds no profile")
        layout = from_dict(documents["layout"])
        observed = _group(path, "observed_data") if "episode" in constant.sizes else None
    draws = np.stack([posterior[name].values for name in layout.latent_names], axis=-1)
    flat = draws.reshape(-1, draws.shape[-1])
    even, size = np.full(len(flat), 1.0 / len(flat)), np.full(len(layout.latents), float(len(flat)))
    profile = documents["profile"]
    fitted = FitResult(
        layout,
        draws,
        summarise(layout, flat, even, size),
        profile["diagnostics"],
        None if observed is None else _data(layout, constant, observed),
    )
    columns = {
        str(name): values.values
        for name, values in constant.data_vars.items()
        if values.dims == ("episode",)
    }
    table = pd.DataFrame(columns)
    if fitted.data is not None:
        table = with_observed(table.assign(episode=fitted.data.episodes), fitted)
    return Results(profile, fitted, table)


def _data(layout: Layout, constant: Any, observed: Any) -> FitData:
    each = [np.asarray(observed[name].values, np.float64) for name in layout.outcome_names]
    return FitData(
        np.stack([constant[name].values for name in layout.feature_names], axis=-1),
        each[0] if len(each) == 1 else np.stack(each, axis=-1),
        np.asarray(constant["weight"].values, np.float64),
        tuple(int(number) for number in observed["episode"].values),
    )


def _group(path: Path, name: str) -> Any:
    library: Any = xr
    try:
        return library.load_dataset(path, group=name, engine="h5netcdf")
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"this is no netCDF file of `profile export`: {error}") from None
