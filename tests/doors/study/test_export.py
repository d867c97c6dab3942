"""A round is a row with demands, times and flags, and every column is explained."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

from animalcat.doors.study.export import (
    COLUMNS,
    TABLES,
    codebook_of,
    csv_of,
    description_of,
    rows_of,
)
from animalcat.doors.study.file import Study
from animalcat.doors.study.participant import (
    Answered,
    Arrived,
    Stage,
    Trial,
    TrialOver,
    TrialTiming,
    replay_participant,
)
from tests.doors.study.conftest import ASKED
from tests.doors.study.test_participant import NOW, PAGES, PLAY, PRACTICE

Write = Callable[..., Study]
KEYS = (("ahead", True, 321.5), ("ahead", False, 400.0))


def test_a_round_is_a_row_with_demands_times_and_flags(written: Write, tmp_path: Path) -> None:
    study = written(ASKED)
    late = TrialTiming(frames=100, late=50, first_key=321.5, keys=4, shown_p95=80.0, blurs=1)
    told = Trial(0, 1, 9.0, 150, "played", True, (2.5,), late, KEYS)
    events = [
        *(
            Arrived(NOW, study.digest, "plain"),
            *PAGES[:2],
            Answered(NOW, ("30", "1 3"), Stage.BEFORE),
        ),
        *(*PAGES[2:], *PRACTICE, PLAY[0]),
        TrialOver(NOW, "play", told),
        TrialOver(NOW, "play", Trial(1, None, 3.0, 20, "void", None, (6.0,))),
    ]
    one = replay_participant(study, "abc-1", events)
    demands = {"instance": "far", "wayLength [m]": 12.5, "outcome": "success", "return": 0.7}
    rows = list(rows_of(one, study, events, {("s", 0, 1): demands}, tmp_path))
    shown = [row for table, row in rows if table in ("pages", "rounds")]
    assert [row["trial_index"] for row in shown] == [*range(len(shown))]
    assert [row["trial_type"] for row in shown[:7]] == [
        *("consent", "device", "question", "question"),
        *("instructions", "instructions", "question"),
    ]
    assert [row["right"] for row in (shown[2], shown[6])] == [None, True]

    def read(table: str, *more: str) -> list[dict[str, str]]:
        found = csv_of([*TABLES[table], *more], [row for name, row in rows if name == table])
        return list(csv.DictReader(io.StringIO(found.decode())))

    first, void = read("rounds", "wayLength [m]")[-2:]
    wanted = {
        "trial_type": "round",
        "arena": "far",
        "rt": "321.5",
        "response": "success",
        "counts": "true",
        "flags": "gap late blur",
        "gaps": "2.5",
        "wayLength [m]": "12.5",
        "session": "s",
        "part": "play",
        "order": "0",
        "shown_p95": "80.0",
        "at": "2026-11-27T12:00:00+00:00",
    }
    assert {key: first[key] for key in wanted} == wanted
    assert (void["outcome"], void["counts"], void["flags"]) == ("void", "false", "gap untimed")
    assert (void["rt"], void["recording"], void["order"]) == ("", "", "1")
    assert [(row["key"], row["down"], row["ms"]) for row in read("keys")] == [
        ("ahead", "true", "321.5"),
        ("ahead", "false", "400.0"),
    ]
    (person,) = read("people", "q_age", "q_games")
    assert (person["q_age"], person["q_games"], person["careless"]) == ("30", "1 3", "one-key")
    assert (person["width"], person["consent"], person["end"]) == ("1200", "1", "play")


def test_an_integer_stays_one_beside_what_is_missing() -> None:
    found = csv_of(["n", "m"], [{"n": 10**17}, {"n": None, "m": True}])
    assert found == b"n,m\n100000000000000000,\n,true\n"


def test_every_column_is_described(written: Write) -> None:
    columns = {**TABLES, "rounds": (*TABLES["rounds"], "wayLength [m]")}
    columns["people"] = (*TABLES["people"], "q_games")
    study = written(ASKED)
    book = codebook_of(columns, {"games": study.questions.before[1]})
    told = json.loads(description_of(study, book))
    assert (told["@type"], told["name"]) == ("Dataset", "Finding things")
    variables = {one["name"]: one for one in told["variableMeasured"]}
    assert {*variables} == {name for own in columns.values() for name in own} >= {*COLUMNS}
    assert all(one["description"] for one in variables.values())
    assert variables["wayLength [m]"]["unitText"] == "m"
    told_games = "Which do you play? 1 = None; 2 = Cards; 3 = Shooters"
    assert variables["q_games"]["description"] == told_games
