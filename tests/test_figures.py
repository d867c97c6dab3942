"""The tables of the documentation are those of the data that is kept with them.

The figures come from runs of minutes to hours, so a test cannot make them again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
RESULTS = ROOT / "benchmarks" / "results" / "adaptive"


def rows(page: str, heading: str) -> Iterator[dict[str, str]]:
    """Each row of each table of a section, by the names of its columns."""
    text = (DOCS / page).read_text().split(f"\n## {heading}", 1)[1].split("\n## ", 1)[0]
    names: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip(" *") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells:
            names = []
        elif not names:
            names = cells
        elif not set("".join(cells)) <= set("-"):
            yield dict(zip(names, cells, strict=True))


def show_value(text: str, *values: Any) -> bool:
    """Whether the numbers in a text are these values, each rounded as it stands there."""
    numbers = re.findall(r"-?\d+(?:\.\d+)?(?:e-\d+)?", text)
    return len(numbers) == len(values) and all(map(_rounds_to, numbers, values))


def _rounds_to(number: str, value: float) -> bool:
    digits, _, exponent = number.partition("e")
    decimals = len(digits.partition(".")[2])
    unit = 10.0 ** (int(exponent or 0) - decimals)
    return abs(float(number) - value) <= 0.5 * unit * (1 + 1e-6)


def test_adaptive_testing() -> None:
    kept = [row for f in RESULTS.glob("*.json") for row in json.loads(f.read_text())["rows"]]
    known = {row["name"]: row for row in kept}
    table = [
        row
        for row in rows("research/adaptive.md", "What was measured")
        if row.get("measured") in known
    ]
    assert len(table) > 10
    for row in table:
        of = known[row["measured"]]
        ends = (
            [end for end in (of["low"], of["high"]) if isinstance(end, float)]
            if row["90 % interval"]
            else []
        )
        assert show_value(row["value"], of["value"]), row
        assert show_value(row["90 % interval"], *ends), row
        assert row["met"] == of.get("met", ""), row


def test_calibration() -> None:
    kept = {
        (run["layout"]["name"], run["layout"]["variant"]): run
        for run in json.loads((DOCS / "data" / "calibration.json").read_text())["calibrations"]
        if run["seed"] == 0
    }
    table = [
        row for row in rows("research/reproduction.md", "Calibration") if "with equal tails" in row
    ]
    assert {(row["layout"], row["variant"]) for row in table} == kept.keys()
    for row in table:
        run = kept[row["layout"], row["variant"]]
        nodes = run["nodes"].values()
        coverage = [node["coverage"] for node in nodes]
        assert show_value(row["pooled coverage"], run["pooled"]), row
        assert show_value(row["coverage by node"], min(coverage), max(coverage)), row
        assert show_value(row["least p"], min(node["uniformity"] for node in nodes)), row
