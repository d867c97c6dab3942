"""Figures of pages are those of the results that are kept with them.

They come from runs of minutes to hours, so a test cannot make them again. `python -m tests.figures`
says which of them are due.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests import figures
from tests.checks import ROOT
from tests.figures import MARK, RESULTS, all_figures, rounds_to

DOCS = ROOT / "docs"
FIGURE = re.compile(r"\d (?:%|times|decisions a second|simulated agents)|Spearman")
"""How a figure of README or the paper looks, where it does not stand in a block of code."""


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
    return len(numbers) == len(values) and all(map(rounds_to, numbers, values))


@pytest.mark.parametrize("one", all_figures(), ids=lambda one: f"{one.page}: {' '.join(one.said)}")
def test_a_figure_is_that_of_its_result(one: figures.Figures) -> None:
    assert all(map(rounds_to, one.said, one.values)), one.values
    assert one.result["birth"].keys() >= {"command", "commit", "day", "machine", "versions"}


@pytest.mark.parametrize("page", ["README.md", "docs/paper/paper.md"])
def test_every_figure_has_a_mark(page: str) -> None:
    text = re.sub(r"^```.*?^```$|!\[.*?\]\(.*?\)", "", (ROOT / page).read_text(), flags=re.M | re.S)
    bare = [p for p in text.split("\n\n") if FIGURE.search(MARK.sub("", p)) and not MARK.search(p)]
    assert not bare, "tests/figures.py says how a figure is marked"


def test_what_is_due_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    born = {"covers": "tests/figures.py", "digest": figures.digest("tests/figures.py")}
    assert not figures.is_due(born)
    assert figures.is_due({**born, "covers": "tests"})
    assert figures.is_due({**born, "digest": ""})
    assert figures.main() == 0
    first = next(figures.read_figures(ROOT / "README.md"))
    assert f"README.md: {', '.join(first.said)}" in capsys.readouterr().out
    assert rounds_to("26,000", 26_400)
    assert not rounds_to("26,000", 26_600)
    assert rounds_to("0.95", 0.954)
    assert not rounds_to("0.95", 0.956)


def test_adaptive_testing() -> None:
    kept = [json.loads(file.read_text())["rows"] for file in RESULTS.rglob("*.json")]
    known = {row["name"]: row for rows in kept for row in rows}
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
        for run in json.loads((RESULTS / "calibration.json").read_text())["rows"]
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
        assert show_value(row["pooled coverage"], run["value"]), row
        assert show_value(row["coverage by node"], min(coverage), max(coverage)), row
        assert show_value(row["least p"], min(node["uniformity"] for node in nodes)), row
