"""Every block of Python on a user's page runs, in the environment that the page says.

Pages whose blocks run in a test of their own are in `ELSEWHERE`. Those of the others run here in
their order, with the names that a page takes for granted, and with fewer episodes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import pytest

import animalcat as ac

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SB3 = ROOT / ".clients" / "sb3" / "bin" / "python"
FEW = "max_episodes=2, certify=False, progress=False"
ELSEWHERE = {
    "client.md": "tests/client/test_client_page.py",
    "gallery.md": "tests/test_docs.py",
    "inspect.md": "tests/doors/inspect/test_page.py",
    "layouts.md": "tests/test_docs.py",
    "learner.md": "tests/test_docs.py",
    "plugins.md": "tests/test_plugins.py",
    "python.md": "tests/lab/test_python_page.py",
    "security.md": "tests/client/test_agent_view.py",
    "unity.md": "tests/unity/test_page.py",
}
"""Pages that a test follows, and where."""


class Forward:
    """Goes forward."""

    def reset(self, info: Any) -> None: ...

    def act(self, observation: Any) -> int:
        return 3


def as_minari(lab: ac.Lab, result: ac.Result) -> None:
    """What the page's command does before its block."""
    words = ["episode", "export", result.id, "--server", lab.address]
    command = [sys.executable, "-m", "animalcat", *words, "--name", "animalcat/mine-v0"]
    subprocess.run(command, check=True, capture_output=True)


@dataclass(frozen=True)
class Page:
    """What a page takes for granted.

    Attributes:
        names: Names of its blocks that stand nowhere on it; those of `page_names` are always there.
        quick: What its blocks say, and what takes less time or is an example's stand-in.
    """

    names: dict[str, Any] = field(default_factory=dict[str, Any])
    quick: dict[str, str] = field(default_factory=dict[str, str])


TRAINING = {
    "learn(20_000": "learn(64",
    "learn(1000)": "learn(64)",
    "every=5_000": "every=64",
    ", max_episodes=30": "",
    '"navigation"': '"navigation", max_episodes=2, certify=False',
    '"object-permanence"': '"navigation", max_episodes=2, certify=False',
    'model = PPO.load("agent.zip")': 'model.save("agent.zip")\n'
    "my_network = len\n"
    "class MyAgent:\n"
    "    def reset(self, info): ...\n"
    "    def act(self, observation): return 3\n"
    'model = PPO.load("agent.zip")',
    'my_network(seen["rays"])': 'my_network(seen["rays"]) % 9',
}
"""Less time for blocks that train; the numbers of steps are rounded up to a rollout of PPO's."""
PAGES = {
    "agents.md": Page(
        {"agent": Forward()},
        {
            'battery="navigation", layout="aaio"': 'battery="mine", max_episodes=1',
            '"SESSION"': 'lab.create_session(agent="r", battery="mine", max_episodes=1).id',
            "client.evaluate(agent": "client = animalcat.connect(lab.address)\n"
            'session = client.create_session(agent="p", battery="mine", max_episodes=1)\n'
            "client.evaluate(agent",
        },
    ),
    "arenas.md": Page({"axes": plt.figure().subplots(1, 2)}),
    "batteries.md": Page(
        {},
        {
            '"object-permanence", 300': '"object-permanence-separable", 16',
            '"builtin:braitenberg", "object-permanence-300")': f'Forward(), "mine", {FEW})',
            '"NAME"': "battery.to_frame().index[0]",
        },
    ),
    "campaigns.md": Page(
        {"A": Forward}, {"budget=300": "budget=6, common=2, certify=False, progress=False"}
    ),
    "clinic.md": Page(
        {
            "answers": pd.DataFrame(
                [[int((3 * n + k) % 7 > k) for k in range(6)] for n in range(12)],
                [f"agent {n}" for n in range(12)],
                [f"item {k}" for k in range(6)],
            ),
            "levels": pd.DataFrame({"size": range(6)}, [f"item {k}" for k in range(6)]),
        }
    ),
    "demands.md": Page(
        {"noise": pd.DataFrame({"noise [dB]": range(10)}, [f"{n}" for n in range(10)])},
        {
            'layout="hearing.yaml")': f'layout="aaio", {FEW})',
            "features=noise)": 'features="docs/examples/garden.csv")',
        },
    ),
    "exports.md": Page(
        {},
        {
            'result.save("profile.json")': "[result.save(f) for f in ('profile.json', "
            "'posterior.nc', 'outcomes.parquet')]",
            '"NAME"': '"csv"',
            'result.predict("navigation"': 'result.predict("mine"',
        },
    ),
    "recordings.md": Page(
        {"export": as_minari},
        {
            '"SESSION"': "result.id",
            "episodes[3]": "episodes[1]",
            "import minari": "export(lab, result)\nimport minari",
        },
    ),
    "sessions.md": Page(
        {},
        {
            "lab = animalcat.local()": "",
            '"navigation",': '"mine",',
            'battery="navigation"': 'battery="mine"',
            'preset="quick"': FEW,
            '"SESSION"': "result.id",
            '"ANOTHER"': "other.id",
            '"NAME"': '"mine"',
            "explain(7)": "explain(1)",
        },
    ),
}


