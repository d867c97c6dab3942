"""English that is read once: few sentences of the documentation are long.

`python -m tests.test_prose` lists the long ones, longest first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONG = 30
"""Words beyond which a sentence is long."""
MOST = 0.02
"""Share of sentences that may be long."""
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
    *sorted((ROOT / "docs" / "reference").glob("*.md")),
    *sorted((ROOT / "docs" / "design").glob("*.md")),
]
"""Notebooks of the laboratory are left as they were written."""
FENCE = re.compile(r"^(```+|:::+).*?^\1\s*$", re.DOTALL | re.MULTILINE)
END = re.compile(r"(?<=[.!?])[)\"*_]*\s+(?=[\"(*_]*(?:[A-Z0-9]|code|animalcat))")
FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs and items of a page, without code, tables, titles and comments."""
    text = FENCE.sub("\n\n", FRONT.sub("", text))
    text = re.sub(r"<!--[\s\S]*?-->|^#.*$|^\|.*$|!\[[^\]]*\]\([^)]*\)", "\n", text, flags=re.M)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*>]|\d+\.)\s)", text):
        line = " ".join(block.split())
        yield re.sub(r"^(?:[-*>]|\d+\.)\s+", "", line)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page: links by their words, code as one word."""
    for block in paragraphs(text):
        plain = re.sub(r"`[^`]*`", "code", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", block))
        plain = re.sub(r"\$\$?[^$]*\$\$?", "formula", plain)
        for sentence in END.split(plain):
            if len(sentence.split()) > 1:
                yield sentence


def findings() -> list[tuple[int, str, str]]:
    """Every sentence with the number of its words and its page."""
    return [
        (len(sentence.split()), page.relative_to(ROOT).as_posix(), sentence)
        for page in PAGES
        for sentence in sentences(page.read_text("utf-8"))
    ]


def test_few_sentences_are_long() -> None:
    every = findings()
    long = [row for row in every if row[0] > LONG]
    assert len(every) > 2000
    told = "\n".join(f"{words} words, {page}: {said}" for words, page, said in sorted(long)[::-1])
    assert len(long) < MOST * len(every), f"{len(long)} of {len(every)} sentences\n{told}"


def test_sentences_are_told_apart() -> None:
    page = "# A title\n\nOne `x y` [two words](a.md). Three\nfour.\n\n- An item\n\n```\nx y\n```\n"
    assert list(sentences(page)) == ["One code two words.", "Three four.", "An item"]


if __name__ == "__main__":
    rows = findings()
    for words, page, said in sorted((row for row in rows if row[0] > LONG), reverse=True):
        print(f"{words:3} {page}: {said}")
    long = sum(row[0] > LONG for row in rows)
    print(f"{long} of {len(rows)} sentences have more than {LONG} words ({long / len(rows):.1%})")
