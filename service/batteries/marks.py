"""Tells which arenas of a battery nobody can pass or fail, and which nothing need end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from animalcat.arena_configs.instance import Instance
from animalcat.arena_configs.outcome import NO_LIMIT, NO_REWARD, MarkFault, mark_fault

UNPASSABLE: Final = "no play can pass it, since no return exceeds its pass mark"
"""Why an arena is set aside."""


class Marks(NamedTuple):
    """What is wrong with the pass marks and time limits of a battery.

    Attributes:
        unpassable: Why no play can pass an arena, by its name; such arenas are set aside.
        sure: Why every play passes an arena, by its name; such arenas tell nothing.
        bare: Names of the unpassable arenas in which nothing gives reward.
        endless: Names of the arenas without a time limit.
    """

    unpassable: dict[str, str]
    sure: dict[str, str]
    bare: list[str]
    endless: list[str]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What whoever makes or plays the battery has to know, a sentence for each kind."""
        sentences: list[str] = []
        if self.unpassable:
            sentences.append(
                f"no play can pass {_arenas(self.unpassable)}, since no return exceeds the pass "
                "mark: sessions set them aside. Correct the pass marks (0 where the goal is to be "
                "reached), or play them all the same with --keep-unpassable"
            )
        if self.bare:
            sentences.append(f"in {_arenas(self.bare)} of these {NO_REWARD}")
        if self.sure:
            sentences.append(
                f"every play passes {_arenas(self.sure)}, since every return exceeds the pass "
                "mark: sessions play them, and successes there tell nothing"
            )
        if self.endless:
            sentences.append(
                f"no time limit ends an episode in {_arenas(self.endless)}: {NO_LIMIT}"
            )
        return tuple(sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return what is wrong, by the names of the arenas, as JSON values."""
        return {"set_aside": dict(self.unpassable), "cannot_fail": dict(self.sure)}


def fault_of(instance: Instance) -> MarkFault | None:
    """Say what is wrong with the pass mark of an instance; None if nothing is known to be."""
    task = instance.task
    return mark_fault(task.least_return, task.greatest_return, task.pass_mark)


def marks_of(instances: Iterable[Instance]) -> Marks:
    """Look at the pass marks and time limits of instances."""
    marks = Marks({}, {}, [], [])
    for instance in instances:
        if instance.time_limit_steps == 0:
            marks.endless.append(instance.name)
        fault = fault_of(instance)
        if fault is not None:
            kind = marks.unpassable if fault.severity == "error" else marks.sure
            kind[instance.name] = fault.message
            if fault.severity == "error" and instance.task.greatest_return <= 0.0:
                marks.bare.append(instance.name)
    return marks


def _arenas(names: Iterable[str]) -> str:
    """How many arenas, with the first of them, as in "2 arenas (a, b)"."""
    known = list(names)
    few = ", ".join(known[:3]) + (", ..." if len(known) > 3 else "")
    return f"{len(known)} arena{'s' * (len(known) != 1)} ({few})"
