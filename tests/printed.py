"""What documentation shows as output, compared with what a run prints.

`python -m tests.printed` runs the demo, and writes what it prints into README.md.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

README: Final = Path(__file__).resolve().parents[1] / "README.md"
DEMO: Final = re.compile(
    r"<!-- seen [-\d]+, `animalcat demo` in 80 columns; [^\n]* -->\n\n```text\n(.*?)^```\n",
    re.MULTILINE | re.DOTALL,
)
"""The block of the README that shows the demo."""
DATED: Final = (
    "<!-- seen {day}, `animalcat demo` in 80 columns; `python -m tests.printed` wrote it -->"
)
NUMBER: Final = re.compile(
    r"(?<![\w.])[-+]?\d+(?:\.(\d+))?(?![\w])(?P<measured>(?= (?:to \d+ )?(?:%|m\b)))?"
)
"""A number, its decimals, and whether a share or a length is what it measures."""
GAP: Final = "..."


SHARE: Final = 0.02
"""By which share of itself a number may differ, beside one in its last place where it has decimals
or measures something: the draws of a fit follow the processor. Counts are exact."""


def agrees(shown: str, seen: str) -> bool:
    """Compare what a page shows with what a run prints.

    A line `...` stands for any number of lines. Empty lines and the widths of columns play no part.

    Args:
        shown: The text in the documentation.
        seen: The text of the run.

    Returns:
        Whether they say the same.
    """
    return _agree(_lines(shown), _lines(seen))


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def _agree(shown: list[str], seen: list[str]) -> bool:
    if not shown:
        return not seen
    if shown[0] == GAP:
        return any(_agree(shown[1:], seen[skip:]) for skip in range(len(seen) + 1))
    same = bool(seen) and _same_line(shown[0], seen[0])
    return same and _agree(shown[1:], seen[1:])


def _same_line(shown: str, seen: str) -> bool:
    if NUMBER.sub("#", shown) != NUMBER.sub("#", seen):
        return False
    pairs = zip(NUMBER.finditer(shown), NUMBER.finditer(seen), strict=True)
    return all(_same_number(*pair) for pair in pairs)


def _same_number(shown: re.Match[str], seen: re.Match[str]) -> bool:
    measured = shown["measured"] is not None
    last = 10.0 ** -len(shown[1] or "") if shown[1] or measured else 0.0
    a, b = float(shown[0]), float(seen[0])
    return abs(a - b) <= max(last, SHARE * abs(a)) + 1e-9


def printed_by_demo(folder: Path) -> str:
    """Run the demo in a folder, and return what the README shows of it.

    The server's port is any, and of a film MP4 needs the extra `video`, which `make demo` has not.

    Args:
        folder: What the demo leaves is there afterwards.
    """
    done = subprocess.run(
        [sys.executable, "-m", "animalcat", "demo"],
        cwd=folder,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = re.sub(r"(?<=127\.0\.0\.1:)\d+", "...", done.stdout).replace(".mp4\n", ".gif\n")
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def main() -> None:
    """Write what the demo prints into the README."""
    with tempfile.TemporaryDirectory() as folder:
        text = printed_by_demo(Path(folder))
    dated = DATED.format(day=datetime.now(UTC).date())
    block = f"{dated}\n\n```text\n{text}```\n"
    page, found = DEMO.subn(lambda _: block, README.read_text("utf-8"))
    assert found == 1
    README.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
