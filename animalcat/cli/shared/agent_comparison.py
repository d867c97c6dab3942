"""Agents side by side, as commands print them: ranks, and differences with intervals."""

from __future__ import annotations

from typing import Any

import typer

from animalcat.cli.shared.output import print_rows
from animalcat.cli.shared.table import Column


def print_comparison(report: dict[str, Any], *, title: str) -> None:
    """Tables of what `compare_agents` gave.

    Args:
        report: What it gave.
        title: Title of the table of differences.
    """
    if report["ranking"]:
        rows = [
            {
                "node": row["node"],
                "agent": row["name"],
                "estimate": row["words"]["estimate"],
                "rank": f"{row['rank']:.1f}",
                "90 %": "{} to {}".format(*row["interval"]),
                "P(most)": f"{row['probabilities'][0]:.2f}",
            }
            for row in report["ranking"]
        ]
        columns = ["node", "agent", "estimate", Column("rank", 1), "90 %", Column("P(most)", 2)]
        print_rows(rows, columns, as_json=False, title="Ranks; 1 has the most")
    if report["differences"]:
        others = list(dict.fromkeys(row["than"] for row in report["differences"]))
        several = len(others) > 1
        by = "differs by" if several else f"differs from {others[0]} by"
        rows = [
            {
                "agent": row["agent"],
                **({"from": row["than"]} if several else {}),
                "node": row["node"],
                by: row["words"]["estimate"],
                "90 %": row["words"]["interval"],
                "P(more)": f"{row['more']:.2f}",
            }
            for row in report["differences"]
        ]
        print_rows(rows, list(rows[0]), as_json=False, title=title)
        words = {row["node"]: row["words"] for row in report["differences"]}
        if falling := [node for node, said in words.items() if not said["rising"]]:
            typer.echo(f"Of {', '.join(falling)}, a smaller value is more ability.")
    if report["approximate"]:
        typer.echo("Profiles hold no draws: each node was taken by its mean and sd, on its own.")
