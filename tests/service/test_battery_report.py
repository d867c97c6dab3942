"""The report on a battery: what it says of batteries that were made to have something to say."""

from __future__ import annotations

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
from typer.testing import CliRunner

from animalcat.arena_configs.features import FEATURES
from animalcat.arena_configs.instance import Instance
from animalcat.cli.main import build
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.library import load_layout, parse_layout
from animalcat.service.batteries.battery import Battery
from animalcat.service.errors import ServiceError
from animalcat.service.host.private import server_for
from animalcat.service.reporting import charts
from animalcat.service.reporting.battery_report import BatteryReport, battery_report
from animalcat.service.reporting.kinship import FAMILIES
from animalcat.service.reporting.page import GROUPS, html_page
from animalcat.service.reporting.precision import precision, simulated_outcomes
from animalcat.service.reporting.spread import Spread
from tests.service.conftest import open_floor

Floats = npt.NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
SCHEMA = json.loads((ROOT / "animalcat" / "schemas" / "battery_report.schema.json").read_text())
RNG = np.random.default_rng(0)


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


def spread(made: BatteryReport, name: str) -> Spread:
    return next(s for s in made.spreads if s.demand.name == name)


def test_equal_demands_correlate_by_one_and_nested_ones_are_told_apart() -> None:
    loud, far = RNG.uniform(0, 90, 60), RNG.uniform(1, 30, 60)
    made = report(
        {
            "noise": loud,
            "echo": loud**2,
            "silence": -loud,
            "rewardDistance": far,
            "wayLength": far + 0.1,
            "rewardSize": RNG.uniform(0.5, 5, 60),
            "ramps": np.ones(60),
        }
    )
    found = {frozenset((p.one, p.other)): p for p in made.correlations.pairs()}
    assert found[frozenset(("noise", "echo"))].rho == pytest.approx(1.0)
    assert found[frozenset(("noise", "silence"))].rho == pytest.approx(-1.0)
    assert found[frozenset(("rewardDistance", "wayLength"))].kinship == "how far the goal is"
    assert not found[frozenset(("noise", "echo"))].kinship
    assert len(found) == 4  # those, and echo with silence
    assert {(p.one, p.other) for p in made.nested} == {("wayLength", "rewardDistance")}
    assert [s.demand.name for s in made.constant] == ["ramps"]
    assert "ramps" not in made.correlations.names
    assert set(made.picture.names) >= {"rewardSize"}
    shown = [*made.picture.names, *(n for v in made.picture.stands_for.values() for n in v)]
    assert sorted(shown) == sorted(made.correlations.names)
    broken = [a for a in made.additions if a.rule == "correlation"]
    assert len(broken) == 1
    # It is wanted where the battery has nothing: two that rise together apart, and reversed.
    (one, high), (other, low) = broken[0].demands.items()
    ranks = [
        float((np.array(made.table.known(n)) < v).mean()) for n, v in ((one, high), (other, low))
    ]
    assert ranks[0] > 0.8
    assert (ranks[1] < 0.2) == ((broken[0].correlation or 0.0) > 0)


def test_correlations_are_of_the_instances_that_have_both() -> None:
    x = RNG.uniform(0, 1, 40)
    y = np.where(np.arange(40) < 20, x, np.nan)
    rare = np.where(np.arange(40) < 5, x, np.nan)
    made = report({"x": x, "y": y, "rare": rare})
    at = {name: k for k, name in enumerate(made.correlations.names)}
    assert made.correlations.rho[at["x"], at["y"]] == pytest.approx(1.0)
    assert made.correlations.counts[at["x"], at["y"]] == 20
    assert np.isnan(made.correlations.rho[at["x"], at["rare"]])
    assert spread(made, "rare").measured == 5
    assert sum(spread(made, "rare").missing.values()) == 35
    # Reasons that differ in numbers alone are one.
    assert {why for why in made.missing if "rare" in why} == {"no rare in 5 to 39"}
    assert made.missing["no rare in 5 to 39"] == {"rare": 35}


def test_a_planted_gap_is_found() -> None:
    held = np.concatenate([np.linspace(0, 10, 30), np.linspace(20, 40, 50)])
    counts = np.resize([0.0, 1.0, 2.0, 5.0], 80)
    made = report(
        {"distance": held, "cups": counts, "goalSeen": np.resize([0.0, 1.0], 80)},
        units={"distance": "m"},
    )
    assert spread(made, "distance").gaps == ((10.0, 20.0),)
    assert spread(made, "distance").share(spread(made, "distance").gaps[0]) == 0.25
    assert spread(made, "cups").stepped
    assert spread(made, "cups").gaps == ((3.0, 4.0),)
    # A share is a scale: that all are 0 or 1 leaves everything between.
    assert spread(made, "goalSeen").gaps == ((0.0, 1.0),)
    filled = {tuple(a.demands.items()) for a in made.additions if a.rule == "gap"}
    assert (("distance", 15.0),) in filled
    drawn = charts.histogram(spread(made, "distance"))
    assert len(re.findall("class='gap'", drawn)) == 1


