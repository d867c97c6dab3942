"""Joins outcomes with the arenas of a battery, for `layout fit` and `battery calibrate`."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from animalcat.cli.shared.outcome_options import As
from animalcat.cli.shared.outcome_table import (
    INSTANCE,
    Outcomes,
    is_export,
    judge_rewards,
    marks_of,
    rewards_of,
)
from animalcat.cli.shared.output import say
from animalcat.layouts.model.instances import (
    CoveredOutcomes,
    Instances,
    OutcomeTable,
    assumed_values,
    chances_of,
    left_out,
    told_gaps,
)
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.model.tables import TableError, guess, name_and_unit, read_sheet
from animalcat.layouts.model.units import UnitError, conversion
from animalcat.service.batteries.battery import Battery
from animalcat.service.batteries.naming import KnownNames, NamesError
from animalcat.service.errors import ServiceError
from animalcat.service.measuring.coverage import coverage

CLOSE: Final = 1e-6
"""Tolerance, relative and absolute, between demands of a table and those of a battery."""
CHANCE: Final = "its file leaves positions, rotations or sizes to chance"
"""Why outcomes on an arena are left out that was drawn anew where it was played."""
UNKNOWN: Final = "not in the battery"
"""Why outcomes on an arena are left out that the battery does not have."""


def mark_battery(
    battery: Battery,
    pass_marks: Path | str | None,
    outcomes: Path | str,
    taken_as: As | None = None,
) -> Battery:
    """The battery with the pass marks of a table, by which what no play can pass is found too.

    Pass marks of instances that the battery does not have are not used, which is said.

    Args:
        battery: The battery.
        pass_marks: The table, or its text; None for what the arena files say.
        outcomes: The table of final rewards, each of which needs a pass mark, or its text.
        taken_as: What its numbers are.

    Raises:
        TableError: One of both does not fit the battery, or a pass mark is missing.
    """
    if pass_marks is None:
        return battery
    if taken_as == "successes":
        raise TableError("--pass-marks goes with returns, and these are successes")
    if is_export(outcomes):
        raise TableError("--pass-marks goes with final rewards; it says what was passed")
    given = marks_of(pass_marks)
    named = battery_names(battery, list(given.index))
    marks = {named[str(k)]: float(v) for k, v in given.items() if not math.isnan(v)}
    played = battery_names(battery, read_sheet(outcomes).column(INSTANCE))
    known = set(battery.index)
    if lost := [name for name in played.values() if name in known and name not in marks]:
        raise TableError(f"{pass_marks}: {lost[0]} has no pass mark")
    if strange := [name for name in marks if name not in known]:
        say(
            f"note: {pass_marks}: {len(strange)} pass marks are not used, since no arena has the "
            f"name (the first is {strange[0]!r})",
            err=True,
        )
    return battery.marked(marks)


def outcomes_of_rewards(
    battery: Battery,
    outcomes: Path | str,
    agents: Sequence[str] = (),
    taken_as: As | None = None,
) -> Outcomes:
    """Successes and failures of a table of final rewards, by agent and instance of a battery.

    Instances that the battery does not have keep the name that the table gives them.

    Args:
        battery: The battery, with the pass marks that hold.
        outcomes: The table, or its text.
        agents: The columns to take; without them, all.
        taken_as: What the numbers are.

    Raises:
        TableError: The table does not fit the battery, or may mean something else.
    """
    if is_export(outcomes):
        raise TableError(
            "it is a table as `profile export --format csv` writes it, and says what was passed: "
            "fit a layout to it by --table"
        )
    rewards, words = rewards_of(outcomes, agents)
    named = battery_names(battery, list(rewards.index), list(rewards.columns))
    rewards.index = list(named.values())
    known = set(battery.index)
    marks = {instance.name: instance.pass_mark for instance in battery.instances}
    most = {
        instance.name: instance.features["greatestReturn"]
        for instance in battery.instances
        if "greatestReturn" in instance.features
    }
    by_agent = judge_rewards(rewards, marks, most, words=words, taken_as=taken_as)
    for agent, own in by_agent.items():  # those that the battery does not have are counted later
        column = rewards[agent]
        own |= {str(k): math.nan for k in column[column.notna()].index if str(k) not in known}
    return by_agent


def battery_names(
    battery: Battery, given: Sequence[str], columns: Collection[str] = ()
) -> dict[str, str]:
    """The names of a battery's instances by what a table calls them; others keep their names.

    Args:
        battery: The battery.
        given: What the table calls them.
        columns: The table's other columns.

    Raises:
        TableError: A name is that of several, or nearly one's; or none is an instance's.
    """
    names = KnownNames(battery.index)
    try:
        called = {text: name or text for text, name in names.find_all(given).items()}
    except NamesError as error:
        raise TableError(str(error)) from None
    if not set(called.values()) & set(battery.index):
        few = list(battery.index)[:3]
        hint = f"; it has {', '.join(few)}{', ...' * (len(battery.index) > len(few))}"
        if set(columns) & set(battery.index):
            hint = "; the columns are: give a row for each instance, a column for each agent"
        raise TableError(
            f"no instance with outcomes is in the battery (the first is {given[0]!r}){hint}"
        )
    return called


@dataclass(frozen=True)
class OnBattery:
    """Outcomes on the instances of a battery that a layout describes, and what was left out.

    Attributes:
        outcomes: The outcomes.
        unplayed: Instances of the battery that the layout describes and nobody played.
        agents: Agents without any outcome that counts.
    """

    outcomes: CoveredOutcomes
    unplayed: int
    agents: tuple[str, ...]

    @property
    def left(self) -> dict[str, int]:
        """How many instances with outcomes are left out, by reason."""
        return left_out(self.outcomes.reasons)


def on_battery(
    layout: Layout,
    battery: Battery,
    played: Outcomes,
    without: Collection[str] = (),
    *,
    keep_drawn: bool = False,
    keep_unpassable: bool = False,
    known: Collection[str] = (),
) -> OnBattery:
    """Outcomes on the instances that a layout describes, by the rule by which sessions go.

    Args:
        layout: The layout.
        battery: The battery.
        played: Outcomes by agent and instance.
        without: Agents to leave out.
        keep_drawn: Whether to take the demands of arenas that leave something to chance as they
            were drawn here.
        keep_unpassable: Whether to take arenas that no play can pass.
        known: Instances that were played as they were drawn here.

    Raises:
        TableError: There is no such agent, no instance is described, or units do not fit.
    """
    for agent in without:
        if agent not in played:
            known = ", ".join(played) or "none"
            hint = guess(agent, list(played))
            raise TableError(f"--without {agent}: no such agent; agents: {known}.{hint}")
    try:
        covered = coverage(layout, battery, keep_unpassable=keep_unpassable)
    except ServiceError as error:
        raise TableError(error.message) from None
    reasons = dict(covered.reasons)
    drawn = {name for name in battery.drawn if name in covered.features and name not in known}
    if not keep_drawn:
        reasons |= dict.fromkeys(drawn, CHANCE)
    with_outcomes = {name: "" for own in played.values() for name in own}
    every = [name for name in battery.index if name in with_outcomes]
    every += [name for name in with_outcomes if name not in battery.index]
    why = tuple(reasons.get(name, "") if name in battery.index else UNKNOWN for name in every)
    names = [name for name, reason in zip(every, why, strict=True) if not reason]
    if not names:
        raise TableError(_none(layout, every, left_out(why)))
    kept = [a for a, own in played.items() if a not in set(without) and set(own) & set(names)]
    given = OutcomeTable(
        Instances((), np.empty((len(every), 0)), names=tuple(every)),
        tuple(kept),
        # What the battery does not have was played, whatever came of it.
        np.array([[_count_played(played[a], n) for n in every] for a in kept]).reshape(
            -1, len(every)
        ),
    )
    features = np.array([covered.features[name] for name in names], np.float64)
    for row, name in enumerate(names):  # what the layout fills in is no column of a table
        there = battery.instances[battery.index[name]].features
        for column, feature in enumerate(layout.features):
            if feature.if_missing is not None and feature.name not in there:
                features[row, column] = math.nan
    table = OutcomeTable(
        Instances(layout.feature_names, features, names=tuple(names)),
        tuple(kept),
        np.array([[played[a].get(n, math.nan) for n in names] for a in kept]).reshape(
            len(kept), len(names)
        ),
    )
    return OnBattery(
        CoveredOutcomes(
            *(table, given, why),
            (
                *_notes(drawn & {*names}, names),
                *assumed_values(layout, features, but=chances_of(layout)),
            ),
        ),
        sum(name not in with_outcomes for name in covered.features),
        tuple(a for a in played if a not in kept and a not in without),
    )


def check_demands(
    battery: Battery, rows: Sequence[Mapping[Any, Any]], units: Mapping[str, str], where: str
) -> set[str]:
    """Check that a table's demands are those of a battery's instances of the same names.

    Args:
        battery: The battery.
        rows: Rows of the table, with `instance`.
        units: Unit of each of its columns of meta-features.
        where: What the table is called.

    Returns:
        The instances of which the table has demands, and the same.

    Raises:
        TableError: A demand is another, or its unit measures something else.
    """
    by_name = {instance.name: instance for instance in battery.instances}
    known: list[tuple[str, str, float]] = []
    for column, unit in units.items():
        name = name_and_unit(column)[0]
        if name in battery.units:
            try:
                known.append((column, name, conversion(unit, battery.units[name]) if unit else 1.0))
            except UnitError as error:
                raise TableError(f"{where}: column {column}: {error}") from None
    same: set[str] = set()
    for row in rows:
        instance = by_name.get(str(row["instance"]))
        if instance is None:
            continue
        for column, name, factor in known:
            given, measured = row[column], instance.features.get(name)
            if given is None or given != given or measured is None or not math.isfinite(measured):
                continue
            value = float(given) * factor
            if not math.isclose(value, measured, rel_tol=CLOSE, abs_tol=CLOSE):
                unit = f" {battery.units[name]}" if battery.units[name] else ""
                raise TableError(
                    f"{where}: instance {instance.name} has {name} {value:g}{unit}, and in the "
                    f"battery {measured:g}{unit}: it is another arena of the same name. Give the "
                    "battery that was played"
                )
            same.add(instance.name)
    return same


def _count_played(own: Mapping[str, float], name: str) -> float:
    if name not in own:
        return math.nan
    return 0.0 if math.isnan(own[name]) else own[name]


def _none(layout: Layout, every: Sequence[str], why: Mapping[str, int]) -> str:
    hint = (
        ". With --keep-drawn they count with the demands of our own draw, which are not those of "
        "what was played"
    )
    return (
        f"layout {layout.name} covers none of the instances with outcomes: "
        f"{told_gaps(why, len(every))}{hint * (CHANCE in why)}"
    )


def _notes(drawn: Collection[str], names: Sequence[str]) -> list[str]:
    if not drawn:
        return []
    return [
        f"{len(drawn)} of {len(names)} instances leave positions, rotations or sizes to chance: "
        "their demands are those of our own draw, not of what was played"
    ]
