"""Makes `animalcat/Arena-v0` known to Gymnasium."""

from __future__ import annotations

from typing import Final

import gymnasium

ARENA_ID: Final = "animalcat/Arena-v0"
"""Name of `animalcat.envs.gym.ArenaEnv` for `gymnasium.make`."""


def register_environments() -> None:
    """Register the environment; its module and the simulator load when it is made."""
    if ARENA_ID not in gymnasium.registry:
        gymnasium.register(  # pyright: ignore[reportUnknownMemberType]
            id=ARENA_ID, entry_point="animalcat.envs.gym:ArenaEnv"
        )
