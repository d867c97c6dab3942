"""`animalcat unity`: what it shows, tries and refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from animalcat.envs.unity.settings import UnityError
from animalcat.envs.unity.setup import download_build
from tests.unity_builds import STAND_IN


def unity(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "ANIMALCAT_UNITY_HOME": str(folder / "unity"),
        "ANIMALAI_CACHE": str(folder / "cache"),
    }
    return subprocess.run(
        [sys.executable, "-m", "animalcat", "unity", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=folder,
    )


def test_check_plays_an_arena(tmp_path: Path) -> None:
    done = unity(tmp_path, "setup", "--check", f"unity:{STAND_IN}", "--json")
    assert done.returncode == 0, done.stderr
    played = json.loads(done.stdout)
    assert (played["ended_by"], played["decisions"]) == ("goal", 22)
    assert played["versions"]["unity-build"].startswith("animalcat-unity")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("setup", "--check", "unity:/no/build"), 2, "/no/build: there is no such Unity build"),
        (("setup", "--check", "unity:auto"), 2, "animalcat unity setup"),
        (("setup", "--python", "/no/python"), 2, "/no/python: could not be started"),
        (("setup", "--animalai", "4.1.0"), 2, "animalai 4.1.0 runs on Python 3.8 to 3.9"),
    ],
)
def test_what_cannot_be_is_said(
    arguments: tuple[str, ...], code: int, message: str, tmp_path: Path
) -> None:
    done = unity(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_download_it_is_said_how_to_get_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANIMALAI_AUTO_DOWNLOAD", "0")
    monkeypatch.setenv("ANIMALAI_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnityError, match=r"none could be downloaded.*setup --build PATH"):
        download_build(Path(sys.executable))
