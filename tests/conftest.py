"""Fixtures that all tests share."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
MISSING = "ANIMALCAT_DATA"
SET_UP = re.compile(r"make env-[a-z0-9]+\b")
"""What a test that is skipped asks for, where that is an environment of its own."""
NEEDED = {"make env-openenv"} | ({MISSING} if os.environ.get(MISSING) != "none" else set())
"""For want of these nothing may be skipped with CI=true: .ci/run has them. Where the data cannot be
had, as on other hosts, ANIMALCAT_DATA=none says so."""
CHECK = "ANIMALCAT_CHECK"
"""Variable that is set where a check runs the tests, whose result is kept (`tests/checks.py`)."""

# The tests start hundreds of processes. Where nothing keeps what Python compiles, each compiles all
# that it imports, which takes longer than most of them do.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
os.environ.pop("COLUMNS", None)  # pytest-xdist sets it, and tables in a pipe heed it

GROUPS = {
    "service": ("tests/service/", "fitter"),
    "client": ("tests/client/", "server"),
    "mcp": ("tests/doors/mcp/", "server"),
    "study": ("tests/doors/study/", "fitter"),
}
"""By group, the folder and the fixture of its tests. One worker runs them all, one after another,
and so starts one server and compiles a layout once. The group `nuts` is marked where its tests are:
they compile in the worker itself."""

DEAR = (
    "tests/service/test_commands.py",
    "tests/service/test_restart.py",
    "tests/unity/",
    "tests/client/test_standin_session.py",
    "tests/client/test_base_install.py",
    "tests/envs/unity/",
    "tests/layouts/test_fitter.py",
)
"""Where tests are that take long: begun before the others, they leave no core idle at the end."""

hypothesis.settings.register_profile("deep", max_examples=400, deadline=None)
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.load_profile("same")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Put a test into its group, before xdist reads the groups of all."""
    for group, (folder, fixture) in GROUPS.items():
        if item.nodeid.startswith(folder) and fixture in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(group))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups first, then what takes long."""

    def place(item: pytest.Item) -> tuple[int, str]:
        mark = item.get_closest_marker("xdist_group")
        if mark is not None:
            return -1, mark.args[0]
        return next((k for k, p in enumerate(DEAR) if item.nodeid.startswith(p)), len(DEAR)), ""

    items.sort(key=place)


LEFT = pytest.StashKey[int]()
"""How many slow tests were not asked for."""


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("slow") is not None:
            item.config.stash[LEFT] = item.config.stash.get(LEFT, 0) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[LEFT] = 0
    if getattr(session.config.option, "numprocesses", None):  # the process that starts workers
        subprocess.run([sys.executable, "-m", "tests.warm"], cwd=ROOT, check=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Name the group behind each test, as xdist 3.8 means to: from pytest 9.2 on it fails to."""
    if hasattr(session.config, "workeroutput") and session.config.option.loadgroup:
        for item in session.items:
            mark = item.get_closest_marker("xdist_group")
            if mark is not None and "@" not in item.nodeid.rpartition("]")[2]:
                item._id = f"{item.nodeid}@{mark.args[0]}"  # pyright: ignore


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker of xdist has ended, which collected all tests as every other one did."""
    node.config.stash[LEFT] = getattr(node, "workeroutput", {}).get("left", 0)


@pytest.hookimpl(wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """With `-n auto`, three workers for two cores: many tests wait for processes or a port."""
    return (yield) * 3 // 2


def _data_dir() -> Path:
    path = Path(os.environ.get("ANIMALCAT_DATA") or "../shared/data")
    return path if path.is_absolute() else ROOT / path


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Leave what a server sets for its whole process as it was."""
    mask, log = os.umask(0), logging.getLogger("animalcat")
    os.umask(mask)
    level = log.level
    yield
    os.umask(mask)
    log.setLevel(level)


@pytest.fixture(scope="session", autouse=True)
def temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests and their processes leave in the folder of temporary files stays within pytest's.

    Locks of animalai's clients, logs of Stable-Baselines3, sources that PyTensor compiles. The name
    is short, as paths of sockets must be. The stand-in's observation logs, which would lie beside
    the program, are not written unless a test asks for them.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANIMALCAT_OBSERVATION_LOGS", "none")
        patch.setenv("ANIMALCAT_SECRET", "")  # so that ids and chance follow from seeds alone
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("t")))
        patch.setattr(tempfile, "tempdir", None)  # else what was asked for before is remembered
        yield


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real arenas, outcomes and traces; the test is skipped where it is absent."""
    path = _data_dir()
    if not (path / "animal-ai-competition").is_dir():
        pytest.skip(f"{MISSING}: no data at {path}")
    return path


def _data_asked_for(reporter: Any) -> Counter[str]:
    """What the tests that were skipped ask for, and how many ask for it."""
    said = [str(report.longrepr) for report in reporter.stats.get("skipped", [])]
    wants = [MISSING if MISSING in one else "".join(SET_UP.findall(one)[:1]) for one in said]
    return Counter(want for want in wants if want)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for want, count in ({MISSING: 0} | _data_asked_for(terminalreporter)).items():
        terminalreporter.write_line(f"{count} tests skipped for want of {want}")
    if left := terminalreporter.config.stash[LEFT]:
        terminalreporter.write_line(f"{left} slow tests left to `make test KIND=slow`")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if hasattr(session.config, "workeroutput"):  # a worker's word to the process that has them
        session.config.workeroutput["left"] = session.config.stash[LEFT]
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or exitstatus != 0:
        return
    if os.environ.get(CHECK) and not reporter.stats.get("passed"):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED  # a check has to check something
    if os.environ.get("CI") != "true":
        return
    if lacking := sorted(_data_asked_for(reporter).keys() & NEEDED):
        reporter.ensure_newline()
        reporter.write_line(f"with CI=true no test may be skipped for want of {lacking}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
