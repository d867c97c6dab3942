"""Tables of outcomes: one schema for CSV, Parquet and pandas, one row an attempt at an episode.

    frame = read_outcomes("outcomes.parquet")
    frame.groupby("paradigm")["return"].mean()

The columns of `COLUMNS` come first. Every other column is a meta-feature, a number whose unit
stands in brackets after its name, as in `rewardDistance [m]`. A cell that does not apply is empty
in CSV, null in Parquet and missing in pandas.

It needs pandas, and for Parquet pyarrow, which the extra `learner` brings.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, TypeAlias

from animalcat.layouts.model.tables import TableError, name_and_unit, read_parquet, read_sheet
from animalcat.layouts.model.units import UnitError, conversion
from animalcat.machine.files import write_whole

if TYPE_CHECKING:
    import pandas as pd

Form: TypeAlias = Literal["csv", "parquet"]
Kind: TypeAlias = Literal["text", "number", "count", "flag"]

COLUMNS: Final[Mapping[str, Kind]] = {
    "episode": "count",
    "attempt": "count",
    "instance": "text",
    "suite": "text",
    "paradigm": "text",
    "task": "text",
    "variant": "text",
    "control": "text",
    "control_of": "text",
    "group": "text",
    "arena": "text",
    "arena_seed": "text",
    "outcome": "text",
    "cause": "text",
    "weight": "number",
    "return": "number",
    "return_share": "number",
    "time_left": "number",
    "rewards_taken": "number",
    "choice": "number",
    "pass_mark": "number",
    "steps": "count",
    "played_before": "count",
    "ended_by": "text",
    "score": "number",
    "propensity": "number",
    "predicted": "number",
    "reason": "text",
    "peers_left": "count",
    "peers_propensity": "number",
    "peers_predicted": "number",
    "peers_open": "flag",
    "tokens_in": "count",
    "tokens_out": "count",
    "answers": "count",
    "unparseable": "count",
    "refusals": "count",
    "repeats": "count",
    "limits": "count",
    "errors": "count",
    "costs": "text",
    "backend": "text",
    "versions": "text",
    "build": "text",
    "version": "text",
    "decision_period": "count",
    "camera": "text",
    "session": "text",
    "agent": "text",
    "agent_fingerprint": "text",
    "battery": "text",
    "layout": "text",
    "state": "text",
    "labels": "text",
}
"""Columns that are no meta-features, in order, and what they hold.

`tokens_in`, `tokens_out` and `costs` (JSON, by currency) are sums of what the agent's notes say.
`answers` are those in words that its notes tell of; of these `unparseable` could not be read,
`refusals` were refusals, and `repeats` were read and had the words of the one before. `limits` says
how often a limit cut an answer off or kept it from being asked, and `errors` how often a model's
provider failed and was asked again.
`versions` is JSON: every version that could change the number. `build` and `version` are what a
reader looks for in it: the Unity build, or the simulator's rules; and the version of animalcat.
`control` says which control an instance is of the one that `control_of` names; both are empty for
an instance that is no control, and `control_of` where that one is not in the battery.
`arena` is the SHA-256 of the arena as it was played, and `arena_seed` its seed if play leaves
anything to chance: equal arenas under different names are one item. `weight` says how many outcomes
a row counts as, since a repeat of a deterministic agent is no new evidence. `cause` says why an
attempt did not come to an end in the arena. `played_before` says how many arenas the agent had
played before, where the session's layout counts them. `agent_fingerprint` tells versions of an
agent apart; it is empty where that is unknown.
`labels` says what is to be known of the session: that it is unfinished or contradicted.
"""
REQUIRED: Final = ("instance", "outcome")
"""Columns that a table of outcomes cannot do without."""
OUTCOMES: Final = ("success", "failure", "void", "fault", "invalid", "practice")
"""What may have become of an attempt; the first two count."""
_DTYPES: Final[Mapping[Kind, str]] = {
    "text": "string",
    "number": "Float64",
    "count": "Int64",
    "flag": "boolean",
}
_ROWS: Final = 5_000
"""Rows of a long table that are held at a time."""
_ROUNDING: Final = 1e-9
"""By how much a value may be out of its range."""
_MOST_COUNT: Final = 2.0**63
"""Counts are kept in 64 bits with a sign."""


class OutcomesError(ValueError):
    """A table is not one of outcomes; the message says where, and what is wanted."""


def outcomes_frame(
    rows: Iterable[Mapping[str, Any]], units: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return a table of outcomes.

    Args:
        rows: One mapping an attempt, with keys of `COLUMNS`, and with `features`, which maps each
            meta-feature to its value. What is absent or None makes a missing cell.
        units: Unit by meta-feature; empty for none.
    """
    import pandas as pd

    heads = {name: _head(name, unit) for name, unit in (units or {}).items()}
    cells = [
        {
            **{name: row.get(name) for name in COLUMNS},
            **{head: row["features"].get(name) for name, head in heads.items()},
        }
        for row in rows
    ]
    names = pd.Index([*COLUMNS, *heads.values()], dtype="object")
    return check_outcomes(pd.DataFrame(cells, columns=names))


