"""`python -m benchmarks PART`: measure a part of animalcat beside what it is compared with."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from animalcat.cli.bench import print_part
from animalcat.cli.shared.output import print_json, status

PARTS: Final[Mapping[str, str]] = {
    "fidelity": "figures of the simulator beside those of the real build",
    "twin": "episodes played again that were recorded in the real build",
    "demands": "measured demands beside what O-PIAAGETS says of its arenas",
    "agents": "what the scout passes of each family",
    "commands": "what lists cost without a server",
    "python": "a session within a process beside one of a private server",
    "unity": "an unmodified animalai client beside a build of canned frames",
    "speech": "what our own code takes for a turn of a model that speaks",
    "web": "what browsers cost that watch a session: steps, and the server's processor",
    "rounds": "rounds of a study in a real browser, over a network that delays",
    "slots": "several agents at once",
    "concurrency": "what several samples at once cost an adaptive evaluation in precision",
    "retest": "two sessions of one agent with other seeds",
    "rate": "which estimate of the success rate of a battery errs least",
    "report": "what the report on a session costs",
    "choice": "what a choice among 20,000 items by 18 scales costs",
    "against": "equal and unequal agents, told apart",
    "verdicts": "verdicts on agents whose kind is known",
    "entrants": "forms of layouts on real entrants, and whom priors can describe",
    "fresh": "two fresh sessions of one agent",
    "adaptive": "what adaptive choice saves",
    "recovery": "profiles of agents with planted limits",
    "spoken": "profiles of scripted speakers with planted limits, through pictures and words",
    "levels": "profiles by 18 scales of real items: intervals, and what NUTS says",
    "growth": "how cost grows with what is stored",
    "demo": "how often the demo finds what it planted",
    "impostors": "agents that seem able, told apart from able ones",
    "people": "lapses and practice of simulated people, and what an aim of the chooser costs",
    "trust": "whether warnings are right, and what honesty costs",
    "kill": "processes that are killed and stopped",
    "fuzz": "damaged inputs",
    "year": "a store with a year of work in it, opened by every list, show and status command",
    "soak": "many agents for a long time",
    "incidents": "a year of incidents with agents that stay (needs root)",
    "coins": "a long session on demands without arenas, which are coins; killed and resumed",
}
"""What there is, quick parts first: from twin to fresh some minutes each, the rest half an hour."""
KEPT: Final = ("adaptive", "recovery", "spoken", "levels", "impostors", "people", "trust")
"""Parts that can write what they found to a folder."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the parts that are named."""
    listed = "\n".join(f"  {name:10} {words}" for name, words in PARTS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"Measure parts of animalcat itself.\n\nparts:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="+", metavar="PART", choices=PARTS, help="what to measure")
    parser.add_argument("--quick", action="store_true", help="repeat less: 3 minutes at most")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FOLDER",
        help=f"write all rows, seeds, and curves or sessions there ({', '.join(KEPT)})",
    )
    parser.add_argument(
        "--inputs",
        type=int,
        metavar="NUMBER",
        help="how many damaged inputs fuzz throws; 100000, or 1500 with --quick",
    )
    parser.add_argument("--episodes", type=int, metavar="NUMBER", help="episodes of coins; 20000")
    parser.add_argument(
        "--kill", type=int, default=0, metavar="TIMES", help="how often coins kills the server"
    )
    parser.add_argument(
        "--minutes", type=float, metavar="NUMBER", help="how long incidents go on; four rounds"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    wanted = parser.parse_args(arguments)
    if wanted.keep is not None and not {*wanted.parts} <= {*KEPT}:
        parser.error(f"--keep goes with {', '.join(KEPT)}")
    if wanted.inputs is not None and (wanted.parts != ["fuzz"] or wanted.inputs < 100):
        parser.error("--inputs goes with fuzz, and is at least 100")
    if (wanted.episodes is not None or wanted.kill) and wanted.parts != ["coins"]:
        parser.error("--episodes and --kill go with coins")
    if wanted.minutes is not None and wanted.parts != ["incidents"]:
        parser.error("--minutes goes with incidents")
    options: dict[str, list[Any]] = {
        **{part: [wanted.keep] for part in KEPT},
        "fuzz": [wanted.inputs],
        "incidents": [wanted.minutes],
        "coins": [wanted.episodes, wanted.kill],
    }
    results: dict[str, list[dict[str, Any]]] = {}
    for part in wanted.parts:
        more = options.get(part, [])
        with status(f"measuring {part}"):
            results[part] = importlib.import_module(f"benchmarks.{part}").run(wanted.quick, *more)
        if not wanted.json:
            print_part(part, results[part])
    if wanted.json:
        print_json(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
