"""An agent in JavaScript, made from the protos alone, plays an episode."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from animalcat.v1 import types_pb2

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "node"


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
async def test_it_plays_an_episode(service: Any, tmp_path: Path) -> None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("there is no Node here")
    folder = tmp_path / "node"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("node_modules"))
    install = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock"]
    await asyncio.to_thread(subprocess.run, install, cwd=folder, check=True, capture_output=True)
    session = await service.create(3, agent="node:agent")
    done = await asyncio.to_thread(
        subprocess.run,
        [node, "agent.js", service.running.address, session, "node:agent", "1"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PROTOS": str(ROOT / "protos")},
    )
    assert "episode 0: " in done.stdout, done.stderr
    episode, withdrawn = await service.list_episodes(session)
    assert episode.outcome in (types_pb2.OUTCOME_SUCCESS, types_pb2.OUTCOME_FAILURE)
    assert withdrawn.outcome == types_pb2.OUTCOME_VOID
