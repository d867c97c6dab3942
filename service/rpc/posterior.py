"""Exports a session's posterior with its draws and its outcomes, as netCDF."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from animalcat.layouts.explaining.readings import with_readings
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.model.spec import to_dict

_CONSTANTS: Final = (
    "attempt",
    "instance",
    "paradigm",
    "control",
    "control_of",
    "arena",
    "arena_seed",
    "outcome",
    "cause",
    "return",
    "steps",
    "pass_mark",
    "predicted",
    "propensity",
    "reason",
    "ended_by",
    "backend",
    "build",
    "version",
    "versions",
    "decision_period",
    "camera",
    "session",
    "agent",
    "agent_fingerprint",
)
"""Columns of the table of outcomes that are kept for every episode."""


def posterior_netcdf(
    fitted: FitResult, rows: Sequence[Mapping[str, Any]], profile: Mapping[str, Any]
) -> bytes:
    """Return a netCDF file that ArviZ opens, before and from version 1 on.

    Args:
        fitted: The posterior, with the data that it was fitted to.
        rows: Rows of the table of outcomes.
        profile: The session's profile, from which the file says what it is.
    """
    from animalcat.layouts.inference.arviz_data import (  # brings xarray
        netcdf_bytes,
        with_documents,
    )

    counted = {row["episode"]: row for row in rows if row["outcome"] in ("success", "failure")}
    data = fitted.data
    played = [counted[number] for number in data.episodes] if data is not None else []
    about: Mapping[str, Any] = profile["provenance"]
    layout: Mapping[str, Any] = profile["layout"]
    attributes = {
        "session": str(about["session"]),
        "agent": str(about["agent"]),
        "battery": str(about["battery"]),
        "layout": f"{layout['name']} ({layout['variant'] or 'default'})",
        "layout_digest": str(layout["digest"]),
        "labels": "; ".join(profile["labels"]),
        "reason": str(about.get("reason") or ""),
        "inference": str(fitted.diagnostics["engine"]),
        "diagnostics": json.dumps(dict(fitted.diagnostics)),
        "versions": json.dumps(about.get("versions", {})),
    }
    constants = {name: [_value(row.get(name)) for row in played] for name in _CONSTANTS}
    groups = with_readings(
        fitted.datasets(constants if played else None, attributes),
        fitted.layout,
        None if data is None else data.features,
    )
    about_all = {"profile": dict(profile), "layout": to_dict(fitted.layout)}
    return netcdf_bytes(with_documents(groups, about_all), attributes)


def _value(value: Any) -> Any:
    """A value that an array of its kind takes; what is missing is an empty text."""
    return "" if value is None else value
