"""Tables of outcomes: one schema in CSV, Parquet and pandas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from animalcat.layouts.fitting.evidence import evidence_of
from animalcat.outcomes import (
    COLUMNS,
    OutcomesError,
    check_outcomes,
    feature_units,
    outcomes_bytes,
    outcomes_frame,
    read_outcomes,
    write_outcomes,
)

UNITS = {"rewardDistance": "m", "rewardBehind": "1", "steps": ""}
ODD = 'a,"b"\r\n=1+1;\u00fc\u2028\U0001f400 [m]'


def row(episode: int, **changes: Any) -> dict[str, Any]:
    return {
        "episode": episode,
        "instance": "a",
        "outcome": "success",
        "return": 0.5,
        "steps": 7,
        "peers_open": True,
        "features": {"rewardDistance": 3.5, "rewardBehind": 0.0, "steps": 1.0},
        **changes,
    }


def table() -> pd.DataFrame:
    return outcomes_frame(
        [row(0, agent=ODD), row(1, outcome="void", **{"return": None}), row(2, features={})], UNITS
    )


def test_columns_have_units_and_a_feature_is_never_taken_for_another_column() -> None:
    frame = table()
    assert list(frame.columns) == [
        *COLUMNS,
        "rewardDistance [m]",
        "rewardBehind [1]",
        "steps [1]",
    ]
    assert feature_units(frame)["rewardDistance [m]"] == "m"
    assert list(frame["steps"]) == [7, 7, 7]
    assert frame["return"].isna().tolist() == [False, True, False]


def test_a_text_that_is_none_is_refused() -> None:
    written = outcomes_bytes(table(), "parquet")
    with pytest.raises(OutcomesError, match="Invalid UTF8"):
        read_outcomes(written.replace(b"success", b"succes\xff"), "parquet")


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("frame", [table(), outcomes_frame([], UNITS)], ids=["rows", "none"])
def test_what_is_written_is_read_again(form: Any, frame: pd.DataFrame, tmp_path: Path) -> None:
    pd.testing.assert_frame_equal(read_outcomes(outcomes_bytes(frame, form)), frame)
    path = tmp_path / "new" / f"\u00fc b.{form}"
    write_outcomes(frame, path)
    pd.testing.assert_frame_equal(read_outcomes(path), frame)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"instance\na\n", "no column 'outcome'; columns: instance"),
        (b"instance,outcome\na,won\n", "line 2, column 'outcome': 'won'.*success, failure"),
        (b"instance,outcome\na,\n", "line 2, column 'outcome'"),
        (b"instance,outcome,steps\na,success,1\nb,failure,1.5\n", "line 3, column 'steps': '1.5'"),
        (b"instance,outcome,size [m]\na,success,big\n", "line 2, column 'size .m.': 'big'"),
        (b"instance,outcome,peers_open\na,success,perhaps\n", "neither True nor False"),
        (b"\xff\xfe", "not UTF-8 text"),
        (b"PAR1 but not really", "not Parquet"),
    ],
)
def test_what_is_no_table_of_outcomes_is_refused(content: bytes, words: str) -> None:
    with pytest.raises(OutcomesError, match=words):
        read_outcomes(content)


@pytest.mark.parametrize(
    ("column", "cell", "words"),
    [
        ("wayLength [m]", "-4", r"column 'wayLength \[m\]': '-4' is out of range; it goes from 0"),
        ("wayLength [cm]", "-4", "is out of range; it goes from 0"),
        ("wayLength [m]", "inf", "'inf' is not a finite number"),
        ("goalSeen", "1.5", "it goes from 0 to 1"),
        ("noise [dB]", "-inf", "'-inf' is not a finite number"),
        ("steps", "-1", "column 'steps': '-1' is out of range"),
        ("return", "1e999", "'1e999' is not a finite number"),
        ("weight", "-0.5", "is out of range"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(column: str, cell: str, words: str) -> None:
    text = f"instance,outcome,{column}\n\na,success,\nb,success,{cell}\n"
    with pytest.raises(OutcomesError, match=rf"^line 4, .*{words}"):
        read_outcomes(text.encode(), "csv")
    frame = pd.DataFrame({"instance": ["a"], "outcome": ["success"], column: [float(cell)]})
    with pytest.raises(OutcomesError, match=r"^row 2 \(the header is row 1\), "):
        check_outcomes(frame)


def evidence(rows: list[dict[str, Any]]) -> tuple[list[str], list[float], tuple[str, ...]]:
    """What counts of a table, shuffled or not."""
    frame = outcomes_frame(rows, UNITS)
    found, turned = evidence_of(frame), evidence_of(frame.iloc[::-1].reset_index(drop=True))
    pd.testing.assert_frame_equal(found.frame, turned.frame)
    assert found.notes == turned.notes
    weights = [1.0] * len(found.frame) if found.weights is None else found.weights.tolist()
    return found.frame["instance"].tolist(), weights, found.notes


def play_out(episode: int, instance: str, **changes: Any) -> dict[str, Any]:
    known = {"session": "sessions/s", "attempt": 0, "weight": 1.0, "arena": instance * 8}
    return row(episode, instance=instance, agent="me", **known, **changes)


def test_what_does_not_count_is_no_evidence_and_is_counted() -> None:
    kinds = ["void", "fault", "invalid", "practice"]
    rows = [play_out(k, "abcd"[k], outcome=kind) for k, kind in enumerate(kinds)]
    names, weights, notes = evidence([*rows, play_out(9, "e"), play_out(2, "c")])
    assert (names, weights) == (["e"], [1.0])  # what was declared invalid later is taken back
    assert notes == (
        "left out 5 of 6 rows as no evidence: 1 fault, 1 invalid, 1 practice, 1 success, 1 void",
    )


def test_a_session_that_is_pasted_twice_counts_once_and_keeps_its_weights() -> None:
    rows = [play_out(0, "a"), {**play_out(1, "a"), "weight": 0.05}, play_out(2, "b")]
    names, weights, notes = evidence([*rows, *rows])
    assert (names, weights) == (["a", "a", "b"], [1.0, 0.05, 1.0])
    assert [note.split(" ")[0] for note in notes] == ["3", "1"]
    late = [play_out(0, "a", outcome="failure", cause="late by 3 s"), play_out(1, "b")]
    assert "1 failure did not come from the arena" in evidence(late)[2][0]
