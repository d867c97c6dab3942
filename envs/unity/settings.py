"""Settings of the Unity backend: where interpreter, build and logs are, and how it is driven."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

_BUILD_NAMES: Final = ("AAI", "AnimalAI", "animalAI", "Animal-AI", "MacOS")
"""File names of builds, as `animalai` looks for them."""
_SUFFIXES: Final = ("x86_64", "exe", "app")


class UnityError(ValueError):
    """Something that the Unity backend needs is missing; the message says how to get it."""


def unity_home() -> Path:
    """The folder of the backend, with its settings, interpreter and logs."""
    return Path(os.environ.get("ANIMALCAT_UNITY_HOME") or "~/.animalcat/unity").expanduser()


class UnitySettings(BaseSettings):
    """Settings from the environment (`ANIMALCAT_UNITY_*`), else from `animalcat unity setup`."""

    model_config = SettingsConfigDict(env_prefix="ANIMALCAT_UNITY_", frozen=True, extra="ignore")

    python: Path | None = None
    """Interpreter that has `animalai`; none: ours, if it has."""
    build: Path | None = None
    """The build that `unity:auto` means; none: one that lies where `animalai` looks."""
    grammar: Literal["4.x", "3.x"] = "4.x"
    """How arena files are written: builds of the 3.x line know other names of fields."""
    time_scale: int = Field(default=1, ge=1, le=100)
    """Simulated seconds that may pass in a second; 1 is what results in the literature used."""
    arguments: tuple[str, ...] = ()
    """Further words of a build's command line, as JSON: ["-force-vulkan"]."""
    graphics: bool | None = None
    """Whether builds may draw; none: where there is a camera. Drawing needs a display."""
    verify: bool = True
    """Whether the arena that a build plays must be the one that was meant."""
    start_seconds: int = Field(default=60, ge=1)
    """Longest wait for the first observation of an episode."""
    step_seconds: int = Field(default=30, ge=1)
    """Longest wait for the answer to one decision."""
    builds: Literal["spare", "fresh", "kept"] = "spare"
    """Whether every episode has a build of its own (spare: and the next one is started while one
    is played), or one is kept for all: quicker, but each starts a physics step late."""
    logs: Path | None = None
    """Where logs go; none: `logs` in the backend's folder."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read arguments first, then the environment, then the file."""
        return init_settings, env_settings, _StoredSettings(settings_cls)

    @property
    def log_folder(self) -> Path:
        """The folder in which every worker has a folder for logs."""
        return self.logs or unity_home() / "logs"

    def interpreter(self) -> Path:
        """The interpreter that runs the player.

        Raises:
            UnityError: There is no interpreter.
        """
        if self.python is not None:
            if not os.access(self.python, os.X_OK):
                raise UnityError(
                    f"{self.python}: there is no such interpreter; run: animalcat unity setup"
                )
            return self.python
        if importlib.util.find_spec("animalai") and importlib.util.find_spec("mlagents_envs"):
            return Path(sys.executable)
        raise UnityError(
            "the Unity backend needs an interpreter with animalai; run: animalcat unity setup"
        )

    def find_build(self) -> Path:
        """Find the build that `unity:auto` means.

        Raises:
            UnityError: There is no build.
        """
        if self.build is not None:
            return executable(self.build)
        cache = Path(os.environ.get("ANIMALAI_CACHE") or "~/.animalai").expanduser()
        for folder in (Path(), cache / "envs"):
            for name in _BUILD_NAMES:
                for suffix in _SUFFIXES:
                    pattern = f"env*/{name}.{suffix}" if folder == Path() else f"**/{name}.{suffix}"
                    for program in sorted(folder.glob(pattern), reverse=True):
                        return executable(program)
        raise UnityError(
            f"no Unity build is set and none lies in ./env* or {cache}; name one: unity:PATH, or "
            "animalcat unity setup --build PATH; or let it be downloaded: animalcat unity setup"
        )


def settings_file() -> Path:
    """The file in which `animalcat unity setup` stores what it found."""
    return unity_home() / "settings.json"


def store(**values: str) -> Path:
    """Store settings in the file, beside those stored before; returns the file."""
    path = settings_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {**_read_stored(), **values}
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(kept, indent=2) + "\n")
    fresh.replace(path)
    return path


def executable(build: Path) -> Path:
    """The absolute path of the file that starts a build.

    Args:
        build: An executable, or on macOS the folder of an application.

    Raises:
        UnityError: It does not exist, or cannot be started.
    """
    path = build.expanduser().absolute()
    if path.suffix == ".app" and path.is_dir():
        inside = sorted((path / "Contents" / "MacOS").glob("*"))
        if not inside:
            raise UnityError(f"{path}: there is no program in Contents/MacOS")
        path = inside[0]
    if not path.is_file():
        raise UnityError(f"{path}: there is no such Unity build")
    if not os.access(path, os.X_OK):
        raise UnityError(f"{path}: is not executable; chmod 755 it, and all that lies beside it")
    return path


class _StoredSettings(PydanticBaseSettingsSource):
    """What `store` kept."""

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        return _read_stored().get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        return _read_stored()


def _read_stored() -> dict[str, Any]:
    path = settings_file()
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise UnityError(
            f"{path}: is not JSON; remove it and run: animalcat unity setup"
        ) from error
