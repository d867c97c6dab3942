"""Reads logs of any tasks of inspect_ai as a table of outcomes and demands."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Final

import pandas as pd

from animalcat.doors.inspect.logs import (
    TRIALS,
    Log,
    LogError,
    came_of,
    logs_in,
    metadata_of,
    numbers_in,
    open_log,
    record_of,
)
from animalcat.doors.inspect.plan import Plan

COLUMNS: Final = (
    *("agent", "instance", "epoch", "outcome", "void", "limit", "task", "log"),
    *("choice", "propensity", "tokens", "seconds"),
)
"""The columns of `read_logs` that are no demands."""


def read_logs(
    paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
    score: str = "",
    demands: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Read logs of any tasks as a table with a row for each sample that was run.

    A sample that stands in several logs, as those of a task that was retried, is read once.

    Args:
        paths: Logs, or folders of logs.
        score: As for `came_of`.
        demands: Keys of the samples' metadata that are demands; by default all with a number in
            them, and for tasks that we ran adaptively those that they were given.

    Returns:
        A row for each sample and epoch: `agent` (the model), `instance` (the sample's id, as
        text, or the arena that it was), `epoch`, `outcome` (missing for a void), `void` (why; else
        empty), `limit`, `task`, `log` (the file), `choice` and `propensity` (for tasks that we
        ran), `tokens`, `seconds`, and a column for each demand, missing where a sample has none.
        `attrs["left_out"]` counts what is not in it, by reason.

    Raises:
        LogError: A log cannot be read, none has a sample, there is no such score or demand, or a
            sample has other demands in another run.
        ImportError: inspect_ai is not installed.
    """
    logs = [open_log(file) for file in logs_in(paths)]
    rows = [row for log in logs for row in _rows(log, score, every=demands is not None)]
    if not rows:
        names = ", ".join(log.path.name for log in logs[:3])
        raise LogError(
            f"no sample was run in {names or 'what was given'}: "
            "give logs in which at least one sample has finished"
        )
    known = dict.fromkeys(sorted({key for row in rows for key in row} - {*COLUMNS, "uuid"}))
    if absent := [name for name in demands or () if name not in known]:
        raise LogError(
            f"no sample has {absent[0]!r} in its metadata as a number; there are "
            f"{', '.join(known) or 'none'}"
        )
    _insist_alike(rows, demands or known)
    frame = pd.DataFrame(rows)
    again = frame["uuid"].duplicated() & frame["uuid"].notna()
    counts = {
        "log without samples": sum(not log.samples for log in logs),
        "read from another log": int(again.sum()),
    }
    frame = frame.loc[~again, [*COLUMNS, *(demands or known)]].reset_index(drop=True)
    frame.attrs["left_out"] = {why: count for why, count in counts.items() if count}
    return frame


def _insist_alike(rows: Iterable[Mapping[str, Any]], demands: Iterable[str]) -> None:
    """Refuse that a sample of a task asks for other things in one run than in another."""
    first: dict[tuple[str, ...], Mapping[str, Any]] = {}
    for name, row in product(demands, rows):
        task, sample = row["task"], row["instance"]
        before = first.setdefault((task, sample, name), row) if name in row else row
        if name in row and before[name] != row[name]:
            raise LogError(
                f"sample {sample!r} of {task} has {name} {before[name]:g} in {before['log']} and "
                f"{row[name]:g} in {row['log']}: were its demands made anew? Read such logs "
                "apart, or name the demands that are the same, as demands=[...]"
            )


def _rows(log: Log, score: str, *, every: bool) -> Iterable[dict[str, Any]]:
    """A row for each sample, with what it demands, or with every number of its metadata."""
    planned: Mapping[str, Mapping[str, float]] = {}
    arenas: Mapping[str, str] = {}
    if "items" in (kept := record_of(log.header)):
        planned = Plan.from_dict(kept).demands
    elif played := metadata_of(log.header).get(TRIALS):
        arenas, planned = played["instance"], played["demands"]
    elif "arena" in kept:
        raise LogError(
            f"{log.path} is of arenas and did not end, so it does not say which arena a sample "
            "was: go on with `inspect eval-retry LOG`"
        )
    for sample in log.samples:
        name = arenas.get(f"{sample.id}-{sample.epoch - 1}", str(sample.id))
        name = arenas.get(str(sample.id), name)
        try:
            came = came_of(sample, score)
        except LogError as error:
            raise LogError(f"{log.path}: {error}") from None
        record = record_of(sample)
        yield {
            "uuid": sample.uuid,
            "agent": str(log.header.eval.model),
            "instance": name,
            "epoch": sample.epoch,
            "outcome": math.nan if came.outcome is None else came.outcome,
            "void": came.void,
            "limit": came.limit,
            "task": log.header.eval.task,
            "log": log.path.name,
            "choice": record.get("choice"),
            "propensity": record.get("propensity", math.nan),
            "tokens": came.tokens,
            "seconds": came.seconds,
            **(numbers_in(metadata_of(sample)) if every or not planned else {}),
            **planned.get(name, {}),
        }
