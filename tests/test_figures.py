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


def shown(text: str, *values: Any) -> bool:
    """Whether the numbers in a text are these values, each rounded as it stands there."""
    numbers = re.findall(r"-?\d+(?:\.\d+)?(?:e-\d+)?", text)
    return len(numbers) == len(values) and all(map(_rounds_to, numbers, values))


def _rounds_to(number: str, value: float) -> bool:
    digits, _, exponent = number.partition("e")
    decimals = len(digits.partition(".")[2])
    unit = 10.0 ** (int(exponent or 0) - decimals)
    return abs(float(number) - value) <= 0.5 * unit * (1 + 1e-6)


def data(name: str) -> Any:
    return json.loads((DOCS / "data" / f"{name}.json").read_text())


def test_adaptive_testing() -> None:
    kept = [row for f in RESULTS.glob("*.json") for row in json.loads(f.read_text())["rows"]]
    known = {row["name"]: row for row in kept}
    table = [
        row
        for row in rows("research/adaptive.md", "What was measured")
        if row.get("measured") in known
    ]
    assert len(table) > 60
    for row in table:
        of = known[row["measured"]]
        ends = (
            [end for end in (of["low"], of["high"]) if isinstance(end, float)]
            if row["90 % interval"]
            else []
        )
        assert shown(row["value"], of["value"]), row
        assert shown(row["90 % interval"], *ends), row
        assert row["met"] == of.get("met", ""), row


def test_calibration() -> None:
    kept = {
        (run["layout"]["name"], run["layout"]["variant"]): run
        for run in data("calibration")["calibrations"]
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
        assert shown(row["pooled coverage"], run["pooled"]), row
        assert shown(row["coverage by node"], min(coverage), max(coverage)), row
        assert shown(row["least p"], min(node["uniformity"] for node in nodes)), row


def test_figure_9() -> None:
    columns = {
        "navigation": "navigationAbility",
        "visual": "visualAbility",
        "noise": "noiseLevel",
        "bias": "rightLeftBias",
    }
    kept = {entrant["name"]: entrant for entrant in data("burden2023")["figure_9"]["entrants"]}
    section = list(rows("research/reproduction.md", "Figure 9"))
    table = [row for row in section if {"entrant", "navigation"} <= row.keys()]
    assert {row["entrant"] for row in table} == kept.keys()
    for row in table:
        for column, node in columns.items():
            of = kept[row["entrant"]]["nodes"][node]
            values = (of["mean"], of["sd"], of["printed_mean"], of["printed_sd"])
            assert shown(row[column], *values), row


def test_figure_6a() -> None:
    runs = {run["layout"]["variant"]: run["entrants"] for run in data("burden2023")["figure_6a"]}
    kept = {v: {e["name"]: e for e in entrants} for v, entrants in runs.items()}
    table = [row for row in rows("research/reproduction.md", "Figure 6a") if "entrant" in row]
    assert {row["entrant"] for row in table} == kept["metres-15"].keys()
    for row in table:
        for variant in ("metres-15", "figure-9", "as-printed"):
            assert shown(row[variant], kept[variant][row["entrant"]]["layout"]), row
        assert shown(row["aggregate"], kept["metres-15"][row["entrant"]]["aggregate"]), row


def test_table_8() -> None:
    kept = {run["layout"]["variant"]: run["table_8"] for run in data("burden2023")["tables"]}
    section = [
        row for row in rows("research/reproduction.md", "Table 8") if "printed: layout" in row
    ]
    table = [row for row in section if row["agent"].isdigit()]
    assert len(table) == len(kept["refined"])
    for row, refined, by_task in zip(table, kept["refined"], kept["by-task"], strict=True):
        assert shown(row["agent"], refined["number"])
        assert shown(row["refined"], refined["layout"]), row
        assert shown(row["by-task"], by_task["layout"]), row
        assert shown(row["aggregate"], refined["aggregate"]), row
        assert shown(row["knows the rule"], refined["oracle"]), row
        assert shown(row["best: refined"], refined["best"]), row
        assert shown(row["best: by-task"], by_task["best"]), row


def test_simulated_entrants() -> None:
    populations = data("tesic2025")["populations"]
    kept = {node["node"]: node for node in populations["contest"]["nodes"]}
    table = list(rows("research/reproduction.md", "Tesic et al. 2025"))
    errors = [row for row in table if "contest: error" in row]
    assert {row["node"] for row in errors} == kept.keys()
    for row in errors:
        of = kept[row["node"]]
        assert shown(row["contest: error"], of["rmse"]), row
        assert shown(
            row["coverage"],
            *[n["coverage"] for n in populations["prior"]["nodes"] if n["node"] == row["node"]],
        ), row
    fits = {(fit["agent"], fit["node"]): fit for fit in populations["contest"]["table_2"]}
    profile = [row for row in table if {"entrant", "parameter"} <= row.keys()]
    assert profile
    for row in profile:
        of = fits[row["entrant"], row["parameter"]]
        assert shown(row["mean"], of["mean"]), row
        assert shown(row["HDI 3 %"], of["low"]), row
        assert shown(row["HDI 97 %"], of["high"]), row
        assert shown(row["ESS bulk"], of["ess_bulk"]), row


def test_numbers_are_compared_as_they_are_rounded() -> None:
    assert shown("0.12", 0.1204)
    assert shown("-3.24e-05 to 0.0018", -3.2449e-5, 0.00179)
    assert not shown("0.12", 0.1256)
    assert not shown("0.12 to 0.13", 0.12)
