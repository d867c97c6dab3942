"""Reads what agents did on items from tables: a row for each agent, item, or attempt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.explaining.wording import few_of
from animalcat.layouts.model.tables import TableError, guess, read_parquet, read_sheet

if TYPE_CHECKING:
    import pandas as pd

Floats: TypeAlias = npt.NDArray[np.float64]

AGENTS: Final = ("agent", "person", "model", "subject", "participant", "student", "respondent")
"""Columns that name agents, where nobody says which does."""
ITEMS: Final = ("instance", "item", "sample", "sample id", "sample_id", "task", "question")
"""Columns that name items."""
OUTCOMES: Final = ("outcome", "success", "correct", "passed", "score", "response", "resp")
"""Columns that hold outcomes."""
WORDS: Final = dict.fromkeys(
    ("success", "true", "yes", "y", "pass", "passed", "correct", "right", "c"), 1.0
) | dict.fromkeys(("failure", "false", "no", "n", "fail", "failed", "incorrect", "wrong", "i"), 0.0)
"""What words for an outcome are worth."""
UNPLAYED: Final = ("void", "fault", "invalid", "practice", "", "nan", "none", "<na>", "na")
"""Words that say that nothing came of it, or nothing that counts."""
_SHOWN: Final = 12
"""Columns that a message names."""


@dataclass(frozen=True, eq=False)
class Responses:
    """What agents did on items.

    Attributes:
        agents: Names of the agents.
        items: Names of the items.
        outcomes: (agents, items), 0 to 1; NaN where not played.
        groups: (agents,): a group of each agent; empty if there are none.
        demands: (items, demands): what each item demands, NaN where not known.
        demand_names: Names of the demands.
        notes: What was left out so far, with counts, in sentences.
    """

    agents: tuple[str, ...]
    items: tuple[str, ...]
    outcomes: Floats
    groups: tuple[str, ...] = ()
    demands: Floats = field(default_factory=lambda: np.empty((0, 0)))
    demand_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of a table mean what; what is empty is found by its name.

    Attributes:
        agent: The column that names agents.
        item: The column that names items.
        outcome: The column of outcomes, in a table with a row for each attempt.
        group: A column with the group of each agent.
        demands: Columns of demands: numbers, or words, of which each then is a demand.
    """

    agent: str = ""
    item: str = ""
    outcome: str = ""
    group: str = ""
    demands: tuple[str, ...] = ()


def read_table(path: Path) -> pd.DataFrame:
    """The cells of a file, as text where it is CSV.

    Raises:
        TableError: It cannot be read; the message names it.
    """
    import pandas as pd

    try:
        if path.suffix.lower() == ".parquet":
            return read_parquet(path)
        sheet = read_sheet(path, units=False)
    except (ValueError, OSError) as error:
        raise TableError(str(error) if str(path) in str(error) else f"{path}: {error}") from None
    return pd.DataFrame([*sheet.rows], columns=pd.Index(sheet.heads, dtype="object"), dtype=str)


def responses_of(frame: pd.DataFrame, columns: Columns) -> Responses:
    """Read a table of either form.

    Args:
        frame: A row for each attempt, with columns of agent, item and outcome; or a row for each
            item and a column for each agent; or a row for each agent and a column for each item.
        columns: Which columns mean what.

    Raises:
        TableError: It is not clear what means what, or a cell is no outcome.
    """
    heads = [*map(str, frame.columns)]
    frame = frame.set_axis(heads, axis="columns")
    agent, item = _column(heads, columns.agent, AGENTS), _column(heads, columns.item, ITEMS)
    for name in filter(None, (*columns.demands, columns.group, columns.outcome)):
        _column(heads, name)
    if agent and item:
        return _of_attempts(frame, agent, item, columns)
    key = agent or item
    if not key:
        raise TableError(
            "which column names the agents, and which the items? There are "
            f"{few_of(heads, _SHOWN)}. Say --agents COLUMN where each row is an agent, --items "
            "COLUMN where each is an item, and both where each is an attempt"
        )
    beside = [name for name in (key, columns.group, *columns.demands) if name]
    others = [head for head in heads if head not in beside]
    if not others:
        raise TableError(f"no column besides {few_of(beside, _SHOWN)} holds outcomes")
    rows = frame.set_index(key)
    if agent:
        groups = rows[columns.group].fillna("").astype(str) if columns.group else None
        return responses_in(rows[others], groups=groups)
    return responses_in(rows[others].T, demands=rows[[*columns.demands]])


