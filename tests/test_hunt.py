"""Mistakes of users that were written down before anyone looked: each is tried, and none passes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hunt import ATTEMPTS, Ground, ground, rows


def test_every_mistake_of_the_table_has_its_attempt() -> None:
    found = rows()
    assert list(found) == list(ATTEMPTS) == [f"H{k}" for k in range(1, len(found) + 1)]
    kinds = {happens.partition(":")[0] for _, happens in found.values()}
    assert kinds <= {"refused", "said", "no effect", "right"}


@pytest.fixture(scope="module")
def here() -> Iterator[Ground]:
    with ground() as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("number", ATTEMPTS)
def test_what_happens_is_what_the_table_says(here: Ground, number: str) -> None:
    met = ATTEMPTS[number](here)
    assert met.kind == rows()[number][1].partition(":")[0], met.words