def python_of(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), flags=re.DOTALL)


def needs_training(code: str) -> bool:
    """Whether a block is for the environment of Stable-Baselines3, as its page says."""
    return "stable_baselines3" in code or "PPO" in code


@pytest.fixture
def page_names(lab: ac.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What pages take for granted: a lab, a battery, two results, folders of arenas."""
    (tmp_path / "docs").symlink_to(DOCS)
    for name in ("my_arenas", "testbed", "mine"):
        shutil.copytree(DOCS / "examples" / "garden", tmp_path / name)
    (tmp_path / "b.py").write_text(
        "class Agent:\n    def reset(self, info): ...\n    def act(self, observation): return 1\n"
    )
    (tmp_path / "ppo.zip").write_bytes(b"weights")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    arenas = {f"{d} m": ac.Arena.goal(distance=d, angle=4) for d in range(3, 33, 6)}
    battery = lab.battery(arenas, name="mine")
    few: dict[str, Any] = {"max_episodes": 4, "certify": False, "progress": False}
    result = lab.measure(Forward(), battery, layout="aaio", seed=1, **few)
    other = lab.measure(Forward(), battery, layout="aaio", name="other", seed=2, **few)
    return {"animalcat": ac, "lab": lab, "result": result, "other": other, "Forward": Forward}


def test_every_page_with_python_is_followed() -> None:
    pages = {page.name for page in DOCS.glob("*.md") if python_of(page.name)}
    assert pages == {*ELSEWHERE, *PAGES, "training.md"}
    for page, test in ELSEWHERE.items():
        assert f'"{page}"' in (ROOT / test).read_text("utf-8"), test


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES)
def test_its_blocks_run(page: str, lab: ac.Lab, page_names: dict[str, Any]) -> None:
    said = PAGES[page]
    names = {"__name__": "page", **page_names, **said.names}
    for code in python_of(page):
        if needs_training(code):
            continue
        for long, quick in {"localhost:50051": lab.address, **said.quick}.items():
            code = code.replace(long, quick)
        exec(compile(code, page, "exec"), names)
    plt.close("all")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not SB3.exists(), reason="Stable-Baselines3 is absent: make env-sb3")
@pytest.mark.parametrize("page", ["agents.md", "training.md"])
def test_what_trains_runs_in_the_environment_that_the_page_makes(page: str, tmp_path: Path) -> None:
    code = "".join(code for code in python_of(page) if needs_training(code))
    for long, quick in TRAINING.items():
        code = code.replace(long, quick)
    shutil.copy(DOCS / "examples" / "yard.yaml", tmp_path / "arena.yml")
    (tmp_path / "page.py").write_text(code)
    command = [SB3, "page.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
