"""Tells which arenas of a battery nobody can pass or fail, and which nothing need end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from animalcat.arena_configs.instance import Instance
from animalcat.arena_configs.outcome import NO_LIMIT, NO_REWARD, MarkFault, mark_fault
from animalcat.arena_configs.quickest import returns_in_time
from animalcat.text.counts import count_of

UNPASSABLE: Final = "no play can pass it, since no return exceeds its pass mark"
"""Why an arena is set aside."""


class Marks(NamedTuple):
    """What is wrong with the pass marks and time limits of a battery.

    Attributes:
        unpassable: Why no play can pass an arena, by its name; such arenas are set aside.
        tight: Why almost no play passes an arena, by its name.
        sure: Why every play passes an arena, by its name; such arenas tell nothing.
        bare: Names of the unpassable arenas in which nothing gives reward.
        endless: Names of the arenas without a time limit.
    """

    unpassable: dict[str, str]
    tight: dict[str, str]
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
                "reached), or play them anyway with --keep-unpassable"
            )
        if self.bare:
            sentences.append(f"in {_arenas(self.bare)} of these {NO_REWARD}")
        if self.tight:
            sentences.append(
                f"almost no play passes {_arenas(self.tight)}, since the pass mark is within what "
                "an agent loses that looks around before it runs: who fails there may be able, and "
                "slow. Lower the pass marks, unless speed is to be measured"
            )
        if self.sure:
            sentences.append(
                f"every play passes {_arenas(self.sure)}, since every return exceeds the pass "
                "mark: sessions play them, and successes there show nothing"
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
    known = returns_in_time(instance.features, instance.time_limit_steps)
    return mark_fault(instance.task.least_return, known.greatest, instance.pass_mark, known.likely)


def marks_of(instances: Iterable[Instance]) -> Marks:
    """Look at the pass marks and time limits of instances."""
    marks = Marks({}, {}, {}, [], [])
    for instance in instances:
        if instance.time_limit_steps == 0:
            marks.endless.append(instance.name)
        fault = fault_of(instance)
        if fault is not None:
            kinds = {"unreachable-pass-mark": marks.unpassable, "tight-pass-mark": marks.tight}
            kinds.get(fault.code, marks.sure)[instance.name] = fault.message
            if fault.severity == "error" and instance.task.greatest_return <= 0.0:
                marks.bare.append(instance.name)
    return marks


def _arenas(names: Iterable[str]) -> str:
    """How many arenas, with the first of them, as in "2 arenas (a, b)"."""
    known = list(names)
    few = ", ".join(known[:3]) + (", ..." if len(known) > 3 else "")
    return f"{count_of(len(known), 'arena')} ({few})"
