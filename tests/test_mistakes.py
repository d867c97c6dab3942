"""The page of plausible mistakes and the tests that try them have the same rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOW_MANY = {"A": 34, "T": 48, "B": 19, "S": 23, "L": 22, "I": 13}
"""How many mistakes of each kind were written down before the code was looked at."""
ROW = re.compile(r"^\| ([A-Z])(\d+) \| (.*) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)`")


def sections() -> dict[str, str]:
    """The sections of the page that have rows, by the letter of their rows."""
    page = (ROOT / "docs" / "design" / "mistakes.md").read_text()
    return {row[1]: part for part in page.split("\n## ") if (row := ROW.search(part))}


@pytest.mark.parametrize("letter", HOW_MANY)
def test_every_mistake_has_a_row_that_says_what_happens(letter: str) -> None:
    rows = ROW.findall(sections()[letter])
    assert [(of, int(number)) for of, number, _ in rows] == [
        (letter, number) for number in range(1, HOW_MANY[letter] + 1)
    ]
    told = re.compile(r"(refused|said|no effect|right)\b")
    for _, number, cells in rows:
        _, happens = cells.split(" | ")
        assert told.match(happens), (letter, number)


@pytest.mark.parametrize("letter", HOW_MANY)
def test_every_row_is_tried_and_every_try_has_a_row(letter: str) -> None:
    section = sections()[letter]
    files = set(TEST.findall(section))
    assert files
    texts = [(ROOT / file).read_text() for file in sorted(files)]
    tried = {int(n) for text in texts for n in re.findall(rf"\b{letter}(\d+)b?\b", text)}
    assert tried == {int(number) for _, number, _ in ROW.findall(section)}