def check_outcomes(frame: pd.DataFrame, lines: Sequence[int] = ()) -> pd.DataFrame:
    """Return a table with the columns and types of the schema, in its order.

    Args:
        frame: The table. Columns of the schema may be absent, except for `REQUIRED`.
        lines: The line of each row in the file that it was read from, for messages. Without them
            rows are counted as a spreadsheet counts: the header is row 1.

    Raises:
        OutcomesError: A column is missing or given twice, or a cell does not fit its column.
    """
    import pandas as pd

    columns = [str(name) for name in frame.columns]
    frame = frame.set_axis(pd.Index(columns, dtype="object"), axis="columns")
    for name in columns:
        if columns.count(name) > 1:
            raise OutcomesError(f"column {name!r} is there {columns.count(name)} times")
    for name in REQUIRED:
        if name not in columns:
            raise OutcomesError(f"no column {name!r}; columns: {', '.join(columns) or 'none'}")
    made: dict[str, Any] = {}
    features = [name for name in columns if name not in COLUMNS]
    kinds: dict[str, Kind] = {**COLUMNS, **dict.fromkeys(features, "number")}
    for name, kind in kinds.items():
        given = frame[name] if name in columns else pd.Series([None] * len(frame), frame.index)
        made[name] = _column(given, name, kind, lines)
    checked = pd.DataFrame(made, index=pd.RangeIndex(len(frame)))
    known = checked["outcome"].isin(OUTCOMES)
    if not known.all():
        row = int((~known).to_numpy().argmax())
        raise OutcomesError(
            f"{_place(row, lines)}, column 'outcome': {checked['outcome'].iloc[row]!r} is unknown; "
            f"valid: {', '.join(OUTCOMES)}"
        )
    return checked


def feature_units(frame: pd.DataFrame) -> dict[str, str]:
    """Return the unit of each meta-feature of a table, by its column; empty where it has none."""
    return {
        column: name_and_unit(column)[1] or ""
        for column in map(str, frame.columns)
        if column not in COLUMNS
    }


def outcomes_bytes(frame: pd.DataFrame, form: Form) -> bytes:
    """Return the content of a file that holds a table.

    Args:
        frame: The table, as `check_outcomes` returns it.
        form: "csv" (UTF-8, with a header line) or "parquet".
    """
    buffer = io.BytesIO()
    _write_frames([frame], buffer, form)
    return buffer.getvalue()


def write_rows(
    rows: Iterable[Mapping[str, Any]], units: Mapping[str, str], file: BinaryIO, form: Form
) -> None:
    """Write a table of outcomes, of which only some rows are held at a time.

    Args:
        rows: As `outcomes_frame` takes them.
        units: Unit by meta-feature; empty for none.
        file: Where to.
        form: "csv" or "parquet".
    """
    source = iter(rows)
    parts = iter(lambda: list(islice(source, _ROWS)), list[Any]())
    frames = (outcomes_frame(part, units) for part in parts)
    _write_frames(chain([next(frames, outcomes_frame([], units))], frames), file, form)


