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
