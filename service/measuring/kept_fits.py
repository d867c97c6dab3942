"""Keeps the draws of the fit on which a session's profile rests, for exports and plots."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from animalcat.files import replace_file
from animalcat.layouts.inference import messages
from animalcat.layouts.inference.fit import FitData, FitResult
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.model.spec import Layout
from animalcat.service.measuring.certificates import CERTIFICATES
from animalcat.service.storage.artefacts import Artefacts, ArtefactsError

VERSION: Final = 1
"""Version of the files; a file of another version is left alone."""
_DATA: Final = ("features", "outcomes", "weights")


def kept_fit_key(session: str) -> str:
    """Return where the last fit of a session is kept; it is deleted with its certificates."""
    return f"{CERTIFICATES}/{session}/profile.fit"


def keep_fit(files: Artefacts, session: str, fitted: FitResult) -> None:
    """Write a fit durably, either completely or not at all.

    Args:
        files: Keeps it.
        session: Id of its session.
        fitted: The fit, with the data that it was fitted to.

    Raises:
        OSError: It cannot be written.
        ArtefactsError: It cannot be stored.
    """
    path = files.folder / kept_fit_key(session)
    assert fitted.data is not None, "a fit is kept with its data"
    message: dict[str, Any] = {
        "version": VERSION,
        "layout": fitted.layout.digest,
        "nodes": [asdict(node) for node in fitted.nodes],
        "diagnostics": fitted.diagnostics,
        "episodes": list(fitted.data.episodes),
    }
    arrays = {"draws": fitted.draws, **fitted.statistics}
    for name in _DATA:
        values = getattr(fitted.data, name)
        if values is not None:
            arrays[f"data/{name}"] = values
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, messages.pack(message, arrays))
    files.put(kept_fit_key(session))


def load_fit(files: Artefacts, session: str, layout: Layout) -> FitResult | None:
    """Read a fit that was kept.

    Args:
        files: Keeps it.
        session: Id of its session.
        layout: The layout of its session.

    Returns:
        The fit; None if there is none, or if it is damaged or was kept by another version or of
        another layout. It can then be made again.
    """
    try:
        path = files.fetch(kept_fit_key(session))
        read = messages.read(io.BytesIO(path.read_bytes()).read)
    except (OSError, ArtefactsError, messages.MessageError):
        return None
    if read is None:
        return None
    message, arrays = read
    if message.get("version") != VERSION or message.get("layout") != layout.digest:
        return None
    given = {name: arrays.pop(f"data/{name}", None) for name in _DATA}
    return FitResult(
        layout,
        arrays.pop("draws"),
        [NodeSummary.from_dict(node) for node in message["nodes"]],
        message["diagnostics"],
        _data(message, given),
        arrays,
    )


def _data(message: Mapping[str, Any], given: Mapping[str, Any]) -> FitData:
    features, outcomes = given["features"], given["outcomes"]
    return FitData(features, outcomes, given["weights"], tuple(message["episodes"]))
