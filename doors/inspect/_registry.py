"""What inspect_ai loads of us in every run of anybody: two small tasks, and never an error."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

with suppress(Exception):  # an inspect_ai without tasks is nobody's concern here
    from inspect_ai import Task, task

    @task
    def adaptive(task: str, layout: str, **options: Any) -> Task:
        """Make a task adaptive.

        Args:
            task: FILE@NAME, or the registered name of a task.
            layout: Name or file of a layout.
            **options: The other arguments of `animalcat.doors.inspect.adaptive`.
        """
        from animalcat.doors.inspect.source import adaptive as made

        return made(task, layout, **options)

    @task
    def arena(battery: str = "basics", layout: str = "", **options: Any) -> Task:
        """Let a model play arenas, each chosen for what it tells of it.

        Args:
            battery: A battery, or a family that is built if it is not there.
            layout: Name or file of a layout.
            **options: The other arguments of `animalcat.doors.inspect.arena`.
        """
        from animalcat.doors.inspect.arenas import arena as made

        return made(battery, layout, **options)
