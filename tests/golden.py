"""Golden sessions: what was decided and played, kept as it came and held against what comes now.

`python -m tests.golden` plays them all anew and keeps what comes; `git diff` then says what has
changed. What is given to it goes on to pytest, so `python -m tests.golden -k slots` keeps those of
this name alone. A change that is not meant to decide anything otherwise is shown by

    ANIMALCAT_GOLDEN=exact python -m pytest tests -k golden

which compares bit for bit, on the machine that has recorded them. Without it choices, outcomes and
words are compared exactly, numbers to a millionth, and digests and fits not at all, since on
another processor sums round otherwise.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

import pytest

VARIABLE: Final = "ANIMALCAT_GOLDEN"
"""How strictly they are compared: "exact", or nearly without it; with "record" they are kept."""
DIGEST: Final = "sha256"
"""Key of a digest, which is compared bit for bit alone."""
FITTED: Final = "fitted"
"""Key of what NUTS found, which is compared bit for bit alone: its draws part for good where a
single bit does."""
HERE: Final = Path(__file__).parent
FILES: Final = (
    HERE / "layouts" / "adaptive" / "golden" / "learner.json",
    HERE / "service" / "golden" / "service.json",
)


def read(file: Path) -> dict[str, Any]:
    """All records of a file, by title."""
    return json.loads(file.read_text("utf-8")) if file.exists() else {}


def hold(file: Path, title: str, made: dict[str, Any]) -> None:
    """Compare a session with its record; or keep it as the record, where all are made anew.

    Args:
        file: The file of the records.
        title: The title of this one.
        made: What came, as JSON values, without numbers that are not finite.
    """
    made = json.loads(json.dumps(made, allow_nan=False))
    mode, records = os.environ.get(VARIABLE), read(file)
    if mode == "record":
        text = _lines({**records, title: made}, 3)
        file.write_text(text + "\n", "utf-8")
    elif mode == "exact":
        assert made == records[title]
    else:
        assert mode in (None, ""), f"{VARIABLE}={mode} is unknown; valid: exact, record"
        _nearly(made, records[title], title)


def hold_titles(file: Path, titles: set[str]) -> None:
    """Every record is of a session that is played, and the other way round."""
    assert set(read(file)) == titles


def _nearly(now: Any, then: Any, where: str) -> None:
    match then:
        case dict():
            assert now.keys() == then.keys(), where
            for key in then:
                if key not in (DIGEST, FITTED):
                    _nearly(now[key], then[key], f"{where}, {key}")
        case list():
            assert len(now) == len(then), where
            for place, other in enumerate(then):
                _nearly(now[place], other, f"{where} {place}")
        case float():
            assert now == pytest.approx(then, rel=1e-6, abs=1e-9), where
        case _:
            assert now == then, where


def _lines(value: Any, levels: int) -> str:
    """JSON with a line for each entry of so many levels, so that differences show."""
    if not levels or not value:
        return json.dumps(value)
    match value:
        case list():
            return "[\n" + ",\n".join(_lines(one, levels - 1) for one in value) + "\n]"
        case dict():
            rows = [f"{json.dumps(key)}: {_lines(value[key], levels - 1)}" for key in sorted(value)]
            return "{\n" + ",\n".join(rows) + "\n}"
        case _:
            return json.dumps(value)


def main(*given: str) -> int:
    """Play golden sessions anew and keep what comes; those that are no longer played go."""
    os.environ[VARIABLE] = "record"
    for file in () if given else FILES:
        file.unlink(missing_ok=True)
    tests = [str(file.parent.parent / "test_golden.py") for file in FILES]
    return pytest.main(["-q", *tests, *given])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
