"""Logs of adaptive tasks: their profiles, and their outcomes and posteriors in other forms."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from animalcat.doors.inspect.logs import (
    KEY,
    PROFILE,
    TRIALS,
    Log,
    LogError,
    logs_in,
    metadata_of,
    open_log,
    record_of,
)
from animalcat.doors.inspect.plan import PARADIGM, Plan
from animalcat.doors.inspect.report import profile_of, rows_of
from animalcat.doors.inspect.session import Session, replay_session
from animalcat.extending.installing import needing
from animalcat.layouts.inference.fit import FitData, FitRequest, FitResult, fit
from animalcat.outcomes import outcomes_frame
from animalcat.service.rpc.posterior import constants_of, write_posterior
from animalcat.values.profiles import profile_row

if TYPE_CHECKING:
    import pandas as pd

    from animalcat.plots.results import Results

SUMMARY: Final = f"{KEY}_summary"
CHOICES: Final = f"{KEY}_choices"
"""The keys under which a log's metadata has what was found out, once a task has ended."""
FORMS: Final = ("json", "csv", "parquet", "netcdf", "draws")
"""The forms in which a log is exported."""
_NAMES: Final = {
    "episode": "choice",
    "instance": "sample",
    "return": "outcome",
    "score": "gain",
    "cause": "void",
    "ended_by": "limit",
    **{name: name for name in ("propensity", "predicted", "reason")},
}
"""What a table of outcomes calls what a log has of a choice."""


def read_session(path: str | os.PathLike[str]) -> tuple[Log, Session]:
    """Read a log, and go through its evaluation again.

    Raises:
        LogError: It cannot be read, is of no adaptive task, or has other samples than its plan.
        ImportError: inspect_ai is not installed.
    """
    log = open_log(path)
    plan = _plan_of(log)
    if not log.samples:
        raise LogError(f"no sample of {path} has finished, so there is nothing to show")
    try:
        return log, replay_session(plan, log.samples)
    except ValueError as error:
        raise LogError(f"{path}: {error}") from None


def read_profile(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The profile that a log has; where the task did not end, it is worked out from the samples.

    Raises:
        LogError: As for `read_session`.
    """
    log = open_log(path)
    profile = metadata_of(log.header).get(PROFILE)
    if _is_of_arenas(log):
        if profile is None:
            raise LogError(f"{path} did not end: go on with `inspect eval-retry LOG`")
        return profile
    profile = profile or _profile(*read_session(path))
    return {**profile, "provenance": {**profile["provenance"], "session": log.path.name}}


def read_profiles(
    paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
) -> pd.DataFrame:
    """A table with a row for each of several logs, of adaptive tasks and of arenas.

    Args:
        paths: Logs, or folders of logs.

    Returns:
        A row for each log, with the columns of `animalcat.values.profiles.profile_row`, and `log`
        (the file).

    Raises:
        LogError: As for `read_profile`.
    """
    import pandas as pd

    return pd.DataFrame(
        [{**profile_row(read_profile(path)), "log": path.name} for path in logs_in(paths)]
    )


def read_results(path: str | os.PathLike[str]) -> Results | dict[str, Any]:
    """The posterior of a log with its draws, by NUTS; it takes some seconds.

    Of arenas it is the profile alone, since their session has the draws.

    Raises:
        LogError: As for `read_session`.
    """
    from animalcat.plots.results import read_results as read

    if _is_of_arenas(open_log(path)):
        return read_profile(path)
    with TemporaryDirectory(prefix="animalcat-") as folder:
        return read(_posterior(Path(folder), *read_session(path), pointwise=False))


def export(path: str | os.PathLike[str], form: str) -> bytes:
    """A log in one of `FORMS`: "json" is the profile with nodes by NUTS.

    Raises:
        LogError: As for `read_session`, or there is no such form.
    """
    if form not in FORMS:
        raise LogError(f"a log of inspect_ai is exported as {', '.join(FORMS)}, not as {form!r}")
    log, session = read_session(path)
    if form == "json":
        profile = _profile(log, session, _fit(session))
        return (json.dumps(profile, indent=2, ensure_ascii=False) + "\n").encode()
    if form in ("netcdf", "draws"):
        with TemporaryDirectory(prefix="animalcat-") as folder:
            return _posterior(Path(folder), log, session, pointwise=form == "netcdf").read_bytes()
    units = {feature.name: feature.unit for feature in session.plan.layout.features}
    frame, file = outcomes_frame(_outcomes(log, session), units), io.BytesIO()
    if form == "parquet":
        frame.to_parquet(file, index=False)
    else:
        frame.to_csv(file, index=False)
    return file.getvalue()


def _is_of_arenas(log: Log) -> bool:
    return "arena" in record_of(log.header) or TRIALS in metadata_of(log.header)


def _outcomes(log: Log, session: Session) -> list[dict[str, Any]]:
    """The choices as rows of a table of outcomes, as `animalcat.outcomes` has them."""
    plan = session.plan
    kinds = plan.items[PARADIGM].to_dict()
    of_all = {
        "attempt": 1,
        "session": log.path.stem,
        "agent": str(log.header.eval.model),
        "battery": str(log.header.eval.task),
        "layout": plan.layout.name,
    }
    rows: list[dict[str, Any]] = []
    for row in rows_of(session):
        came, sample = row["outcome"], row["sample"]
        word = "void" if came is None else "success" if came >= plan.most else "failure"
        named = {name: None if row[key] == "" else row[key] for name, key in _NAMES.items()}
        named |= {"outcome": word, "paradigm": kinds[sample], "features": plan.demands[sample]}
        rows.append({**of_all, **named})
    return rows


def _plan_of(log: Log) -> Plan:
    kept = record_of(log.header)
    if "items" not in kept:
        raise LogError(
            f"{log.path} is of no adaptive task, so it has no profile. Its outcomes with their "
            "demands can be read by `animalcat.doors.inspect.read_logs`, and fitted by "
            "`animalcat.layouts.fit`"
        )
    return Plan.from_dict(kept)


def _profile(log: Log, session: Session, fitted: FitResult | None = None) -> dict[str, Any]:
    of = log.header.eval
    return profile_of(session, str(of.model), str(of.task), log.path.name, fitted)


def _fit(session: Session) -> FitResult:
    data, plan = session.final.data(), session.plan
    asked = FitRequest(plan.layout, data.features, data.outcomes, plan.seed, weights=data.weights)
    with needing("the posterior by NUTS", "learner"):
        fitted = fit(asked)
    numbers = tuple(choice.episode + 1 for choice in session.ended)
    return replace(fitted, data=FitData(data.features, data.outcomes, data.weights, numbers))


def _posterior(folder: Path, log: Log, session: Session, *, pointwise: bool) -> Path:
    """Write the posterior by NUTS as netCDF, with what was played and the profile."""
    fitted, place = _fit(session), folder / "posterior.nc"
    rows = [  # a void has weight 0 in the data, and its row is to stand beside it
        {**row, "outcome": row["outcome"].replace("void", "failure")}
        for row in _outcomes(log, session)
    ]
    kept, profile = constants_of(rows, fitted), _profile(log, session, fitted)
    write_posterior(place, fitted, kept, profile, pointwise=pointwise)
    return place
