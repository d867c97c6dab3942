"""Tables of instances and outcomes, and what is wrong with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from animalcat.layouts import Bank, Learner
from animalcat.layouts.calibrating.calibrate import population_model
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import (
    Instances,
    OutcomeTable,
    TableError,
    read_csv,
    with_average_chance,
)
from animalcat.layouts.model.spec import Layout
from benchmarks.synthetic import op_battery

TEXT = """instance,paradigm,words,depth,alice,bob
one,short,10,1,1,0
two,short,20,,0,
three,long,90,3,1,1
"""


def test_a_csv_with_meta_features_and_outcomes() -> None:
    table = read_csv(TEXT, ["alice", "bob"])
    assert table.instances.columns == ("words", "depth")
    assert table.instances.names == ("one", "two", "three")
    assert table.instances.paradigms == ("short", "short", "long")
    assert np.isnan(table.instances.column("depth")[1])
    played, outcomes = table.of("bob")
    assert played.names == ("one", "three")
    assert outcomes.tolist() == [0, 1]
    assert read_csv(TEXT, ["bob"], ignore=["alice"]).instances.columns == ("words", "depth")


def test_columns_of_text_are_left_out_and_named_but_not_where_a_layout_needs_them() -> None:
    text = "instance,topic,difficulty,{},me\np,maths,1,{},1\nq,law,2,{},0\nr,law,3,{},0\n"
    layout = load_layout("one-capability")
    table = read_csv(text.format("prompt", "how many?", "which?", "who?"), ["me"])
    assert table.instances.columns == ("difficulty",)
    said = "columns of text are not meta-features and are left out: topic, prompt"
    assert said in table.covered([layout]).notes
    needed = read_csv(
        text.replace("difficulty,{}", "{},difficulty").format("x", "a", "b", "c"), ["me"]
    )
    with pytest.raises(TableError, match="line 2, column difficulty: 'a' is not a finite number"):
        needed.covered([layout])
    with pytest.raises(
        TableError, match="line 2, column x: '1,5' is not a finite number; write it"
    ):
        read_csv(text.format("x", '"1,5"', '"2,5"', '"3,5"'), ["me"])


@pytest.mark.parametrize(
    ("text", "agents", "words"),
    [
        (TEXT, ["carol"], "no column 'carol' of outcomes; columns: instance, paradigm, words"),
        (
            TEXT.replace("90", "many"),
            ["alice"],
            "line 4, column words: 'many' is not a finite number",
        ),
        (TEXT.replace("90", "inf"), ["alice"], "'inf' is not a finite number"),
        (TEXT.replace("90,", ""), ["alice"], "line 4: 5 cells; the header has 6"),
        (TEXT.replace("depth", "words", 1), ["alice"], "column words is there 2 times"),
    ],
)
def test_a_bad_csv_is_named(text: str, agents: list[str], words: str) -> None:
    with pytest.raises(TableError, match=words):
        read_csv(text, agents)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(TEXT)
    assert len(read_csv(path, ["alice"]).instances) == 3
    with pytest.raises(TableError, match="No such file"):
        read_csv(tmp_path / "other.csv", [])
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TableError, match="not UTF-8 text"):
        read_csv(path, [])


def test_instances_are_checked(aaio: Layout) -> None:
    with pytest.raises(TableError, match=r"shape \(2, 3\); 1 columns"):
        Instances(("a",), np.zeros((2, 3)))
    with pytest.raises(TableError, match="3 names for 2 instances"):
        Instances(("a",), np.zeros((2, 1)), names=("x", "y", "z"))
    with pytest.raises(TableError, match="no column 'rewardDistance'; columns: a"):
        Instances(("a",), np.zeros((2, 1))).features(aaio)
    with pytest.raises(TableError, match="1 agents and 2 instances"):
        OutcomeTable(Instances(("a",), np.zeros((2, 1))), ("me",), np.zeros((2, 2)))
    table = OutcomeTable(Instances(("a",), np.zeros((1, 1))), ("me",), np.zeros((1, 1)))
    with pytest.raises(TableError, match="no agent 'you'; agents: me"):
        table.of("you")


def test_a_column_that_is_not_there_may_have_a_rule() -> None:  # I4
    printed = load_layout("object-permanence", "as-printed")
    battery = op_battery(1)
    assert "chance" not in battery
    features = battery.features(printed)
    column = printed.feature_names.index("chance")
    assert (features[:, column] == 0.5).all()
    outcomes = np.zeros(len(battery))
    outcomes[: len(battery) // 4] = 1.0
    filled, notes = with_average_chance(battery, printed, outcomes)
    assert filled.features(printed)[:, column] == pytest.approx(1.0 - outcomes.mean())
    assert notes == [f"no chance: 1 less the average outcome, {1 - outcomes.mean():.2f}, is taken"]
    assert with_average_chance(filled, printed, 1.0 - outcomes) == (filled, [])
    table = OutcomeTable(battery, ("me",), outcomes[np.newaxis])
    for use in (lambda: Bank.of(printed, battery), lambda: population_model(printed, table)):
        with pytest.raises(TableError, match="takes chance as 1 less the average of all outcomes"):
            use()
    assert not any("chance" in note for note in Bank.of(printed, filled).assumed)
    # A column with gaps is taken as it is, and what fills them is said.
    values = filled.values.copy()
    values[:3, filled.columns.index("chance")] = np.nan
    noted = replace(filled, values=values).covered(printed).notes
    assert any(note.startswith(f"3 of {len(filled)} instances have no chance") for note in noted)


def test_what_a_bank_assumes_and_a_scale_that_seems_another_are_said(aaio: Layout) -> None:
    given = pd.DataFrame({"difficulty": [1.0, None]}, index=["a", "b"])
    bank = Bank.of("one-capability", given)
    assert bank.assumed == ("1 of 2 instances have no difficulty: 5 is taken (if_missing)",)
    assert bank.assumed[0] in repr(Learner(bank))
    with pytest.raises(TableError, match="index, which names its rows, has gaps"):
        Bank.of("one-capability", given.set_index("difficulty", drop=False))
    logs = Instances(aaio.feature_names, np.array([[1.5, 1.0, 0.0, 0.0]] * 2))
    (doubt,) = (note for note in logs.covered(aaio).notes if "logarithm" in note)
    assert doubt.startswith("rewardDistance is 1.5 to 1.5 m here, and layout aaio is made for 0 to")


def test_a_value_out_of_range_is_named_by_its_instance_or_its_line() -> None:
    layout = load_layout("one-capability")
    text = "instance,difficulty,me\nfirst,1,1\n\nsecond,1e9,0\n"
    with pytest.raises(ValueError, match="difficulty of instance second is"):
        read_csv(text, ["me"]).instances.features(layout)
    nameless = text.replace("instance,", "").replace("first,", "").replace("second,", "")
    with pytest.raises(ValueError, match="difficulty of line 4 is"):
        read_csv(nameless, ["me"]).instances.rows([1]).features(layout)
