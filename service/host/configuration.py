"""Reads the configuration file of a server, and says of each setting where it comes from."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from animalcat.errors import AnimalcatError

PREFIX: Final = "ANIMALCAT_"
"""Beginning of the variables of the environment that are settings."""
CONFIG: Final = "config"
"""The setting that names the file; it cannot stand in the file itself."""
_MASKED: Final = "(set)"
_PASSWORD: Final = re.compile(r"(?<=://)([^/@:]*):[^/@]*@")


class SettingsError(AnimalcatError):
    """A setting has a value that will not do; the message names it."""


class FileSource(PydanticBaseSettingsSource):
    """What the configuration file says, where an option or the environment names one."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Say nothing of one field alone: the file is read as a whole."""
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return the values of the file; none where no file is named."""
        named = self.current_state.get(CONFIG)
        return read_file(Path(named), self.settings_cls.model_fields) if named else {}


def read_file(path: Path, known: Iterable[str]) -> dict[str, Any]:
    """Read a configuration file, which is TOML.

    Args:
        path: The file.
        known: Names of all settings.

    Returns:
        Values by setting.

    Raises:
        SettingsError: The file cannot be read, is no TOML, or has a key that is no setting.
    """
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is no TOML: {error}") from error
    names = [name for name in known if name != CONFIG]
    for key, value in values.items():
        if key in names:
            continue
        if isinstance(value, dict):
            raise SettingsError(
                f"{path}: [{key}] is a table; settings stand at the top of the file, without one"
            )
        near = difflib.get_close_matches(key.replace("-", "_").lower(), names, 1, 0.5)
        hint = f"the nearest is {near[0]!r}" if near else "`animalcat serve --check` lists all"
        raise SettingsError(f"{path}: no setting is named {key!r}; {hint}")
    return values


def origin(name: str, given: Mapping[str, Any], file: Path | None, in_file: Iterable[str]) -> str:
    """Return where the value of a setting comes from: the first of these that has it.

    Args:
        name: The setting.
        given: What options say.
        file: The configuration file, if there is one.
        in_file: The settings that it has.
    """
    if name in given:
        return "option"
    if (variable := PREFIX + name.upper()) in {key.upper() for key in os.environ}:
        return variable
    return str(file) if name in in_file else "default"


def mask_secrets(name: str, value: Any) -> Any:
    """Return a value as it may be shown: secrets are masked, and passwords within URLs."""
    if name == "secret" and value is not None:
        return _MASKED
    if isinstance(value, str):
        return _PASSWORD.sub(r"\1:***@", value)
    if isinstance(value, tuple):
        return [str(part) for part in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return str(value) if isinstance(value, Path) else value


def sources(
    settings_cls: type[BaseSettings],
    init_settings: PydanticBaseSettingsSource,
    env_settings: PydanticBaseSettingsSource,
) -> tuple[PydanticBaseSettingsSource, ...]:
    """Return what says the values of settings, in order: options, the environment, the file."""
    return init_settings, env_settings, FileSource(settings_cls)
