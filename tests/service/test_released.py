"""Files of every released version are read by today's code, and mean what they meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from tests.service.released import FOLDER, MEANING, meaning

VERSIONS = sorted(FOLDER.iterdir())


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_what_a_version_wrote_means_what_it_meant(folder: Path) -> None:
    then = json.loads((folder / MEANING).read_text("utf-8"))
    assert then["store"]["damage"] == []
    assert [one["difference"] for one in then["store"]["recordings"]] == [None] * 3
    holds(meaning(folder), then, folder.name)


def holds(now: Any, then: Any, where: str) -> None:
    """Whatever was there is there and equal, numbers to a millionth; more may have come.

    Files of a version without a tag may be made anew: `python -m tests.service.released`.
    """
    if isinstance(then, dict):
        pairs = cast(dict[str, Any], then)
        for key, value in pairs.items():
            assert key in now, f"{where}: {key} has gone"
            holds(now[key], value, f"{where}, {key}")
    elif isinstance(then, list):
        several = cast(list[Any], then)
        assert len(now) == len(several), where
        for place, value in enumerate(several):
            holds(now[place], value, f"{where} {place}")
    elif isinstance(then, float):
        assert now == pytest.approx(then, rel=1e-6, abs=1e-9), where
    else:
        assert now == then, where


def test_the_files_are_small() -> None:
    assert VERSIONS
    for folder in VERSIONS:
        assert sum(file.stat().st_size for file in folder.iterdir()) < 300_000
