"""What is said of long waits: on a terminal, in a pipe, and where something is compiled."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

import animalcat
from animalcat.cli.shared.output import long_wait
from animalcat.machine.compiling import (
    LAYOUTS,
    ONCE,
    SIMULATOR,
    folders,
    is_compiled,
    while_compiling,
)

PACKAGE = Path(animalcat.__file__).parent


@pytest.mark.parametrize("source", [LAYOUTS, SIMULATOR])
def test_it_is_known_whether_something_is_still_to_be_compiled(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert while_compiling("making it", source) == f"making it ({ONCE})"
    path = PACKAGE / source
    version = "py{}{}".format(*sys.version_info)
    kept = tmp_path / "folder" / f"{path.stem}.one-12.{version}.nbi"
    kept.parent.mkdir()
    kept.touch()
    assert is_compiled(source)
    assert while_compiling("making it", source) == "making it"
    os.utime(kept, (0, path.stat().st_mtime - 1))  # the source is newer
    assert not is_compiled(source)


def test_numba_keeps_what_it_compiles_where_it_is_looked_for() -> None:
    from animalcat.layouts.inference.kernels import sums_of_wins

    kept = Path(sums_of_wins._cache.cache_path).resolve()  # pyright: ignore
    looked = folders(PACKAGE.joinpath(LAYOUTS).resolve())
    assert any(kept.is_relative_to(folder.resolve()) for folder in looked)


def test_a_long_wait_is_said_once_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with long_wait("compiling", 0.0) as change:
        for timer in [one for one in threading.enumerate() if isinstance(one, threading.Timer)]:
            timer.join()
        change("fitting")
        for timer in [one for one in threading.enumerate() if isinstance(one, threading.Timer)]:
            timer.join()
    assert capsys.readouterr().err == "compiling ...\nfitting ...\n"
