"""Predicts which arenas of a battery a session's agent passes, for `profile predict`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import typer

from animalcat.cli.shared.batteries import find_battery
from animalcat.cli.shared.output import console, fail, print_json, print_rows, status, wrote
from animalcat.cli.shared.pictures import read_from, read_sessions
from animalcat.cli.shared.remote import client_for, place
from animalcat.lab.forecast import forecast_report
from animalcat.lab.received import received
from animalcat.layouts.explaining.wording import figure
from animalcat.layouts.model.units import plain_unit
from animalcat.machine.files import write_whole
from animalcat.text.names import short_digest


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
    report = forecast_report(results, name, known, top)
    if output is not None:
        _write(report, output)
    if as_json:
        print_json(report)
    else:
        _print(report)


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
