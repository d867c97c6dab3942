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
from animalcat.layouts.library import load_layout
from animalcat.plots import read_results
from animalcat.plots.results import Results
from animalcat.service.reporting.comparison import MixedError, compare
from animalcat.service.reporting.comparison_page import comparison_page
from tests.service.test_battery_report import Page

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "data" / "gallery"
FILES = [str(FOLDER / f"{name}.nc") for name in ("forward", "braitenberg")]


@pytest.fixture(scope="module")
def both() -> dict[str, Results]:
    names = ("forward", "<b>wanders & $</b>")
    return {name: read_results(Path(path)) for name, path in zip(names, FILES, strict=True)}


def change_one(one: Results, **about: Any) -> Results:
    profile = dict(one.profile)
    return one._replace(profile={**profile, "provenance": {**profile["provenance"], **about}})


def test_agents_are_ranked_by_their_draws(both: dict[str, Results]) -> None:
    known = compare(both)
    assert known.differences == []
    first, second = both
    draws = [one.fitted.flat_draws[:, 0] for one in both.values()]
    best, other = (row for row in known.standings if row.node == "navigationAbility")
    assert (best.agent, other.agent) == (second, first)
    less = float((draws[0][:, None] < draws[1][None, ::4]).mean())
    assert best.most == pytest.approx(less, abs=0.01)
    # In metres, though the layout's unit is ten of them.
    assert other.behind is not None
    value, unit = other.behind.words.estimate.split()
    assert unit == "m"
    assert other.behind.words.interval.endswith(" m")
    assert float(value) == pytest.approx(10 * (draws[1].mean() - draws[0].mean()), abs=1)
    frame = known.to_frame()
    assert list(frame["agent"][:2]) == [second, first]
    assert frame["behind"][1] == other.behind.mean


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
    other = {first: both[first], second: change_one(both[second], **about)}
    with pytest.raises(MixedError, match=f"The {what} differs"):
        compare(other)
    known = compare(other, mixed=True)
    assert [one.what for one in known.differences] == [what]
    assert len(known.nodes) == 4


def test_of_different_layouts_the_nodes_that_are_the_same_are_compare(
    both: dict[str, Results],
) -> None:
    first, second = both
    own = both[second]
    metres = load_layout("aaio", "metres-15")
    layout = {"name": "aaio", "variant": "metres-15", "digest": metres.digest}
    nodes = {
        name: {**node, "unit": "m"} if name != "noiseLevel" else node
        for name, node in own.profile["nodes"].items()
    }
    other = own._replace(
        profile={**own.profile, "layout": layout, "nodes": nodes},
        fitted=replace(own.fitted, layout=metres),
    )
    with pytest.raises(MixedError, match="layout differs"):
        compare({first: both[first], second: other})
    known = compare({first: both[first], second: other}, mixed=True)
    assert known.nodes == ("noiseLevel",)  # the others are in other units or ranges
    assert np.array_equal(known.posteriors[1].draws, own.fitted.flat_draws[:, [3]])
    alone = own._replace(profile={**own.profile, "layout": layout, "nodes": {}})
    with pytest.raises(ValueError, match="share no node"):
        compare({first: both[first], second: alone}, mixed=True)


def test_the_page_compares_and_escapes(both: dict[str, Results]) -> None:
    first, second = both
    labelled = both[first]._replace(profile={**both[first].profile, "labels": ["unfinished: 3"]})
    known = compare(
        {first: labelled, second: change_one(both[second], backend="unity")}, mixed=True
    )
    page = comparison_page(known, f"A {second}", ["Of these."])
    seen = Page(page)
    assert seen.open == []
    assert "<b>wanders" not in page
    for words in (f"A {second}", "forward: unfinished: 3", "The backend differs", "Of these.",
                  "P(more)"):  # fmt: skip
        assert words in seen.words, words
    pictures = [attributes for tag, attributes in seen.tags if tag == "img"]
    assert len(pictures) == len(known.nodes)
    assert all("90 % intervals: " in (one.get("alt") or "") for one in pictures)
    names = [attributes["id"] for _, attributes in seen.tags if "id" in attributes]
    assert len(names) == len(set(names))


def test_sessions_are_compared_from_the_command_line(
    both: dict[str, Results], tmp_path: Path
) -> None:
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
    assert [row["node"] for row in found["standings"][::2]] == found["nodes"]
    assert not found["approximate"]
    assert found["same_arenas"]["only_first"] == []
    third = compare({**both, "third": change_one(both["forward"], session="another")})
    assert len(third.standings) == 3 * len(third.nodes)
    assert third.same_arenas is None
    assert "are one session" in run(*FILES, FILES[0]).stderr
    alone = run(FILES[0])
    assert (alone.exit_code, "two agents at least" in alone.stderr) == (2, True)
    lost = run(*FILES, "-o", "/dev/full")
    assert (lost.exit_code, "cannot be written" in lost.stderr) == (2, True), lost.stderr


def test_rates_are_compared_on_the_arenas_that_both_were_given(both: dict[str, Results]) -> None:
    order = [name for name in both["forward"].passed if name in [*both.values()][1].passed]
    policy = {"order": [*order, "unplayed"]}
    given = {name: change_one(one, policy=policy) for name, one in both.items()}
    known = compare(given, margin=0.3)
    (found,) = known.rates.values()
    assert (found.pairs, found.planned) == (len(order), len(order) + 1)
    assert found.ahead - found.behind == round(found.difference * found.pairs)
    assert known.told()[-1].startswith(f"{' and '.join(given)} are {found.verdict} after ")
    assert known.to_dict()["rates"][0]["agents"] == list(given)
    assert compare(both).rates == {}
    chosen = {**given, "forward": change_one(given["forward"], policy={"order": []})}
    assert compare(chosen).rates == {}


def test_two_profiles_of_one_agent_keep_their_own_numbers(
    both: dict[str, Results], tmp_path: Path
) -> None:
    """What was different when they were measured is said, and a name says which file it is of."""
    first, second = (f"same ({tmp_path / name}.json)" for name in "ab")
    for name, period, one in zip("ab", (3, 6), both.values(), strict=True):
        about = {"agent": "same", "observation_spec": {"decision_period": period}}
        profile = {**one.profile, "provenance": about, "labels": [f"played {period}"]}
        (tmp_path / f"{name}.json").write_text(json.dumps(profile))
    line = ["profile", "compare", *(str(tmp_path / f"{name}.json") for name in "ab")]
    refused = CliRunner().invoke(build(line), line)
    assert refused.exit_code == 2
    assert "The decision period differs (same (" in refused.stderr
    line += ["--mixed", "--json"]
    report = json.loads(CliRunner().invoke(build(line), line).stdout)
    rows = report["standings"][:2]
    assert {row["agent"] for row in rows} == {first, second}
    assert rows[0]["words"] != rows[1]["words"]
    assert report["notes"][:2] == [f"{first}: played 3", f"{second}: played 6"]
