"""How fast an unmodified `animalai` client plays, beside a build that sends canned frames."""

from __future__ import annotations

import json
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from animalcat.arena_configs.writer import to_yaml
from animalcat.bench.simulator import arena
from benchmarks.checkout import environment

STEPS: Final = 25
"""Steps that one rate is taken over: few, so that most chunks meet no other work of the machine."""

OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "rays": {"useCamera": False, "useRayCasts": True},
    "camera 84x84, PNG": {"useCamera": True, "resolution": 84, "no_graphics": True},
}
TARGET: Final = ">= 0.7 of canned"


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Measure; the stand-in and the canned build take turns, so that both meet the same noise.

    Args:
        quick: A fifth of the work.
    """
    if find_spec("animalai") is None:
        return [{"name": "animalai client", "note": "not measured: animalai is not installed"}]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "arena.yaml")
        file.write_text(to_yaml(arena()))
        builds = [
            _build(Path(folder, name), module)
            for name, module in (
                ("stand-in", "animalcat.cli.unity.player"),
                ("canned", "benchmarks.canned_peer"),
            )
        ]
        return [_row(name, builds, file, 20 if quick else 100) for name in OPTIONS]


def _build(file: Path, module: str) -> str:
    """An executable file that runs one of our modules with this interpreter."""
    python = shlex.quote(sys.executable)
    file.write_text(f'#!/bin/sh\nexec {python} -m {module} "$@"\n')
    file.chmod(0o755)
    return str(file)


def _row(name: str, builds: list[str], arena_file: Path, chunks: int) -> dict[str, Any]:
    request = {
        "builds": builds,
        "arena": str(arena_file),
        "options": OPTIONS[name],
        "chunks": chunks,
        "steps": STEPS,
    }
    command = [sys.executable, "-m", "benchmarks.unity_client", json.dumps(request)]
    # The client leaves a lock in the folder of temporary files.
    own = environment() | {"TMPDIR": str(arena_file.parent)}
    told = subprocess.run(command, capture_output=True, text=True, check=False, env=own)
    if told.returncode:
        raise RuntimeError(f"the client failed: {told.stderr}")
    ours, canned = json.loads(told.stdout.splitlines()[-1])
    pairs = zip(ours["rates"], canned["rates"], strict=True)
    return {
        "name": f"animalai client, {name}",
        "median": statistics.median(ours["rates"]),
        "unit": "steps/s",
        "baseline": statistics.median(canned["rates"]),
        # Each chunk beside its neighbour in time: what else the machine does slows both.
        "ratio": statistics.median(a / b for a, b in pairs),
        "target": TARGET,
        "note": f"CPU of client and build {1e6 * ours['cpu']:,.0f} us a step, "
        f"canned {1e6 * canned['cpu']:,.0f}",
    }