def responses_in(
    frame: pd.DataFrame,
    demands: pd.DataFrame | None = None,
    groups: Mapping[str, str] | pd.Series[str] | None = None,
) -> Responses:
    """Responses of a table whose index names agents, and whose columns are items.

    Args:
        frame: The outcomes.
        demands: As for `with_demands`.
        groups: The group of each agent.

    Raises:
        TableError: A cell is no outcome, a name is there twice, or no item has demands.
    """
    agents, items = tuple(map(str, frame.index)), tuple(map(str, frame.columns))
    _insist_once("agent", agents)
    _insist_once("item", items)
    outcomes = _outcomes(
        frame.to_numpy(),
        lambda at: f"agent {agents[at // len(items)]}, item {items[at % len(items)]}",
    )
    own = tuple(str(groups.get(agent, "")) for agent in frame.index) if groups is not None else ()
    given = Responses(agents, items, outcomes, own)
    return given if demands is None or demands.empty else with_demands(given, demands)


def with_demands(given: Responses, table: pd.DataFrame) -> Responses:
    """Responses with demands from a table whose index names items, and whose columns are demands.

    A column of words is as many demands as it has words but one, each of them 0 or 1.

    Raises:
        TableError: An item has several rows, or none has one.
    """
    import pandas as pd

    made: dict[str, Any] = {}
    for name in map(str, table.columns):
        words = table[name].astype(str).str.strip()
        empty = words.isna() | words.str.lower().isin(UNPLAYED)
        numbers = pd.to_numeric(table[name], errors="coerce")
        if (numbers.notna() | empty).all():
            made[name] = numbers
        else:
            for word in sorted({*words[~empty]})[1:]:
                made[f"{name}: {word}"] = (words == word).astype(np.float64).mask(empty)
    names = [*map(str, table.index)]
    _insist_once("item", names)
    lost = [item for item in given.items if item not in {*names}]
    if len(lost) == len(given.items):
        raise TableError(f"no item is among those of the demands; the first item is {lost[0]!r}")
    values = pd.DataFrame(made, table.index).set_axis(names).reindex([*given.items])
    notes = [f"{len(lost)} of {len(given.items)} items have no row of demands."] if lost else []
    return replace(
        given,
        demands=values.to_numpy(np.float64, na_value=np.nan),
        demand_names=tuple(made),
        notes=(*given.notes, *notes),
    )


def demand_table(frame: pd.DataFrame, item: str, chosen: Sequence[str]) -> pd.DataFrame:
    """A table of demands by item, as `with_demands` takes it.

    Args:
        frame: A row for each item.
        item: The column that names items; found by its name, or the first, if empty.
        chosen: Columns of demands; all others if empty.

    Raises:
        TableError: There is no such column.
    """
    heads = [*map(str, frame.columns)]
    key = _column(heads, item, ITEMS) or heads[0]
    wanted = [_column(heads, name) for name in chosen] or [head for head in heads if head != key]
    return frame.set_axis(heads, axis="columns").set_index(key)[wanted]


def with_groups(given: Responses, frame: pd.DataFrame) -> Responses:
    """Responses with groups of agents from a table of their own: agent, group.

    Raises:
        TableError: It has not two columns, or no agent is in it.
    """
    heads = [*map(str, frame.columns)]
    if len(heads) < 2:
        raise TableError("a table of groups has a column of agents and one of groups")
    key = _column(heads, "", AGENTS) or heads[0]
    other = next(head for head in heads if head != key)
    known = dict(zip(frame[key].astype(str), frame[other].astype(str), strict=True))
    if not any(agent in known for agent in given.agents):
        raise TableError(f"no agent has a group; the first agent is {given.agents[0]!r}")
    return replace(given, groups=tuple(known.get(agent, "") for agent in given.agents))


def with_pass_marks(given: Responses, marks: Mapping[str, float] | float) -> Responses:
    """Responses as successes, where a number is above the pass mark.

    Args:
        given: The responses.
        marks: One mark, or one by item.

    Raises:
        TableError: An item has no mark.
    """
    row = [marks.get(item, np.nan) if isinstance(marks, Mapping) else marks for item in given.items]
    if lost := [item for item, mark in zip(given.items, row, strict=True) if not np.isfinite(mark)]:
        raise TableError(f"{len(lost)} items have no pass mark; the first is {lost[0]!r}")
    passed = np.where(np.isfinite(given.outcomes), given.outcomes > row, np.nan)
    return replace(given, outcomes=passed.astype(np.float64))


