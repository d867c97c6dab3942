"""Fixtures that all tests share."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MISSING = "ANIMALCAT_DATA"

# The tests start hundreds of processes. Where nothing keeps what Python compiles, each compiles all
# that it imports, which takes longer than most of them do.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.hookimpl(wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """With `-n auto`, three workers for two cores: many tests wait for processes or a port."""
    return (yield) * 3 // 2


def _data_dir() -> Path:
    path = Path(os.environ.get("ANIMALCAT_DATA") or "../shared/data")
    return path if path.is_absolute() else ROOT / path


@pytest.fixture(scope="session", autouse=True)
def temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests and their processes leave in the folder of temporary files stays within pytest's.

    Locks of animalai's clients, logs of Stable-Baselines3, sources that PyTensor compiles. The name
    is short, as paths of sockets must be.
    """
    with pytest.MonkeyPatch.context() as patch:
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [
        report
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple) and MISSING in report.longrepr[2]
    ]
    terminalreporter.write_line(f"{len(skipped)} tests skipped for want of {MISSING}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") != "true" or reporter is None or exitstatus != 0:
        return
    for report in reporter.stats.get("skipped", []):
        if isinstance(report.longrepr, tuple) and MISSING in report.longrepr[2]:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
