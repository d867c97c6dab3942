"""Keeps the draws on which a session's profile rests, and those that explain its episodes."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from animalcat.layouts.explaining.session import Standing
from animalcat.layouts.inference import messages
from animalcat.layouts.inference.fit import FitData, FitResult
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import NodeNote
from animalcat.machine.files import replace_file
from animalcat.service.measuring.certificates import CERTIFICATES
from animalcat.service.storage.artefacts import Artefacts
from animalcat.service.storage.records import SPEC
from animalcat.service.versions import versions
from animalcat.values import Session

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
    """
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
    _write(files, kept_fit_key(session), messages.pack(message, arrays))


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
    read = _read(files, kept_fit_key(session))
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


def keep_standing(files: Artefacts, session: str, standing: Standing, told: str) -> None:
    """Write what explains the episodes of a session, so that nobody has to tell them all again.

    Args:
        files: Keeps it.
        session: Id of its session.
        standing: What explains them.
        told: Digest of what was told, as `told_digest` makes it.

    Raises:
        OSError: It cannot be written.
    """
    arrays = {"particles": standing.particles, "weights": standing.weights}
    message = {
        "told": told,
        "played": standing.played,
        "misfit": standing.misfit,
        "notes": {name: asdict(note) for name, note in standing.notes.items()},
        "arrays_digest": _digest_of(arrays),
    }
    _write(files, _standing_key(session), messages.pack(message, arrays))


def load_standing(files: Artefacts, session: str, told: str) -> Standing | None:
    """Read what explains the episodes of a session; None unless it is whole, and of this digest."""
    read = _read(files, _standing_key(session))
    if read is None:
        return None
    message, arrays = read
    if message.get("told") != told or message.get("arrays_digest") != _digest_of(arrays):
        return None
    notes = {name: NodeNote(**note) for name, note in message["notes"].items()}
    particles, weights = arrays["particles"], arrays["weights"]
    return Standing(particles, weights, tuple(message["played"]), message["misfit"], notes)


def told_digest(session: Session, last: str) -> str:
    """Return the digest of all that what explains a session depends on.

    Args:
        session: The session.
        last: Digest of the last link about one of its attempts, which those before it go into.
    """
    about = {"spec": SPEC.write(session.spec), "last": last, "versions": versions()}
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _standing_key(session: str) -> str:
    return f"{CERTIFICATES}/{session}/explains.live"


def _digest_of(arrays: Mapping[str, Any]) -> str:
    """Digest of arrays, which a disk may have changed."""
    parts = (np.ascontiguousarray(arrays[name]).tobytes() for name in sorted(arrays))
    return hashlib.sha256(b"".join(parts)).hexdigest()


def _write(files: Artefacts, key: str, content: bytes) -> None:
    """Write a file durably, either completely or not at all."""
    path = files.folder / key
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content)


def _read(files: Artefacts, key: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Read a file as a message; None if there is none, or it is damaged."""
    try:
        return messages.read(io.BytesIO(files.fetch(key).read_bytes()).read)
    except (OSError, messages.MessageError):
        return None


def _data(message: Mapping[str, Any], given: Mapping[str, Any]) -> FitData:
    features, outcomes = given["features"], given["outcomes"]
    return FitData(features, outcomes, given["weights"], tuple(message["episodes"]))
