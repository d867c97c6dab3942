"""Plausible mistakes in tables of outcomes: each is refused, told, or changes nothing."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from animalcat.arena_configs.instance import Instance
from animalcat.cli.layout.commands import app_for
from animalcat.cli.shared.arena_outcomes import (
    check_demands,
    mark_battery,
    on_battery,
    outcomes_of_rewards,
)
from animalcat.cli.shared.outcome_options import As
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import CoveredOutcomes, TableError, read_csv
from animalcat.layouts.model.nodes import Exclusion
from animalcat.layouts.model.units import UnitError, conversion
from animalcat.service.batteries.battery import Battery
from tests.things import covered_outcomes

AAIO = load_layout("aaio")
TESTBED = load_layout("testbed")
SCORES = load_layout("one-capability", "score")
WIDE = """instance,paradigm,rewardDistance [m],rewardSize [m],rewardBehind,XPos,lava,a
one,open,10,1,0,0,0,1
two,open,20,1,0.5,-1,0,0
three,open,30,2,1,1,0,1
four,open,40,2,1,0,0,
"""
DEMANDS = ("rewardDistance", "rewardSize", "rewardBehind", "XPos")

Change = Callable[[str], str] | tuple[str, str]


def change_one(text: str, change: Change) -> str:
    if callable(change):
        return change(text)
    assert change[0] in text
    return text.replace(*change)


def read(text: str, *agents: str, layout: Any = AAIO) -> CoveredOutcomes:
    return covered_outcomes(text, agents or ("a",), [layout])


def values(found: CoveredOutcomes) -> tuple[Any, ...]:
    table = found.table
    return (
        table.instances.names,
        table.instances.features(AAIO).round(9).tolist(),
        np.nan_to_num(table.outcomes, nan=9).tolist(),
    )


def cells(column: int, *texts: str) -> Callable[[str], str]:
    """Replace the cells of a column."""

    def change(text: str) -> str:
        head, *rows = text.splitlines()
        made = [row.split(",") for row in rows]
        for row, cell in zip(made, texts, strict=False):
            row[column] = cell
        return "\n".join([head, *(",".join(row) for row in made)]) + "\n"

    return change


def turn_over(text: str) -> str:
    rows = [row.split(",") for row in text.splitlines()]
    return "\n".join(",".join(line) for line in zip(*rows, strict=True))


def both(*changes: Callable[[str], str]) -> Callable[[str], str]:
    def change(text: str) -> str:
        for one in changes:
            text = one(text)
        return text

    return change


def around(start: str, end: str = "") -> Callable[[str], str]:
    def change(text: str) -> str:
        return start + text + end

    return change


def first_lines(number: int) -> Callable[[str], str]:
    def change(text: str) -> str:
        return "".join(text.splitlines(keepends=True)[:number])

    return change


def each(what: str, by: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        return text.replace(what, by)

    return change


def with_numbers(text: str) -> str:
    head, *rows = text.splitlines()
    return "\n".join(["," + head, *(f"{i},{row}" for i, row in enumerate(rows))])


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(cells(7, "True", "False", "true", ""), id="T1 True and False"),
        pytest.param(cells(7, "1.0", "0.0", " 1 ", " "), id="floats and blanks"),
        pytest.param(cells(7, "success", "failure", "success", ""), id="T45 success and failure"),
        pytest.param(each("one,", "one  ,"), id="T9 a name with white space at its end"),
        pytest.param(around("\ufeff"), id="T12 a byte order mark"),
        pytest.param(each("\n", "\r\n"), id="line ends of Windows"),
        pytest.param(each(" [m]", " (m)"), id="T19 a unit in round brackets"),
        pytest.param(each("rewardBehind", "rewardBehind [1]"), id="no unit, said"),
        pytest.param(
            both(cells(2, "1000", "2000", "3000", "4000"), each("nce [m]", "nce [cm]")),
            id="centimetres",
        ),
        pytest.param(
            both(cells(2, "1", "2", "3", "4"), each("nce [m]", "nce [10 m]")),
            id="tens of metres",
        ),
        pytest.param(
            both(cells(4, "0", "50", "100", "100"), each("Behind", "Behind [%]")),
            id="per cent, said",
        ),
        pytest.param(each(" [m]", ""), id="no unit: that of the layout"),
        pytest.param(each("\nfour", "\n,,,,,,,\nfour"), id="a line of empty cells"),
        pytest.param(cells(6, "FALSE", "FALSE", "FALSE", "FALSE"), id="T39 demands of FALSE"),
    ],
)
def test_what_changes_nothing(change: Change) -> None:
    assert values(read(change_one(WIDE, change))) == values(read(WIDE))


def test_rows_and_columns_in_another_order_change_nothing() -> None:
    head, *rows = WIDE.splitlines()
    mixed = read("\n".join([head, *reversed(rows)]))  # T38
    names, demands, outcomes = values(mixed)
    assert (names[::-1], demands[::-1], outcomes[0][::-1]) == (
        (expected := values(read(WIDE)))[0],
        expected[1],
        expected[2][0],
    )
    columns = [line.split(",")[::-1] for line in (head, *rows)]
    assert values(read("\n".join(map(",".join, columns)))) == expected


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(cells(7, "yes", "no"), "line 2, column a: 'yes' is not a finite", id="T2 yes"),
        pytest.param(cells(7, "1", "-1"), "agent a, instance two: the outcome is -1", id="T3 -1"),
        pytest.param(cells(7, "100", "0"), "instance one: the outcome is 100", id="T4 per cent"),
        pytest.param(cells(7, "1", "2"), "instance two: the outcome is 2; success is 1", id="T5"),
        pytest.param(cells(7, "0.5"), "instance one: the outcome is 0.5; success is 1", id="T6"),
        pytest.param(each(",", ";"), "commas are expected between columns", id="T13 semicolons"),
        pytest.param(each(",", "\t"), "commas are expected between columns", id="T14 tabs"),
        pytest.param(each("lava", "XPos"), "column XPos is there 2 times", id="T15 twice"),
        pytest.param(with_numbers, "column 1 has no name; row numbers", id="T16 a nameless column"),
        pytest.param(each("lava", "Unnamed: 0"), "is called 'Unnamed: 0'", id="T17 Unnamed: 0"),
        pytest.param(
            each("Distance [m]", "Distance [feet]"),
            r"column rewardDistance \[feet\]: the unit 'feet' is unknown here; understood is m",
            id="T18 feet",
        ),
        pytest.param(
            each("Distance [m]", "Distance (feet)"),
            r"column 'rewardDistance \(feet\)' is unknown.*Did you mean 'rewardDistance'",
            id="T18 feet in round brackets",
        ),
        pytest.param(
            each("Distance [m]", "Distance [s]"),
            r"rewardDistance \[s\]: the unit 's' is another here; understood is m,",
            id="T20 seconds for metres",
        ),
        pytest.param(
            each("XPos", "XPos [m]"), "'m' is another here; understood is 1, %", id="T20b"
        ),
        pytest.param(cells(2, "inf"), "column rewardDistance: 'inf' is not a finite", id="T22 inf"),
        pytest.param(
            each("one,open,10", 'one,open,"1,234.5"'),
            "'1,234.5' is not a finite number; write it with a point and without separators",
            id="T24 separators of thousands",
        ),
        pytest.param(
            around("", "mean,,25,1.5,0.6,0,0,0.7\n"),
            "line 6, column instance: the last row is called 'mean'",
            id="T25 a row of means",
        ),
        pytest.param(
            turn_over, "no column 'a' of outcomes; columns: instance, one", id="T28 turned"
        ),
        pytest.param(first_lines(0), "the table is empty", id="T30 empty"),
        pytest.param(first_lines(1), "has no rows", id="T30 no rows"),
        pytest.param(
            cells(7, "NA"), "'NA' is not a finite number; leave a cell empty", id="T33 NA"
        ),
        pytest.param(cells(7, "0.97", "-1"), "Rewards on arenas become outcomes", id="T34 returns"),
        pytest.param(
            each("rewardDistance", "goalDistance"),
            "no column 'rewardDistance'",
            id="T37 of another layout",
        ),
        pytest.param(
            cells(5, "left", "right"), "column XPos: 'left' is not a finite", id="T40 left"
        ),
        pytest.param(around("# mine\n"), "line 1 is a comment", id="T43 a comment"),
        pytest.param(
            each("two,", "# the far one\ntwo,"),
            "line 3: 1 cell; the header has 8. A comment is not part",
            id="T43 a comment within",
        ),
        pytest.param(
            each("one,open,10", 'one,open,"1,5"'), "'1,5' is not a finite", id="T44 comma"
        ),
        pytest.param(each("one,open,10", "one,open,1,5"), "line 2: 9 cells", id="T44 bare comma"),
        pytest.param(
            each("lava", "rewardDistance [cm]"),
            "column rewardDistance is there 2 times",
            id="T47 twice in two units",
        ),
        pytest.param(
            each("rewardBehind", "reward_behind"),
            "Did you mean 'rewardBehind'",
            id="a demand in another spelling",
        ),
        pytest.param(each("lava", "Lava"), "Did you mean 'lava'", id="an exclusion misspelt"),
        pytest.param(each("one,", ","), "line 2, column instance: it is empty", id="no name"),
        pytest.param(
            each("three", "Two"),
            "instances 'two' and 'Two' differ in case alone",
            id="a name in two cases",
        ),
        pytest.param(
            each("three", "two"),
            "instance two has 2 rows; one is expected",
            id="T7 a row pasted twice",
        ),
        pytest.param(
            both(each("three", "two"), cells(7, "1", "0", "1")),
            "counts as less than another outcome",
            id="T8 twice with other outcomes",
        ),
    ],
)
def test_what_is_refused(change: Change, words: str) -> None:
    with pytest.raises(TableError, match=words):
        read(change_one(WIDE, change))


def test_agents_are_named_and_told_apart() -> None:
    with pytest.raises(TableError, match=r"Say --agent COLUMN"):  # T26
        covered_outcomes(WIDE, (), [AAIO])
    with pytest.raises(TableError, match=r"no column 'aa' of outcomes; columns: instance"):  # T48
        read(WIDE.replace("lava,a\n", "lava,agent\n"), "aa")
    with pytest.raises(TableError, match=r"no column 'agnet'.*Did you mean 'agent'"):
        read(WIDE.replace("lava,a\n", "lava,agent\n"), "agnet")
    two = WIDE.replace("lava,a\n", "A,a \n")  # T27
    with pytest.raises(TableError, match="agents 'A' and 'a' differ in case alone"):
        read(two, "A", "a")
    unit = read(WIDE.replace("lava,a\n", "lava,b (m)\n"), "b (m)")  # a name as it is
    assert unit.table.agents == ("b (m)",)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(cells(2, ""), "no rewardDistance", id="T21 an empty demand"),
        pytest.param(cells(2, "-10"), "rewardDistance below 0 m", id="T23 a negative distance"),
        pytest.param(cells(2, "1000"), "rewardDistance above 60 m", id="T42 centimetres, unsaid"),
        pytest.param(cells(6, "1"), "lava above 0", id="what the layout excludes"),
        pytest.param(cells(6, ""), "lava not measured", id="what is not known to be excluded"),
    ],
)
def test_what_is_left_out_is_counted_by_reason(change: Change, reason: str) -> None:
    found = read(change_one(WIDE, change))
    assert found.coverage("a") == {"covered": 2, "of": 3, "left_out": {reason: 1}}
    assert found.table.instances.names == ("two", "three", "four")
    whole = change_one(WIDE, change).replace("20,1", "1000,1").replace("30,2", "-1,2")
    with pytest.raises(TableError, match="aaio covers none of the instances: "):
        read(whole.replace("40,2", "70,2"))


def test_the_python_door_excludes_too() -> None:
    table = read_csv(WIDE.replace("10,1,0,0,0", "10,1,0,0,1"), ["a"])
    with pytest.raises(TableError, match=r"instance one: layout aaio leaves it out: lava above 0"):
        table.instances.features(AAIO)
    open_only = replace(AAIO, excludes=(Exclusion("lava", above=2.0),))
    assert len(table.instances.features(open_only)) == 4


def test_a_column_of_weights_weighs_nothing_and_that_is_said() -> None:  # I8
    assert any(
        "is no demand or weight here" in note for note in read(WIDE.replace("lava", "weight")).notes
    )


def test_what_a_default_replaces_is_said() -> None:
    text = "instance,lavaPresence,raisedRewards,rewards,endingRewards,darkness,{},a\n"
    rows = "one,0,0,1,1,0,{},1\ntwo,0,0,1,1,0,{},0\n"
    there = read(text.format("wayLength") + rows.format(40, 50), layout=TESTBED)
    assert not [note for note in there.notes if "wayLength" in note]
    assert there.table.instances.features(TESTBED)[:, 0].tolist() == [40.0, 50.0]
    for wrong in ("waylength", "wayLenght", "way_length", "wayLengths", "WayLength (metre)"):
        with pytest.raises(TableError, match="Did you mean 'wayLength'"):
            read(text.format(wrong) + rows.format(40, 50), layout=TESTBED)
        with pytest.raises(TableError, match="Did you mean 'wayLength'"):
            read_csv(text.format(wrong) + rows.format(40, 50), ["a"]).instances.features(TESTBED)
    far = read(text.format("howFar") + rows.format(40, 50), layout=TESTBED)
    assert "no wayLength: 30 m is taken (if_missing)" in far.notes
    some = read(text.format("wayLength") + rows.format(40, ""), layout=TESTBED)
    assert "1 of 2 instances have no wayLength: 30 m is taken (if_missing)" in some.notes
    assert any("by which layout testbed leaves instances out" in note for note in far.notes)


EXPORT = """episode,instance,outcome,agent,state,decision_period,rewardDistance [m],rewardSize [m],\
rewardBehind,XPos
0,one,success,me,finished,3,10,1,0,0
1,two,failure,me,finished,3,20,1,0,0
2,three,void,me,finished,3,30,1,0,0
3,four,practice,me,finished,3,30,1,0,0
4,two,success,you,finished,3,20,1,0,0
"""


def export(text: str, *agents: str, layout: Any = AAIO) -> CoveredOutcomes:
    return covered_outcomes(text, agents, [layout])


def test_attempts_that_do_not_count_are_told() -> None:
    found = export(EXPORT)  # T46
    assert found.notes[0] == "left out 2 of 5 rows as no evidence: 1 practice, 1 void"
    assert found.table.agents == ("me", "you")
    assert [found.coverage(who)["of"] for who in ("me", "you")] == [2, 1]
    converted = export(EXPORT.replace("Distance [m]", "Distance [10 m]").replace("0,1,0", ",1,0"))
    assert converted.table.instances.features(AAIO)[0, 0] == 10.0


@pytest.mark.parametrize(
    ("change", "agents", "words"),
    [
        (("success,you", "success,"), (), "an outcome on two names no agent .1 do not."),
        (("agent", "who"), (), "line 2, column 'who': 'me' is not a"),
        (("failure,me", "failure,Me"), (), "agents 'me' and 'Me' differ in case alone"),
        (("success,me", "1,me"), (), "line 2, column 'outcome': '1' is unknown; valid: success"),
        (("success,me", ",me"), (), "line 2, column 'outcome'"),
        (("me", "me"), ("mee",), "no agent 'mee'; agents: me, you"),
        (("Distance [m]", "Distance [s]"), (), "rewardDistance .s.: the unit 's' is another here"),
        (("XPos", "Unnamed: 9"), (), "is called 'Unnamed: 9'"),
        (("rewardDistance", "rewarddistance"), (), "Did you mean 'rewardDistance'"),
    ],
)
def test_exports_that_are_refused(
    change: tuple[str, str], agents: tuple[str, ...], words: str
) -> None:
    with pytest.raises(TableError, match=words):
        export(EXPORT.replace(*change, 1), *agents)


def test_who_played_may_be_said_where_the_table_says_nothing() -> None:
    alone = "instance,outcome,rewardDistance,rewardSize,rewardBehind,XPos\none,success,1,1,0,0\n"
    with pytest.raises(TableError, match="say with one --agent who played"):
        export(alone)
    assert export(alone, "me").table.agents == ("me",)
    with pytest.raises(TableError, match="takes other outcomes than success"):
        export(alone.replace("rewardDistance", "difficulty"), "me", layout=SCORES)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK\x03\x04 and so on", "a spreadsheet"),  # T31
        (gzip.compress(WIDE.encode(), mtime=0), "compressed; unpack it first"),  # T32
        (WIDE.encode("utf-16"), "not UTF-8 text"),
        (b"\x00\x01", "no CSV|no column|no rows"),
    ],
)
def test_files_of_another_form(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(TableError, match=words):
        read_csv(path, ["a"])


def test_a_text_of_one_line_is_the_name_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("items.csv").write_text(WIDE)
    assert len(read_csv("items.csv", ["a"]).instances) == 4
    assert len(read_csv(str(tmp_path / "items.csv"), ["a"]).instances) == 4
    with pytest.raises(TableError, match=r"other.csv: No such file; give a file, or the text"):
        read_csv("other.csv", [])
    with pytest.raises(TableError, match="has no rows below its columns other"):
        read_csv("other", [])


def test_units() -> None:
    told = {
        ("10 m", "m"): 10,
        ("m", "10 m"): 0.1,
        ("2.5 km", "m"): 2500,
        ("ms", "s"): 0.001,
        ("min", "s"): 60,
        ("km/h", "m/s"): 1 / 3.6,
        ("rad", "deg"): 57.29577951308232,
        ("%", "1"): 0.01,
        ("", "1"): 1,
        ("1", ""): 1,
        ("kiloword", "kiloword"): 1,
        ("10 kiloword", "kiloword"): 10,
        ("1.9 lg(5 m/d)", "1.9 lg(5 m/d)"): 1,
    }
    for (given, wanted), factor in told.items():
        assert conversion(given, wanted) == pytest.approx(factor), (given, wanted)
    for given, wanted in (
        ("m", "s"),
        ("m/s", "m"),
        ("word", "kiloword"),
        ("1", "m"),
        ("feet", "m"),
    ):
        with pytest.raises(UnitError, match="understood is"):
            conversion(given, wanted)


def battery(*names: str, drawn: tuple[str, ...] = ()) -> Battery:
    """A battery of open arenas, 10 m and more from their goals of 1 m."""
    features = dict.fromkeys((*DEMANDS, *(one.feature for one in AAIO.excludes)), 0.0)
    made = [
        Instance(
            name=name,
            paradigm="",
            features={
                **features,
                "rewardDistance": 10.0 + k,
                "rewardSize": 1.0,
                "greatestReturn": 2.0,
                "rewards": 1.0,
            },
            pass_mark=1.0,
            time_limit_steps=100,
            seed=0,
            arena="",
        )
        for k, name in enumerate(sorted(names))
    ]
    units = {"rewardDistance": "m", "rewardSize": "m"}
    chance = {name: ["items[0].positions[0].x"] for name in drawn}
    return Battery("d" * 64, units, tuple(made), (), Path(), drawn=chance)


NAMES = ("near/g1", "near/g2", "far/g3", "far/g4")
RETURNS = "instance,a,b\ng1,1.9,0.2\ng2,0.4,\nfar/g3.yaml,-0.5,1.5\nfar/g4.yml,1.2,0.1\n"


def play_out(text: str, *agents: str, told: As | None = None, marks: str | None = None) -> Any:
    known = mark_battery(battery(*NAMES), marks, text, told)
    return outcomes_of_rewards(known, text, agents, told)


def test_arenas_are_found_by_name_by_file_and_without_folders() -> None:
    found = play_out(RETURNS)  # T11
    assert found == {
        "a": {"near/g1": 1.0, "near/g2": 0.0, "far/g3": 0.0, "far/g4": 1.0},
        "b": {"near/g1": 0.0, "far/g3": 1.0, "far/g4": 0.0},
    }
    counted = on_battery(AAIO, battery(*NAMES), found).outcomes
    assert counted.coverage("a") == {"covered": 4, "of": 4, "left_out": {}}
    more = play_out(RETURNS + "elsewhere,0.5,0.5\n")
    counted = on_battery(AAIO, battery(*NAMES), more).outcomes
    assert counted.coverage("b") == {"covered": 3, "of": 4, "left_out": {"not in the battery": 1}}
    marks = "instance,pass_mark\ng1,0\ng2,0\ng3,0\ng4,0\n"
    assert play_out(RETURNS, marks=marks)["a"]["near/g2"] == 1.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(RETURNS.replace("g1", "G1"), "no instance 'G1'. Did you mean 'g1'", id="T10"),
        pytest.param("instance,a\n0,1.5\n1,0.5\n2,0.1\n", "no instance with outcomes", id="T41"),
        pytest.param("instance,near/g1,far/g3\na,1.9,0.2\n", "a row for each instance", id="T28"),
        pytest.param("instance,a\nmean,0.5\n", "the last row is called 'mean'", id="T25"),
        pytest.param("instance,a\ng1,95\ng2,40\ng3,12.5\n", "95 is more than the arena", id="T4"),
        pytest.param("instance,a,seed\ng1,.5,7\n", "'seed' seems to say something", id="T35"),
        pytest.param("instance,a,Episode\ng1,.5,7\n", "'Episode' seems to say", id="an episode"),
        pytest.param("instance,a,date\ng1,.5,2026-11-26\n", "'date' seems to say", id="T36"),
        pytest.param("instance,a,when\ng1,.5,2026-11-26\n", "'2026-11-26' is not a fin", id="T36b"),
        pytest.param(",instance,a\n0,g1,.5\n", "column 1 has no name", id="T17"),
        pytest.param("instance,a,x\ng1,.5,0\ng2,.1,1\ng3,.2,2\n", "'x' numbers the", id="0, 1, 2"),
        pytest.param("instance,a,way [m]\ng1,.5,1.5\n", "'way' has a unit, 'm'", id="a demand"),
        pytest.param("instance,a,A\ng1,.5,.5\n", "differ in case alone", id="T27"),
        pytest.param("instance,a,a \ng1,.5,.5\n", "column a is there 2 times", id="T27b"),
        pytest.param("instance,a\ng1,.5\ng1.yaml,.2\n", "are one instance, 'near/g1'", id="twice"),
        pytest.param("instance,a\ng1,.5\ng1,.2\n", "instance g1 has 2 rows; one is", id="T8"),
        pytest.param("task,a\ng1,.5\n", "no column `instance`; columns: task, a", id="no names"),
        pytest.param("instance,a\ng1,0\ng2,1\ng3,1\n", "all outcomes are 0 and 1: are", id="0, 1"),
        pytest.param("instance,a\ng1,1\ng2,1\n", "all outcomes are 1: are they", id="all 1"),
        pytest.param("instance,a\ng1,-1\ng2,1\n", "all outcomes are -1 and 1: are they", id="T3"),
        pytest.param("instance,a\ng1,1\ng2,2\n", "all outcomes are 1 and 2: are they", id="T5"),
        pytest.param("instance,a\ng1,True\ng2,False\n", "give --as successes", id="T1"),
        pytest.param("instance,a\ng1,success\ng2,failure\n", "give --as successes", id="T45"),
        pytest.param(
            "instance,a,b\ng1,0,.5\ng2,1,.2\ng3,1,-1\ng4,0,1.5\n",
            "outcomes of a are 0 and 1",
            id="b",
        ),
        pytest.param(
            EXPORT, "as `profile export --format csv` writes it.*by --table", id="an export"
        ),
    ],
)
def test_rewards_that_are_refused(text: str, words: str) -> None:
    with pytest.raises(TableError, match=words):
        play_out(text)


def test_a_battery_with_two_arenas_of_a_name_wants_the_folder() -> None:
    with pytest.raises(TableError, match="'g1' is 'far/g1', 'near/g1'; give the folder too"):
        outcomes_of_rewards(battery("near/g1", "far/g1"), "instance,a\ng1,.5\n")
    with pytest.raises(TableError, match="no agent 'aa'; agents: a, b"):  # T48
        play_out(RETURNS, "aa")
    with pytest.raises(TableError, match="g2 has no pass mark"):
        play_out(RETURNS, marks="instance,pass_mark\ng1,0\n")


def test_what_the_numbers_are_may_be_said() -> None:
    flags = "instance,a\ng1,0\ng2,1\ng3,1\n"
    assert list(play_out(flags, told="successes")["a"].values()) == [0.0, 1.0, 1.0]
    assert list(play_out(flags, told="returns")["a"].values()) == [0.0, 0.0, 0.0]
    words = "instance,a\ng1,True\ng2,False\n"
    assert list(play_out(words, told="successes")["a"].values()) == [1.0, 0.0]
    for text, told, said in (
        (words, "returns", "returns are numbers"),
        (RETURNS, "successes", "1.9 is neither 0 nor 1"),
    ):
        with pytest.raises(TableError, match=said):
            play_out(text, told=told)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TableError, match="--pass-marks goes with returns"):
        play_out(flags, told="successes", marks="instance,pass_mark\ng1,0\n")
    alone = play_out("instance,a,seed\ng1,.5,7\ng2,1.5,8\n", "a")  # T29: named agents alone
    assert alone == {"a": {"near/g1": 0.0, "near/g2": 1.0}}


def test_arenas_of_chance_are_left_out_unless_kept() -> None:
    found = play_out(RETURNS)
    random = battery(*NAMES, drawn=("far/g3",))
    counted = on_battery(AAIO, random, found).outcomes
    assert counted.coverage("a")["left_out"] == {
        "its file leaves positions, rotations or sizes to chance": 1
    }
    kept = on_battery(AAIO, random, found, keep_drawn=True).outcomes
    assert kept.coverage("a")["covered"] == 4
    assert "1 of 4 instances leave positions" in kept.notes[0]
    assert on_battery(AAIO, random, found, known=["far/g3"]).outcomes.notes == ()
    with pytest.raises(TableError, match="With --keep-drawn they count"):
        on_battery(AAIO, battery(*NAMES, drawn=NAMES), found)


def test_another_battery_with_equal_names_is_found_by_its_demands() -> None:
    units = {"rewardDistance [cm]": "cm", "noise": ""}
    rows = [{"instance": "near/g1", "rewardDistance [cm]": 1200.0, "noise": 3.0}]
    assert check_demands(battery(*NAMES), rows, units, "t.csv") == {"near/g1"}
    other = [{**rows[0], "rewardDistance [cm]": 1300.0}]
    words = "t.csv: instance near/g1 has rewardDistance 13 m, and in the battery 12 m"
    with pytest.raises(TableError, match=words):
        check_demands(battery(*NAMES), other, units, "t.csv")
    with pytest.raises(TableError, match="'s' is another here"):
        check_demands(battery(*NAMES), rows, {"rewardDistance [s]": "s"}, "t.csv")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("Distance [m]", "Distance [feet]"), "t.csv: column rewardDistance [feet]: the unit"),
        (("XPos", "xpos"), "t.csv: column 'xpos' is unknown to layout aaio. Did you mean 'XPos'?"),
        (("one,open,10", "one,open,ten"), "t.csv: line 2, column rewardDistance: 'ten'"),
    ],
)
def test_the_command_names_the_file(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(WIDE.replace(*change))
    for command in (["fit", "aaio"], ["check", "aaio"]):
        given = [*command, "--table", str(path), "--agent", "a"]
        result = CliRunner().invoke(app_for(command[0]), given)
        assert result.exit_code == 2
        assert words in result.stderr
