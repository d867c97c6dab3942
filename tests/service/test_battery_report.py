"""The report on a battery: what it says of batteries that were made to have something to say."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import numpy.typing as npt
import pytest

from animalcat.arena_configs.features.registry import FEATURES
from animalcat.arena_configs.instance import Instance
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.library import load_layout, parse_layout
from animalcat.service.batteries.battery import Battery
from animalcat.service.errors import ServiceError
from animalcat.service.reporting.battery_report import BatteryReport, battery_report
from animalcat.service.reporting.demands import Demand
from animalcat.service.reporting.page import html_page
from animalcat.service.reporting.precision import precision
from tests.service.conftest import open_floor

Floats = npt.NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
SCHEMA = json.loads((ROOT / "animalcat" / "schemas" / "battery_report.schema.json").read_text())


def battery(
    columns: Mapping[str, Sequence[float] | Floats],
    paradigms: Sequence[str] = (),
    units: Mapping[str, str] | None = None,
) -> Battery:
    """A battery of these demands; a value that is NaN is missing."""
    count = len(next(iter(columns.values())))
    instances = tuple(
        Instance(
            name=f"i{k:03}",
            paradigm=paradigms[k] if paradigms else "all",
            features={n: float(c[k]) for n, c in columns.items() if np.isfinite(c[k])},
            pass_mark=0.0,
            time_limit_steps=100,
            seed=0,
            arena="",
            missing={n: f"no {n} in {k}" for n, c in columns.items() if not np.isfinite(c[k])},
        )
        for k in range(count)
    )
    known = {name: FEATURES[name].unit for name in columns if name in FEATURES}
    all_units = dict.fromkeys(columns, "") | known | dict(units or {})
    return Battery("0" * 64, all_units, instances, (), Path(), {})


def report(columns: Mapping[str, Sequence[float] | Floats], **rest: Any) -> BatteryReport:
    return battery_report("made", battery(columns, **rest))


def demand(made: BatteryReport, name: str) -> Demand:
    return next(one for one in made.demands if one.name == name)


DIFFICULTIES = np.linspace(0.0, 10.0, 30)


def exact_sd(layout_name: str, features: Floats, agents: int) -> Floats:
    """Expected posterior standard deviations by a grid over both nodes, even in their priors."""
    layout = load_layout(layout_name)
    evaluator = Evaluator(layout)
    shares = (np.arange(50) + 0.5) / 50  # noise is Beta(0.3, 1), whose quantiles are powers
    ability, noise = np.meshgrid(np.linspace(0.075, 14.925, 100), shares ** (1 / 0.3))
    grid = np.stack([ability.ravel(), noise.ravel()], axis=1)
    p = evaluator.probability(grid, features)
    generator = np.random.default_rng(9)
    truths = grid[generator.integers(len(grid), size=agents)]
    variances = np.zeros(2)
    for truth in truths:
        y = generator.uniform(size=len(features)) < evaluator.probability([truth], features)[0]
        logs = np.log(np.where(y, p, 1.0 - p)).sum(axis=1)
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        variances += weights @ (grid - weights @ grid) ** 2 / agents
    return np.sqrt(variances)


def test_the_best_precision_is_that_of_the_exact_posterior() -> None:
    known = precision(load_layout("one-capability"), battery({"difficulty": DIFFICULTIES}))
    exact = exact_sd("one-capability", DIFFICULTIES[:, np.newaxis], 400)
    for node, sd in zip(known.nodes, exact, strict=True):
        assert node.sd == pytest.approx(sd, rel=0.12)
    assert known.nodes[0].sd < 0.8 * known.nodes[0].prior_sd


def test_steep_layouts_learn_on_which_side_of_an_instance_an_agent_is() -> None:
    """Where information at the truth is nil: nothing near it is asked."""
    text = (ROOT / "layouts" / "library" / "one-capability.yaml").read_text()
    steep = parse_layout(text.replace("slope: 0.69", "slope: 50"))
    known = precision(steep, battery({"difficulty": np.full(40, 7.5)}))
    # Half of the range is left: its standard deviation is half the prior's.
    assert known.nodes[0].kept == pytest.approx(0.5, abs=0.1)


SUM = """
name: sum
source: a test
about: two capabilities that only their sum shows
features: {difficulty: {unit: "1", low: 0, high: 10, about: what is asked}}
latents:
  one: {kind: capability, unit: "1", prior: {scaled_beta: {low: 0, high: 10}}, about: one}
  other: {kind: capability, unit: "1", prior: {scaled_beta: {low: 0, high: 10}}, about: other}
