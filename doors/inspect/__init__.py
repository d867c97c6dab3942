"""Adaptive evaluation of tasks of inspect_ai, whose samples have demands.

    from animalcat.doors.inspect import adaptive

    eval(adaptive(my_task(), layout="layout.yaml", demands="demands.csv"), model="...")

`adaptive` makes a task that runs the most informative samples, and `early_stopping` leaves out of a
task what would tell nothing. `arena` is a task in which a model plays arenas, with `arena_tools`
for solvers of others. `read_logs` gives the outcomes in logs of any tasks as a table, and
`read_profiles` the profiles of logs, a row for each. The extra `inspect` brings what they need.
These names load when they are first used.

A sample's way: `plan` has its demands (of tables that `sheets` reads), `earlier` what other models
teach of it, `session` chooses it, `source` gives it to inspect_ai and takes in what came of it
(`logs`), and `report` says what that tells; `results` does it all again from a log. `tables` reads
logs of any tasks, `stopping` stops early, `_registry` is what inspect_ai loads. `arenas` lets a
model play a session as a task. `showing` is what `animalcat profile` does with a log, and `command`
is `animalcat session export`, which writes a session as one (`session_log`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from animalcat.doors.inspect.arenas import arena, arena_tools
    from animalcat.doors.inspect.results import read_profiles
    from animalcat.doors.inspect.source import adaptive
    from animalcat.doors.inspect.stopping import early_stopping
    from animalcat.doors.inspect.tables import read_logs

__all__ = ["adaptive", "arena", "arena_tools", "early_stopping", "read_logs", "read_profiles"]
_HOME = {
    "adaptive": "source",
    "arena": "arenas",
    "arena_tools": "arenas",
    "read_logs": "tables",
    "read_profiles": "results",
}
"""Where each name lives; one that is not here is in `stopping`."""


def __getattr__(name: str) -> Any:
    """The public names, imported when they are first used."""
    if name not in __all__:
        raise AttributeError(f"module 'animalcat.doors.inspect' has no attribute {name!r}")
    try:
        module = import_module(f"animalcat.doors.inspect.{_HOME.get(name, 'stopping')}")
    except ImportError as error:
        from animalcat.extending.installing import missing

        raise missing(f"animalcat.doors.inspect.{name}", error, "inspect") from error
    value = globals()[name] = getattr(module, name)
    return value
