"""The backends that can play an arena, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from animalcat.envs.types import Environment, ObservationSpec

BACKENDS: Final = ("sim",)
"""Names that `make_environment` knows."""


def make_environment(backend: str, spec: ObservationSpec) -> Environment:
    """Make the environment of a backend; what it needs is imported now and not before.

    Args:
        backend: A name in `BACKENDS`.
        spec: What its observations hold.

    Raises:
        ValueError: There is no such backend.
        ImportError: What the backend needs is not installed; the message says what.
    """
    if backend != "sim":
        names = ", ".join(BACKENDS)
        raise ValueError(f"there is no backend {backend!r}; the backends are: {names}")
    try:
        from animalcat.envs.sim.environment import SimEnvironment
    except ModuleNotFoundError as error:
        raise ImportError(
            f"The backend {backend!r} needs {error.name}, which is missing: "
            'pip install "animalcat[server]".'
        ) from error
    return SimEnvironment(spec)
