"""What inspect_ai loads of us in every run of anybody: one small task, and never an error."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

with suppress(Exception):  # an inspect_ai without tasks is nobody's concern here
    from inspect_ai import Task, task

    @task
    def adaptive(
        task: str,
        layout: str,
        demands: Any = None,
        score: str = "",
        stop: Any = None,
        seed: int = 0,
        at_once: int = 1,
        epochs: int = 1,
        exposures: int = 1,
        exposure: float = 1.0,
        common: int = 0,
        group: str = "",
        variant: str = "",
        pass_mark: float | None = None,
        policy: Any = None,
        max_tokens: int = 0,
        max_cost: float = 0.0,
        args: Any = None,
    ) -> Task:
        """Make a task adaptive; `animalcat.inspect.adaptive` says what each argument is."""
        given = dict(locals())
        from animalcat.inspect.source import adaptive as made

        return made(**given)

    @task
    def arena(
        battery: str = "basics",
        layout: str = "",
        tongue: Any = "tools",
        preset: str = "",
        max_episodes: int = 0,
        seed: int = 0,
        at_once: int = 1,
        server: str = "",
        data: str = "",
    ) -> Task:
        """Let a model play arenas, each chosen for what it tells of it.

        Args:
            battery: A battery, or a family that is built if it is not there.
            layout: Name or file of a layout.
            tongue: How the model is told what it perceives, and how it answers.
            preset: How long it takes: "quick", "standard" or "thorough".
            max_episodes: The most episodes; 0 for what the preset says.
            seed: Seed of all randomness.
            at_once: How many episodes play at once.
            server: Host and port of a server.
            data: The data directory.
        """
        given = dict(locals())
        from animalcat.inspect.arenas import arena as made_arena

        return made_arena(**given)
