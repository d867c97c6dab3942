"""Reads samples and logs of inspect_ai: who was asked what, with which demands, and what came."""

from __future__ import annotations

import math
import os
import sys
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from animalcat.extending.installing import missing
from animalcat.outcomes import feature_units

if TYPE_CHECKING:
    import pandas as pd

KEY: Final = "animalcat"
"""The key of what we write into the metadata of a task, of a sample and of a log."""
MOST_BYTES: Final = 256 << 20
"""Most bytes that a log unpacks to, beside its samples."""
MOST_PARTS: Final = 1_000_000
"""Most parts of a log, of which each sample is one."""
PROFILE: Final = f"{KEY}_profile"
"""The key under which a log has the profile, once its task has ended."""
TRIALS: Final = f"{KEY}_trials"
"""The key under which the log of a session says which arena each of its samples was."""
_VOID_LIMITS: Final = frozenset({"time", "working", "cost", "operator"})
"""Limits that say nothing of the agent: the same agent on a faster machine would go on."""
_CANCELLED: Final = ("CancelledError(", "Cancelled(")
"""How inspect_ai words the error of a sample that an operator cancelled."""
_WORTH: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("C", "yes", "true"), 1.0),
    **dict.fromkeys(("I", "N", "no", "false"), 0.0),
    "P": 0.5,
}
"""What inspect_ai's words for a score are worth: correct, partial, incorrect, no answer."""


class LogError(ValueError):
    """A log cannot be read as outcomes; the message says which, why, and what to do."""


class Came(NamedTuple):
    """What came of one run of a sample.

    Attributes:
        outcome: Its score as a number; None for a void.
        void: Why it does not count, in a word or two; empty if it does.
        late: Whether it failed in an earlier attempt at the task, so that choices that stand rest
            on its being void; its outcome counts in the end.
        limit: The kind of limit that ended it; empty for none.
        refused: Whether the last answer was held back by a filter; it counts as it was scored.
        tokens: Tokens used, of all models.
        returned: Those of them that the models returned.
        cost: Dollars spent.
        seconds: Time it took.
    """

    outcome: float | None
    void: str = ""
    late: bool = False
    limit: str = ""
    refused: bool = False
    tokens: int = 0
    returned: int = 0
    cost: float = 0.0
    seconds: float = 0.0


class Log(NamedTuple):
    """A log: its file, inspect_ai's `EvalLog` without samples, and summaries of what was run."""

    path: Path
    header: Any
    samples: Sequence[Any]


def inside(module: str, name: str) -> Any:
    """What a module of inspect_ai has, also where it is for its own use alone.

    Raises:
        ImportError: inspect_ai is not installed, or this version of it has no such thing.
    """
    try:
        import_module("inspect_ai")
    except ImportError as error:
        raise missing("this", error, "inspect") from None
    try:
        return getattr(import_module(f"inspect_ai.{module}"), name)
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"this version of inspect_ai has no {name} in inspect_ai.{module}, which animalcat "
            "relies on; install the version that animalcat's extra `inspect` asks for"
        ) from error


def came_of(sample: Any, score: str = "") -> Came:
    """What came of an `EvalSample` or its summary, by one rule for running tasks and for logs.

    Limits of messages, tokens, turns and context, and those that a task sets itself, are outcomes
    as they were scored: to leave them out would flatter whoever runs out. Limits of time and cost,
    errors, and what an operator ended or nobody scored are voids.

    Args:
        sample: The sample.
        score: Name of the score, or "scorer.key" where a scorer gives several; may be empty if
            there is one.

    Raises:
        LogError: There is no score of that name, or it is no number.
    """
    limit = str(getattr(sample.limit, "type", sample.limit) or "")
    outcome, void = None, ""
    if sample.error is not None:
        text = sample.error if isinstance(sample.error, str) else sample.error.message
        void = "cancelled" if text.startswith(_CANCELLED) else "error"
    elif limit in _VOID_LIMITS:
        void = "ended by the operator" if limit == "operator" else f"limit of {limit}"
    elif (outcome := number_of(sample.scores, score, sample.id)) is None:
        void = "not scored"
    errors: list[Any] | None = getattr(sample, "error_retries", None)
    before: int = getattr(sample, "retries", 0) or 0 if errors is None else len(errors)
    record = record_of(sample)
    late = before >= int(record.get("tries", 1))
    refused = bool(record.get("refused"))
    used: Mapping[str, Any] = sample.model_usage or {}
    tokens = sum(int(usage.total_tokens) for usage in used.values())
    returned = sum(int(usage.output_tokens) for usage in used.values())
    cost = sum(usage.total_cost or 0.0 for usage in used.values())
    seconds = sample.total_time or 0.0
    return Came(outcome, void, late, limit, refused, tokens, returned, cost, seconds)


