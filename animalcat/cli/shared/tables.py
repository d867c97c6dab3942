"""Tables that several commands print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from animalcat.cli.shared.output import console, print_table, say
from animalcat.cli.shared.table import Column
from animalcat.service.measuring.profile_words import (
    STATUS_MEANS,
    battery_rate,
    control_cells,
    decimals,
    estimate,
    judgement_words,
    token_words,
    warnings,
)

INTERVAL: Final = "90 % interval"
"""The column that holds intervals."""
NODE_COLUMNS: Final = ("capability", "estimate", INTERVAL, "status")
"""Columns of the table of a profile."""
NOTE: Final = "note"
"""The column that a profile's table has too where there is something to note of a node."""


ALWAYS: Final = ("rewardDistance", "rewardSize", "rewardBehind", "XPos")
"""Meta-features that tables show even where they are 0 everywhere."""


def column_of(name: str, unit: str) -> str:
    """The column of a meta-feature in every table: its name, and its unit where it has one."""
    return f"{name} [{unit}]" if unit else name


def there(rows: Sequence[Mapping[str, float]]) -> list[str]:
    """Names of the meta-features that a table needs to show: not those that are 0 everywhere."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [name for name in names if name in ALWAYS or any(row.get(name) for row in rows)]


def profile_rows(profile: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The table of a profile, one row a node; nodes that are no capability say what they are."""
    rows: list[dict[str, Any]] = []
    for name, node in profile["nodes"].items():
        low, high = node["hdi"]
        digits = decimals(node["sd"])
        unit = "" if node["unit"] == "1" else f" {node['unit']}"
        words: Mapping[str, str] = node["words"] or {  # a bare fit has no words
            "estimate": estimate(node, unit),
            "interval": f"{low:.{digits}f} to {high:.{digits}f}{unit}",
        }
        rows.append(
            {
                "capability": name,
                "estimate": words["estimate"],
                INTERVAL: words["interval"],
                "status": node["status"] or node["kind"],
                NOTE: "; ".join(
                    part
                    for part in node.get("note", "").split("; ")
                    if part not in words["estimate"]
                ),
            }
        )
    return rows


def print_nodes(profile: Mapping[str, Any], title: str) -> None:
    """Print the table of nodes, and what its statuses mean."""
    rows = profile_rows(profile)
    columns = (*NODE_COLUMNS, NOTE) if any(row[NOTE] for row in rows) else NODE_COLUMNS
    print_table(rows, columns, title=title)
    for word in dict.fromkeys(row["status"] for row in rows):
        if word in STATUS_MEANS:
            console().print(f"{word}: {STATUS_MEANS[word]}", highlight=False)


def words_of_coverage(profile: Mapping[str, Any]) -> str:
    """How many arenas of the battery the layout covers, and why not the others; empty if all."""
    coverage = profile["provenance"].get("coverage")
    return coverage_words(coverage) if coverage else ""


def coverage_words(coverage: Mapping[str, Any]) -> str:
    """What a layout covers of a battery and why it leaves out the rest; empty if all is as usual.

    Args:
        coverage: The coverage, as profiles have it.
    """
    words: list[str] = []
    if coverage["left_out"]:
        why = ", ".join(f"{number} ({reason})" for reason, number in coverage["left_out"].items())
        words.append(
            f"The layout covers {coverage['covered']} of {coverage['of']} arenas of the battery. "
            f"Left out: {why}."
        )
    if kept := coverage.get("unpassable"):
        words.append(f"No play can pass {kept} of the arenas; they are played as requested.")
    if sure := coverage.get("cannot_fail"):
        words.append(f"Every play passes {sure} of the arenas: successes there show nothing.")
    words += coverage.get("warnings", ())
    return " ".join(words)


def variant_words(profile: Mapping[str, Any]) -> str:
    """Which variant of the layout measures and why, in a sentence; empty if it has but one."""
    coverage: Mapping[str, Any] = profile["provenance"].get("coverage") or {}
    return str(coverage.get("variant", ""))


def voids(profile: Mapping[str, Any]) -> str:
    """How many attempts the agent voided, by demand, in a sentence or two; empty if none."""
    return words_of_part(profile, "voids_by_demand")


