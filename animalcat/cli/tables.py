"""Tables that several commands print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from animalcat.service.exports import decimals

NODE_COLUMNS: Final = ("capability", "estimate", "interval", "unit", "status")
"""Columns of the table of a profile."""


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
