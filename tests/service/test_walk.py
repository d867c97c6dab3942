"""docs/design/walk.md names functions that exist and are called in that order."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.service.conftest import Service

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "design" / "walk.md"
ROW = re.compile(r"\| `(?P<file>[\w/]+\.py)` \| `(?P<function>[\w.]+)` \|")
ELSEWHERE = {"service/session/player.py", "envs/sim/environment.py"}
"""Files of the first walk whose functions run in the worker's process."""

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Stop(NamedTuple):
    """A function that a walk passes."""

    file: str
    function: str

    @property
    def owner(self) -> Any:
        """The class or module that has it."""
        found: Any = import_module("animalcat." + self.file.removesuffix(".py").replace("/", "."))
        for part in self.function.split(".")[:-1]:
            found = getattr(found, part)
        return found

    @property
    def name(self) -> str:
        return self.function.split(".")[-1]


def walks() -> list[list[Stop]]:
    """The stops of each section of the page that has a table."""
    sections = PAGE.read_text("utf-8").split("\n## ")[1:]
    return [[Stop(*found) for found in ROW.findall(section)] for section in sections]


OUTCOME, DIRECT, RECORDING = walks()


class Log(list[Stop]):
    """Which stops were called, in order."""

    def watch(self, patch: pytest.MonkeyPatch, stops: set[Stop]) -> None:
        for stop in stops:
            function = getattr(stop.owner, stop.name)
            noting = self._noting(stop, function)
            # A function is also known in the modules that import it.
            known = [m for m in list(sys.modules.values()) if m.__name__.startswith("animalcat")]
            for owner in (stop.owner, *known):
                if vars(owner).get(stop.name) is function:
                    patch.setattr(owner, stop.name, noting)

    def _noting(self, stop: Stop, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def note_call(*args: Any, **options: Any) -> Any:
            self.append(stop)
            return function(*args, **options)

        @functools.wraps(function)
        async def answer_and_stop(*args: Any, **options: Any) -> Any:
            found = await function(*args, **options)
            self.append(stop)
            return found

        # What the walk begins with is a wait: it is passed when the answer has come.
        return answer_and_stop if stop == OUTCOME[0] else note_call


async def test_the_functions_of_the_map_exist() -> None:
    for stop in {*OUTCOME, *DIRECT, *RECORDING}:
        assert inspect.isfunction(getattr(stop.owner, stop.name)), stop


async def test_a_file_that_the_page_names_exists() -> None:
    named = re.findall(r"`([\w/]+/[\w/]+\.(?:py|md))`", PAGE.read_text("utf-8"))
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []


async def test_an_outcome_goes_the_way_of_the_map(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log()
    log.watch(monkeypatch, {stop for stop in OUTCOME if stop.file not in ELSEWHERE})
    await service.play(await service.create(5, agent="walk:outcome"), agent="walk:outcome")
    first, last = OUTCOME[0], OUTCOME[-1]
    begun = [k for k, stop in enumerate(log) if stop == last]
    answered = max(k for k in range(begun[3]) if log[k] == first)
    turn: Iterator[Stop] = iter(log[answered : begun[3] + 1])
    # Each comes after the one before it, whatever is called between.
    missing = [stop for stop in OUTCOME if stop.file not in ELSEWHERE and stop not in turn]
    assert missing == []
