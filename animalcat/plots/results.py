"""Reads what a session found out from the netCDF file that `profile export` writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from animalcat.layouts.fitting.estimates import (
    estimates_frame,
    nodes_html,
    nodes_text,
    scales_of,
)
from animalcat.layouts.fitting.fits import Fit
from animalcat.layouts.inference.arviz_data import documents_of
from animalcat.layouts.inference.fit import FitData
from animalcat.layouts.inference.summary import summarise
from animalcat.layouts.model.spec import Layout, from_dict
from animalcat.layouts.model.tables import of_kind
from animalcat.machine.hdf_trial import insist_on_readable
from animalcat.plots.prediction import add_observed

if TYPE_CHECKING:
    from animalcat.client import Client
    from animalcat.values import Session


class Results(NamedTuple):
    """What a session found out about its agent; a notebook shows its profile.

    Attributes:
        profile: The profile, as JSON.
        fitted: The posterior with its draws and data.
        table: One row for each episode that counts, with the columns of `animalcat.outcomes` that
            belong to episodes, and what predictions are compared with (`add_observed`).
    """

    profile: Mapping[str, Any]
    fitted: Fit
    table: pd.DataFrame

    @property
    def agent(self) -> str:
        """Name of the agent."""
        return str(self.profile.get("provenance", {}).get("agent", "agent"))

    def to_frame(self) -> pd.DataFrame:
        """The estimates as a table, in the units in which nodes are read; as `Fit.to_frame`."""
        data = self.fitted.data
        scales = scales_of(self.fitted.layout, None if data is None else data.features)
        return estimates_frame(self.nodes, scales)

    def __repr__(self) -> str:
        return nodes_text(self.nodes, self._title)

    def _repr_html_(self) -> str:
        return nodes_html(self.nodes, self._title, self.profile.get("labels", ()))

    @property
    def nodes(self) -> dict[str, dict[str, Any]]:
        """The nodes as the profile has them; what it does not say of one follows from the draws."""
        derived = self.fitted.profile.nodes_dict()
        return {name: {**derived[name], **node} for name, node in self.profile["nodes"].items()}

    @property
    def layout(self) -> Layout:
        """The layout that was measured."""
        return self.fitted.layout

    @property
    def draws(self) -> npt.NDArray[np.float64]:
        """All chains one after another, (draws, latents)."""
        return self.fitted.flat_draws

    @property
    def features(self) -> npt.NDArray[np.float64]:
        """Features of the episodes that it rests on, (episodes, features)."""
        data = self.fitted.data
        return np.empty((0, len(self.layout.features))) if data is None else data.features

    @property
    def passed(self) -> dict[str, bool]:
        """By instance, whether it was passed when it was first played."""
        counts = self.table[self.table["outcome"].isin(["success", "failure"])]
        passed: dict[str, bool] = {}
        for instance, outcome in zip(counts["instance"], counts["outcome"], strict=True):
            passed.setdefault(str(instance), outcome == "success")
        return passed

    @property
    def _title(self) -> str:
        source = self.profile.get("provenance", {})
        return (
            f"{self.agent} on {source.get('battery', 'a battery')}: "
            f"{source.get('successes')} of {source.get('episodes')} episodes passed"
        )


def read_results(source: Path | str | bytes) -> Results:
    """Read a file that `profile export --format netcdf` wrote.

    Args:
        source: The file, or its content.

    Raises:
        ValueError: It is no such file.
        OSError: The file cannot be read.
        TypeError: It is neither a file nor the content of one.
    """
    if not isinstance(source, str | bytes | Path):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"read_results: source is {of_kind(source)}; give a file of "
            "`profile export --format netcdf`, or its content"
        )
    if isinstance(source, bytes):  # damage hangs its library, so a process tries it as a file
        with TemporaryDirectory(prefix="animalcat-") as folder:
            file = Path(folder) / "results.nc"
            file.write_bytes(source)
            return read_results(file)
    file = Path(source)
    file.open("rb").close()  # says why it cannot be read
    try:
        insist_on_readable(file)
    except ValueError as error:
        raise ValueError(f"this is no netCDF file of `profile export`: {error}") from None
    posterior, constant = _group(file, "posterior"), _group(file, "constant_data")
    documents = documents_of(constant)
    if not {"profile", "layout"} <= documents.keys():
        raise ValueError("this netCDF file is none of `profile export`: it holds no profile")
    layout = from_dict(documents["layout"])
    observed = _group(file, "observed_data") if "episode" in constant.sizes else None
    sampled = documents["profile"]["diagnostics"]["engine"] == "nuts"
    statistics = _group(file, "sample_stats") if sampled else xr.Dataset()
    draws = np.stack([posterior[name].values for name in layout.latent_names], axis=-1)
    flat = draws.reshape(-1, draws.shape[-1])
    even, size = np.full(len(flat), 1.0 / len(flat)), np.full(len(layout.latents), float(len(flat)))
    profile = documents["profile"]
    fitted = Fit(
        layout,
        draws,
        summarise(layout, flat, even, size),
        profile["diagnostics"],
        None if observed is None else _data(layout, constant, observed),
        {str(name): np.asarray(each.values) for name, each in statistics.data_vars.items()},
        agent=str(profile.get("provenance", {}).get("agent", "")),
        instances=_texts(constant, "instance"),
        paradigms=_texts(constant, "paradigm"),
        misleading={
            cue.name: cue.misleads(constant[cue.feature].values)
            for cue in layout.cues
            if cue.feature in constant.data_vars
        },
    )
    columns = {
        str(name): _share_equal_texts(values.values)
        for name, values in constant.data_vars.items()
        if values.dims == ("episode",)
    }
    table = pd.DataFrame(columns)
    if fitted.data is not None:
        table = add_observed(table.assign(episode=fitted.data.episodes), fitted)
    return Results(profile, fitted, table)


def received_results(client: Client, session: str | Session) -> Results:
    """Read what a session found out from the server of a client.

    Args:
        client: Where the session is.
        session: Which.

    Raises:
        ValueError: What the server sent is no such file.
        OSError: It cannot be kept while it is read.
    """
    with TemporaryDirectory(prefix="animalcat-") as folder:
        path = Path(folder) / "draws.nc"
        client.save_profile(session, path, "draws")
        return read_results(path)


def _share_equal_texts(values: Any) -> Any:
    """A column as it is; of texts, equal ones are one object, as most are those of all episodes."""
    if values.dtype.kind not in "OU":
        return values
    known: dict[str, str] = {}
    return np.array([known.setdefault(text, text) for text in values.tolist()], object)


def _data(layout: Layout, constant: Any, observed: Any) -> FitData:
    each = [np.asarray(observed[name].values, np.float64) for name in layout.outcome_names]
    return FitData(
        np.stack([constant[name].values for name in layout.feature_names], axis=-1),
        each[0] if len(each) == 1 else np.stack(each, axis=-1),
        np.asarray(constant["weight"].values, np.float64),
        tuple(int(number) for number in observed["episode"].values),
    )


def _texts(constant: Any, name: str) -> tuple[str, ...]:
    """What is known of each episode by name; nothing if that is not in the file."""
    return tuple(map(str, constant[name].values)) if name in constant else ()


def _group(file: Path, name: str) -> Any:
    library: Any = xr
    try:
        return library.load_dataset(file, group=name, engine="h5netcdf")
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"this is no netCDF file of `profile export`: {error}") from None
