"""`python -m benchmarks NAME`: measure a part of animalcat beside what it is compared with."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from animalcat.cli.shared.output import print_json, print_table, status
from benchmarks.birth import COVERS, keep

PARTS: Final[Mapping[str, str]] = {
    "speed": "this tree beside the commit that landed last",
    "simulator": "decisions a second, and what recording them costs",
    "twin": "episodes played again that were recorded in the real build",
    "service": "steps over gRPC, beside bare echoes",
    "layouts": "updates, choices and fits",
    "saving": "what adaptive choice saves beside a random order",
    "coverage": "whether intervals contain the true value, and how sessions end",
    "peers": "other ways of adaptive testing, on the same items",
    "groups": "groups of persons, and agents beside them",
    "comparing": "agents told apart or alike, beside an oracle; and draws for the success rate",
    "recovery": "profiles of agents with planted limits",
    "demo": "how often the demo finds what it planted",
    "papers": "published tables and figures, ours beside the printed ones",
    "growth": "how cost grows with what is stored",
    "kill": "processes that are killed and stopped",
    "fuzz": "damaged inputs",
}
"""What there is: those of speed take minutes, the rest up to half an hour each."""
IN_PARTS: Final = ("saving", "coverage")
"""Those of `COVERS` that keep a file for each of their sections by themselves."""
COLUMNS: Final = (
    *("name", "cold", "warm", "median", "p99", "unit", "baseline", "ratio"),
    *("value", "low", "high", "target", "aim", "met", "brier", "more", "seconds", "note"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the parts that are named; without a name, list them.

    Returns:
        1 where this tree is slower than it may be beside the commit that landed last, else 0.
    """
    listed = "\n".join(f"  {name:10} {words}" for name, words in PARTS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"Measure parts of animalcat itself.\n\nparts:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="NAME", help="what to measure")
    parser.add_argument("--quick", action="store_true", help="repeat less: 3 minutes at most")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FOLDER",
        help=f"write what was found there, with its birth ({', '.join(COVERS)})",
    )
    parser.add_argument(
        "--inputs",
        type=int,
        metavar="NUMBER",
        help="how many damaged inputs fuzz throws; 100000, or 1500 with --quick",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args(arguments)
    if unknown := {*options.parts} - {*PARTS}:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if options.keep is not None and not {*options.parts} <= {*COVERS}:
        parser.error(f"--keep goes with {', '.join(COVERS)}")
    if options.inputs is not None and (options.parts != ["fuzz"] or options.inputs < 100):
        parser.error("--inputs goes with fuzz, and is at least 100")
    if not options.parts:
        parser.print_help()
    given = {**{key: [options.keep] for key in IN_PARTS}, "fuzz": [options.inputs]}
    results: dict[str, list[dict[str, Any]]] = {}
    for part in options.parts:
        module = importlib.import_module(f"benchmarks.{part}")
        with status(f"measuring {part}"):
            results[part] = module.run(options.quick, *given.get(part, []))
        if options.keep is not None and part not in IN_PARTS:
            keep(options.keep / f"{part}.json", part, {"rows": results[part]})
        if not options.json:
            used = [c for c in COLUMNS if any(c in row for row in results[part])]
            print_table(results[part], used, title=part)
    if options.json:
        print_json(results)
    return int(not all(row["met"] for row in results.get("speed", [])))


if __name__ == "__main__":
    sys.exit(main())