def test_a_layout_gives_the_range_and_its_ends_are_gaps_too() -> None:
    layout = load_layout("aaio", "scaled")
    columns = {
        "rewardDistance": np.linspace(5, 30, 40),
        "rewardSize": np.linspace(0.5, 12, 40),
        "rewardBehind": np.zeros(40),
        "XPos": np.resize([-1.0, 0.0, 1.0], 40),
        **{e.feature: np.zeros(40) for e in layout.excludes},
    }
    made = battery_report("made", battery(columns), layout)
    far = spread(made, "rewardDistance")
    assert (far.low, far.high, far.source) == (0.0, 60.0, "layout")
    assert far.gaps == ((30.0, 60.0),)  # from 0 to 5 is less than a tenth
    size = spread(made, "rewardSize")
    assert size.outside == sum(np.linspace(0.5, 12, 40) > 10)
    assert size.gaps == ()
    assert spread(made, "rewardBehind").gaps == ((1.0, 1.0),)
    assert made.precision is not None
    assert len(made.precision.bank.names) == 40 - size.outside
    # Nobody is asked for what an arena of 40 m has no room for.
    wanted = [a.demands["rewardDistance"] for a in made.additions if "rewardDistance" in a.demands]
    assert wanted
    assert max(wanted) <= 54.0


def test_what_separates_paradigms() -> None:
    paradigms = ["near"] * 40 + ["far"] * 40
    made = report(
        {
            "rewardDistance": np.concatenate([np.linspace(1, 2, 40), np.linspace(30, 31, 40)]),
            "mustPush": np.repeat([0.0, 1.0], 40),
            "rewardSize": RNG.uniform(0.5, 5, 80),
        },
        paradigms=paradigms,
    )
    assert spread(made, "mustPush").separates == pytest.approx(1.0)
    assert (spread(made, "rewardDistance").separates or 0) > 0.7
    assert (spread(made, "rewardSize").separates or 0) < 0.2
    assert made.separating[0].demand.name == "mustPush"
    far, near = made.sheet
    assert (far.heading, near.heading) == ("far", "near")
    told = {one.demand: (one.median, one.others) for one in far.stands_out}
    assert told["mustPush"] == (1.0, 0.0)


def test_every_paradigm_is_shown_by_what_is_typical_and_what_differs() -> None:
    distance = np.concatenate([np.full(99, 10.0), [40.0], np.linspace(1, 9, 5)])
    made = battery_report(
        "made",
        battery({"rewardDistance": distance}, ["many"] * 100 + ["few"] * 5),
        maps=7,
    )
    few, many = made.sheet
    assert sum(row.shown for row in few.rows) == 3
    shown = [row for row in many.rows if row.shown]
    assert len(shown) == 3
    assert 40.0 in [row.demands["rewardDistance"] for row in shown]
    assert sum(row.shown for part in made.sheet for row in part.rows) <= 7
    assert not any(
        row.shown
        for part in battery_report("made", made.battery, maps=0).sheet
        for row in part.rows
    )


def test_of_many_paradigms_those_that_begin_alike_share_a_heading() -> None:
    paradigms = [f"{k % 3:02}-{k:02}" for k in range(60)]
    made = report({"rewardDistance": np.arange(60.0)}, paradigms=paradigms)
    assert [part.heading for part in made.sheet] == ["00", "01", "02"]
    assert made.to_dict()["paradigms"] == 60
    assert all(row.shown for part in made.sheet for row in part.rows)


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
        assert node.best < node.sd < node.worst
    assert known.nodes[0].sd < 0.8 * known.nodes[0].prior_sd


@pytest.mark.slow
def test_posteriors_are_those_of_fits_of_the_whole_battery() -> None:
    layout = load_layout("one-capability")
    known = precision(layout, battery({"difficulty": DIFFICULTIES}))
    for agent in (0, 1):
        played = simulated_outcomes(known.bank, known.truths[agent], agent)
        fitted = fit(FitRequest(layout, *played, seed=agent, chains=2, draws=500, tune=500))
        left = np.sqrt(np.diagonal(known.posteriors[agent].covariance))
        for node, sd in zip(fitted.nodes, left, strict=True):
            assert sd == pytest.approx(node.sd, rel=0.15)


def test_steep_layouts_learn_on_which_side_of_an_instance_an_agent_is() -> None:
    """Where information at the truth is nil: nothing near it is asked."""
    text = (ROOT / "layouts" / "library" / "one-capability.yaml").read_text()
    steep = parse_layout(text.replace("slope: 0.69", "slope: 50"))
    known = precision(steep, battery({"difficulty": np.full(40, 7.5)}))
    # Half of the range is left: its standard deviation is half the prior's.
    assert known.nodes[0].kept == pytest.approx(0.5, abs=0.1)


