"""`animalcat session reanalyse`: what a session says of the whole battery, by its propensities."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import typer

from animalcat.cli.shared.output import print_json, print_rows, status
from animalcat.cli.shared.remote import AsJson, Data, Server, SessionArgument, client_for

COLUMNS: Final = ("paradigm", "instances", "played", "of those passed", "of all", "over predicted")


def reanalyse(
    session: SessionArgument, server: Server = None, data: Data = None, as_json: AsJson = False
) -> None:
    """Estimate how much of each paradigm the agent would pass, and check the predictions.

    Each outcome is weighted by how probable it was that its arena would be chosen. So the estimates
    hold even where the layout does not describe the agent. Of the whole battery the profile's
    success rate is said, which errs less.
    """
    with client_for(server, data) as client, status("estimating"):
        result: dict[str, Any] = json.loads(client.export_profile(session, "reanalysis"))
        profile: dict[str, Any] = json.loads(client.export_profile(session, "json"))
    if as_json:
        print_json(result)
        return
    share = f"{100 * result['interval_share']:g} %"
    rows = [_row(part) for part in result["paradigms"]]
    print_rows(
        rows,
        COLUMNS,
        as_json=False,
        title=f"Share of successes if every instance were played once, with {share} intervals",
    )
    if result["calibration"]:
        bins = [
            {
                "predicted": f"{part['predicted']:.2f}",
                "observed": _estimate(part["observed"]),
                "draws": part["draws"],
            }
            for part in result["calibration"]
        ]
        title = f"Predictions, weighted to stand for the battery; Brier score {result['brier']:.3f}"
        print_rows(bins, list(bins[0]), as_json=False, title=title)
    if rate := profile.get("battery_rate"):
        typer.echo(rate["text"])
    for note in result["notes"]:
        typer.echo(f"note: {note}")


def _row(part: Mapping[str, Any]) -> dict[str, Any]:
    rate = part["rate"]
    return {
        "paradigm": part["name"],
        "instances": part["instances"],
        "played": part["played"],
        "of those passed": "-" if rate is None else f"{rate:.2f}",
        "of all": _estimate(part["success"]),
        "over predicted": _estimate(part["residual"]),
    }


def _estimate(part: Mapping[str, Any]) -> str:
    if part["value"] is None:
        return "-"
    if part["low"] is None:
        return f"{part['value']:.2f} (too few draws)"
    return f"{part['value']:.2f} ({part['low']:.2f} to {part['high']:.2f})"