def _write_frames(frames: Iterable[pd.DataFrame], file: BinaryIO, form: Form) -> None:
    """Write the parts of a table, one part at least."""
    if form == "csv":
        for number, frame in enumerate(frames):
            text = frame.to_csv(index=False, lineterminator="\n", header=not number)
            file.write(text.encode())
        return
    arrow: Any = import_module("pyarrow")
    tables = (arrow.Table.from_pandas(frame, preserve_index=False) for frame in frames)
    first = next(tables)
    with import_module("pyarrow.parquet").ParquetWriter(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def read_outcomes(source: Path | str | bytes, form: Form | None = None) -> pd.DataFrame:
    """Read a table of outcomes.

    Args:
        source: A file, or the content of one.
        form: "csv" or "parquet"; by default what the name or the content of the file says.

    Raises:
        OutcomesError: It is no such table.
        OSError: The file cannot be read.
    """
    import pandas as pd

    lines: Sequence[int] = ()
    content = source if isinstance(source, bytes) else Path(source).read_bytes()
    if form is None:
        form = "parquet" if content[:4] == b"PAR1" else "csv"
    try:
        if form == "parquet":
            frame = read_parquet(content)
        else:
            sheet = read_sheet(content, units=False, may_be_empty=True)
            heads, lines = pd.Index(sheet.heads, dtype="object"), sheet.lines
            frame = pd.DataFrame(list(sheet.rows), columns=heads, dtype=str)
    except TableError as error:
        raise OutcomesError(str(error)) from None
    return check_outcomes(frame, lines)


def write_outcomes(frame: pd.DataFrame, path: Path | str) -> None:
    """Write a table of outcomes, either completely or not at all.

    Args:
        frame: The table.
        path: Where to; its ending says which form, `.csv` or `.parquet`.

    Raises:
        OutcomesError: It is no table of outcomes, or the ending is unknown.
        OSError: It cannot be written.
    """
    path = Path(path)
    forms: dict[str, Form] = {".csv": "csv", ".parquet": "parquet"}
    if path.suffix.lower() not in forms:
        raise OutcomesError(f"{path}: call it .csv or .parquet, which says the form")
    write_whole(path, outcomes_bytes(check_outcomes(frame), forms[path.suffix.lower()]))


def _head(feature: str, unit: str) -> str:
    """The column of a meta-feature; one without a unit must not be taken for another column."""
    return f"{feature} [{unit or 1}]" if unit or feature in COLUMNS else feature


def _place(row: int, lines: Sequence[int]) -> str:
    """Where a row is, as a spreadsheet counts."""
    return f"line {lines[row]}" if lines else f"row {row + 2} (the header is row 1)"


def _column(given: pd.Series[Any], name: str, kind: Kind, lines: Sequence[int]) -> pd.Series[Any]:
    """A column of the right type; an empty cell of CSV is a missing one."""
    import pandas as pd

    low, high = _range(name, kind)
    cells: list[Any] = []
    for row, cell in enumerate(given.tolist()):
        try:
            cells.append(_cell(cell, kind, low, high))
        except ValueError as error:
            where = f"{_place(row, lines)}, column {name!r}"
            raise OutcomesError(f"{where}: {cell!r} {error}") from None
    return pd.Series(cells, dtype=_DTYPES[kind])  # pyright: ignore[reportCallIssue, reportArgumentType, reportUnknownVariableType]


def _range(name: str, kind: Kind) -> tuple[float, float]:
    """The least and the greatest value that a column may have; infinite where there is none."""
    if name in COLUMNS:
        return (0.0 if kind == "count" or name == "weight" else -math.inf), math.inf
    try:
        from animalcat.arena_configs.features.registry import FEATURES
    except ModuleNotFoundError:  # the client alone: the server checks
        return -math.inf, math.inf
    feature, unit = name_and_unit(name)
    known = FEATURES.get(feature)
    try:
        factor = conversion(known.unit, unit) if known is not None and unit else 1.0
    except UnitError:
        return -math.inf, math.inf
    return (known.low * factor, known.high * factor) if known else (-math.inf, math.inf)


def _cell(cell: Any, kind: Kind, low: float, high: float) -> Any:
    """A cell of the right type; None where it is missing.

    Raises:
        ValueError: It does not fit; the message is the end of a sentence.
    """
    missing: Any = cell is None or cell != cell
    if type(missing) is not bool or missing or (isinstance(cell, str) and not cell.strip()):
        return None  # pandas' own missing value is equal to nothing, not even unequal
    if kind == "text":
        return str(cell)
    if kind == "flag":
        known = {"true": True, "false": False, "1": True, "0": False}
        if str(cell).lower() not in known:
            raise ValueError("is neither True nor False")
        return known[str(cell).lower()]
    try:
        value = float(str(cell))
    except (TypeError, ValueError):
        raise ValueError("is not a number") from None
    if kind == "count" and abs(value) >= _MOST_COUNT:
        raise ValueError("is too large; give less than 2**63")
    if kind == "count" and not value.is_integer():
        raise ValueError("is no whole number")
    if math.isinf(value):
        raise ValueError("is not a finite number; leave a cell empty where there is none")
    if not low - _ROUNDING <= value <= high + _ROUNDING:
        raise ValueError(f"is out of range; it goes from {low:g} to {high:g}")
    return int(value) if kind == "count" else value
