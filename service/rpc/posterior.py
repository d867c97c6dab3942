"""Exports a session's posterior with its draws and its outcomes, as netCDF."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
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


def write_posterior(
    path: Path,
    fitted: FitResult,
    constants: Mapping[str, Sequence[Any]] | None,
    profile: Mapping[str, Any],
    *,
    pointwise: bool = True,
) -> tuple[str, ...]:
    """Write a netCDF file that ArviZ opens, before and from version 1 on.

    Args:
        path: The file.
        fitted: The posterior, with the data that it was fitted to.
        constants: What `constants_of` gives.
        profile: The session's profile, from which the file says what it is.
        pointwise: Whether it has the groups with a number for every draw and episode: predictions
            and log likelihood.

    Returns:
        What was left out of these, in sentences.
    """
    from animalcat.layouts.inference.arviz_data import (  # brings xarray
        with_documents,
        write_netcdf,
    )

    data = fitted.data
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
    sampled = fitted.sampled(constants, attributes)
    left_out = sampled.left_out if pointwise else ""
    if left_out:
        attributes["draws_kept"] = left_out
    groups = with_readings(
        sampled.summaries(), fitted.layout, None if data is None else data.features
    )
    about_all = {"profile": dict(profile), "layout": to_dict(fitted.layout)}
    whole = with_documents(groups, about_all)
    write_netcdf(path, whole, attributes, sampled if pointwise else None)
    return (left_out,) if left_out else ()


def constants_of(
    rows: Iterable[Mapping[str, Any]], fitted: FitResult
) -> dict[str, list[Any]] | None:
    """What a file keeps of every episode of a fit; None where there are none.

    Of earlier sessions, whose episodes have numbers below 0, nothing is kept but demands, outcomes
    and weights.

    Args:
        rows: Rows of the table of outcomes.
        fitted: The posterior, with the data that it was fitted to.
    """
    if fitted.data is None or not fitted.data.episodes:
        return None
    episodes = fitted.data.episodes
    places = {number: place for place, number in enumerate(episodes)}
    columns: dict[str, list[Any]] = {name: [None] * len(episodes) for name in _CONSTANTS}
    known: dict[Any, Any] = {}  # most texts are those of many episodes, and need be held once
    left = {number for number in places if number >= 0}  # the others are of earlier sessions
    for row in rows:
        if row["outcome"] not in ("success", "failure"):
            continue
        place = places.get(row["episode"])
        if place is not None:
            left.discard(row["episode"])
            for name, column in columns.items():
                value = _value(row.get(name))
                column[place] = known.setdefault(value, value) if isinstance(value, str) else value
    if left:
        raise KeyError(min(left))
    for column in columns.values():
        blank: Any = "" if any(isinstance(value, str) for value in column) else float("nan")
        column[:] = [blank if value is None else value for value in column]
    return columns


def _value(value: Any) -> Any:
    """A value that an array of its kind takes; what is missing is an empty text."""
    return "" if value is None else value
