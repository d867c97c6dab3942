"""Reads what agents did on items from tables: a row for each agent, item, or attempt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.checking.clinic import Responses
from animalcat.layouts.model.tables import TableError, guess

if TYPE_CHECKING:
    import pandas as pd

Floats: TypeAlias = npt.NDArray[np.float64]

AGENTS: Final = ("agent", "person", "model", "subject", "participant", "student", "respondent")
"""Columns that name agents, where nobody says which does."""
ITEMS: Final = ("instance", "item", "sample", "sample id", "sample_id", "task", "question")
"""Columns that name items."""
OUTCOMES: Final = ("outcome", "success", "correct", "passed", "score", "response", "resp")
"""Columns that hold outcomes."""
WORDS: Final = {
    **dict.fromkeys(
        ("success", "true", "yes", "y", "pass", "passed", "correct", "right", "c"), 1.0
    ),
    **dict.fromkeys(("failure", "false", "no", "n", "fail", "failed", "incorrect"), 0.0),
    **dict.fromkeys(("wrong", "i"), 0.0),
}
"""What words for an outcome are worth."""
UNPLAYED: Final = ("void", "fault", "invalid", "practice", "", "nan", "none", "<na>", "na")
"""Words that say that nothing came of it, or nothing that counts."""


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
    agent = _column(heads, columns.agent, AGENTS)
    item = _column(heads, columns.item, ITEMS)
    for name in (*columns.demands, *filter(None, [columns.group, columns.outcome])):
        _column(heads, name, ())
    if agent and item:
        return _long(frame, agent, item, columns)
    if not agent and not item:
        raise TableError(
            f"which column names the agents, and which the items? There are {_few(heads)}. Say "
            "--agents COLUMN where each row is an agent, --items COLUMN where each is an item, and "
            "both where each is an attempt"
        )
    rows = frame[agent or item].astype(str)
    if twice := rows[rows.duplicated()].tolist()[:1]:
        raise TableError(
            f"{agent or item} {twice[0]!r} has {int((rows == twice[0]).sum())} rows, and one is "
            "wanted: in a table with a row for each attempt, name the columns of agents and items"
        )
    beside = {agent or item, columns.group, *columns.demands}
    others = [head for head in heads if head not in beside]
    if not others:
        raise TableError(f"no column besides {_few([*filter(None, beside)])} holds outcomes")
    values = np.array([_values(frame[head], head) for head in others], np.float64)
    values = values.reshape(len(others), len(frame))
    names, many = tuple(rows), tuple(others)
    if agent:
        groups = _groups(frame, columns.group)
        return Responses(names, many, values.T, groups)
    demands, told = demands_of(frame, columns.demands)
    return Responses(many, names, values, (), demands, told)


def demands_of(frame: pd.DataFrame, chosen: Sequence[str]) -> tuple[Floats, tuple[str, ...]]:
    """Columns of demands as numbers; of words, one for each but the first is 0 or 1.

    Args:
        frame: A row for each item.
        chosen: The columns.
    """
    import pandas as pd

    made: dict[str, Any] = {}
    for name in chosen:
        numbers = pd.to_numeric(frame[name], errors="coerce")
        empty = frame[name].astype(str).str.strip().str.lower().isin(UNPLAYED)
        if (numbers.notna() | empty).all():
            made[name] = numbers.to_numpy(np.float64, na_value=np.nan)
            continue
        words = frame[name].astype(str).str.strip()
        for word in sorted(set(words[~empty]))[1:]:
            made[f"{name}: {word}"] = np.where(empty, np.nan, (words == word).astype(float))
    return np.array([*made.values()]).reshape(len(made), len(frame)).T, tuple(made)


def with_demands(
    given: Responses, frame: pd.DataFrame, item: str, chosen: Sequence[str]
) -> Responses:
    """Responses with demands from a table of their own.

    Args:
        given: The responses.
        frame: A row for each item.
        item: The column that names items; found by its name, or the first, if empty.
        chosen: Columns of demands; all others if empty.

    Raises:
        TableError: An item has several rows, or none has one.
    """
    heads = [*map(str, frame.columns)]
    key = _column(heads, item, ITEMS) or heads[0]
    names = frame[key].astype(str)
    if twice := names[names.duplicated()].tolist()[:1]:
        raise TableError(f"{key} {twice[0]!r} has several rows of demands, and one is wanted")
    values, told = demands_of(frame, [*chosen] or [head for head in heads if head != key])
    place = {name: row for row, name in enumerate(names)}
    lost = [name for name in given.items if name not in place]
    if len(lost) == len(given.items):
        raise TableError(f"no item is among those of the demands; the first item is {lost[0]!r}")
    rows = [
        values[place[name]] if name in place else np.full(len(told), np.nan) for name in given.items
    ]
    note = [f"{len(lost)} of {len(given.items)} items have no row of demands."] if lost else []
    return replace(given, demands=np.array(rows), demand_names=told, notes=(*given.notes, *note))


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


def with_pass_marks(given: Responses, marks: dict[str, float] | float) -> Responses:
    """Responses as successes, where a number is above the pass mark.

    Args:
        given: The responses.
        marks: One mark, or one by item.

    Raises:
        TableError: An item has no mark.
    """
    if isinstance(marks, dict):
        if lost := [item for item in given.items if not math.isfinite(marks.get(item, math.nan))]:
            raise TableError(f"{len(lost)} items have no pass mark; the first is {lost[0]!r}")
        row = np.array([marks[item] for item in given.items])
    else:
        row = np.full(len(given.items), marks)
    y = given.outcomes
    return replace(given, outcomes=np.where(np.isfinite(y), (y > row).astype(np.float64), np.nan))


def _long(frame: pd.DataFrame, agent: str, item: str, columns: Columns) -> Responses:
    """A table with a row for each attempt."""
    heads = [*map(str, frame.columns)]
    outcome = _column(heads, columns.outcome, OUTCOMES)
    if not outcome:
        raise TableError(
            f"which column holds outcomes? There are {_few(heads)}. Say --outcome COLUMN"
        )
    notes: list[str] = []
    again = frame.duplicated()
    if count := int(again.sum()):
        notes.append(f"{count} rows that stand there twice in every cell are read once.")
        frame = frame[~again]
    values = _values(frame[outcome], outcome)
    empty = int(np.isnan(values).sum())
    if empty:
        notes.append(f"{empty} of {len(values)} attempts have no outcome that counts.")
    frame = frame.assign(**{outcome: values})
    frame = frame.assign(**{agent: frame[agent].astype(str), item: frame[item].astype(str)})
    if frame.empty:
        raise TableError("there is no attempt")
    counted = frame[np.isfinite(values)]
    sizes = counted.groupby([agent, item], sort=False).size()
    if count := int((sizes > 1).sum()):
        notes.append(
            f"{count} times an agent tried an item more than once: the mean of its outcomes counts."
        )
    wide = frame.pivot_table(
        index=agent, columns=item, values=outcome, aggfunc="mean", dropna=False, sort=False
    )
    agents, items = [*dict.fromkeys(frame[agent])], [*dict.fromkeys(frame[item])]
    wide = wide.reindex(index=agents, columns=items)
    for name, key in ((columns.group, agent), *((name, item) for name in columns.demands)):
        if name:
            kinds = frame[[key, name]].drop_duplicates()
            if (many := kinds[key][kinds[key].duplicated()]).size:
                raise TableError(f"{key} {many.iloc[0]!r} has several values of {name}")
    per_agent = frame.drop_duplicates(agent).set_index(agent).loc[agents]
    demands, told = demands_of(frame.drop_duplicates(item), columns.demands)
    return Responses(
        tuple(agents), tuple(items), wide.to_numpy(np.float64),
        _groups(per_agent, columns.group), demands, told, tuple(notes),
    )  # fmt: skip


def _groups(frame: pd.DataFrame, name: str) -> tuple[str, ...]:
    return tuple(frame[name].astype(str)) if name else ()


def _column(heads: Sequence[str], asked: str, usual: Sequence[str]) -> str:
    """The column that is asked for, or the first of usual names; empty if there is none."""
    if asked and asked not in heads:
        raise TableError(f"no column {asked!r}; columns: {_few(heads)}.{guess(asked, heads)}")
    by_name = {head.strip().lower(): head for head in reversed(heads)}
    return asked or next((by_name[name] for name in usual if name in by_name), "")


def _values(cells: Any, column: str) -> Floats:
    """Outcomes as numbers; NaN where nothing came of it."""
    found = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells.tolist()):
        word = str(cell).strip().lower()
        if word in WORDS:
            found[row] = WORDS[word]
        elif word not in UNPLAYED:
            try:
                found[row] = float(word)
            except ValueError:
                raise TableError(
                    f"row {row + 1}, column {column}: {cell!r} is no outcome; a number is wanted, "
                    "or a word such as success and failure, and an empty cell where nothing was "
                    "tried"
                ) from None
    return found


def _few(names: Sequence[str]) -> str:
    return ", ".join([*names[:12], *([f"{len(names) - 12} more"] if len(names) > 12 else [])])
