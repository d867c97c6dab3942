"""Where a figure comes from: what is kept with results, so that a page can be held to them."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from animalcat.service.versions import versions
from benchmarks.checkout import ROOT
from tests.checks import digest

COVERS: Final[Mapping[str, str]] = {
    "simulator": "arena_configs envs/sim service/recording benchmarks/simulator.py",
    "service": "animalcat/client envs protos service benchmarks/service.py",
    "saving": "layouts benchmarks/saving.py benchmarks/sessions.py benchmarks/synthetic.py",
    "coverage": "layouts benchmarks/coverage.py benchmarks/sessions.py benchmarks/synthetic.py",
    "peers": "layouts doors/clinic/population.py benchmarks/peers.py",
    "groups": "layouts/calibrating/group.py layouts/checking/compare.py "
    "layouts/inference/backend/density.py benchmarks/groups.py",
    "recovery": "arena_configs envs layouts service benchmarks/recovery*.py",
}
"""By part whose figures stand on pages: files and folders whose change makes them due."""


def birth(part: str) -> dict[str, Any]:
    """Say how and on what a part is measured: command, commit, day, machine, versions, digest."""
    asked = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    commit = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {
        "command": f"python -m benchmarks {part}",
        "commit": commit.strip(),
        "day": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} processors, {platform.platform()}",
        "versions": versions(),
        "covers": COVERS[part],
        "digest": digest(COVERS[part]),
    }


def keep(file: Path, part: str, found: Mapping[str, Any]) -> None:
    """Write what a part found, after its birth.

    Args:
        file: Where to; its folder is made.
        part: The part, one of `COVERS`.
        found: JSON-ready; its `rows` are what pages are held to.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"birth": birth(part), **found}, indent=1, ensure_ascii=False)
    file.write_text(text + "\n", "utf-8")
