"""Golden sessions: what was decided and played, kept as it came and held against what comes now.

`python -m tests.golden` plays them all anew and keeps what comes; `git diff` then says what has
changed. What is given to it goes on to pytest, so `python -m tests.golden -k slots` keeps those of
this name alone. All is compared bit for bit, on every x86-64 processor (`tests/processors.py` plays
them as others would). Only what NUTS found is not compared, since its sums follow the processor.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

import pytest

VARIABLE: Final = "ANIMALCAT_GOLDEN"
"""With "record" what comes is kept."""
DIGEST: Final = "sha256"
"""Key of a digest."""
FITTED: Final = "fitted"
"""Key of what NUTS found, which is not compared: its draws part for good where a bit does."""
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
    else:
        assert mode in (None, ""), f"{VARIABLE}={mode} is unknown; valid: record"
        assert _without_fits(made) == _without_fits(records[title])


def hold_titles(file: Path, titles: set[str]) -> None:
    """Every record is of a session that is played, and the other way round."""
    assert set(read(file)) == titles


def _without_fits(value: Any) -> Any:
    match value:
        case dict():
            return {key: _without_fits(value[key]) for key in value if key != FITTED}
        case list():
            return [_without_fits(one) for one in value]
        case _:
            return value


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
