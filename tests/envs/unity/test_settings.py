"""Where build and interpreter are looked for, and what is said when they are not there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from animalcat.envs.backends import BACKENDS, make_environment, unity_build
from animalcat.envs.types import ObservationSpec
from animalcat.envs.unity.settings import UnityError, UnitySettings, store


@pytest.fixture(autouse=True)
def _of_this_test_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANIMALCAT_UNITY_HOME", str(tmp_path / "unity"))
    monkeypatch.setenv("ANIMALAI_CACHE", str(tmp_path / "cache"))
    for name in ("PYTHON", "BUILD", "BUILDS"):
        monkeypatch.delenv(f"ANIMALCAT_UNITY_{name}", raising=False)
    monkeypatch.chdir(tmp_path)


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_environment_comes_before_what_setup_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = program(tmp_path / "one"), program(tmp_path / "two")
    assert UnitySettings().build is None
    store(build=str(one))
    store(python=sys.executable)
    assert UnitySettings().build == one
    assert UnitySettings().interpreter() == Path(sys.executable)
    monkeypatch.setenv("ANIMALCAT_UNITY_BUILD", str(two))
    assert unity_build("unity:auto") == two


def test_a_build_is_found_where_animalai_looks(tmp_path: Path) -> None:
    with pytest.raises(UnityError, match=r"no Unity build is set.*animalcat unity setup"):
        unity_build("unity:auto")
    cached = program(tmp_path / "cache/envs/v4.4.0/Linux/animalAI.x86_64")
    assert unity_build("unity:auto") == cached
    local = program(tmp_path / "env3.1.3/AAI.x86_64")
    assert unity_build("unity:auto") == local


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("godot", "there is no backend 'godot'; the backends are: " + ", ".join(BACKENDS)),
        ("unity:", "the backends are"),
        ("unity:/no/such/build", "/no/such/build: there is no such Unity build"),
    ],
)
def test_what_is_no_backend_is_refused(backend: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_environment(backend, ObservationSpec())


def test_broken_settings_are_named(tmp_path: Path) -> None:
    (tmp_path / "unity").mkdir()
    (tmp_path / "unity/settings.json").write_text("{")
    with pytest.raises(UnityError, match=r"settings.json: is not JSON; remove it"):
        UnitySettings()
