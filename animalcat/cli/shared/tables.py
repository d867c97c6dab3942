"""Tables that several commands print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from animalcat.cli.shared.output import console, print_rows
from animalcat.service.rpc.exports import decimals

NODE_COLUMNS: Final = ("capability", "estimate", "interval", "unit", "status")
"""Columns of the table of a profile."""


ALWAYS: Final = ("rewardDistance", "rewardSize", "rewardBehind", "XPos")
"""Meta-features that tables show even where they are 0 everywhere."""


def headed(name: str, unit: str) -> str:
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
        rows.append(
            {
                "capability": name,
                "estimate": f"{node['mean']:.{digits}f} ± {node['sd']:.{digits}f}",
                "interval": f"{low:.{digits}f} to {high:.{digits}f}",
                "unit": node["unit"],
                "status": node["status"] or node["kind"],
            }
        )
    return rows


def left_out(profile: Mapping[str, Any]) -> str:
    """How many arenas of the battery the layout covers, and why not the others; empty if all."""
    found = profile["provenance"].get("coverage")
    if not found or not found["left_out"]:
        return ""
    why = "; ".join(f"{number}: {reason}" for reason, number in found["left_out"].items())
    return (
        f"The layout covers {found['covered']} of {found['of']} arenas of the battery. "
        f"Left out: {why}."
    )


def print_profile(profile: Mapping[str, Any], title: str) -> None:
    """Print a profile; after an alarm also what it found, and the second reading."""
    print_rows(profile_rows(profile), NODE_COLUMNS, as_json=False, title=title)
    if gaps := left_out(profile):
        console().print(gaps, highlight=False)
    if misfit := profile["provenance"].get("misfit"):
        console().print(f"The layout does not describe this agent {misfit}.", highlight=False)
    again: Mapping[str, Any] | None = profile.get("second_reading")
    if again is None:
        return
    if "failed" in again:
        console().print(f"Not {again['label']}: {again['failed']}.", highlight=False)
    else:
        heading = f"Profile {again['label']}: {again['where']}"
        print_rows(profile_rows(again), NODE_COLUMNS, as_json=False, title=heading)
