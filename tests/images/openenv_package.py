"""What OpenEnv's validator says of the package when it builds its image and runs it by Podman."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.images.containers import BASE, ROOT, Engine

PYTHON: Final = ROOT / ".clients" / "openenv" / "bin" / "python"
PACKAGE: Final = ROOT / "docker" / "openenv"
HELPER: Final = "localhost/openenv-helper"
_HELPER: Final = f"""FROM {BASE}
RUN apt-get update && apt-get install --yes --no-install-recommends python3
"""
# The validator calls `docker`. Podman takes the same words; that of Debian 12 lacks one, by which a
# single label is printed.
_DOCKER: Final = """#!{python}
import json, os, re, subprocess, sys

words = sys.argv[1:]
label = re.search(r'\\.Label "([^"]+)"', words[-1]) if words[:1] == ["ps"] else None
if label is None:
    os.execvp("nice", ["nice", "-n", "10", "podman", *words])
listed = subprocess.run(["podman", *words[:-1], "json"], check=True, capture_output=True).stdout
for one in json.loads(listed):
    print(one["Names"][0], (one["Labels"] or {{}}).get(label[1], ""), sep="\\t")
"""


def validate(engine: Engine, folder: Path) -> tuple[dict[str, Any], str]:
    """Validate the package with the wheel of this checkout.

    Args:
        engine: Has the base.
        folder: For what is made on the way.

    Returns:
        The report, and its table in words.
    """
    staged = folder / "openenv"
    hidden = shutil.ignore_patterns("wheels", "*.egg-info", "__pycache__")
    shutil.copytree(PACKAGE, staged, ignore=hidden)
    uv = ROOT / ".tools" / "bin" / "uv"
    build = [str(uv) if uv.exists() else "uv", "build", "--quiet", "--wheel"]
    subprocess.run([*build, "--out-dir", str(staged / "wheels"), str(ROOT)], check=True)
    commands = folder / "bin"
    commands.mkdir()
    (commands / "docker").write_text(_DOCKER.format(python=sys.executable))
    (commands / "docker").chmod(0o755)
    environment = engine.environment | {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
    report = folder / "report.json"
    script = str(Path(__file__).with_name("validate_openenv.py"))
    done = subprocess.run(
        [str(PYTHON), script, str(staged), _helper(engine, folder), str(report)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.exists(), done.stderr[-3000:]
    return json.loads(report.read_text()), done.stdout


def _helper(engine: Engine, folder: Path) -> str:
    """The image from which the network is watched, by its digest."""
    (folder / "helper").mkdir()
    (folder / "helper" / "Dockerfile").write_text(_HELPER)
    engine.podman("build", "--tag", HELPER, str(folder / "helper"))
    return f"{HELPER}@{engine.image(HELPER)['Digest']}"
