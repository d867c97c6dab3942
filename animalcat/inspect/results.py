"""What a log of an adaptive task has found out: its profile, its outcomes, and its posterior."""

from __future__ import annotations

import io
import json
import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from animalcat.inspect.logs import KEY, LogError, ReadLog, open_log
from animalcat.inspect.plan import Plan
from animalcat.inspect.session import Session, replayed
from animalcat.layouts.inference.fit import FitData, FitRequest, FitResult, fit

if TYPE_CHECKING:
    import pandas as pd

    from animalcat.plots.results import Results

PROFILE: Final = f"{KEY}_profile"
CHOICES: Final = f"{KEY}_choices"
"""The keys under which a log's metadata has the profile and the choices, once a task has ended."""
FORMS: Final = ("json", "csv", "parquet", "netcdf", "draws")
"""The forms in which a log is exported."""


class Measured(NamedTuple):
    """A log, and the evaluation that it is of.

    Attributes:
        log: The log.
        session: The evaluation.
    """

    log: ReadLog
    session: Session

    @property
    def task(self) -> str:
        """Name of the task."""
        return str(self.log.header.eval.task)


def read_measured(path: str | os.PathLike[str]) -> Measured:
    """Go through the evaluation of a log again.

    Args:
        path: The log.

    Raises:
        LogError: It cannot be read, is of no adaptive task, or has other samples than its plan.
        ImportError: inspect_ai is not installed.
    """
    log = open_log(path)
    plan = _plan_of(log)
    if not log.samples:
        raise LogError(f"no sample of {path} has finished, so there is nothing to show")
    try:
        return Measured(log, replayed(plan, log.samples))
    except ValueError as error:
        raise LogError(f"{path}: {error}") from None


def read_profile(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The profile that a log has; where the task did not end, it is worked out from the samples.

    Args:
        path: The log.

    Raises:
        LogError: As for `read_measured`.
        ImportError: inspect_ai is not installed.
    """
    log = open_log(path)
    _plan_of(log)
    kept: Any = log.metadata.get(PROFILE)
    profile: dict[str, Any] = dict(kept) if kept else _json(_profile(read_measured(path)))
    return {**profile, "provenance": {**profile["provenance"], "session": log.path.name}}


def read_results(path: str | os.PathLike[str]) -> Results:
    """The posterior of a log with its draws, by NUTS; it takes some seconds.

    Args:
        path: The log.

    Raises:
        LogError: As for `read_measured`.
        ImportError: inspect_ai is not installed.
    """
    from animalcat.plots.results import read_results as read

    with TemporaryDirectory(prefix="animalcat-") as folder:
        place = Path(folder) / "draws.nc"
        _write_posterior(read_measured(path), place, pointwise=False)
        return read(place)


def export(path: str | os.PathLike[str], form: str) -> bytes:
    """A log in another form: "json" is the profile with nodes by NUTS.

    Args:
        path: The log.
        form: One of `FORMS`.

    Raises:
        LogError: As for `read_measured`, or there is no such form.
        ImportError: inspect_ai is not installed.
    """
    if form not in FORMS:
        raise LogError(f"a log of inspect_ai is exported as {', '.join(FORMS)}, not as {form!r}")
    measured = read_measured(path)
    if form == "json":
        profile = _profile(measured, _fitted(measured.session))
        return (json.dumps(_json(profile), indent=2, ensure_ascii=False) + "\n").encode()
    if form in ("csv", "parquet"):
        frame, file = outcomes_of(measured), io.BytesIO()
        if form == "parquet":
            frame.to_parquet(file, index=False)
        else:
            frame.to_csv(file, index=False)
        return file.getvalue()
    with TemporaryDirectory(prefix="animalcat-") as folder:
        place = Path(folder) / "posterior.nc"
        _write_posterior(measured, place, pointwise=form == "netcdf")
        return place.read_bytes()


def outcomes_of(measured: Measured) -> pd.DataFrame:
    """The choices as a table of outcomes, as `animalcat.outcomes` has them."""
    from animalcat.outcomes import outcomes_frame

    layout = measured.session.plan.layout
    units = {feature.name: feature.unit for feature in layout.features}
    return outcomes_frame(_rows(measured), units)


def _rows(measured: Measured) -> list[dict[str, Any]]:
    session, header = measured.session, measured.log.header
    most = session.plan.epochs if session.plan.trials else 1
    rows: list[dict[str, Any]] = []
    for choice in session.choices:
        runs = session.runs(choice)
        if runs is None:
            continue
        value = session.outcome(choice)
        word = "void" if value is None else "success" if value >= most else "failure"
        rows.append(
            {
                "episode": choice.number,
                "attempt": 1,
                "instance": choice.item,
                "paradigm": session.plan.groups[session.plan.items.index(choice.item)],
                "outcome": word,
                "cause": next((run.void for run in runs if run.void), None),
                "return": value,
                "score": choice.gain,
                "propensity": choice.propensity,
                "predicted": choice.predicted,
                "reason": choice.reason,
                "session": measured.log.path.stem,
                "agent": str(header.eval.model),
                "battery": measured.task,
                "layout": session.plan.layout.name,
                "ended_by": next((run.limit for run in runs if run.limit), None),
                "features": session.plan.demands_of(choice.item),
            }
        )
    return rows


def _plan_of(log: ReadLog) -> Plan:
    kept: Any = log.metadata.get(KEY)
    if not isinstance(kept, dict):
        raise LogError(
            f"{log.path} is of no adaptive task, so it has no profile. Its outcomes with their "
            "demands can be read by `animalcat.inspect.logs.read_logs`, and fitted by "
            "`animalcat.layouts.fit`"
        )
    return Plan.from_dict(cast("dict[str, Any]", kept))


def _fitted(session: Session) -> FitResult:
    data = session.final.data()
    seed = session.plan.seed
    fitted = fit(
        FitRequest(session.plan.layout, data.features, data.outcomes, seed, weights=data.weights)
    )
    numbers = tuple(choice.number for choice in session.choices if session.runs(choice) is not None)
    return replace(fitted, data=FitData(data.features, data.outcomes, data.weights, numbers))


def _profile(measured: Measured, fitted: FitResult | None = None) -> dict[str, Any]:
    agent = str(measured.log.header.eval.model)
    profile = measured.session.profile(agent, measured.task, fitted)
    return {**profile, "provenance": {**profile["provenance"], "session": measured.log.path.name}}


def _write_posterior(measured: Measured, place: Path, *, pointwise: bool) -> None:
    from animalcat.service.rpc.posterior import write_posterior

    fitted = _fitted(measured.session)
    rows = [
        {**row, "outcome": row["outcome"].replace("void", "failure")} for row in _rows(measured)
    ]
    profile = _json(_profile(measured, fitted))
    write_posterior(place, fitted, rows, profile, pointwise=pointwise)


def _json(value: Any) -> Any:
    """A value as JSON has it."""
    return json.loads(json.dumps(value))
