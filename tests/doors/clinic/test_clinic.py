"""The clinic for items: planted faults are found, sound items are left alone, bad input is said."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy.special import expit
from typer.testing import CliRunner

from animalcat.cli.main import build
from animalcat.doors.clinic import clinic
from animalcat.doors.clinic.answers import Columns, responses_of, with_pass_marks
from animalcat.doors.clinic.examining import Clinic, Responses
from animalcat.doors.clinic.items import (
    Z90,
    Abilities,
    Discriminations,
    agents_wanted,
    choose_short_form,
    fit_item,
)
from animalcat.doors.clinic.population import fit_items
from animalcat.layouts import load_layout
from animalcat.layouts.model.tables import TableError

Floats = npt.NDArray[np.float64]

COMMAND = ["battery", "clinic"]
FAULTY = ("floor", "ceiling", "reversed", "random", "twin", "hidden", "unequal")
AGENTS, ITEMS = 200, 30


def rasch(agents: int, items: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Outcomes of a Rasch model, with abilities and difficulties."""
    g = np.random.default_rng(seed)
    ability, difficulty = g.standard_normal(agents), np.linspace(-1.5, 1.5, items)
    p = expit(1.2 * (ability[:, np.newaxis] - difficulty))
    return np.asarray(g.random(p.shape) < p, np.float64), ability, difficulty


def as_frame(outcomes: Floats, names: list[str] | None = None) -> pd.DataFrame:
    index = pd.Index([f"agent {k}" for k in range(len(outcomes))])
    columns = pd.Index(names or [f"i{k}" for k in range(outcomes.shape[1])])
    return pd.DataFrame(outcomes, index=index, columns=columns)


def with_demand(items: int, difficulty: Floats, names: list[str]) -> pd.DataFrame:
    """A demand that says how difficult items are, but for a little."""
    g = np.random.default_rng(9)
    return pd.DataFrame({"level": difficulty + g.normal(0.0, 0.2, items)}, index=pd.Index(names))


@pytest.fixture(scope="module")
def planted_clinic() -> Clinic:
    """Thirty sound items, and seven of which each has a fault of its own."""
    y, ability, difficulty = rasch(AGENTS, ITEMS, 1)
    g = np.random.default_rng(2)
    group = np.arange(AGENTS) % 2
    copied = np.where(g.random(AGENTS) < 0.05, 1.0 - y[:, 12], y[:, 12])
    made = {
        "floor": np.zeros(AGENTS),
        "ceiling": np.ones(AGENTS),
        "reversed": g.random(AGENTS) < expit(-1.2 * ability),
        "random": g.random(AGENTS) < 0.25,
        "twin": copied,
        "hidden": g.random(AGENTS) < expit(1.2 * (ability + 1.5)),  # its level says it is hard
        "unequal": g.random(AGENTS) < expit(1.2 * ability + np.where(group == 1, 1.2, -1.2)),
    }
    outcomes = np.column_stack([y, *made.values()]).astype(np.float64)
    names = [*(f"i{k}" for k in range(ITEMS)), *made]
    levels = np.concatenate([difficulty, [2.0, -2.0, 0.0, 0.9, difficulty[12], 1.5, 0.0]])
    groups = {f"agent {k}": "AB"[one] for k, one in enumerate(group)}
    return clinic(
        as_frame(outcomes, names), demands=with_demand(len(names), levels, names), groups=groups
    )


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ("floor", "floor"),
        ("ceiling", "ceiling"),
        ("reversed", "reversed"),
        ("random", "tells little"),
        ("twin", "twin"),
        ("i12", "twin"),
        ("hidden", "against its demands"),
        ("unequal", "differs by group"),
    ],
)
def test_every_planted_fault_is_found_by_its_kind(
    planted_clinic: Clinic, item: str, kind: str
) -> None:
    found = next(one for one in planted_clinic.items if one.item == item)
    assert kind in found.kinds, found
    assert found.sentence


def test_beside_planted_faults_few_sound_items_are_named(planted_clinic: Clinic) -> None:
    sound = [item for item in planted_clinic.faulty if item.item not in {*FAULTY, "i12"}]
    assert len(sound) <= 1, sound
    assert planted_clinic.twins == (("i12", "twin"),)
    table = planted_clinic.to_frame().set_index("item")
    assert table["discrimination.low"].isna().sum() == 2  # floor and ceiling
    assert "reversed" in table.index[table["discrimination.high"] < 0.0]
    assert sum("tells" in item.kinds for item in planted_clinic.items) >= ITEMS


