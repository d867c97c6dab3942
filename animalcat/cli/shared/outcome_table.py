"""Reads final rewards that were earned elsewhere: one row an instance, one column an agent."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import pandas as pd

from animalcat.arena_configs.outcome import success
from animalcat.cli.shared.outcome_options import As
from animalcat.cli.shared.output import fail
from animalcat.layouts.model.tables import (
    Sheet,
    TableError,
    check_alike,
    guess,
    plain_name,
    read_sheet,
)

INSTANCE: Final = "instance"
"""The column that names instances."""
Outcomes: TypeAlias = dict[str, dict[str, float]]
"""Successes (1) and failures (0), by agent and instance."""
Source: TypeAlias = Path | str
"""A file, or the text of one."""

_ABOUT: Final = frozenset(
    {
        *("seed", "seeds", "episode", "episodes", "attempt", "attempts", "run", "trial", "repeat"),
        *("date", "time", "datetime", "timestamp", "day", "index", "idx", "id", "row", "number"),
        *("step", "steps", "ticks", "frames", "length", "duration", "seconds", "timelimit"),
        *("difficulty", "weight", "outcome", "agent", "rewards"),
        *("suite", "paradigm", "task", "variant", "group", "category", "level", "passmark"),
        *("mean", "average", "sum", "total", "std", "min", "max", "median", "count"),
    }
)
"""Names of columns that say something about rows, and are no agent's rewards."""
_ROUNDED: Final = 0.02
"""By how much a return may be above what its arena can give, since others round or build anew."""

T = TypeVar("T")


def or_fail(path: Path, read: Callable[[], T]) -> T:
    """What reading a file gives; ends the command, and names the file, where it is wrong."""
    try:
        return read()
    except TableError as error:
        fail(str(error) if str(path) in str(error) else f"{path}: {error}")


def is_export(source: Path | str) -> bool:
    """Whether a table has the form of `profile export --format csv`: a row for each attempt.

    Raises:
        TableError: It is no table.
    """
    if isinstance(source, Path):
        try:
            with source.open("rb") as file:
                if file.read(4) == b"PAR1":
                    return True
        except OSError as error:
            raise TableError(f"{source}: {error.strerror or 'cannot be read'}") from None
    return {"instance", "outcome"} <= set(read_sheet(source, units=False, may_be_empty=True).names)


def rewards_of(source: Source, agents: Sequence[str] = ()) -> tuple[pd.DataFrame, bool]:
    """Final rewards: instances as the index, one float column an agent, NaN for an empty cell.

    Args:
        source: A file, or its text.
        agents: The columns to take; without them, all must be those of agents.

    Returns:
        The rewards, and whether they are words: true and false, or success and failure.

    Raises:
        TableError: It is no such table, or a column may be something else.
    """
    sheet = read_sheet(source, agents)
    names = _rows(sheet)
    for agent in agents:
        if agent not in sheet:
            others = [name for name in sheet.names if name != INSTANCE]
            hint = guess(agent, others)
            raise TableError(f"no agent {agent!r}; agents: {', '.join(others)}.{hint}")
    chosen = list(dict.fromkeys(agents)) or _agents(sheet)
    check_alike(chosen, "agents")
    table = pd.DataFrame({agent: sheet.outcomes(agent) for agent in chosen}, index=list(names))
    table.index.name = INSTANCE
    return table, any(sheet.in_words(agent) for agent in chosen)


def marks_of(source: Source) -> pd.Series[float]:
    """Pass marks, instances as the index, NaN for an empty cell.

    Raises:
        TableError: It is no such table.
    """
    sheet = read_sheet(source)
    names = _rows(sheet)
    return pd.Series(sheet.numbers("pass_mark"), index=list(names), name="pass_mark")


