"""Reads logs of inspect_ai as one table: who was asked what, with which demands, and what came."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from animalcat.installing import missing

if TYPE_CHECKING:
    import pandas as pd

KEY: Final = "animalcat"
"""The key of what we write into the metadata of a task, of a sample and of a log."""
COLUMNS: Final = (
    "agent",
    "instance",
    "epoch",
    "outcome",
    "void",
    "limit",
    "task",
    "log",
    "choice",
    "propensity",
    "tokens",
    "seconds",
)
"""The columns of `read_logs` that are no demands."""
_VOID_LIMITS: Final = frozenset({"time", "working", "cost", "operator"})
"""Limits that say nothing of the agent: the same agent on a faster machine would go on."""
_CANCELLED: Final = ("CancelledError(", "Cancelled(")
"""How inspect_ai words the error of a sample that an operator cancelled."""
_WORDS: Final[Mapping[str, float]] = {
    "C": 1.0,
    "P": 0.5,
    "I": 0.0,
    "N": 0.0,
    "yes": 1.0,
    "true": 1.0,
    "no": 0.0,
    "false": 0.0,
}
"""What inspect_ai's words for a score are worth: correct, partial, incorrect, no answer."""


class LogError(ValueError):
    """A log cannot be read as outcomes; the message says which, why, and what to do."""


class Scored(NamedTuple):
    """What came of a sample.

    Attributes:
        outcome: Its score as a number; None for a void.
        void: Why it does not count, in a word or two; empty if it does.
    """

    outcome: float | None
    void: str = ""


def inspect_module(name: str) -> Any:
    """Import a module of inspect_ai.

    Args:
        name: Its name, such as "inspect_ai.log".

    Raises:
        ImportError: inspect_ai is not installed; the message has the command that installs it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        if (error.name or "").split(".")[0] != "inspect_ai":
            raise
        raise missing("this", error, "inspect") from None


def is_log(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of a log of inspect_ai, by its name."""
    return Path(path).suffix == ".eval"


def scored_of(sample: Any, score: str = "") -> Scored:
    """What came of a sample, by one rule for running tasks and for logs.

    Limits of messages, tokens, turns and context, and those that a task sets itself, are outcomes
    as they were scored: to leave them out would flatter whoever runs out. Limits of time and cost,
    errors, and what an operator ended or nobody scored are voids.

    Args:
        sample: An `EvalSample` or an `EvalSampleSummary`.
        score: Name of the score, or "scorer.key" where a scorer gives several; may be empty if
            there is one.

    Raises:
        LogError: There is no score of that name, or it is no number.
    """
    if sample.error is not None:
        text = sample.error if isinstance(sample.error, str) else sample.error.message
        return Scored(None, "cancelled" if text.startswith(_CANCELLED) else "error")
    if (kind := limit_of(sample)) in _VOID_LIMITS:
        return Scored(None, f"limit of {kind}" if kind != "operator" else "ended by the operator")
    if not sample.scores:
        return Scored(None, "not scored")
    value = _number(_named(sample.scores, score), sample)
    return Scored(None, "not scored") if math.isnan(value) else Scored(value)


def limit_of(sample: Any) -> str:
    """The kind of limit that ended a sample; empty for none."""
    limit = sample.limit
    return str(getattr(limit, "type", limit) or "")


