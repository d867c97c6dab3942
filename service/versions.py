"""Versions of what could change the numbers, for recordings, profiles and replay."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Final, NamedTuple

PACKAGES: Final = ("animalcat", "numba", "numpy", "nutpie", "pymc", "sapien")
"""Packages whose version is kept."""


class Difference(NamedTuple):
    """One version that differs: what was recorded, and what is here ("" where it is absent)."""

    name: str
    recorded: str
    here: str


def versions() -> dict[str, str]:
    """Versions of this installation by package, and of `python` and `platform`."""
    found = {name: _version(name) for name in PACKAGES}
    found["python"] = platform.python_version()
    found["platform"] = f"{platform.system()}-{platform.machine()}".lower()
    return found


def differences(
    recorded: Mapping[str, str], here: Mapping[str, str] | None = None
) -> tuple[Difference, ...]:
    """Where recorded versions differ from those here, by name.

    Args:
        recorded: Versions by package.
        here: Those to compare them with; by default those of this installation.
    """
    here = versions() if here is None else here
    return tuple(
        Difference(name, recorded.get(name, ""), here.get(name, ""))
        for name in sorted({*recorded, *here})
        if recorded.get(name, "") != here.get(name, "")
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
