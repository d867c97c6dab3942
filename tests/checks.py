"""Runs the checks that take long, and remembers when each passed and on which files.

`make check-all` runs all of them, `make check-due` those whose files have changed since they passed
last; `.ci/run` lists the latter, and fails where one failed. What they said stands in
docs/design/checks.md.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "design" / "checks.md"
PASSED: Final = "passed"
_ROW: Final = re.compile(r"^\| `([\w-]+)` \| ([^|]*) \| ([^|]*) \| ([^|]*) \| `(\w*)` \|$", re.M)


@dataclass(frozen=True, slots=True)
class Check:
    """Something that takes long and breaks seldom.

    Attributes:
        name: What it is called.
        command: What runs it, in the checkout's folder.
        covers: Files and folders whose change makes it due, with spaces between.
    """

    name: str
    command: str
    covers: str


def _slow(name: str, where: str, covers: str, *, first: str = "") -> Check:
    """The slow tests in some folders, after a command that sets up what they need."""
    return Check(name, f"{first}make test KIND=slow TESTS='{where}'", f"{covers} {where}")


CLIENTS: Final = "make env-unity && "
OTHERS: Final = "{ make env-sb3 || true; } && { make env-viewers || true; } && "
"""Tests say so themselves where PyTorch cannot be had."""
DOORS: Final = " ".join(
    f"tests/doors/{name}"
    for name in ("clinic", "minari", "ray", "rerun", "sb3", "study", "viewers")
)
CHECKS: Final = (
    Check(
        "images",
        "make env-openenv && make test KIND=images",
        "docker doors/speech tests/images pyproject.toml requirements-server.lock .dockerignore",
    ),
    Check(
        "cluster",
        "make test KIND=cluster",
        "doors/ray tests/doors/ray",
    ),
    Check(
        "packages",
        "make packages",
        "pyproject.toml README.md docs/learner.md docs/inspect.md tests/packages.py",
    ),
    Check(
        "docs",
        "rm -rf build/docs .clients/docs && ANIMALCAT_TUTORIALS=force make docs",
        "docs requirements-clients/doors.lock tests/built_site.py protos animalcat/schemas "
        "animalcat/cli animalcat/lab animalcat/client layouts/library",
    ),
    Check(
        "pymc6",
        "make env-pymc6 && .clients/pymc6/bin/python -m pytest "
        "tests/layouts/test_fit.py tests/layouts/test_two_evaluators.py",
        "requirements.lock layouts/inference tests/layouts/test_fit.py "
        "tests/layouts/test_two_evaluators.py",
    ),
    Check(
        "thorough",
        "make env-unity && make test KIND=thorough",
        "envs/answers.py layouts/inference tests/doors "
        "tests/client/test_doors.py tests/service/test_one_truth.py",
    ),
    Check(
        "processors",
        "make test KIND=slow TESTS=tests/test_processors.py",
        "animalcat/portable layouts/inference layouts/adaptive layouts/watching layouts/model "
        "envs/sim tests/processors.py tests/golden.py",
    ),
    _slow("arenas", "tests/arena_configs", "arena_configs"),
    _slow("simulator", "tests/envs", "envs", first=CLIENTS),
    _slow("unity", "tests/unity", "envs/unity envs/mlagents", first=CLIENTS),
    _slow(
        "agents", "tests/client tests/lab", "animalcat/client animalcat/cli/shared animalcat/lab"
    ),
    _slow("layouts", "tests/layouts", "layouts benchmarks/papers"),
    _slow(
        "speakers",
        "tests/doors/inspect/test_small_model.py",
        "doors/speech doors/inspect requirements-clients/doors.lock",
        first="make env-speakers && ",
    ),
    _slow("service", "tests/service", "service protos"),
    _slow("doors", DOORS, "doors", first=OTHERS),
    _slow(
        "mistakes",
        "tests/test_hunt.py",
        "animalcat/cli animalcat/lab animalcat/alike.py arena_configs/checks.py layouts/fitting "
        "service/batteries service/reporting docs/design/hunted.csv tests/hunt.py",
    ),
    _slow(
        "benchmarks",
        "tests/test_bench.py tests/test_docs.py tests/test_cli.py",
        "benchmarks README.md",
    ),
)


@dataclass(frozen=True, slots=True)
class Record:
    """What a check said when it ran last.

    Attributes:
        day: When, as an ISO date.
        result: "passed", or "failed".
        took: How long, in minutes and seconds.
        digest: Of the files that it covers, as they were.
    """

    day: str
    result: str
    took: str
    digest: str


def records(page: str) -> dict[str, Record]:
    """Return what the page says of each check, by its name."""
    return {name: Record(*rest) for name, *rest in _ROW.findall(page)}


def with_record(page: str, name: str, record: Record) -> str:
    """Return the page with another row for a check that has one, or with one more row."""
    row = f"| `{name}` | {record.day} | {record.result} | {record.took} | `{record.digest}` |"
    rows = {found[1]: found[0] for found in _ROW.finditer(page)}
    if name in rows:
        return page.replace(rows[name], row)
    return page.rstrip("\n") + f"\n{row}\n"


def digest(covers: str, root: Path = ROOT) -> str:
    """Return a digest of the files below some paths, of those that git follows or would follow."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
    said: bytes = subprocess.run(
        [*listed, *covers.split()], cwd=root, capture_output=True, check=True
    ).stdout
    whole = hashlib.sha256()
    for name in sorted({name for name in said.split(b"\0") if name}):
        path = root / name.decode()
        if path.is_file():
            whole.update(name + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()[:12]


def is_due(check: Check, known: Record | None, root: Path = ROOT) -> bool:
    """Return whether a check has not passed on the files as they are."""
    return known is None or known.result != PASSED or known.digest != digest(check.covers, root)


def run(check: Check) -> bool:
    """Run a check, write down what it said, and return whether it passed."""
    before, began = digest(check.covers), time.monotonic()
    print(f"\n== {check.name}: {check.command}", flush=True)
    told = {**os.environ, "ANIMALCAT_CHECK": check.name}
    done = subprocess.run(["bash", "-c", check.command], cwd=ROOT, env=told, check=False)
    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    result = PASSED if done.returncode == 0 else "failed"
    record = Record(
        datetime.now(UTC).date().isoformat(), result, f"{minutes}:{seconds:02d}", before
    )
    PAGE.write_text(with_record(PAGE.read_text("utf-8"), check.name, record), "utf-8")
    print(f"== {check.name}: {result} after {record.took}", flush=True)
    return result == PASSED


def main(arguments: Sequence[str] | None = None) -> int:
    """List the checks, or run some of them."""
    by_name = {check.name: check for check in CHECKS}
    parser = argparse.ArgumentParser(prog="tests.checks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(by_name)}")
    parser.add_argument("--all", action="store_true", help="run all of them")
    parser.add_argument("--due", action="store_true", help="run those whose files have changed")
    wanted = parser.parse_args(arguments)
    if unknown := [name for name in wanted.names if name not in by_name]:
        parser.error(f"there is no check {unknown[0]!r}; there are {', '.join(by_name)}")
    if bool(wanted.names) + wanted.all + wanted.due > 1:
        parser.error("give names, --all or --due, and no two of them")
    known = records(PAGE.read_text("utf-8"))
    due = [check for check in CHECKS if is_due(check, known.get(check.name))]
    if not (wanted.names or wanted.all or wanted.due):
        for check in CHECKS:
            said = known.get(check.name)
            words = "never run" if said is None else f"{said.result} {said.day}, {said.took}"
            print(f"{check.name:12} {'due ' if check in due else 'good'}  {words}")
        return _blame([c.name for c in due if c.name in known and known[c.name].result != PASSED])
    chosen = CHECKS if wanted.all else [c for c in CHECKS if c.name in wanted.names]
    failed = [check.name for check in (due if wanted.due else chosen) if not run(check)]
    if wanted.due and not due:
        print("no long check is due: none of the files that they cover has changed")
    return _blame(failed)


def _blame(failed: Sequence[str]) -> int:
    """Say which checks failed, and return what the program exits with."""
    if failed:
        again = shlex.join(["python", "-m", "tests.checks", *failed])
        print(f"failed: {', '.join(failed)}; {again} runs them again", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
