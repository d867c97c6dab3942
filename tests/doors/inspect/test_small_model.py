"""A small language model, which nobody scripted, plays arenas by words alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import animalcat
from animalcat.service.host.private import server_for

ROOT = Path(__file__).parents[3]
HOME = ROOT / ".clients" / "speakers" / "bin"
ARENAS = 10

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not HOME.exists(), reason="there is no model here: make env-speakers"),
]


@pytest.fixture
def model_address() -> Iterator[str]:
    """Where the model listens, on this machine."""
    command = [str(HOME / "python"), str(Path(__file__).with_name("served_model.py"))]
    model = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert model.stdin is not None
    assert model.stdout is not None
    try:
        yield model.stdout.readline().strip()
    finally:
        model.stdin.close()
        model.wait(60)


def test_a_small_model_plays_ten_arenas(model_address: str, tmp_path: Path) -> None:
    """What it can do is not asked here, only that all it says is read, counted and kept."""
    tongue = "script,picture=0,answers=2"
    command = [
        *(str(HOME / "animalcat"), "session", "run", "--battery", "spoken"),
        *("--agent", f"llm:openai-api/local/smollm2+{tongue}", "--max-episodes", str(ARENAS)),
        *("--target-sd", "0", "--futility", "0", "--no-certify", "--action-timeout", "900"),
        *("--data", str(tmp_path), "--json"),
    ]
    known = {**os.environ, "LOCAL_API_KEY": "none", "LOCAL_BASE_URL": f"{model_address}/v1"}
    done = subprocess.run(command, env=known, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with server_for(None, tmp_path) as address, animalcat.connect(address) as client:
        (session,) = client.list_sessions()
        episodes, spent = client.episodes(session), client.get_session(session).spent
    assert len(episodes) == ARENAS
    assert all(one.counts for one in episodes)
    # It is asked twice in each arena, and then no more; what is cut off is no answer.
    assert 2 * ARENAS <= spent.answers + spent.limits <= 3 * ARENAS
    assert spent.tokens_in > 50 * ARENAS
    assert spent.tokens_out > ARENAS
    assert spent.refusals == spent.errors == 0
