"""Predicts which arenas of a battery the agent of a session passes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from animalcat.errors import AnimalcatError
from animalcat.layouts.checking.forecast import BatteryForecast, forecast
from animalcat.layouts.checking.scores import Estimate
from animalcat.plots.results import Results
from animalcat.service.batteries.battery import Battery
from animalcat.service.errors import ServiceError
from animalcat.service.measuring.coverage import some_coverage
from animalcat.service.reporting.session_report import words_of_backend

VERSION: Final = 1
"""Version of the JSON; readers refuse newer ones."""


def forecast_report(results: Results, name: str, battery: Battery, top: int) -> dict[str, Any]:
    """Predict the arenas of a battery for the agent of a session.

    Args:
        results: What the session found out.
        name: Name of the battery.
        battery: The battery.
        top: How many arenas to name that would be most informative together.

    Raises:
        AnimalcatError: The layout covers no arena of the battery.
    """
    about: dict[str, Any] = results.profile.get("provenance", {})
    keep = bool(about.get("keep_unpassable"))
    try:
        covered = some_coverage(results.fitted.layout, battery, keep_unpassable=keep)
    except ServiceError as error:
        raise AnimalcatError(str(error), "INVALID_REQUEST") from error
    own = about.get("battery_digest") == battery.digest
    played = set(results.table["instance"]) if own else set[str]()
    names = list(covered.features)
    instances = [battery.instances[battery.index[instance]] for instance in names]
    layout, features = results.fitted.layout, np.array(list(covered.features.values()), np.float64)
    if layout.counted:  # what it would do after all that it has played
        assert results.fitted.data is not None  # of a session
        so_far = results.fitted.data.features[:, layout.counted[0]].max(initial=-1.0)
        features = layout.count_on(features, so_far + 1.0)
    prediction = forecast(
        layout,
        results.fitted.flat_draws,
        features,
        [instance.paradigm for instance in instances],
        most=top,
        without={row for row, instance in enumerate(names) if instance in played},
    )
    places = {telling.row: k + 1 for k, telling in enumerate(prediction.telling)}
    return {
        "version": VERSION,
        "agent": results.agent,
        "session": about.get("session", ""),
        "labels": list(results.profile.get("labels", [])),
        "backend": about.get("backend", ""),
        "played_on": words_of_backend(results.profile),
        "layout": dict(results.profile["layout"]),
        "battery": name,
        "battery_digest": battery.digest,
        "instances": len(battery.instances),
        "covered": len(names),
        "left_out": dict(covered.counts),
        "passed": _estimate(prediction.passed),
        "paradigms": [
            {
                "paradigm": paradigm,
                "instances": sum(instance.paradigm == paradigm for instance in instances),
                **_estimate(passed),
            }
            for paradigm, passed in prediction.groups.items()
        ],
        "telling": _telling(results, prediction, names),
        "predictions": [
            {
                "instance": instance.name,
                "suite": instance.suite,
                "paradigm": instance.paradigm,
                "predicted": round(float(prediction.each.mean[row]), 6),
                "low": round(float(prediction.each.low[row]), 6),
                "high": round(float(prediction.each.high[row]), 6),
                "played": instance.name in played,
                "telling": places.get(row),
            }
            for row, instance in enumerate(instances)
        ],
    }


def _telling(
    results: Results, prediction: BatteryForecast, names: list[str]
) -> list[dict[str, Any]]:
    units = {node.name: node.unit for node in results.fitted.layout.latents}
    return [
        {
            "instance": names[telling.row],
            "predicted": round(float(prediction.each.mean[telling.row]), 6),
            "low": round(float(prediction.each.low[telling.row]), 6),
            "high": round(float(prediction.each.high[telling.row]), 6),
            "node": telling.node,
            "unit": units[telling.node],
            "sd_before": telling.before,
            "sd_after": telling.after,
        }
        for telling in prediction.telling
    ]


def _estimate(estimate: Estimate) -> dict[str, float]:
    return {"passed": round(estimate.value, 3), "low": estimate.low, "high": estimate.high}
