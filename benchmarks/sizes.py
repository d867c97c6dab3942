"""`python -m benchmarks.sizes`: what an installation takes, package by package, without bytecode.

It adds up the files that each wheel lists (RECORD), of all packages that an extra asks for and
theirs, as they are installed here. So it needs no network, and says nothing of what Python compiles
when it runs. What pip installs and the lock leaves out is listed apart, as far as it is installed.
"""

from __future__ import annotations

import argparse
import importlib.metadata as metadata
import json
import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement

EXTRAS: Final = ("", "learner", "server", "inspect", "mcp")
OURS: Final = "animalcat"


def left_out() -> set[str]:
    """The names of the packages that others declare and the lock leaves out."""
    project = Path(__file__).resolve().parents[1] / "pyproject.toml"
    given = tomllib.loads(project.read_text("utf-8"))["tool"]["uv"]["override-dependencies"]
    return {_normal(Requirement(text).name) for text in given}


def closure(extra: str, without: Iterable[str] = ()) -> set[str]:
    """The names of all packages that animalcat with an extra asks for, of those installed here.

    Args:
        extra: Name of the extra; "" for the base.
        without: Names of packages that are not followed.
    """
    wanted = [Requirement(f"{OURS}[{extra}]" if extra else OURS)]
    seen: set[tuple[str, str]] = set()
    found: set[str] = set()
    while wanted:
        requirement = wanted.pop()
        name = _normal(requirement.name)
        for asked in ("", *sorted(requirement.extras)):
            if (name, asked) in seen or name in without:
                continue
            seen.add((name, asked))
            try:
                needs = metadata.requires(name) or []
            except metadata.PackageNotFoundError:
                continue
            found.add(name)
            for text in needs:
                one = Requirement(text)
                if one.marker is None or one.marker.evaluate({"extra": asked}):
                    wanted.append(one)
    return found - {OURS}


def size(package: str) -> int:
    """Bytes of the files that a package's wheel lists, without bytecode."""
    files = metadata.files(package) or []
    kept = [file for file in files if file.suffix != ".pyc"]
    return sum(path.stat().st_size for file in kept if (path := Path(str(file.locate()))).is_file())


def own() -> int:
    """Bytes of animalcat's own packages, which may lie in a checkout."""
    folder = Path(__file__).resolve().parents[1]
    places = [
        folder / name
        for name in ("animalcat", "service", "envs", "layouts", "arena_configs", "doors")
    ]
    paths = {path.resolve() for place in places for path in place.rglob("*") if path.is_file()}
    return sum(path.stat().st_size for path in paths if "__pycache__" not in path.parts)


def table(extra: str) -> list[dict[str, Any]]:
    """The packages of an extra, the largest first, in megabytes."""
    locked = closure(extra, left_out())
    rows = [
        {"package": name, "MB": size(name) / 1e6, "locked": name in locked}
        for name in closure(extra)
    ]
    rows.append({"package": OURS, "MB": own() / 1e6, "locked": True})
    return sorted(rows, key=lambda row: -row["MB"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the sizes."""
    parser = argparse.ArgumentParser(prog="benchmarks.sizes", description=__doc__)
    parser.add_argument("--least", type=float, default=5.0, help="megabytes of what is named")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    tables = {extra or "base": table(extra) for extra in EXTRAS}
    if given.json:
        print(json.dumps(tables, indent=1))
        return
    for name, rows in tables.items():
        whole, locked = (sum(row["MB"] for row in rows if row["locked"] >= k) for k in (0, 1))
        print(f"{name}: {locked:.0f} MB by the lock, {whole:.0f} MB with what it leaves out")
        for row in rows:
            if row["MB"] >= given.least:
                note = "" if row["locked"] else "  left out by the lock"
                print(f"  {row['package']:28} {row['MB']:7.1f}{note}")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()
