"""Predicts which arenas of a battery a session's agent passes, for `profile predict`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import typer

from animalcat.cli.battery_report import received
from animalcat.cli.shared.batteries import find_battery
from animalcat.cli.shared.output import console, fail, print_json, print_rows, status, wrote
from animalcat.cli.shared.pictures import read_from, read_sessions
from animalcat.cli.shared.remote import client_for, place
from animalcat.files import write_whole
from animalcat.layouts.checking.forecast import BatteryForecast, forecast
from animalcat.layouts.checking.scores import Estimate
from animalcat.layouts.explaining.wording import figure
from animalcat.layouts.model.units import plain_unit
from animalcat.names import short_digest
from animalcat.plots.results import Results
from animalcat.service.batteries.battery import Battery
from animalcat.service.errors import ServiceError
from animalcat.service.measuring.coverage import Coverage, some_coverage
from animalcat.service.reporting.session_report import played_on

VERSION: Final = 1
"""Version of the JSON; readers refuse newer ones."""


def predict_battery(
    session: str,
    battery: str,
    top: int,
    output: Path | None,
    *,
    server: str | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Predict the arenas of a battery, print what stands out and write all of it.

    Args:
        session: Id of a session, or a file of an exported posterior.
        battery: Name of the battery; empty for the session's own.
        top: How many arenas to name that would tell most.
        output: Where the whole table goes to, .csv or .json; None for nowhere.
        server: Host and port, if one was given.
        data: The data directory, if one was given.
        as_json: Whether JSON is printed.
    """
    if output is not None and output.suffix.lower() not in (".csv", ".json"):
        fail(f"{output}: call it .csv or .json, which says the form")
    with client_for(server, data) as client:
        if session.endswith(".nc"):
            (results,) = read_sessions([session], server, data)
        else:
            (results,) = read_from(client, [session])
        about = results.profile.get("provenance", {})
        # Without an option the session's own is meant, whatever folders are here.
        asked = battery or f"batteries/{about.get('battery', '')}"
        name = find_battery(client, asked, where=place(server, data))
        with status(f"reading {name}"):
            known = received(client, name)
    if not battery and about.get("battery_digest") not in (None, known.digest):
        typer.echo(
            f"note: the session played an older version of battery {name} (digest "
            f"{short_digest(str(about['battery_digest']))}); these are the arenas of the present "
            f"one (digest {short_digest(known.digest)})",
            err=True,
        )
    try:
        keep = bool(about.get("keep_unpassable"))
        covered = some_coverage(results.fitted.layout, known, keep_unpassable=keep)
    except ServiceError as error:
        fail(str(error))
    report = _report(results, name, known, covered, top)
    if output is not None:
        _write(report, output)
    if as_json:
        print_json(report)
    else:
        _print(report)


def _report(
    results: Results, name: str, battery: Battery, covered: Coverage, top: int
) -> dict[str, Any]:
    about: dict[str, Any] = results.profile.get("provenance", {})
    own = about.get("battery_digest") == battery.digest
    played = set(results.table["instance"]) if own else set[str]()
    names = list(covered.features)
    instances = [battery.instances[battery.index[instance]] for instance in names]
    prediction = forecast(
        results.fitted.layout,
        results.fitted.flat_draws,
        np.array(list(covered.features.values()), np.float64),
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
        "played_on": played_on(results.profile),
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


def _write(report: dict[str, Any], output: Path) -> None:
    if output.suffix.lower() == ".json":
        text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    else:
        about = {
            key: report[key] for key in ("session", "agent", "battery", "backend", "played_on")
        }
        about |= {"labels": "; ".join(report["labels"])}
        about |= {"layout": report["layout"]["name"], "variant": report["layout"]["variant"]}
        buffer = io.StringIO()
        columns = [*report["predictions"][0], *about]
        writer = csv.DictWriter(buffer, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row | about for row in report["predictions"])
        text = buffer.getvalue()
    try:
        write_whole(output, text.encode())
    except OSError as error:
        fail(f"{error.filename or output}: cannot be written: {error.strerror}")
    wrote("predictions", output)


def _print(report: dict[str, Any]) -> None:
    for label in report["labels"]:
        console().print(f"{label[:1].upper()}{label[1:]}.", highlight=False)
    passed = report["passed"]
    console().print(
        f"Of the {report['covered']} arenas of {report['battery']} that the layout covers, "
        f"{report['agent']} is expected to pass {passed['passed']:.0f} "
        f"(90 %: {passed['low']:.0f} to {passed['high']:.0f}).",
        highlight=False,
    )
    if report["left_out"]:
        gaps = "; ".join(f"{n}: {why}" for why, n in report["left_out"].items())
        console().print(f"Not covered are {gaps}.", highlight=False)
    rows = [
        {
            "paradigm": row["paradigm"],
            "arenas": row["instances"],
            "passed": f"{row['passed']:.1f}",
            "90 %": f"{row['low']:.0f} to {row['high']:.0f}",
        }
        for row in report["paradigms"]
    ]
    print_rows(rows, list(rows[0]), as_json=False, title="Expected to pass")
    rows = [
        {
            "arena": row["instance"],
            "passes": f"{100 * row['predicted']:.0f} %",
            "90 %": f"{100 * row['low']:.0f} to {100 * row['high']:.0f} %",
            "tells of": row["node"],
            "expected SD": _lowered(row),
        }
        for row in report["telling"]
    ]
    if rows:
        title = "These few would tell most together, the first one first"
        print_rows(rows, list(rows[0]), as_json=False, title=title)


def _lowered(row: dict[str, Any]) -> str:
    factor, unit = plain_unit(row["unit"])
    before, after = factor * row["sd_before"], factor * row["sd_after"]
    step = max(before - after, 1e-6)
    first, last = figure(before, step), figure(after, step)
    return f"{first} to {last} {f'(unit: {unit})' if '(' in unit else unit}".rstrip()