def read_logs(
    paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
    score: str = "",
    demands: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Read logs of any tasks as a table with a row for each sample that was run.

    A sample that stands in several logs, as those of a task that was retried, is read once.

    Args:
        paths: Logs, or folders of logs.
        score: As for `scored_of`.
        demands: Keys of the samples' metadata that are demands; by default all with a number in
            them, and for tasks that we ran adaptively those that the layout used.

    Returns:
        A row for each sample and epoch: `agent` (the model), `instance` (the sample's id, as
        text), `epoch`, `outcome` (missing for a void), `void` (why; else empty), `limit`, `task`,
        `log` (the file), `choice` and `propensity` (for tasks that we ran), `tokens`, `seconds`,
        and a column for each demand, with missing values where a sample has none.
        `attrs["left_out"]` counts what is not in it, by reason.

    Raises:
        LogError: A log cannot be read, none has a sample, or there is no such score or demand.
        ImportError: inspect_ai is not installed.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    left_out: dict[str, int] = {}
    seen: set[str] = set()
    known: set[str] = set()
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files = _files(given)
    for path in files:
        log = open_log(path)
        if not log.samples:
            left_out["log without samples"] = left_out.get("log without samples", 0) + 1
        for sample in log.samples:
            if sample.uuid and sample.uuid in seen:
                left_out["read from another log"] = left_out.get("read from another log", 0) + 1
                continue
            seen.add(sample.uuid or "")
            asked = demands_of(sample, demands)
            known.update(asked if demands is None else demands_of(sample))
            rows.append({**_row(log, sample, score), **asked})
    if not rows:
        names = ", ".join(path.name for path in files[:3])
        raise LogError(
            f"no sample was run in {names or 'what was given'}: "
            "give logs in which at least one sample has finished"
        )
    if missing := [name for name in demands or () if name not in known]:
        raise LogError(
            f"no sample has {missing[0]!r} in its metadata as a number; there are "
            f"{', '.join(sorted(known)) or 'none'}"
        )
    columns = [*COLUMNS, *(demands if demands is not None else sorted(known))]
    frame = pd.DataFrame(rows, columns=pd.Index(columns, dtype="object"))
    frame.attrs["left_out"] = left_out
    return frame


def by_agent(frame: pd.DataFrame) -> pd.DataFrame:
    """Agents by items: the mean outcome of each, missing where it was not asked or was void.

    Args:
        frame: What `read_logs` returned.

    Returns:
        A row for each agent and a column for each instance.
    """
    table = frame.pivot_table(index="agent", columns="instance", values="outcome", dropna=False)
    return table.reindex(columns=list(dict.fromkeys(frame["instance"])))


@dataclass(frozen=True, slots=True)
class ReadLog:
    """A log, without what its samples said.

    Attributes:
        path: Where it is.
        header: inspect_ai's `EvalLog`, without samples.
        samples: Summaries of its samples, in the order in which they were logged.
    """

    path: Path
    header: Any
    samples: Sequence[Any]

    @property
    def agent(self) -> str:
        """The model that was evaluated."""
        return str(self.header.eval.model)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The log's metadata: the task's, and what was added when it had ended."""
        own: Mapping[str, Any] | None = self.header.eval.metadata
        added: Mapping[str, Any] | None = self.header.metadata
        return {**(own or {}), **(added or {})}


def open_log(path: str | os.PathLike[str]) -> ReadLog:
    """Read a log's header and the summaries of its samples.

    Args:
        path: The file.

    Raises:
        LogError: It is no log, damaged, or of a version that this inspect_ai cannot read.
        ImportError: inspect_ai is not installed.
    """
    module: Any = inspect_module("inspect_ai.log")
    place = Path(path)
    if not place.is_file():
        raise LogError(f"there is no log {place}; give the path of a file that ends in .eval")
    try:
        header = module.read_eval_log(os.fspath(place), header_only=True)
        samples = [
            one
            for one in module.read_eval_log_sample_summaries(os.fspath(place))
            if one.completed or one.error or one.scores
        ]
    except Exception as error:  # what is wrong with a file comes as any of many
        raise LogError(
            f"{place} is no log that inspect_ai {_version()} can read ({_said(error)}); was it "
            "written by a newer version, or cut short?"
        ) from error
    whole = [(s.id, s.epoch) for s in samples if _removed(s.metadata)]
    if whole:
        full = module.read_eval_log_samples_by_id(
            os.fspath(place), whole, exclude_fields={"messages", "events", "store", "attachments"}
        )
        metadata = {(sample.id, sample.epoch): sample.metadata for sample in full}
        for sample in samples:
            sample.metadata = metadata.get((sample.id, sample.epoch), sample.metadata)
    return ReadLog(place, header, samples)


def demands_of(sample: Any, names: Sequence[str] | None = None) -> dict[str, float]:
    """The demands that stand in a sample's metadata.

    Args:
        sample: An `EvalSample`, a summary or a `Sample`.
        names: Which keys; by default all with a number. What we wrote ourselves goes before.
    """
    metadata: Mapping[str, Any] = sample.metadata or {}
    ours = metadata.get(KEY)
    own: Mapping[str, Any] = cast("Any", ours).get("demands", {}) if _is_ours(ours) else {}
    asked = own if own and names is None else {**metadata, **own}
    return {
        key: float(value)
        for key, value in asked.items()
        if (names is None or key in names)
        and isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    }


def _is_ours(value: object) -> bool:
    return isinstance(value, dict) and "choice" in value


def _removed(metadata: Mapping[str, Any]) -> bool:
    """Whether what we wrote was too long for a summary."""
    return isinstance(metadata.get(KEY), str)


def _row(log: ReadLog, sample: Any, score: str) -> dict[str, Any]:
    try:
        scored = scored_of(sample, score)
    except LogError as error:
        raise LogError(f"{log.path}: {error}") from None
    ours = sample.metadata.get(KEY)
    record: Mapping[str, Any] = ours if _is_ours(ours) else {}
    return {
        "agent": log.agent,
        "instance": str(sample.id),
        "epoch": sample.epoch,
        "outcome": math.nan if scored.outcome is None else scored.outcome,
        "void": scored.void,
        "limit": limit_of(sample),
        "task": log.header.eval.task,
        "log": log.path.name,
        "choice": record.get("choice"),
        "propensity": record.get("propensity", math.nan),
        "tokens": tokens_of(sample),
        "seconds": sample.total_time or 0.0,
    }


def tokens_of(sample: Any) -> int:
    """All tokens that a sample used, of all models."""
    used: Mapping[str, Any] = sample.model_usage or {}
    return sum(int(usage.total_tokens) for usage in used.values())


def _named(scores: Mapping[str, Any], name: str) -> Any:
    """The value of the score that is meant."""
    flat: dict[str, Any] = {}
    for scorer, score in scores.items():
        value: Any = score.value
        if isinstance(value, dict):
            values = cast("Mapping[str, Any]", value)
            flat.update({f"{scorer}.{key}": one for key, one in values.items()})
        else:
            flat[scorer] = value
    if name in flat:
        return flat[name]
    if not name and len(flat) == 1:
        return next(iter(flat.values()))
    there = ", ".join(flat)
    if not name:
        raise LogError(f"there are several scores: {there}; say which one counts, as score=NAME")
    raise LogError(f"there is no score {name!r}; there are: {there}")


def _number(value: Any, sample: Any) -> float:
    """The value of a score as a number, as inspect_ai's metrics convert it."""
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        known = _WORDS.get(value, _WORDS.get(value.lower()))
        if known is not None:
            return known
        try:
            return float(value)
        except ValueError:
            pass
    raise LogError(
        f"the score of sample {sample.id!r} is {value!r}, which is no number; name a score that "
        "is right or wrong, or a number"
    )


def _files(given: Sequence[str | os.PathLike[str]]) -> list[Path]:
    files: list[Path] = []
    for path in map(Path, given):
        inside = sorted(one for one in path.rglob("*.eval")) if path.is_dir() else [path]
        if not inside:
            raise LogError(f"the folder {path} has no logs; they end in .eval")
        files += inside
    return files


def _version() -> str:
    return str(getattr(inspect_module("inspect_ai"), "__version__", ""))


def _said(error: Exception) -> str:
    """The first line of an error, or its kind where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
