"""Figures and tables of the papers, worked out here beside the printed ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from animalcat.layouts.checking.predict import LayoutAssessor
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.layouts.simulation.synthetic import (
    CAPABILITIES,
    TASKS,
    op_battery,
    synthetic_agents,
    with_tasks,
)
from benchmarks.reproduce.__main__ import app
from benchmarks.reproduce.bias import sides
from benchmarks.reproduce.burden import print_burden, tables, with_mended
from benchmarks.reproduce.ceiling import ceiling
from benchmarks.reproduce.chance import CHANCE, AverageChance, with_chance
from benchmarks.reproduce.cooperation import KINDS, Kind, population, recover
from benchmarks.reproduce.counts import count_batteries
from benchmarks.reproduce.crosby import (
    PassedTests,
    category_rows,
    printed_baseline,
    printed_categories,
    spreads,
)
from benchmarks.reproduce.olympics import agreement, figure_6a, figure_9, in_the_middle
from benchmarks.reproduce.permanence import (
    AgentScore,
    Group,
    agents_of,
    mean_skill,
    nearest_mixture,
    needs_nuts,
    regenerate,
    regenerations,
    table_1,
    table_8,
    with_distances,
)
from benchmarks.reproduce.pictures import draw
from benchmarks.reproduce.printed import burden2023
from benchmarks.reproduce.sessions import beside, session_profiles


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def test_what_the_paper_prints() -> None:
    printed = burden2023()
    assert len(printed.figure_9) == 30
    assert printed.figure_9["ice-play"].mean["navigationAbility"] == 0.1
    assert printed.figure_9["ice-play"].sd["rightLeftBias"] == 0.74
    assert sorted(printed.table_8) == list(range(1, 31))
    means = np.mean([(row.layout, row.aggregate) for row in printed.table_8.values()], axis=0)
    assert means == pytest.approx([0.127, 0.178], abs=5e-4)  # as section E's text says
    assert set(printed.table_1) == set(CAPABILITIES)
    for row in printed.table_8.values():
        assert row.calibration + row.refinement == pytest.approx(row.layout, abs=2.1e-3)
        both = row.aggregate_calibration + row.aggregate_refinement
        assert both == pytest.approx(row.aggregate, abs=2.1e-3)


@pytest.fixture
def entrants() -> OutcomeTable:
    """Two made-up entrants under names of Figure 9, one good and one bad."""
    generator = np.random.default_rng(0)
    n = 40
    columns = ("rewardDistance", "rewardSize", "rewardBehind", "XPos")
    values = np.column_stack(
        [
            generator.uniform(2, 54, n),
            generator.choice([0.5, 1, 3, 5], n),
            generator.choice([0, 1], n),
            generator.choice([-1, 0, 1], n),
        ]
    )
    far = values[:, 0] > 30
    outcomes = np.stack([np.where(far, 0.0, 1.0), np.where(values[:, 0] > 8, 0.0, 1.0)])
    names = tuple(f"arena-{i:02}" for i in range(n))
    return OutcomeTable(Instances(columns, values, names=names), ("forest", "ice-play"), outcomes)


def test_figures_of_made_up_entrants(entrants: OutcomeTable) -> None:
    layout = load_layout("aaio", "figure-9")
    good, bad = figure_9(layout, entrants, seed=1, nuts=False)
    assert good.nodes[0].mean > bad.nodes[0].mean + 0.15
    assert good.printed is not None
    assert good.printed.success == 0.77
    assert {row.node for row in agreement([good, bad])} == set(layout.latent_names)
    with pytest.raises(ValueError, match="1 entrants are in Figure 9"):
        agreement([good])
    first, second = figure_6a(layout, entrants, seed=1, repeats=2)
    assert first.layout < first.aggregate
    assert in_the_middle([first, second]) == [first]


def test_two_entrants_are_compared_by_side(entrants: OutcomeTable) -> None:
    instances, _ = entrants.of("forest")
    right = np.where(instances.column("XPos") > 0, 1.0, 0.0)
    table = OutcomeTable(instances, ("MadStorks", "Thursday"), np.stack([1.0 - right, right]))
    thursday, madstorks = sides(load_layout("aaio", "figure-9"), table, 0)
    assert thursday.entrant == "Thursday"
    assert thursday.right[0] == thursday.right[1] == madstorks.right[1] > 0
    assert thursday.left[0] == thursday.ahead[0] == madstorks.right[0] == 0
    assert thursday.larger > 0.99
    assert thursday.larger + madstorks.larger == pytest.approx(1.0, abs=1e-3)
    assert (thursday.printed, madstorks.printed) == (1.14, 0.19)
    (alone,) = sides(load_layout("aaio", "figure-9"), replace(table, agents=("x", "Thursday")), 0)
    assert np.isnan(alone.larger)


def test_sessions_are_played_from_outcomes(entrants: OutcomeTable) -> None:
    layout, printed_by = load_layout("aaio", "metres-15"), load_layout("aaio", "figure-9")
    good, bad = session_profiles(layout, printed_by, entrants, 0)
    assert (good.name, bad.name) == ("forest", "ice-play")
    assert 1 < good.episodes <= 40
    assert good.navigation > bad.navigation
    assert good.expected == pytest.approx(good.success, abs=0.15)
    assert bad.printed_navigation == pytest.approx(28.15 + 11.24 * 0.1)
    found = beside([good, bad])
    assert (found.entrants, found.rank_navigation) == (2, pytest.approx(1.0))
    assert found.poor == sum(one.success < 0.3 for one in (good, bad))


def test_chance_is_what_an_assessor_may_know(entrants: OutcomeTable) -> None:
    layout = load_layout("aaio", "figure-9")
    instances, outcomes = entrants.of("ice-play")
    told = with_chance(with_chance(instances, 0.2), 0.7)
    assert told.columns.count(CHANCE) == 1
    assert set(told.column(CHANCE)) == {0.7}
    half = np.arange(20)
    fitted = AverageChance(LayoutAssessor(layout, 0, "live")).fit(
        instances.rows(half), outcomes[half]
    )
    by_hand = LayoutAssessor(layout, 0, "live").fit(
        with_chance(instances.rows(half), 1 - outcomes[half].mean()), outcomes[half]
    )
    rest = instances.rows(np.arange(20, 40))
    np.testing.assert_array_equal(
        fitted.predict(rest), by_hand.predict(with_chance(rest, 1 - outcomes[half].mean()))
    )


def test_an_agent_that_fails_at_lava() -> None:
    (lava,) = [agent for agent in synthetic_agents() if agent.number == 6]
    layout = load_layout("object-permanence")
    (score,) = regenerate(layout, 0, 0, agents=[lava])
    (row,) = table_8([[score]])
    assert row.oracle <= row.best + 0.005 <= row.layout + 0.01 < row.aggregate
    assert row.best_apart <= row.apart < 0.002
    assert row.calibration + row.refinement == pytest.approx(row.layout)
    assert row.aggregate_calibration < 0.01 < row.calibration + row.aggregate_refinement
    assert score.mean["lavaAbility"] == pytest.approx(0.1 / 0.95, abs=0.05)
    assert 0.0 < score.sd["lavaAbility"] < 0.05
    assert score.layout == pytest.approx(burden2023().table_8[6].layout, abs=0.02)
    assert mean_skill([row]).best > 0.9
    errors = {error.capability: error.included for error in table_1([[score]])}
    assert errors["lavaAbility"] < 0.05


def test_the_best_mixture_is_never_beaten_by_what_it_is_made_of() -> None:
    generator = np.random.default_rng(2)
    profiles = generator.random((40, 6))
    shares = np.array([0.5, 0.0, 0.2, 0.3, 0.0, 0.0])
    found = nearest_mixture(profiles, profiles @ shares)
    assert np.abs(found - profiles @ shares).max() < 0.01
    truth = generator.random(40)
    apart = np.mean((profiles - truth[:, np.newaxis]) ** 2, axis=0)
    assert np.mean((nearest_mixture(profiles, truth) - truth) ** 2) < apart.min()


def test_agents_that_are_drawn_anew_have_a_truth() -> None:
    agents, again = agents_of("drawn", 3), agents_of("drawn", 3)
    assert [agent.about for agent in agents] == [agent.about for agent in again]
    assert [agent.number for agent in agents] == list(range(1, 31))
    assert agents_of("printed", 3)[6].about == synthetic_agents()[6].about
    battery = op_battery(0)
    for agent in agents:
        assert ((agent.probability(battery) >= 0) & (agent.probability(battery) <= 1)).all()
        assert all(0.0 <= share <= 1.0 for share in agent.truth.values())
    weak = [agent for agent in agents if agent.about.startswith("single weakness")]
    limited = [[name for name, share in agent.truth.items() if share < 1] for agent in weak]
    assert {len(names) for names in limited} <= {0, 1}  # a bias limits no capability
    assert all(agent.known for agent in weak)


def test_distances_as_printed_cannot_be_walked() -> None:
    printed = load_layout("object-permanence", "as-printed")
    mended = with_distances(printed)
    assert needs_nuts(printed)
    assert not needs_nuts(mended)
    prior = mended.latents[mended.latent_names.index("flatNavAbility")].prior
    assert (prior.low, prior.high, prior.mean) == (0.0, 56.0, 28.0)
    pairs = zip(printed.latents, mended.latents, strict=True)
    assert [a.name for a, b in pairs if a != b] == ["flatNavAbility"]
    assert with_mended([load_layout("object-permanence"), printed])[1:] == [printed, mended]


@pytest.mark.slow
def test_nuts_gets_where_the_prior_hardly_is() -> None:
    """Agent 8 walks 56 m, flatNavAbility is N(0, 1), and no chain finds that from the prior."""
    layout = load_layout("object-permanence", "as-printed")
    (agent,) = [agent for agent in synthetic_agents() if agent.number == 8]
    (score,) = regenerate(layout, 0, 0, agents=[agent])
    assert score.mean["flatNavAbility"] > 50.0
    assert score.layout < 0.15
    assert score.stuck == 2


def test_counts_of_the_battery() -> None:
    """Table 8 says that 603 chick controls were played, and not 1,195."""
    few, many = (
        [abs(b - row.printed) for row, b in rows]
        for rows in zip(
            *(((row, row.brier_603), (row, row.brier_1195)) for row in count_batteries()),
            strict=True,
        )
    )
    assert max(few) < 0.015
    assert max(many) > 0.03
    assert sum(a < b for a, b in zip(few, many, strict=True)) >= 5


@pytest.mark.slow
def test_what_a_layout_is_told_decides_what_it_can_say() -> None:
    """Agent 21 solves basic and grid tasks only; agent 12 is biased to the right."""
    told, refined, corrected = (
        regenerations(load_layout("object-permanence", variant), 0, 1, numbers=[12, 21])[0]
        for variant in ("by-task", "refined", "corrected")
    )
    assert told[1].layout < 0.02 < 0.1 < refined[1].layout < refined[1].aggregate
    assert refined[0].layout < refined[0].oracle + 0.005 < corrected[0].layout - 0.01
    agent = next(agent for agent in synthetic_agents() if agent.number == 12)
    assert regenerate(load_layout("object-permanence"), 0, 0, agents=[agent]) == refined[:1]


def test_more_features_tell_more() -> None:
    nothing, table, tasks = (
        ceiling(load_layout("object-permanence", variant).feature_names if variant else (), 0, 12)
        for variant in ("", "refined", "by-task")
    )
    assert nothing.skill == pytest.approx(0.0, abs=0.02)
    assert 0.9 < table.skill < tasks.skill < 1.0
    # Only what agents 7, 8, 15 and 16 look at is not told.
    assert 30 * (tasks.told - tasks.oracle) < 0.15


def test_tasks_follow_from_paradigms() -> None:
    battery = with_tasks(op_battery(0))
    tasks = battery.select(TASKS)
    assert tasks.sum(axis=0).tolist() == [598, 430, 639]
    basic = np.array(battery.paradigms) == "basic"
    assert (tasks.sum(axis=1) == ~basic).all()


@pytest.mark.parametrize("kind", KINDS)
def test_entrants_of_the_contest(kind: Kind) -> None:
    layout = load_layout("melting-pot")
    people = population(layout, kind, 3)
    played = np.isfinite(people.table.outcomes).sum(axis=1)
    assert played.tolist() == [816] * 15 + [204] * 8  # as section 3.1 of the paper says
    assert people.truth.shape == (23, len(layout.latents))
    chance = people.truth[:, layout.latent_names.index("base_chance")]
    assert (chance.min() > 0.75) == (kind == "contest")
    again = population(layout, kind, 3)
    np.testing.assert_array_equal(again.table.outcomes, people.table.outcomes)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_entrants_are_found() -> None:
    """All with the fewer scores of the weaker ones, which take less time to fit."""
    layout = load_layout("melting-pot")
    people = population(layout, "contest", 0, entrants=4)
    everything = people.table
    fewer = np.where(np.isfinite(everything.outcomes[-1]), everything.outcomes, np.nan)
    assert np.isfinite(fewer).sum(axis=1).tolist() == [204] * 4
    people = replace(people, table=replace(everything, outcomes=fewer))
    found = recover(layout, people, 0)
    assert found.converged == 4
    assert max(row.rhat for row in found.table) < 1.01
    assert (found.best_r2 - found.r2).max() < 0.05
    rows = np.array([(row.mean, row.high - row.low) for row in found.table], np.float64)
    mean, width = (rows[:, i].reshape(people.truth.shape) for i in (0, 1))
    apart = (mean - people.truth) / (width / 3.76)  # 94 % of a normal distribution
    assert 0.6 < np.sqrt(np.mean(apart**2)) < 1.4
    assert [node.width for node in found.nodes] == pytest.approx(width.mean(axis=0).tolist())
    errors = np.sqrt(np.mean((mean - people.truth) ** 2, axis=0))
    assert [node.rmse for node in found.nodes] == pytest.approx(errors.tolist())


def test_tables_are_means() -> None:
    def score(layout: float, error: float) -> AgentScore:
        parts = (0.01, layout - 0.01, 0.0, 0.2, 0, {"OPAbility": 40.0}, {"OPAbility": 2.0})
        return AgentScore(5, 0.7, layout, 0.2, 0.1, 0.12, 0.02, 0.01, *parts, {"OPAbility": error})

    rows = table_8([[score(0.11, 0.3)], [score(0.13, -0.4)]])
    assert rows[0].layout == pytest.approx(0.12)
    assert rows[0].refinement == pytest.approx(0.11)
    assert mean_skill(rows).oracle == pytest.approx(0.8)
    assert mean_skill(rows).best == pytest.approx(1.0)
    (error,) = table_1([[score(0.11, 0.3)], [score(0.13, -0.4)]])
    assert error.overall == error.included == pytest.approx(np.sqrt(0.125))


@pytest.mark.parametrize("group", ["drawn", "printed"])
def test_tables_are_printed(group: Group, capsys: pytest.CaptureFixture[str]) -> None:
    layout = load_layout("object-permanence")
    mean = dict.fromkeys(layout.latent_names, 0.5)
    agents = agents_of(group, 0)
    parts = (0.01, 0.14, 0.0, 0.2, 0, mean, mean)
    scores = [
        AgentScore(
            agent.number, 0.7, 0.15, 0.2, 0.1, 0.12, 0.02, 0.01, *parts,
            dict.fromkeys(agent.truth, 0.25),
        )
        for agent in agents
    ]  # fmt: skip
    part = json.loads(json.dumps(tables(layout, [scores], group, 0)))
    print_burden({"drawn" if group == "drawn" else "tables": [part]})
    shown = capsys.readouterr().out
    assert "Figures 13 and 14" in shown
    assert ("0.178" in shown) == (group == "printed")  # the printed mean of the aggregate
    assert "0.500 of what knowing the rules gains" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tesic"], "no paper 'tesic'; there are burden2023, crosby2020, tesic2025"),
        (["tesic2025", "--part", "tables"], "no part 'tables'; there are populations"),
        (["testbed", "--table", "x.csv"], "--table is for tesic2025"),
        (["tesic2025", "--table", "x.csv"], "x.csv: cannot be read"),
        (["burden2023", "--part", "figure-8"], "no part 'figure-8'; there are figure-9"),
        (["burden2023", "--part", "figure-9"], "give --data, or set ANIMALCAT_DATA"),
        (["burden2023", "--part", "tables", "--olympics", "steep"], "valid: "),
        (["burden2023", "--part", "figure-9", "--data", "nowhere"], "final_rewards.csv: No such"),
        (["crosby2020"], "crosby2020 needs the entrants' outcomes"),
        (["crosby2020", "--data", "nowhere"], "final_rewards.csv: No such"),
        (["testbed"], "testbed needs the entrants' outcomes"),
        (["testbed", "--part", "tables"], "testbed has no parts"),
        (["testbed", "--data", "nowhere"], "final_rewards.csv: No such"),
        (["testbed", "--data", "nowhere", "--variant", "round"], "valid: "),
    ],
)
def test_bad_input_is_named(
    arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANIMALCAT_DATA", raising=False)
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_counts_as_a_command(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    result = run("burden2023", "--part", "counts", "-o", file)
    assert result.exit_code == 0, result.output
    assert "0.249" in result.stdout
    assert len(json.loads(file.read_text())["counts"]) == 6


def test_the_table_of_categories_adds_up() -> None:
    """Every printed percentage is a whole number of tests, of 900 together."""
    rows = printed_categories().values()
    assert sum(row.tests for row in rows) == 900
    for row in rows:
        for share in (row.baseline, row.maximum):
            passed = round(share / 100 * row.tests)
            assert round(100 * passed / row.tests, 1) == pytest.approx(share, abs=0.051)
    assert printed_baseline() == pytest.approx(229 / 900, abs=5e-4)


def test_spread_over_categories() -> None:
    names = tuple(f"{c}-01-{v}" for c in ("01", "02", "03") for v in ("01", "02", "03"))
    rows = [[1, 1, 1, 1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 0, 0, 1, 0, 0], [0] * 9]
    passed = PassedTests(names, ("specialist", "generalist", "none"), np.array(rows, dtype=bool))
    specialist, generalist, none = spreads(passed)
    assert (specialist.mean, specialist.spread) == (0.5, 0.5)  # on the curve of Bernoulli
    assert (generalist.mean, generalist.spread) == (pytest.approx(1 / 3), 0.0)
    assert (none.passed, none.spread) == (0.0, 0.0)
    food, preferences, obstacles = category_rows(passed, {"01-01-01": True, "03-01-02": False})
    assert (food.best, food.maximum, food.ray_agent) == ("specialist", 100.0, 100.0)
    assert (preferences.robust, preferences.most_robust) == (50.0, 100.0)
    assert (obstacles.ray_agent, preferences.ray_agent) == (0.0, None)


@pytest.mark.data
def test_categories_of_the_real_entrants(data_dir: Path, tmp_path: Path) -> None:
    result = run("crosby2020", "--data", data_dir, "--pictures", tmp_path, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    same = {row["printed"]: row for row in report["figure_4"] if row["printed"]}
    assert round(same["h"]["maximum"], 1) == report["printed"]["h"]["maximum"] == 25.6
    assert round(same["i"]["maximum"], 1) == report["printed"]["i"]["maximum"] == 50.0
    assert next(iter(report["radar"])) == "ironbar"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "crosby-figure-4.png",
        "crosby-figure-5.png",
    ]


def test_figure_6b_is_drawn(tmp_path: Path) -> None:
    row = {"success": 0.5, "layout": 0.2, "aggregate": 0.25}
    row |= {"printed_layout": 0.21, "printed_aggregate": 0.25}
    part = {"layout": {"variant": "as-printed, flatNavAbility uniform"}, "table_8": [row]}
    (path,) = draw({"paper": "burden2023", "tables": [part]}, tmp_path)
    assert path.name == "figure-6b-as-printed-mended.png"
    assert path.stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.data
def test_the_real_entrants(data_dir: Path, tmp_path: Path) -> None:
    parts = ["--part", "figure-9", "--part", "figure-6a", "--repeats", 3]
    result = run("burden2023", *parts, "--data", data_dir, "-o", tmp_path / "report.json")
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "report.json").read_text())
    apart = {row["node"]: row for row in report["figure_9"]["agreement"]}
    assert apart["navigationAbility"]["rank"] > 0.95
    assert apart["visualAbility"]["rank"] > 0.95
    assert apart["noiseLevel"]["rank"] > 0.85
    assert apart["navigationAbility"]["mean"] < 0.08 * 5.3
    assert apart["visualAbility"]["mean"] < 0.08 * 1.9
    middle = report["figure_6a"][0]["middle"]
    assert middle["entrants"] == 16
    assert middle["layout"] < middle["aggregate"]
    assert "ice-play" in result.stdout