def test_few_agents_show_a_wrong_key_in_a_long_set_and_no_twins() -> None:
    """Shuffles alone never reach what 120 items ask for, and few patterns are no twins."""
    y, ability, _ = rasch(60, 120, 7)
    y[:, 3] = ability < 0.0
    found = clinic(as_frame(y))
    assert "reversed" in found.items[3].kinds
    g = np.random.default_rng(0)
    easy, able = g.standard_normal(120), g.standard_normal((14, 1))
    few = clinic(as_frame((g.random((14, 120)) < expit(1.5 * (able - easy))).astype(np.float64)))
    assert few.twins == ()


def test_items_of_a_rasch_model_without_faults_are_left_alone() -> None:
    """Of 90 sound items, as many as the stated rate of false alarms allows: hardly any."""
    named = 0
    for seed in range(3):
        y, _, difficulty = rasch(60, 30, 100 + seed)
        names = [f"i{k}" for k in range(30)]
        groups = {f"agent {k}": "AB"[k % 2] for k in range(60)}
        found = clinic(as_frame(y), demands=with_demand(30, difficulty, names), groups=groups)
        named += len(found.faulty)
        assert found.explained is not None
        assert found.explained > 0.8
    assert named <= 2


def test_a_layout_says_what_items_demand() -> None:
    """An item that is easy for all, though its level is the hardest, contradicts the layout."""
    g = np.random.default_rng(4)
    level = np.append(np.linspace(1.0, 9.0, 30), 9.0)
    ability = g.uniform(2.0, 10.0, 60)
    p = expit(1.0 * (ability[:, np.newaxis] - level))
    p[:, 30] = 0.95
    outcomes = np.asarray(g.random(p.shape) < p, np.float64)
    names = [f"i{k}" for k in range(31)]
    demands = pd.DataFrame({"difficulty": level}, index=pd.Index(names))
    layout = load_layout("one-capability")
    found = clinic(as_frame(outcomes, names), demands=demands, layout=layout, length=5)
    assert found.by == "one-capability"
    assert [one.item for one in found.items if "against its demands" in one.kinds] == ["i30"]
    assert found.items[30].beyond_demands is not None
    assert found.items[30].beyond_demands > 2.0


def test_shuffled_outcomes_tell_nothing() -> None:
    g = np.random.default_rng(3)
    found = clinic(as_frame((g.random((80, 25)) < 0.5).astype(np.float64)))
    assert sum("tells" in item.kinds for item in found.items) <= 2
    assert found.reliability < 0.5


def test_with_as_many_agents_as_named_four_in_five_intervals_are_above_0() -> None:
    y, _, _ = rasch(60, 25, 5)
    known = Abilities.of(fit_items(tuple(map(str, range(25))), y), y)
    nan, one = np.full(25, np.nan), np.full(25, 0.6)
    found = Discriminations(one, one, 0.0 * one, one, nan, nan, nan)
    wanted = int(agents_wanted(known, found, np.arange(25) == 3, 0)[3])
    g = np.random.default_rng(6)
    above: list[bool] = []
    for _ in range(120):
        ability = g.standard_normal(wanted)
        p = expit(ability[:, np.newaxis] * known.model.slope + known.model.ease)
        drawn = np.asarray(g.random(p.shape) < p, np.float64)
        drawn[:, 3] = g.random(wanted) < expit(0.6 * ability)
        rows, share = Abilities.of(known.model, drawn).without(3)
        fitted = fit_item(drawn[rows, 3], share)
        above.append(fitted.slope > Z90 * fitted.slope_error)
    assert 0.68 <= np.mean(above) <= 0.92


def test_a_short_form_loses_less_than_random_items() -> None:
    """Of eight items with four near copies each, one of each tells more than any eight."""
    y, _, _ = rasch(150, 8, 7)
    g = np.random.default_rng(8)
    copies = [np.where(g.random(y.shape) < 0.05, 1.0 - y, y) for _ in range(4)]
    names = [*map(str, range(32))]
    found = choose_short_form(names, np.column_stack(copies), 8, 0, lambda what, done, total: None)
    assert len({int(item) % 8 for item in found.items}) == 8
    assert found.error.value < 0.8 * found.at_random.value


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        (np.eye(100, 1), "1 item with outcomes"),
        (np.eye(1, 9), "1 agent with outcomes"),
        (np.ones((20, 9)), "all outcomes are 1"),
        (np.full((20, 9), np.nan), "0 agents with outcomes"),
        (np.full((20, 9), 7.0), "is not from 0 to 1"),
    ],
)
def test_what_cannot_be_examined_is_refused(outcomes: Floats, words: str) -> None:
    with pytest.raises(TableError, match=words):
        clinic(as_frame(outcomes))


