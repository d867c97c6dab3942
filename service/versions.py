"""Versions of what could change the numbers, for recordings, profiles and replay."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Final, NamedTuple

PACKAGES: Final = ("animalcat", "numba", "numpy", "nutpie", "pymc", "sapien")
"""Packages whose version is kept."""


class ChangedVersion(NamedTuple):
    """A version that is not what it was.

    Attributes:
        name: Of the package.
        recorded: The version that was recorded; empty where there was none.
        here: The version of this installation; empty where there is none.
    """

    name: str
    recorded: str
    here: str


def versions() -> dict[str, str]:
    """Versions of this installation by package, and of `python` and `platform`."""
    found = {name: _version(name) for name in PACKAGES}
    found["python"] = platform.python_version()
    found["platform"] = f"{platform.system()}-{platform.machine()}".lower()
    return found


def changed_versions(
    recorded: Mapping[str, str], here: Mapping[str, str] | None = None
) -> tuple[ChangedVersion, ...]:
    """Where recorded versions differ from those here, by name.

    Args:
        recorded: Versions by package.
        here: Those to compare them with; by default those of this installation.
    """
    here = versions() if here is None else here
    return tuple(
        ChangedVersion(name, recorded.get(name, ""), here.get(name, ""))
        for name in sorted({*recorded, *here})
        if recorded.get(name, "") != here.get(name, "")
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