def metadata_of(one: Any) -> Mapping[str, Any]:
    """The metadata of a sample, a task or a log."""
    return one.metadata or {}


def record_of(one: Any) -> Mapping[str, Any]:
    """What we wrote into the metadata of a sample, a task or a log; empty for those of others."""
    ours = metadata_of(one).get(KEY)
    return cast("Mapping[str, Any]", ours) if isinstance(ours, dict) else {}


def number_of(scores: Mapping[str, Any] | None, name: str, sample: Any) -> float | None:
    """The score that is meant as a number, as inspect_ai's metrics convert it; None for none.

    Raises:
        LogError: As for `came_of`.
    """
    flat: dict[str, Any] = {}
    for scorer, score in (scores or {}).items():
        value: Any = score.value
        parts = cast("dict[str, Any]", value) if isinstance(value, dict) else None
        flat |= {scorer: value} if parts is None else {f"{scorer}.{k}": v for k, v in parts.items()}
    if not flat:
        return None
    there = ", ".join(flat)
    if not name and len(flat) > 1:
        raise LogError(f"there are several scores: {there}; say which one counts, as score=NAME")
    if name and name not in flat:
        raise LogError(f"there is no score {name!r}; there are: {there}")
    value = flat[name or there]
    word = str(value)
    try:
        number = float(_WORTH.get(word, _WORTH.get(word.lower(), value)))
    except (TypeError, ValueError):
        raise LogError(
            f"the score of sample {sample!r} is {value!r}, which is not a number; name a score "
            "that is right or wrong, or a number"
        ) from None
    return None if math.isnan(number) else number


def open_log(path: str | os.PathLike[str]) -> Log:
    """Read a log's header and the summaries of the samples that were run, as they were logged.

    Raises:
        LogError: It is no log, damaged, or of a version that this inspect_ai cannot read.
        ImportError: inspect_ai is not installed.
    """
    place = Path(path)
    read, summaries = (
        inside("log", "read_eval_log"),
        inside("log", "read_eval_log_sample_summaries"),
    )
    if not place.is_file():
        raise LogError(f"there is no log {place}; give the path of a file that ends in .eval")
    try:  # in a thread, since within an event loop inspect_ai would patch asyncio for good
        if place.suffix == ".eval":
            count_parts(place)
        with ThreadPoolExecutor(1) as apart:
            header = apart.submit(read, str(place), header_only=True).result()
            samples = apart.submit(summaries, str(place)).result()
    except Exception as error:  # what is wrong with a file comes as any of many
        said = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise LogError(
            f"{place} is not a log that this version of inspect_ai can read ({said}); was it "
            "written by a newer version, or cut short?"
        ) from error
    return Log(place, header, [one for one in samples if one.completed or one.error or one.scores])


def logs_in(
    paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
) -> list[Path]:
    """The files of logs that are named, or are in folders that are named.

    Raises:
        LogError: A folder has none.
    """
    given = map(Path, [paths] if isinstance(paths, str | os.PathLike) else paths)
    found: list[Path] = []
    for path in given:
        files = sorted(path.rglob("*.eval")) if path.is_dir() else [path]
        if not files:
            raise LogError(f"the folder {path} has no logs; they end in .eval")
        found += files
    return found


def count_parts(place: Path) -> None:
    """Count what the parts of a log unpack to that are read, before they are read whole.

    Raises:
        ValueError: They are too many, or too much.
    """
    left = MOST_BYTES
    with zipfile.ZipFile(place) as archive:
        parts = archive.infolist()
        if len(parts) > MOST_PARTS:
            raise ValueError(f"it has {len(parts):,} parts; at most {MOST_PARTS:,} are read")
        for part in parts:
            if part.filename.startswith("samples/"):
                continue  # not looked into
            part.file_size = sys.maxsize  # what it says may be a lie
            with archive.open(part) as file:
                while piece := file.read(1 << 20):
                    left -= len(piece)
                    if left < 0:
                        raise ValueError(f"it unpacks to more than {MOST_BYTES >> 20} MiB")


def numbers_in(metadata: Mapping[str, Any]) -> dict[str, float]:
    """What of a sample's metadata is a number, and may be a demand."""
    return {
        key: float(value)
        for key, value in metadata.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def trials_of(outcomes: pd.DataFrame) -> dict[str, Any]:
    """Which arena each attempt of a session was, and what each arena asks for, as JSON values."""
    heads = [*feature_units(outcomes)]
    asked = outcomes.drop_duplicates("instance").set_index("instance")[heads]
    names = outcomes["episode"].astype(str) + "-" + outcomes["attempt"].astype(str)
    return {
        "instance": dict(zip(names, outcomes["instance"], strict=True)),
        "demands": {str(name): row.dropna().to_dict() for name, row in asked.iterrows()},
    }
