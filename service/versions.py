"""Tells the versions of everything that could change a result."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final, NamedTuple

from animalcat.arena_configs import looks
from animalcat.envs.sim import rules

PACKAGES: Final = ("animalcat", "numba", "numpy", "nutpie", "pymc", "sapien")
"""Packages whose versions are recorded."""
LOOKS: Final = "looks"
"""Name of the version of what the simulator's camera draws."""
MOTION: Final = "motion"
"""Name of the version of how the simulator moves, rewards and senses without the camera."""


class ChangedVersion(NamedTuple):
    """A version that differs between a recording and this installation.

    Attributes:
        name: Name of the package.
        recorded: The recorded version; empty if there is none.
        here: The version of this installation; empty if there is none.
    """

    name: str
    recorded: str
    here: str


def versions() -> dict[str, str]:
    """Return the versions of this installation: of packages, the platform and the simulator.

    `looks` is how the simulator's camera draws, see `arena_configs.looks`; `motion` its rules, see
    `envs.sim.rules`.
    """
    installed = {name: _version(name) for name in PACKAGES}
    installed[LOOKS] = looks.REVISION
    installed[MOTION] = rules.REVISION
    installed["python"] = platform.python_version()
    installed["platform"] = f"{platform.system()}-{platform.machine()}".lower()
    return installed


def changed_versions(
    recorded: Mapping[str, str], here: Mapping[str, str] | None = None
) -> tuple[ChangedVersion, ...]:
    """Return where recorded versions differ from those of this installation, in order of name.

    Args:
        recorded: Versions by package.
        here: Versions to compare them with; None for those of this installation.
    """
    here = versions() if here is None else here
    return tuple(
        ChangedVersion(name, recorded.get(name, ""), here.get(name, ""))
        for name in sorted({*recorded, *here})
        if recorded.get(name, "") != here.get(name, "")
    )


@cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