def test_what_is_left_out_is_counted() -> None:
    y, _, _ = rasch(9, 12, 4)
    y[0], y[:, 1], y[2, 3] = np.nan, np.nan, np.nan
    said = " ".join(clinic(as_frame(y)).notes)
    assert "1 agent without any outcome is left out" in said
    assert "1 item without any outcome is left out" in said
    assert "1 of 88 cells are empty" in said
    assert "no short form: of 8 agents" in said


def long_table(outcomes: Floats) -> pd.DataFrame:
    rows = [
        {
            "person": f"agent {a}",
            "item": f"i{i}",
            "answer": "yes" if y else "no",
            "kind": "ab"[i % 2],
        }
        for a, row in enumerate(outcomes)
        for i, y in enumerate(row)
    ]
    return pd.DataFrame(rows)


def test_every_form_of_a_table_is_read_alike() -> None:
    y, _, _ = rasch(12, 5, 4)
    long = responses_of(long_table(y), Columns(outcome="answer", demands=("kind",)))
    by_agent = responses_of(as_frame(y).rename_axis("model").reset_index(), Columns())
    by_item = responses_of(as_frame(y).T.rename_axis("item").reset_index(), Columns())
    for one in (long, by_agent, by_item):
        assert (one.agents, one.items) == (long.agents, tuple(f"i{k}" for k in range(5)))
        np.testing.assert_array_equal(one.outcomes, y)
    assert long.demand_names == ("kind: b",)
    assert long.demands[:, 0].tolist() == [0.0, 1.0, 0.0, 1.0, 0.0]


def test_rows_that_stand_twice_and_repeats_are_counted() -> None:
    y = np.array([[1.0, 0.0], [0.0, 1.0]])
    table = long_table(y)
    again = table.iloc[[0]].assign(answer="no")
    table = pd.concat([table, table.iloc[[1]], again, table.iloc[[2]].assign(answer="void")])
    found = responses_of(table, Columns(outcome="answer"))
    assert found.outcomes.tolist() == [[0.5, 0.0], [0.0, 1.0]]
    said = " ".join(found.notes)
    assert "Rows that occur twice, cell by cell, are read once: 1." in said
    assert "1 of 6 attempts have no outcome" in said
    assert "1 times an agent tried an item more than once" in said


def test_pass_marks_make_successes_of_returns() -> None:
    given = Responses(("a", "b"), ("x", "y"), np.array([[0.5, -1.0], [0.2, np.nan]]))
    marked = with_pass_marks(given, {"x": 0.2, "y": 0.0})
    np.testing.assert_array_equal(marked.outcomes, [[1.0, 0.0], [0.0, np.nan]])
    with pytest.raises(TableError, match="1 items have no pass mark; the first is 'y'"):
        with_pass_marks(given, {"x": 0.2})


def test_a_table_that_may_mean_several_things_is_refused() -> None:
    with pytest.raises(TableError, match="which column names the agents"):
        responses_of(pd.DataFrame({"who": ["a"], "what": ["b"]}), Columns())
    with pytest.raises(TableError, match="Did you mean 'person'"):
        responses_of(long_table(np.eye(2)), Columns(agent="persn"))
    with pytest.raises(TableError, match="is not an outcome"):
        responses_of(pd.DataFrame({"agent": ["a"], "i0": ["perhaps"]}), Columns())


def test_the_command_prints_what_is_found(tmp_path: Path) -> None:
    y, _, _ = rasch(40, 8, 4)
    table = tmp_path / "answers.csv"
    long_table(y).to_csv(table, index=False)
    run = CliRunner().invoke(
        build(COMMAND), [*COMMAND, str(table), "--outcome", "answer", "--demand", "kind"]
    )
    assert run.exit_code == 0, run.output
    assert "8 items separate able agents" in run.output or "of 8 items separate" in run.output
    as_json = CliRunner().invoke(
        build(COMMAND), [*COMMAND, str(table), "--outcome", "answer", "--json"]
    )
    found = json.loads(as_json.stdout)
    assert [item["item"] for item in found["items"]] == [f"i{k}" for k in range(8)]
    assert found["false_alarm_rate"] == 0.05


def test_the_command_says_what_is_wrong_with_a_table(tmp_path: Path) -> None:
    table = tmp_path / "one.csv"
    table.write_text("agent,i0\n" + "".join(f"a{k},{k % 2}\n" for k in range(100)))
    run = CliRunner().invoke(build(COMMAND), [*COMMAND, str(table)])
    assert run.exit_code == 2
    assert "there is 1 item with outcomes, and 3 are needed" in run.output