def test_what_is_worst_known_gets_instances() -> None:
    easy = np.linspace(0.0, 2.0, 40)
    made = battery_report("made", battery({"difficulty": easy}), load_layout("one-capability"))
    first = made.additions[0]
    assert (first.rule, first.node, first.count) == ("precision", "ability", 10)
    assert first.demands["difficulty"] > 2.5
    assert made.precision is not None
    assert first.before == pytest.approx(made.precision.nodes[0].sd)
    assert (first.after or 0) < 0.97 * (first.before or 0)
    # It comes true: with these instances, the expected SD is about what was promised.
    more = np.concatenate([easy, np.full(10, first.demands["difficulty"])])
    known = precision(load_layout("one-capability"), battery({"difficulty": more}))
    assert known.nodes[0].sd == pytest.approx(first.after or 0, rel=0.15)


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


def test_what_cannot_be_learnt_is_said() -> None:
    """Noise can be learnt where every agent would succeed; ability cannot."""
    steep = parse_layout(
        (ROOT / "layouts" / "library" / "one-capability.yaml")
        .read_text()
        .replace("slope: 0.69", "slope: 50")
    )
    made = battery_report("made", battery({"difficulty": np.zeros(40)}), steep)
    told = list(made.to_dict()["summary"])
    assert "Almost nothing can be learnt about ability." in told
    assert not any("tell all nodes" in sentence for sentence in told)
    assert "almost nothing can be learnt" in html_page(made, {})


def test_a_layout_that_covers_nothing_is_an_error() -> None:
    with pytest.raises(ServiceError, match="covers none of the 5 instances"):
        battery_report("made", battery({"noise": np.arange(5.0)}), load_layout("aaio", "scaled"))


def test_families_name_demands_and_groups_have_headings() -> None:
    assert {name for names in FAMILIES.values() for name in names} <= FEATURES.keys()
    assert {one.group for one in FEATURES.values()} <= GROUPS.keys()


def test_an_empty_demand_and_a_single_instance_are_reported() -> None:
    made = report({"rewardDistance": [3.0], "wayLength": [float("nan")]})
    content = made.to_dict()
    jsonschema.validate(content, SCHEMA)
    assert content["correlations"]["demands"] == []
    assert [s.demand.name for s in made.unmeasured] == ["wayLength"]
    assert "no wayLength in 0" in html_page(made, {})


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


@pytest.mark.slow
def test_a_report_from_the_command_line(tmp_path: Path) -> None:
    def run(*words: str | Path) -> Any:
        line = [*map(str, words), "--data", str(tmp_path)]
        return CliRunner().invoke(build(line), line)

    page = tmp_path / "new" / "garden.html"
    with server_for(None, tmp_path):
        own = ("--features", EXAMPLES / "garden.csv")
        assert run("battery", "import", EXAMPLES / "garden", *own).exit_code == 0
        done = run(
            *("battery", "report", "garden", "--layout", EXAMPLES / "garden.yaml"),
            *("--json", "-o", page),
        )
        assert done.exit_code == 0, done.output
        plain = run("battery", "report", "garden", "--json")
        nobody = run("battery", "report", "nowhere", "--json")
        bad = run("battery", "report", "garden", "--layout", "nothing")
        lost = run("battery", "report", "garden", "--variant", "a")
    content = json.loads(done.stdout)
    jsonschema.validate(content, SCHEMA)
    assert content["instances"] == 10
    assert {node["name"] for node in content["precision"]["nodes"]} >= {"reach", "openness"}
    assert content["precision"]["covered"] == 10
    novelty = next(one for one in content["demands"] if one["name"] == "novelty")
    assert (novelty["group"], novelty["measured"]) == ("your own", 10)
    maps = [a for tag, a in Page(page.read_text()).tags if a.get("class") == "map"]
    assert len(maps) == 10
    assert json.loads(plain.stdout)["precision"] is None
    assert nobody.exit_code == 2
    assert "nowhere" in nobody.output
    assert "layout 'nothing' is unknown" in bad.output
    assert "a variant goes with a layout" in lost.output


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
    # The estimates of that many episodes correlate with the truth as the reliability says.
    estimates = [posterior.weights @ posterior.particles[:, 0] for posterior in known.posteriors]
    correlation = np.corrcoef(estimates, known.truths[:, 0])[0, 1]
    assert correlation**2 == pytest.approx(ability.lengths[-1].at_random.reliability, abs=0.12)
    rows = made.reliability_rows
    assert [row["episodes"] for row in rows] == ["20", "40", "80", "100"]
    assert [bool(row["chosen"]) for row in rows] == [True, True, True, False]
    assert (
        rows[0]["at random"] == f"{errors[0]:.3g} ({ability.lengths[0].at_random.reliability:.2f})"
    )
