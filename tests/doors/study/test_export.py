"""Rows of a participant are those of jsPsych, with demands, times and flags in one table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

from animalcat.doors.study.export import COLUMNS, csv_of, description_of, rows_of
from animalcat.doors.study.file import Study
from animalcat.doors.study.participant import (
    Arrived,
    Trial,
    TrialOver,
    TrialTiming,
    replay_participant,
)
from tests.doors.study.test_participant import NOW, PAGES, PLAY, PRACTICE

Write = Callable[..., Study]


def test_a_round_is_a_row_with_demands_times_and_flags(written: Write, tmp_path: Path) -> None:
    study = written()
    late = TrialTiming(frames=100, late=50, first_key=321.5, keys=4, paint_p95=80.0, blurs=1)
    told = Trial(0, 1, 9.0, 150, "played", True, (2.5,), late)
    events = [
        *(Arrived(NOW, study.digest, "plain"), *PAGES, *PRACTICE, PLAY[0]),
        TrialOver(NOW, "play", told),
        TrialOver(NOW, "play", Trial(1, None, 3.0, 20, "void", None, (6.0,))),
    ]
    one = replay_participant(study, "abc-1", events)
    demands = {"instance": "far", "wayLength [m]": 12.5, "outcome": "success", "return": 0.7}
    rows = list(rows_of(one, events, {("s", 0, 1): demands}, tmp_path))
    assert [row["trial_index"] for row in rows] == [*range(len(rows))]
    assert [row["trial_type"] for row in rows[:5]] == [
        *("consent", "device", "instructions", "instructions", "questions"),
    ]
    read = list(csv.DictReader(io.StringIO(csv_of([*COLUMNS, *demands], rows).decode())))
    first, void = read[-2:]
    wanted = {
        "trial_type": "round",
        "rt": "321.5",
        "response": "success",
        "counts": "true",
        "flags": "gap late blur",
        "gaps": "2.5",
        "wayLength [m]": "12.5",
        "session": "s",
        "part": "play",
        "round": "0",
        "paint_p95": "80.0",
    }
    assert {key: first[key] for key in wanted} == wanted
    assert (void["outcome"], void["counts"], void["flags"]) == ("void", "false", "gap untimed")
    assert (void["rt"], void["recording"], void["round"]) == ("", "", "1")


def test_every_column_is_described(written: Write) -> None:
    columns = [*COLUMNS, "instance", "wayLength [m]"]
    told = json.loads(description_of(written(), columns))
    assert (told["@type"], told["name"]) == ("Dataset", "Finding things")
    assert [one["name"] for one in told["variableMeasured"]] == columns
    assert all(one["description"] for one in told["variableMeasured"])
