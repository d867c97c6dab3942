"""Teaches an evaluation how hard its samples are, from logs of models that ran them before."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from animalcat.doors.inspect.logs import Log, LogError, came_of, logs_in, open_log
from animalcat.doors.inspect.plan import Plan
from animalcat.doors.inspect.sheets import input_text
from animalcat.layouts.calibrating.calibrate import calibrate
from animalcat.layouts.model.frames import instances_in
from animalcat.layouts.model.instances import OutcomeTable

_COMPARED = 1000
"""Characters of a sample's text by which it is known again; summaries in logs cut longer ones."""


def teach(
    plan: Plan,
    samples: Mapping[str, Any],
    logs: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
) -> Plan:
    """Return a plan whose layout knows how hard its samples were for earlier models.

    Args:
        plan: The plan.
        samples: The task's samples by id.
        logs: Logs of the same samples by other models, or folders of logs. Of several runs of a
            sample by one model the first counts.

    Raises:
        LogError: A log cannot be read, has none of the samples, or has another sample under an id.
        CalibrationError: There are fewer than two models, or the layout cannot be calibrated.
    """
    outcomes: dict[str, dict[str, float]] = {}
    for log in map(open_log, logs_in(logs)):
        known = outcomes.setdefault(str(log.header.eval.model), {})
        for name, outcome in _outcomes(log, plan, samples).items():
            known.setdefault(name, outcome)
    frame = pd.DataFrame.from_dict(outcomes, orient="index").reindex(columns=plan.items.index)
    table = OutcomeTable(
        instances_in(plan.items, plan.layout), tuple(outcomes), frame.to_numpy("float64")
    )
    taught = int(frame.notna().any().sum())
    return replace(
        plan,
        layout=calibrate(plan.layout, table, plan.layout.name, plan.seed),
        notes=(
            *plan.notes,
            f"how hard {taught} of {len(plan.items)} samples are was learnt from logs of "
            f"{len(outcomes)} models",
        ),
    )


def _outcomes(log: Log, plan: Plan, samples: Mapping[str, Any]) -> dict[str, float]:
    """What came of the samples of the plan in a log, by id."""
    came: dict[str, float] = {}
    for one in log.samples:
        name = str(one.id)
        if name not in plan.items.index:
            continue
        if _text(one) != _text(samples[name]):
            raise LogError(
                f"{log.path}: its sample {name!r} is another one than in this task. Give logs of "
                "the same task, whose dataset gives every sample an id that stays"
            )
        score = came_of(one, plan.score).outcome
        if score is not None:
            came.setdefault(name, plan.outcome(score))
    if not came:
        raise LogError(f"{log.path} has none of this task's samples; give logs of the same task")
    return came


def _text(sample: Any) -> tuple[str, ...]:
    """By what a sample is known again: the beginning of its question, and its right answer."""
    right = [sample.target] if isinstance(sample.target, str) else sample.target
    return tuple(text[:_COMPARED] for text in (input_text(sample), *right))
