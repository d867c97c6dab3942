"""A session as a log of inspect_ai, which `inspect view` opens: one sample an attempt."""

from __future__ import annotations

import json
import math
import os
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from animalcat.doors.inspect.logs import PROFILE, TRIALS, trials_of
from animalcat.extending.installing import install
from animalcat.outcomes import COLUMNS, feature_units, read_outcomes
from animalcat.values import Session
from animalcat.values.profiles import without_chance

if TYPE_CHECKING:
    import pandas as pd

Form: TypeAlias = Literal["eval", "json"]

_STATUS: Final = {"finished": "success", "cancelled": "cancelled", "failed": "error"}
"""inspect_ai's word for the state of a session; what goes on is "started"."""
_PASSED: Final = {"success": "C", "failure": "I"}
"""inspect_ai's letters: correct and incorrect. Other outcomes do not count."""


def inspect_log(
    session: Session,
    profile: Mapping[str, Any],
    outcomes: bytes,
    remarks: Mapping[str, Sequence[str]],
    seconds: Mapping[str, float],
    form: Form,
) -> bytes:
    """Return the content of a log.

    Every attempt at an episode is a sample: what was asked for is its input, what the agent
    remarked are messages, and success and return are its scores. Voids, faults and outcomes that
    were declared invalid are samples with an error and no score. The profile is the log's metadata.

    Args:
        session: The session.
        profile: Its profile, as JSON.
        outcomes: Its table of outcomes, CSV.
        remarks: What the agent remarked, by "number-attempt".
        seconds: How long each attempt took, by "number-attempt".
        form: "eval" is inspect_ai's compressed form, "json" its plain one.

    Raises:
        ImportError: inspect_ai is not installed; the message names the extra.
    """
    try:
        log: Any = import_module("inspect_ai.log")
    except ImportError:
        raise ImportError(
            f"this needs the package inspect-ai. Install the extra: {install('inspect')}"
        ) from None
    frame = read_outcomes(outcomes)
    rows, units = _rows(frame), feature_units(frame)
    samples = [
        _sample(log, row, units, remarks.get(_key(row), ()), seconds.get(_key(row), 0.0))
        for row in rows
    ]
    scored = [row for row in rows if row["outcome"] in _PASSED]
    spec, labels = session.spec, list(profile.get("labels", ()))
    started = session.created.isoformat()
    ended = session.created + timedelta(seconds=sum(seconds.values()))  # of play alone
    document = log.EvalLog(
        status=_STATUS.get(session.state or "", "started"),
        eval=log.EvalSpec(
            created=started,
            eval_id=session.id,
            run_id=session.id,
            task_id=session.id,
            task=f"animalcat/{spec.battery.removeprefix('batteries/')}",
            task_args={"layout": spec.layout, "policy": spec.policy.name},
            dataset=log.EvalDataset(
                name=spec.battery.removeprefix("batteries/"),
                samples=len(samples),
                sample_ids=[sample.id for sample in samples],
                shuffled=False,
            ),
            model=f"animalcat/{spec.agent}",
            config=log.EvalConfig(epochs=1),
            packages=dict(profile.get("provenance", {}).get("versions", {})),
            tags=labels or None,
            metadata={
                "reason": session.reason,
                "labels": labels,
                PROFILE: without_chance(profile),
                TRIALS: trials_of(frame),
            },
        ),
        plan=log.EvalPlan(name="animalcat"),
        results=log.EvalResults(
            total_samples=len(samples),
            completed_samples=len(scored),
            scores=[
                _results(
                    log, "success", "accuracy", [_PASSED[r["outcome"]] == "C" for r in scored]
                ),
                _results(log, "return", "mean", [r["return"] for r in scored]),
            ],
        ),
        stats=log.EvalStats(started_at=started, completed_at=ended.isoformat()),
        samples=samples,
    )
    with tempfile.TemporaryDirectory(prefix="animalcat-") as folder:
        path = Path(folder) / f"log.{form}"
        log.write_eval_log(document, os.fspath(path), format=form)
        return path.read_bytes()


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table of outcomes, with numbers as numbers; an empty cell is None."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def _key(row: Mapping[str, Any]) -> str:
    return f"{row['episode']}-{row['attempt']}"


def _sample(
    log: Any,
    row: Mapping[str, Any],
    units: Mapping[str, str],
    remarks: Sequence[str],
    seconds: float,
) -> Any:
    model: Any = import_module("inspect_ai.model")
    scorer: Any = import_module("inspect_ai.scorer")
    outcome = row["outcome"]
    asked = {name: row[name] for name in units if row[name] is not None}
    demands = ", ".join(_demand(name, asked[name], units[name]) for name in asked if asked[name])
    text = f"{row['instance']}: {demands}" if demands else str(row["instance"])
    messages = [
        model.ChatMessageUser(content=text),
        *(model.ChatMessageAssistant(content=remark) for remark in remarks),
    ]
    ended = f", ended by {row['ended_by'].replace('_', ' ')}" if row["ended_by"] else ""
    result = f"{outcome}: return {row['return']:.6g} in {row['steps']} decisions{ended}"
    error = scores = None
    if outcome in _PASSED:
        predicted = row["predicted"]
        # Of the layout's first outcome: the probability of success, or the mean share.
        said = result if predicted is None else f"{result}; outcome predicted: {predicted:.0%}"
        scores = {
            "success": scorer.Score(value=_PASSED[outcome], answer=outcome, explanation=said),
            "return": scorer.Score(value=row["return"], explanation=said),
        }
    else:
        why = f"{outcome}: this attempt does not count"
        error = log.EvalError(message=why, traceback=why, traceback_ansi=why)
    versions: Any = json.loads(row["versions"]) if row["versions"] else {}
    return log.EvalSample(
        id=_key(row),
        epoch=1,
        input=text,
        target="success",
        messages=messages,
        output=model.ModelOutput.from_content(f"animalcat/{row['agent']}", result),
        scores=scores,
        error=error,
        total_time=seconds,
        working_time=seconds,
        metadata={
            **{k: row[k] for k in COLUMNS if k not in ("versions", "session", "labels")},
            "versions": versions,
            "demands": asked,
        },
    )


def _demand(column: str, value: float, unit: str) -> str:
    """What was asked for: "rewardDistance 7.1 m" for 7.1 in the column "rewardDistance [m]"."""
    name = column.removesuffix(f" [{unit}]")
    return f"{name} {value:.4g} {unit}" if unit not in ("", "1") else f"{name} {value:.4g}"


def _results(log: Any, name: str, metric: str, values: Sequence[float]) -> Any:
    """Mean and standard error of a score."""
    mean = statistics.fmean(values) if values else 0.0
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return log.EvalScore(
        name=name,
        scorer=name,
        scored_samples=len(values),
        metrics={
            metric: log.EvalMetric(name=metric, value=mean),
            "stderr": log.EvalMetric(name="stderr", value=error),
        },
    )
