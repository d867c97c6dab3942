"""The Melting Pot contest: its table, and what Tesic et al. 2025 do with it beside the layout."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances, OutcomeTable, TableError
from animalcat.layouts.simulation.simulate import LayoutAgent
from benchmarks.reproduce.__main__ import app
from benchmarks.reproduce.contest import printed_widths, table_2_of
from benchmarks.reproduce.contest_table import ContestTable, blocks, read_contest
from benchmarks.reproduce.mixed import mixed_regression
from benchmarks.reproduce.printed import tesic2025
from benchmarks.reproduce.rankings import ratings
from benchmarks.reproduce.wider_contest import (
    TURNED,
    compare_wider,
    rising,
    simulated_contest,
    with_inverted,
    with_substrates,
)

LAYOUT = load_layout("melting-pot")


def test_what_the_paper_prints() -> None:
    printed = tesic2025()
    intercept, variance = printed.regression["intercept"], printed.regression["variance"]
    # With no trend, the error of the intercept is that of a mean of 26 submissions.
    assert (variance[0] / printed.regression["submissions"]) ** 0.5 == pytest.approx(
        intercept[1], abs=1e-3
    )
    assert printed.regression["observations"] == 18 * 51 * 80 + 8 * 51 * 20
    for rows in printed.table_2.values():
        assert set(rows) == set(LAYOUT.latent_names)
        assert all(low < mean < high for mean, low, high in rows.values())
    widths = printed_widths()
    assert widths["base_chance"] < 0.02 < widths["abilityReciprocity"] < widths["abilityTeaching"]


def test_a_balanced_regression_is_an_analysis_of_variance() -> None:
    generator = np.random.default_rng(4)
    groups, each = 12, 30
    x = np.tile(np.arange(each) - 14.5, groups)
    of = np.repeat(np.arange(groups), each)
    y = 2.0 + generator.normal(0, 0.7, groups)[of] + generator.normal(0, 1.0, groups * each)
    found = mixed_regression(x, y, of)
    slope = float(x @ y / (x @ x))
    left = y - slope * x
    means = left.reshape(groups, each).mean(axis=1)
    within = float(((left - means[of]) ** 2).sum() / (groups * (each - 1) - 1))
    assert found.slope.estimate == pytest.approx(slope)
    assert found.residual == pytest.approx(within, rel=1e-5)
    assert found.variance == pytest.approx(means.var(ddof=1) - within / each, rel=1e-4)
    assert found.intercept.estimate == pytest.approx(y.mean())
    assert found.intercept.error == pytest.approx((means.var(ddof=1) / groups) ** 0.5, rel=1e-4)
    assert found.slope.error == pytest.approx((within / (x @ x)) ** 0.5, rel=1e-4)
    # Of a variance of normal means with 11 degrees of freedom.
    assert found.variance_error == pytest.approx(means.var(ddof=1) * (2 / 11) ** 0.5, rel=0.02)


def test_a_trend_is_found_and_groups_are_no_trend() -> None:
    generator = np.random.default_rng(5)
    x = np.concatenate([np.arange(1, n + 1) for n in (80, 80, 20, 20, 20)])
    of = np.repeat(np.arange(5), (80, 80, 20, 20, 20))
    noise = generator.normal(0, 0.1, len(x))
    # Who played longer is better: a plain regression would take that for a trend.
    level = np.array([1.0, 1.1, 0.2, 0.3, 0.1])[of]
    assert mixed_regression(x, level + noise, of).slope.p > 0.05
    assert mixed_regression(x, level + noise + 0.002 * x, of).slope.p < 0.001
    with pytest.raises(ValueError, match="three groups"):
        mixed_regression(x[:160], noise[:160], of[:160])


ROWS = [
    {"Submission ID": who, "scenario": scenario, "Episode No": str(episode),
     "normalized_score": str(score), "visitor": visitor, "substrate": where, "team": who[:1]}
    for who, base in (("a_1", 0.0), ("b_1", 1.0))
    for scenario, visitor, where in (("s_0", "0", "harvest"), ("s_1", "1", "rooms"))
    for episode, score in ((1, base), (2, base + 1), (3, base + 4))
]  # fmt: skip


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return path


def test_a_table_is_read_and_averaged_in_blocks(tmp_path: Path) -> None:
    table = read_contest(write(tmp_path / "scores.csv", ROWS))
    assert (table.submissions, table.scenarios) == (("a_1", "b_1"), ("s_0", "s_1"))
    assert (table.demands, table.substrates) == (("visitor",), ("harvest", "rooms"))
    scored = blocks(table, of=2)
    assert scored.instances.names == ("s_0-01", "s_0-02", "s_1-01", "s_1-02")
    assert scored.instances.column("visitor").tolist() == [0, 0, 1, 1]
    assert scored.instances.column("without_visitor").tolist() == [1, 1, 0, 0]
    assert scored.instances.column("substrate_rooms").tolist() == [0, 0, 1, 1]
    # Blocks have means 0.5 and 4, or 1.5 and 5.
    np.testing.assert_allclose(scored.outcomes[0], np.array([0, 3.5, 0, 3.5]) / 4.5)
    np.testing.assert_allclose(scored.outcomes[1], np.array([1, 4.5, 1, 4.5]) / 4.5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scenario": None}, "no column 'scenario'"),
        ({"score": "0.5"}, "'normalized_score' and 'score' may be the score"),
        ({"visitor": "2"}, "no column of 0 and 1 alone"),
        ({"normalized_score": "much"}, "scores.csv:2: normalized_score is 'much'"),
        ({"substrate": "garden"}, "scores.csv:3: scenario s_0 has other demands"),
    ],
)
def test_a_bad_table_is_named(tmp_path: Path, change: dict[str, str | None], words: str) -> None:
    rows = [dict(row) for row in ROWS]
    for name, value in change.items():
        for row in rows if name in ("scenario", "score") else rows[:1]:
            if value is None:
                del row[name]
            else:
                row[name] = value
    with pytest.raises(TableError, match=words.replace("(", r"\(")):
        read_contest(write(tmp_path / "scores.csv", rows))


def test_elo_does_not_depend_on_the_order() -> None:
    names = tuple(f"s-{i:02d}-01" for i in range(11))
    scores = np.array([[0.9] * 10 + [0.1], [0.5] * 11, [0.2] * 11])
    instances = Instances(("visitor",), np.zeros((11, 1)), names=names)
    best, middle, worst = ratings(OutcomeTable(instances, ("a", "b", "c"), scores))
    again = ratings(OutcomeTable(instances, ("c", "b", "a"), scores[::-1]))
    assert [one.elo for one in again[::-1]] == pytest.approx([best.elo, middle.elo, worst.elo])
    assert best.elo + middle.elo + worst.elo == pytest.approx(4500.0)
    assert best.elo > middle.elo + 100 > worst.elo + 200
    assert (best.rank, worst.rank) == (pytest.approx(13 / 11), pytest.approx(31 / 11 + 1 / 11))
    assert best.score == pytest.approx(9.1 / 11)


@pytest.fixture(scope="module")
def contest() -> ContestTable:
    made = simulated_contest(LAYOUT, 1, submissions=4, fewer=1, episodes=(10, 5), wider="inverted")
    assert made.truth.shape == (4, len(made.layout.latents))
    return made.table


def test_a_simulated_contest_has_the_form_of_the_real_one(contest: ContestTable) -> None:
    assert len(contest.scenarios) == 51
    assert len(set(contest.substrates)) == 4
    assert len(contest.score) == 51 * (3 * 10 + 5)
    assert {"ostracism", "sanctioning"} < {*contest.demands}
    scored = blocks(contest)
    assert np.isfinite(scored.outcomes).sum(axis=1).tolist() == [102, 102, 102, 51]
    assert (np.nanmin(scored.outcomes), np.nanmax(scored.outcomes)) == (0.0, 1.0)
    assert rising(scored, contest.demands) == [TURNED]
    assert rising(scored, LAYOUT.feature_names) == []


def test_wider_layouts_multiply_the_score() -> None:
    values = {node.name: 0.8 for node in LAYOUT.latents} | {"sampleSize": 10.0}
    asked = dict.fromkeys(LAYOUT.feature_names, 0.0)
    wider = with_inverted(with_substrates(LAYOUT, ["a", "b"]), [TURNED])
    added = {"kept_b": 0.5, f"without_{TURNED}_ability": 0.25}
    assert [n for n in wider.latent_names if n not in LAYOUT.latent_names] == list(added)
    columns = {**asked, "substrate_b": 1.0, f"without_{TURNED}": 1.0}
    instances = Instances(tuple(columns), np.array([list(columns.values())]))
    plain = LayoutAgent.of(LAYOUT, values).probability(instances)
    by_wider = LayoutAgent.of(wider, values | added).probability(instances)
    assert by_wider[0] == pytest.approx(plain[0] * 0.5 * 0.25)


def test_the_contest_as_a_command(contest: ContestTable, tmp_path: Path) -> None:
    submission: list[int] = contest.submission.tolist()
    scenario: list[int] = contest.scenario.tolist()
    episode: list[int] = contest.episode.tolist()
    rows: list[dict[str, str]] = []
    for i, score in enumerate(contest.score):
        present: list[float] = contest.present[scenario[i]].tolist()
        row = {
            "submission_id": contest.submissions[submission[i]],
            "scenario": contest.scenarios[scenario[i]],
            "episode": str(episode[i]),
            "score": f"{score:.4f}",
        }
        rows.append(row | {n: f"{x:g}" for n, x in zip(contest.demands, present, strict=True)})
    table, report = write(tmp_path / "scores.csv", rows), tmp_path / "report.json"
    parts = ["--part", "regression", "--part", "screening"]
    arguments = ["tesic2025", *parts, "--table", str(table), "-o", str(report)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    made = json.loads(report.read_text())
    assert made["source"] == str(table)
    assert (made["regression"]["observations"], made["regression"]["groups"]) == (1785, 4)
    assert set(made["screening"]["kept"]) <= set(LAYOUT.feature_names)
    assert made["screening"]["inverted"] == [TURNED]
    again = CliRunner().invoke(app, ["tesic2025", "--part", "substrates", "--table", str(table)])
    assert "no column substrate" in again.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_table_has_its_table_2(contest: ContestTable) -> None:
    made = table_2_of(LAYOUT, blocks(contest), 0)
    assert {row["agent"] for row in made["table_2"]} == {*contest.submissions}
    assert [row["name"] for row in made["rankings"]["entrants"]] == [*contest.submissions]
    assert made["rankings"]["with_elo"]["rank"] < -0.7


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_substrates_as_bias_are_found() -> None:
    made = simulated_contest(
        LAYOUT, 2, submissions=2, fewer=0, episodes=(40, 20), wider="substrates"
    )
    names = sorted({*made.table.substrates})
    wider = with_substrates(LAYOUT, names)
    truth = dict(zip(made.layout.latent_names, made.truth.T, strict=True))
    rows = compare_wider(LAYOUT, wider, blocks(made.table), 0, count=2, truth=truth)
    assert len(rows) == 2
    errors = [(row.plain_error or 0.0, row.wider_error or 0.0) for row in rows]
    assert all(row.wider_r2 > row.plain_r2 for row in rows)
    plain, better = np.mean(errors, axis=0)
    assert 0.0 < better < plain