derived:
  both: {link: {weighted_sum: {inputs: [one, other], weights: [0.5, 0.5]}}}
  performance: {link: {logistic_margin: {ability: both, demand: difficulty, slope: 3}}}
outcome: {bernoulli: {probability: performance}}
"""


def test_what_a_battery_cannot_tell_apart_is_said() -> None:
    made = battery_report("made", battery({"difficulty": DIFFICULTIES}), parse_layout(SUM))
    assert made.precision is not None
    (pair,) = made.precision.tangles
    assert {pair.one, pair.other} == {"one", "other"}
    assert pair.correlation < -0.8
    told = made.to_dict()["summary"]
    assert any("cannot tell these apart: other and one" in sentence for sentence in told)


def test_a_layout_that_covers_nothing_is_an_error() -> None:
    with pytest.raises(ServiceError, match="covers none of the 5 instances"):
        battery_report("made", battery({"noise": np.arange(5.0)}), load_layout("aaio", "scaled"))


def test_what_nobody_can_pass_or_fail_and_the_planner_does_not_solve_is_said() -> None:
    made = battery({"leastReturn": [-1.0, 0.5, -1.0], "greatestReturn": [0.0, 1.0, 1.0]})
    made = dataclasses.replace(made, unsolved={"i002": "out of time"})
    content = battery_report("made", made).to_dict()
    jsonschema.validate(content, SCHEMA)
    assert (list(content["set_aside"]), list(content["cannot_fail"])) == (["i000"], ["i001"])
    page = Page(html_page(battery_report("made", made), {}))
    assert "1 arena that no play can pass" in page.words
    assert "1 arena that every play passes" in page.words
    assert "i002: out of time" in page.words


class Page(HTMLParser):
    """What a page has: tags with their attributes, in order, and whether all were closed."""

    VOID = ("meta", "br", "link", "img", "input", "hr")
    IMPLIED = ("td", "th", "li", "tr", "p")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in (*self.VOID, *self.IMPLIED):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.IMPLIED:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def test_the_page_stands_alone_and_shows_every_map(tmp_path: Path) -> None:
    made = open_floor(8, tmp_path)
    report = battery_report("<b>floor</b>", made, load_layout("aaio", "scaled"), maps=6)
    page = html_page(report, {one.name: made.arena_yaml(one) for one in made.instances})
    seen = Page(page)
    assert seen.open == []
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in seen.tags}
    assert not re.search(
        r"(https?:)?//(?!www\.w3\.org)", re.sub(r"<style>.*?</style>", "", page, flags=re.S)
    )
    pictures = [a for tag, a in seen.tags if tag == "svg"]
    assert all(a.get("role") == "img" and a.get("aria-label") for a in pictures)
    maps = [a["aria-label"] for a in pictures if a.get("class") == "map"]
    assert len(maps) == sum(row.shown for part in report.sheet for row in part.rows) <= 6
    assert all("GoodGoal" in (words or "") for words in maps)
    assert "Battery <b>floor</b>" in seen.words
    for sentence in report.to_dict()["summary"]:
        assert sentence in seen.words
    for name in made.index:
        assert name in seen.words
    for rule in report.to_dict()["rules"].values():
        assert rule in seen.words
    jsonschema.validate(report.to_dict(), SCHEMA)


def test_reliability_is_by_length_for_chosen_arenas_and_a_random_order() -> None:
    spread = np.linspace(0.0, 10.0, 100)
    made = battery_report("made", battery({"difficulty": spread}), load_layout("one-capability"))
    known = made.precision
    assert known is not None
    (ability,) = known.reliability
    node = known.nodes[0]
    assert [one.episodes for one in ability.lengths] == [20, 40, 80, 100]
    for one in ability.lengths:
        both = [one.at_random] if one.chosen is None else [one.at_random, one.chosen]
        for found in both:
            share = found.sd / node.prior_sd
            assert found.reliability == pytest.approx(1.0 - share**2)
    errors = [one.at_random.sd for one in ability.lengths]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] == pytest.approx(node.sd)
    assert ability.lengths[-1].chosen is None
    first = ability.lengths[0]
    assert first.chosen is not None
    assert first.chosen.sd < first.at_random.sd
    rows = made.reliability_rows
    assert [row["episodes"] for row in rows] == ["20", "40", "80", "100"]
    assert [bool(row["chosen"]) for row in rows] == [True, True, True, False]
    assert (
        rows[0]["at random"] == f"{errors[0]:.3g} ({ability.lengths[0].at_random.reliability:.2f})"
    )
