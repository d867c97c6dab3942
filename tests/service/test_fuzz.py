"""Damaged inputs crash nothing, take no second, and are refused by errors of the readers' own."""

from __future__ import annotations

import random

import pytest

from benchmarks import fuzz


def test_a_reader_that_breaks_is_found() -> None:
    def breaks(data: bytes) -> None:
        if b"x" not in data:
            raise ZeroDivisionError("the letter is gone")
        if data != b"x":
            raise ValueError("as documented")

    tally = fuzz.attack(breaks, (ValueError,), [b"x"], 200, random.Random(1))
    assert tally.inputs == 200
    assert set(tally.wrong) == {"ZeroDivisionError: the letter is gone"}
    row = tally.row("letters")
    assert not row["met"]
    assert "the letter is gone" in row["note"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_sample() -> None:
    rows = fuzz.run(quick=True)
    # Calls are timed on the wall, and other tests use the processor too: what is wrong counts.
    assert not {row["name"]: row["note"] for row in rows if row.get("wrong")}
    assert all(row["met"] for row in rows if "growth" in row["name"])
    assert sum(row["value"] for row in rows if row["name"].endswith("inputs")) == fuzz.QUICK