def words_of_part(profile: Mapping[str, Any], key: str) -> str:
    """The words of a part of a profile's provenance; empty without any."""
    about: Mapping[str, Any] = profile["provenance"].get(key) or {}
    return str(about.get("words", ""))


def calibration_words(profile: Mapping[str, Any]) -> str:
    """By which earlier agents the layout was calibrated, in a sentence or two; empty if none."""
    calibration = profile["provenance"].get("calibration")
    if not calibration:
        return ""
    rest, fit = calibration["without_row"], calibration["fit"]
    gap = (
        f" {rest} arenas of the battery have no row in it: their demands alone predict them."
        if rest
        else ""
    )
    judged = [key for key in fit if f"{key}_as_written" in fit]
    scores = "".join(
        f" After {key.removeprefix('brier_')} episodes, agents held out were predicted with a "
        f"Brier score of {fit[key]:.3f}, and of {fit[f'{key}_as_written']:.3f} without."
        for key in judged[-1:]
    )
    strange = (
        " This agent finds other arenas hard than they did, so hardly anything of it counts."
        if calibration.get("strange")
        else ""
    )
    otherwise = calibration.get("as_written")
    written = f" By the layout as written: {otherwise}." if otherwise else ""
    return (
        f"Calibrated ({calibration['name']}): {calibration['layout']} ({calibration['variant']}), "
        f"with the easiness of arenas from {calibration['episodes']} outcomes of "
        f"{len(calibration['agents'])} earlier agents.{gap}{scores}{strange}{written}"
    )


def print_verdict(profile: Mapping[str, Any]) -> None:
    """Print the verdict that ends a profile."""
    console().print("\nVerdict", style="bold")
    console().print(" ".join(profile["verdict"]["sentences"]), highlight=False)


def print_what_now(profile: Mapping[str, Any], where: str = "") -> None:
    """Print what would close what a profile leaves open, if anything is open.

    Args:
        profile: By the schema "profile".
        where: Options that name the same server or data directory again, after a space.
    """
    steps: Sequence[Mapping[str, Any]] = profile.get("what_now") or ()
    if steps:
        console().print("\nWhat now?", style="bold")
    for step in steps:
        console().print(step["text"], highlight=False, markup=False)
        if step["command"]:
            say(f"  {step['command']}{where}")


def print_profile(
    profile: Mapping[str, Any], title: str, *, verdict: bool = True, where: str = ""
) -> None:
    """Print a profile: what invalidates it, its table, and the verdict.

    Args:
        profile: By the schema "profile".
        title: Title of the table.
        verdict: Whether the verdict is printed here, with what to do next, and not later by
            `print_verdict`.
        where: As for `print_what_now`.
    """
    for warning in warnings(profile):
        console().print(warning, highlight=False)
    print_nodes(profile, title)
    if calibration := calibration_words(profile):
        console().print(calibration, highlight=False)
    if variant := variant_words(profile):
        console().print(variant, highlight=False)
    if gaps := words_of_coverage(profile):
        console().print(gaps, highlight=False)
    said = [words_of_part(profile, key) for key in ("agent_failures", "withdrawals")]
    for sentence in filter(None, (*said, voids(profile))):
        console().print(sentence, highlight=False)
    if judgement := judgement_words(profile):  # else it is among the warnings
        console().print(judgement, highlight=False)
    console().print(battery_rate(profile), highlight=False, markup=False)
    if spent := token_words(profile["provenance"].get("spent")):
        console().print(f"Spent: {spent}.", highlight=False)
    if comparison := profile["provenance"].get("comparison"):
        said = comparison["words"]
        console().print(f"{said[0].upper()}{said[1:]}.", highlight=False)
    if rows := profile.get("controls"):
        _print_controls(rows)
    if verdict:
        print_verdict(profile)
        print_what_now(profile, where)


def _print_controls(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print how often arenas were passed, and how often their controls."""
    cells = [
        {**cell, "passed, control": f"{cell['as they are']}, {cell['with control']}"}
        for cell in map(control_cells, rows)
    ]
    columns = (
        *("arenas", "control", "passed, control", "pairs"),
        *(Column("only arena", 2), Column("only control", 1)),
        *("difference, %", "says"),
    )
    print_table(
        cells,
        columns,
        title="Arenas against their controls. The difference is of the shares that were passed, "
        "with its 90 % interval",
    )