def _of_attempts(frame: pd.DataFrame, agent: str, item: str, columns: Columns) -> Responses:
    """Read a table with a row for each attempt."""
    heads = [*map(str, frame.columns)]
    outcome = _column(heads, columns.outcome, OUTCOMES)
    if not outcome:
        raise TableError(
            f"which column holds outcomes? There are {few_of(heads, _SHOWN)}. Say --outcome COLUMN"
        )
    again = frame.duplicated()
    frame = frame[~again]
    if frame.empty:
        raise TableError("there is no attempt")
    values = _outcomes(frame[outcome].to_numpy(), lambda at: f"row {at + 1}, column {outcome}")
    frame = frame.assign(
        **{outcome: values, agent: frame[agent].astype(str), item: frame[item].astype(str)}
    )
    tries = frame[np.isfinite(values)].groupby([agent, item], sort=False).size()
    empty, repeated = int(np.isnan(values).sum()), int((tries > 1).sum())
    twice = "{} times an agent tried an item more than once: the mean of its outcomes counts."
    notes = [
        (int(again.sum()), "Rows that occur twice, cell by cell, are read once: {}."),
        (empty, f"{{}} of {len(values)} attempts have no outcome that counts."),
        (repeated, twice),
    ]
    for name, key in ((columns.group, agent), *((name, item) for name in columns.demands)):
        if name:
            owners = frame[[key, name]].drop_duplicates()[key]
            if (many := owners[owners.duplicated()]).size:
                raise TableError(f"{key} {many.iloc[0]!r} has several values of {name}")
    wide = frame.pivot_table(
        index=agent, columns=item, values=outcome, aggfunc="mean", dropna=False, sort=False
    ).reindex(index=frame[agent].unique(), columns=frame[item].unique())
    groups = frame.drop_duplicates(agent).set_index(agent)
    demands = frame.drop_duplicates(item).set_index(item)[[*columns.demands]]
    made = responses_in(
        wide, demands, groups[columns.group].fillna("").astype(str) if columns.group else None
    )
    return replace(made, notes=tuple(words.format(count) for count, words in notes if count))


def _column(heads: Sequence[str], asked: str, usual: Sequence[str] = ()) -> str:
    """The column that is asked for, or the first of usual names; empty if there is none."""
    if asked and asked not in heads:
        listed = few_of(heads, _SHOWN)
        raise TableError(f"no column {asked!r}; columns: {listed}.{guess(asked, heads)}")
    by_name = {head.strip().lower(): head for head in reversed(heads)}
    return asked or next((by_name[name] for name in usual if name in by_name), "")


def _insist_once(what: str, names: Sequence[str]) -> None:
    """Refuse a name that is there twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise TableError(
                f"{what} {name!r} occurs {names.count(name)} times, and once is expected; in a "
                "table with a row for each attempt, name the columns of agents and items"
            )
        seen.add(name)


def _outcomes(cells: npt.NDArray[Any], place: Callable[[int], str]) -> Floats:
    """Cells as outcomes, of the same shape, with NaN where nothing came of it.

    Args:
        cells: Numbers or words.
        place: Where a cell is, by its number.
    """
    import pandas as pd

    if cells.dtype.kind in "biuf":
        values = cells.ravel().astype(np.float64)
        unplayed = np.isnan(values)
    else:
        words = pd.Series(cells.ravel()).astype(str).str.strip().str.lower()
        unplayed = (words.isna() | words.isin(UNPLAYED)).to_numpy()
        numbers = pd.to_numeric(words.mask(unplayed), errors="coerce").fillna(words.map(WORDS))
        values = np.asarray(numbers, np.float64)
    for at in np.flatnonzero(~unplayed & ~np.isfinite(values))[:1].tolist():
        raise TableError(
            f"{place(at)}: {cells.flat[at]!r} is not an outcome; give a number, or a word such as "
            "success and failure, and an empty cell where nothing was tried"
        )
    return values.reshape(cells.shape)
