"""A clinic for items: which tell nothing, contradict their demands, differ, or are twins.

    from animalcat.doors.clinic import clinic

    clinic(table, demands=demands).sentences

`examining` does it and gives a `Clinic`, with the statistics of `items` and the model of
`population`; `answers` reads what agents did from anybody's table. `command` is `animalcat battery
clinic`, and `page` what it writes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from animalcat.doors.clinic.examining import Clinic, clinic

__all__ = ["Clinic", "clinic"]


def __getattr__(name: str) -> Any:
    """The public names, imported when they are first used."""
    if name not in __all__:
        raise AttributeError(f"module 'animalcat.doors.clinic' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module("animalcat.doors.clinic.examining"), name)
    return value
