"""The backends that can play an arena, by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from animalcat.arena_configs.builds import NEWEST
from animalcat.extending import plugins
from animalcat.extending.installing import install

if TYPE_CHECKING:
    from animalcat.envs.sim.environment import Rng
    from animalcat.envs.types import Environment, ObservationSpec

_UNITY: Final = "unity:"
AUTOMATIC: Final = f"{_UNITY}auto"
"""The Unity build of the settings, or one found where `animalai` looks."""
BACKENDS: Final = ("sim", AUTOMATIC, "unity:PATH")
"""Names that `make_environment` knows; PATH is that of a build's executable. Plugins have others
(`animalcat.extending.plugins`)."""


def make_environment(
    backend: str, spec: ObservationSpec, rng: Rng = "animalcat", build: str | None = None
) -> Environment:
    """Make the environment of a backend; the packages that it needs are imported only now.

    It does not warn of objects that are not simulated. Whoever reads the arena does so, as
    `arena_configs.reading` does.

    Args:
        backend: A name in `BACKENDS`, or that of a plugin.
        spec: Specification of the observations.
        rng: How the simulator draws, see `SimEnvironment`; a Unity build draws in its own way.
        build: Which build the simulator is, see `SimEnvironment`; None for the newest.

    Raises:
        ValueError: There is no such backend, rng or build; or the specification is privileged and
            the backend does not tell the state.
        ImportError: The backend needs a package that is not installed; the message says which.
    """
    try:
        if backend == "sim":
            from animalcat.envs.sim.environment import SimEnvironment

            return SimEnvironment(spec, NEWEST if build is None else build, rng, tell=False)
        if spec.privileged:
            raise ValueError(
                f'{backend} does not tell the state of an arena: only the backend "sim" shows it '
                "to privileged agents"
            )
        if rng != "animalcat":
            raise ValueError(f'rng={rng!r}: only the backend "sim" can be told how to draw')
        if build is not None:
            raise ValueError(f'build={build!r}: only the backend "sim" can be told what to be')
        if is_plugin(backend):
            return _of_plugin(backend, spec)
        executable = unity_build(backend)
        from animalcat.envs.unity.environment import UnityEnvironment

        return UnityEnvironment(spec, executable)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"The backend {backend!r} needs {error.name}, which is missing: {install('server')}"
        ) from error


def is_plugin(backend: str) -> bool:
    """Whether a backend can only be another package's, by its name."""
    return backend != "sim" and not backend.startswith(_UNITY)


def plugin_versions(backend: str) -> dict[str, str]:
    """The version and digest of the package that a backend comes with; empty for one of ours."""
    found = plugins.find("backend", backend) if is_plugin(backend) else None
    return {} if found is None else {found.distribution: found.stamp}


def _of_plugin(backend: str, spec: ObservationSpec) -> Environment:
    """Make the environment of another package."""
    if plugins.find("backend", backend) is None:
        raise ValueError(_unknown(backend))
    make = plugins.load("backend", backend)
    return make(spec)


def _unknown(backend: str) -> str:
    there = ", ".join((*BACKENDS, *plugins.names("backend")))
    return f"there is no backend {backend!r}; the backends are: {there}"


def unity_build(backend: str) -> Path:
    """The executable of a backend that is a Unity build.

    Raises:
        ValueError: There is no such backend, or its build does not exist.
    """
    kind, _, path = backend.partition(":")
    if kind != "unity" or not path:
        raise ValueError(_unknown(backend))
    from animalcat.envs.unity.settings import UnitySettings, executable

    return UnitySettings().find_build() if backend == AUTOMATIC else executable(Path(path))
