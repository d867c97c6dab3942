"""Agents side by side: what may be compared, what is said to differ, and the page of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from animalcat.cli.main import build
from animalcat.layouts.checking.side_by_side import compare_agents, difference_rows, rank_rows
from animalcat.layouts.library import load_layout, parse_layout
from animalcat.plots import read_results
from animalcat.plots.results import Results
from animalcat.service.reporting.comparison import (
    MixedError,
    compared,
    differing,
)
from animalcat.service.reporting.comparison_page import FEW, comparison_page
from tests.service.test_battery_report import SUM, Page

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "data" / "gallery"
FILES = [str(FOLDER / f"{name}.nc") for name in ("forward", "braitenberg")]


@pytest.fixture(scope="module")
def both() -> dict[str, Results]:
    names = ("forward", "<b>wanders & $</b>")
    return {name: read_results(Path(path)) for name, path in zip(names, FILES, strict=True)}


def changed(one: Results, **about: Any) -> Results:
    profile = dict(one.profile)
    return one._replace(profile={**profile, "provenance": {**profile["provenance"], **about}})


def test_agents_are_ranked_by_their_draws(both: dict[str, Results]) -> None:
    known = compared(both)
    assert known.differences == []
    first, second = both
    draws = [one.fitted.flat_draws[:, 0] for one in both.values()]
    report = compare_agents(known.posteriors, scales=known.scales)
    rows = [row for row in rank_rows(report) if row["node"] == "navigationAbility"]
    assert [row["agent"] for row in rows] == [second, first]
    less = float((draws[0][:, None] < draws[1][None, ::4]).mean())
    assert rows[0]["P(most)"] == pytest.approx(less, abs=0.01)
    (row,) = (row for row in difference_rows(report) if row["node"] == "navigationAbility")
    # In metres, though the layout's unit is ten of them.
    value, unit = row["differs by"].replace("−", "-").split()
    assert unit == "m"
    assert row["90 %"].endswith(" m")
    assert float(value) == pytest.approx(10 * (draws[0].mean() - draws[1].mean()), abs=1)


@pytest.mark.parametrize(
    ("about", "what"),
    [
        ({"backend": "unity"}, "backend"),
        ({"observation_spec": {"camera": {"resolution": 84, "grayscale": False}}}, "observation"),
    ],
)
def test_what_was_measured_otherwise_is_compared_on_demand_only(
    both: dict[str, Results], about: dict[str, Any], what: str
) -> None:
    first, second = both
    other = {first: both[first], second: changed(both[second], **about)}
    with pytest.raises(MixedError, match=f"The {what} differs"):
        compared(other)
    known = compared(other, mixed=True)
    assert [one.what for one in known.differences] == [what]
    assert len(known.nodes) == 4


def test_of_different_layouts_the_nodes_that_are_the_same_are_compared(
    both: dict[str, Results],
) -> None:
    first, second = both
    own = both[second]
    metres = load_layout("aaio", "metres-15")
    layout = {"name": "aaio", "variant": "metres-15", "digest": metres.digest}
    other = own._replace(
        profile={**own.profile, "layout": layout}, fitted=replace(own.fitted, layout=metres)
    )
    with pytest.raises(MixedError, match="layout differs"):
        compared({first: both[first], second: other})
    known = compared({first: both[first], second: other}, mixed=True)
    assert known.nodes == ("noiseLevel",)  # the others are in other units or ranges
    assert np.array_equal(known.posteriors[1].draws, own.fitted.flat_draws[:, [3]])
    alone = own._replace(fitted=replace(own.fitted, layout=parse_layout(SUM)))
    with pytest.raises(ValueError, match="share no node"):
        compared({first: both[first], second: alone}, mixed=True)


def test_a_build_or_a_version_that_differs_is_said(both: dict[str, Results]) -> None:
    first, second = (one.profile for one in both.values())
    about = {**second["provenance"], "versions": {"animalcat": "9"}, "played_with": []}
    found = differing({"a": first, "b": {**second, "provenance": about}})
    assert [one.what for one in found] == ["build", "version of animalcat"]
    assert not any(one.grave for one in found)
    assert "a: 0.1.0; b: 9" in found[1].sentence


def test_the_page_compares_and_escapes(both: dict[str, Results]) -> None:
    first, second = both
    labelled = both[first]._replace(profile={**both[first].profile, "labels": ["unfinished: 3"]})
    known = compared({first: labelled, second: changed(both[second], backend="unity")}, mixed=True)
    common = {first: [True, None, False], second: [False, True, False]}
    page = comparison_page(known, f"A {second}", ["Of these."], common, second)
    seen = Page(page)
    assert seen.open == []
    assert "<b>wanders" not in page
    for words in (f"A {second}", "forward: unfinished: 3", "The backend differs", "Of these.",
                  "1 of 2", "P(more)", f"Against {second}",
                  "cannot be told apart", "finds goals up to"):  # fmt: skip
        assert words in seen.words, words
    pictures = [attributes for tag, attributes in seen.tags if tag == "svg"]
    assert len(pictures) >= 8
    assert all(one.get("role") == "img" and one.get("aria-label") for one in pictures)
    names = [attributes["id"] for _, attributes in seen.tags if "id" in attributes]
    assert len(names) == len(set(names))


def test_the_page_of_many_agents_has_no_picture_that_grows_with_them(
    both: dict[str, Results],
) -> None:
    one, other = both.values()
    many = {f"agent-{k}": (one, other)[k % 2] for k in range(FEW + 1)}
    seen = Page(comparison_page(compared(many), "Many"))
    pictures = [attributes for tag, attributes in seen.tags if tag == "svg"]
    assert len(pictures) == 1 + len(one.layout.latents)
    assert f"drawn of at most {FEW} agents" in seen.words


def test_sessions_are_compared_from_the_command_line(tmp_path: Path) -> None:
    def run(*words: str) -> Any:
        line = ["profile", "compare", *words]
        return CliRunner().invoke(build(line), line)

    done = run(*FILES, "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert {one["played_on"] for one in found["agents"]} == {
        "sim: motion 3, looks 3, animalcat 0.1.0 (40 attempts)",
        "sim: motion 3, looks 3, animalcat 0.1.0 (17 attempts)",
    }
    assert {row["node"] for row in found["ranking"]} == set(found["nodes"])
    assert not found["approximate"]
    assert len(found["differences"]) == len(found["nodes"])
    several = [*FILES, FILES[0]]
    told = [json.loads(run(*several, "--json", *more).stdout) for more in ([], ["--pairs"])]
    assert [len(one["differences"]) for one in told] == [0, 3 * len(found["nodes"])]
    assert [len(one["same_arenas"]) for one in told] == [0, 3]
    assert told[0]["standings"] == told[1]["standings"]
    assert "and forward" not in run(*several).stdout
    alone = run(FILES[0])
    assert (alone.exit_code, "two agents at least" in alone.stderr) == (2, True)
    lost = run(*FILES, "-o", "/dev/full")
    assert (lost.exit_code, "cannot be written" in lost.stderr) == (2, True), lost.stderr
