"""Tables that several commands print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

NODE_COLUMNS: Final = ("capability", "estimate", "interval", "unit", "status")
"""Columns of the table of a profile."""


def profile_rows(profile: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The table of a profile, one row a node; nodes that are no capability say what they are."""
    return [
        {
            "capability": name,
            "estimate": node["mean"],
            "interval": f"{node['hdi'][0]:.3g} to {node['hdi'][1]:.3g}",
            "unit": node["unit"],
            "status": node["status"] or node["kind"],
        }
        for name, node in profile["nodes"].items()
    ]
