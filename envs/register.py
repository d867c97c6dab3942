"""Registers `animalcat/Arena-v0` with Gymnasium."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import gymnasium

from animalcat.extending.installing import install

if TYPE_CHECKING:
    from animalcat.envs.gym import ArenaEnv
    from animalcat.envs.vector import ArenaVectorEnv

ARENA_ID: Final = "animalcat/Arena-v0"
"""Name of `animalcat.envs.gym.ArenaEnv` for `gymnasium.make`."""


def register_environments() -> None:
    """Register the environment; its module and the simulator load when it is made."""
    if ARENA_ID not in gymnasium.registry:
        gymnasium.register(  # pyright: ignore[reportUnknownMemberType]
            id=ARENA_ID,
            entry_point="animalcat.envs.register:make_arena",
            vector_entry_point="animalcat.envs.register:make_arenas",
        )


def make_arena(**options: Any) -> ArenaEnv:
    """Make the environment, with the options of `ArenaEnv`.

    Raises:
        ModuleNotFoundError: The simulator is not installed; the message says how to get it.
    """
    with _telling_what_is_missing():
        from animalcat.envs.gym import ArenaEnv
    return ArenaEnv(**options)


def make_arenas(num_envs: int = 1, **options: Any) -> ArenaVectorEnv:
    """Make several in one process, with the options of `ArenaVectorEnv`.

    Raises:
        ModuleNotFoundError: As for `make_arena`.
    """
    with _telling_what_is_missing():
        from animalcat.envs.vector import ArenaVectorEnv
    return ArenaVectorEnv(num_envs, **options)


@contextmanager
def _telling_what_is_missing() -> Generator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package in ("", "animalcat"):
            raise
        raise ModuleNotFoundError(
            f"{ARENA_ID} needs the package {package}, which is not installed. Install the server "
            f"extra: {install('server')}; or play on a server with animalcat.RemoteEnv",
            name=error.name,
        ) from None