def judge_rewards(
    rewards: pd.DataFrame,
    marks: Mapping[str, float],
    most: Mapping[str, float],
    *,
    words: bool = False,
    taken_as: As | None = None,
) -> Outcomes:
    """Say which episodes were passed.

    Args:
        rewards: Final rewards as `rewards_of` has them.
        marks: The pass mark of each instance that matters.
        most: The greatest return of each of them, as far as it is known.
        words: Whether they are words for outcomes.
        taken_as: What the numbers are; None where nobody said it, and where numbers that may be
            either are refused.

    Raises:
        TableError: Nobody said what the numbers are, or they are not what was said.
    """
    columns = {
        str(agent): {str(k): float(v) for k, v in rewards[agent].items() if not math.isnan(v)}
        for agent in rewards.columns
    }
    if taken_as != "successes":
        _check_returns(columns, most, words=words, taken_as=taken_as)
    outcomes: Outcomes = {}
    for agent, own in columns.items():
        outcomes[agent] = {}
        for instance, value in own.items():
            if taken_as == "successes" and value not in (0.0, 1.0):
                raise TableError(
                    f"instance {instance}, column {agent}: {value:g} is neither 0 nor 1; with "
                    "--as successes a success is 1 and a failure 0. Give --as returns for returns"
                )
            if instance in marks:
                passed = value if taken_as == "successes" else success(value, marks[instance])
                outcomes[agent][instance] = float(passed)
    return outcomes


def _check_returns(
    columns: Mapping[str, Mapping[str, float]],
    most: Mapping[str, float],
    *,
    words: bool,
    taken_as: As | None,
) -> None:
    """Refuse returns that may be flags, and those that an arena cannot give."""
    values = {value for own in columns.values() for value in own.values()}
    if words:
        if taken_as == "returns":
            raise TableError("--as returns: returns are numbers, and there are words for outcomes")
        raise TableError("there are words for outcomes: give --as successes to take them as such")
    if taken_as is None:
        flags = [
            agent
            for agent, own in columns.items()
            if len(own) > 3 and {*own.values()} == {0.0, 1.0} and agent
        ]
        if values and len(values) < 3 and all(value.is_integer() for value in values):
            values_seen = " and ".join(f"{value:g}" for value in sorted(values))
            raise TableError(
                f"all outcomes are {values_seen}: are they successes, or returns that are compared "
                "with pass marks? Give --as successes or --as returns"
            )
        if flags:
            raise TableError(
                f"all outcomes of {flags[0]} are 0 and 1, and those of others are not: are they "
                "successes? Put them into a table of their own, and give --as successes; or "
                "--as returns if they are returns"
            )
    for agent, own in columns.items():
        for instance, value in own.items():
            limit = most.get(instance, math.inf)
            if value > limit + _ROUNDED:
                raise TableError(
                    f"instance {instance}, column {agent}: {value:g} is more than the arena can "
                    f"give, {limit:.4g}. Final rewards are expected; is {agent!r} an agent, and is "
                    "this the arena that was played?"
                )


def _rows(sheet: Sheet) -> tuple[str, ...]:
    """The instances of the rows, each once."""
    if INSTANCE not in sheet:
        listed = ", ".join(sheet.names)
        raise TableError(
            f"no column `{INSTANCE}`; columns: {listed}. It names the arena of each row, and every "
            "other column holds the final rewards of an agent"
        )
    return sheet.row_names(INSTANCE)


def _agents(sheet: Sheet) -> list[str]:
    """The columns of agents, where all others than `instance` must be."""
    agents = [name for name in sheet.names if name != INSTANCE]
    if not agents:
        raise TableError(
            f"no column besides `{INSTANCE}`; give one column of final rewards for each agent"
        )
    for name in agents:
        why = ""
        if plain_name(name) in _ABOUT:
            why = "seems to say something about rows"
        elif (unit := sheet.unit(name)) is not None:
            why = f"has a unit, {unit!r}"
        elif sheet.is_count(name):
            why = "numbers the rows"
        if why:
            raise TableError(
                f"column {name!r} {why}, and every other column is taken for an agent's final "
                f"rewards. Take it out, or name the agents by --agent"
            )
    return agents
