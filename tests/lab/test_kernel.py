"""A study in the kernel of a notebook: it is run, interrupted, gone on with, and killed."""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

from animalcat.service.host.lock import running_server

BEGIN = """
import os, time
import animalcat as ac
class Forward:
    def reset(self, info): ...
    def act(self, observation):
        time.sleep(float(os.environ.get("SLOW", "0")))
        return 3
arenas = {
    f"{d} m, {s} m across": ac.Arena.goal(distance=d, size=s, angle=4)
    for d in range(3, 36, 8) for s in (0.5, 1, 2, 4)
}
lab = ac.local("study")
battery = lab.battery(arenas, name="mine")
"""
MEASURE = """
result = lab.measure(
    Forward(), battery, layout="aaio", max_episodes=8, certify=False, seed=1, secret="kernel"
)
result
"""


class Kernel:
    """A notebook's kernel, whose cells are run one by one."""

    def __init__(self, folder: Path) -> None:
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(cwd=str(folder))
        self._client: Any = self.manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=60)

    def begin(self, cell: str) -> str:
        return self._client.execute(cell)

    def outputs(self, asked: str) -> list[dict[str, Any]]:
        """What a cell shows until it is over."""
        shown = list[dict[str, Any]]()
        while True:
            message = self._client.get_iopub_msg(timeout=120)
            if message["parent_header"].get("msg_id") != asked:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                return shown
            shown.append({"kind": kind, **content})

    def run(self, cell: str) -> list[dict[str, Any]]:
        return self.outputs(self.begin(cell))


@pytest.fixture
def kernel(tmp_path: Path) -> Generator[Kernel]:
    made = Kernel(tmp_path)
    yield made
    made.manager.shutdown_kernel(now=True)


def errors(shown: list[dict[str, Any]]) -> list[str]:
    return [each["ename"] for each in shown if each["kind"] == "error"]


def words_of(shown: list[dict[str, Any]]) -> str:
    return "".join(each["text"] for each in shown if each["kind"] == "stream")


@pytest.mark.slow
def test_the_stop_button_interrupts_the_cell_and_a_killed_kernel_ends_the_server(
    kernel: Kernel, tmp_path: Path
) -> None:
    assert errors(kernel.run(BEGIN)) == []
    kernel.run("os.environ['SLOW'] = '0.1'")
    asked = kernel.begin(MEASURE)
    while len(list(tmp_path.glob("study/recordings/*/*.mcap"))) < 3:  # in the third episode
        time.sleep(0.05)
    kernel.manager.interrupt_kernel()
    assert errors(kernel.outputs(asked)) == ["KeyboardInterrupt"]
    server = running_server(tmp_path / "study")
    assert server is not None

    kernel.run("del os.environ['SLOW']")
    shown = kernel.run(MEASURE)
    assert errors(shown) == []
    assert "goes on after" in words_of(shown)
    (result,) = (each["data"] for each in shown if each["kind"] == "execute_result")
    assert "navigationAbility" in result["text/html"]
    assert "8 episodes passed" in result["text/plain"]
    again = kernel.run(MEASURE)
    assert "was finished before" in words_of(again)

    kernel.run("class Forward:\n  def reset(self, info): ...\n  def act(self, o): return 4")
    changed = words_of(kernel.run(MEASURE))
    assert "is a new session" in changed
    assert "Forward.act has other content" in changed

    kernel.manager.shutdown_kernel(now=True)
    end = time.monotonic() + 30.0
    while running_server(tmp_path / "study") is not None and time.monotonic() < end:
        time.sleep(0.1)
    assert running_server(tmp_path / "study") is None
