"""Tables of instances with their meta-features, and of the agents' outcomes on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.model.links import NoiseMixture
from animalcat.layouts.model.nodes import Bernoulli, Exclusion, Feature
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.model.tables import (
    TableError,
    check_alike,
    guess,
    nearest,
    plain_name,
    read_sheet,
)
from animalcat.layouts.model.units import UnitError, conversion

__all__ = ["CoveredInstances", "Instances", "OutcomeTable", "TableError", "read_csv"]

Floats: TypeAlias = npt.NDArray[np.float64]
_WEIGHTS: Final = ("weight", "weights")
"""Columns that are taken for what an outcome counts as, where they are no demands."""
_NARROW: Final = 0.05
"""Share of a feature's range in whose lower end all of a table is doubted."""
Rows: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.bool_] | Sequence[int]


@dataclass(frozen=True, eq=False)
class Instances:
    """Instances with their meta-features: those that a layout uses, and any others.

    Attributes:
        columns: Names of the meta-features.
        values: (instances, columns), in the units that `units` says.
        paradigms: The kind of test that each instance is; empty if unknown.
        names: A name for each instance; empty if they have none.
        units: The unit of each meta-feature; None for that of the layout, which all have if it is
            empty.
        lines: The line of each instance in the file that it was read from; empty if in none.
        text: Columns of text, which are no meta-features, and why they are no numbers.
        played_before: (instances,): how many instances the agent that played them had played
            before, NaN where that is unknown; None where it is for all. Features that count are it,
            unless they have a column of their own.
    """

    columns: tuple[str, ...]
    values: Floats
    paradigms: tuple[str, ...] = ()
    names: tuple[str, ...] = field(default=(), repr=False)
    units: tuple[str | None, ...] = field(default=(), repr=False)
    lines: tuple[int, ...] = field(default=(), repr=False)
    text: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    played_before: Floats | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.columns):
            raise TableError(
                f"values have shape {self.values.shape}; {len(self.columns)} columns are named"
            )
        if twice := [name for name in self.columns if self.columns.count(name) > 1]:
            raise TableError(f"column {twice[0]} is there {self.columns.count(twice[0])} times")
        for what, given in (
            ("paradigms", self.paradigms),
            ("names", self.names),
            ("lines", self.lines),
        ):
            if given and len(given) != len(self.values):
                raise TableError(f"{len(given)} {what} for {len(self.values)} instances")
        check_alike(self.names, "instances")
        if self.units and len(self.units) != len(self.columns):
            raise TableError(f"{len(self.units)} units for {len(self.columns)} columns")

    def __len__(self) -> int:
        return len(self.values)

    def __contains__(self, column: str) -> bool:
        return column in self.columns

    def column(self, name: str) -> Floats:
        """One meta-feature, (instances,).

        Raises:
            TableError: There is no such column.
        """
        return self.values[:, self._place(name)]

    def select(self, columns: Iterable[str]) -> Floats:
        """Select meta-features, (instances, columns), in the order asked for.

        Raises:
            TableError: A column is absent.
        """
        return self.values[:, [self._place(name) for name in columns]]

    def features(self, layout: Layout, *, played: bool = True) -> Floats:
        """The features that a layout uses, checked: (instances, features), in the layout's units.

        An absent column counts as missing everywhere if the layout has a rule for missing values.
        What a calibrated layout knows of an instance is found by the instance's name.

        Args:
            layout: The layout.
            played: Whether they were played, so that what is counted has to be known.

        Raises:
            ValueError: A column is absent, misspelt or in a unit that is not understood, a value is
                missing or out of range, or the layout excludes an instance.
        """
        for exclusion, values in self._exclusions(layout).items():
            for row, value in enumerate(values.tolist()):
                if why := exclusion.broken_by(value):
                    raise TableError(
                        f"{self.called(row)}: layout {layout.name} leaves it out: {why}. Take "
                        "those that it describes, by `Instances.covered(layout)`"
                    )
        table = self._features(layout)
        if layout.calibration is not None and self.names:
            known = layout.feature_names
            table = np.array(
                [
                    layout.row(name, dict(zip(known, row, strict=True)))
                    for name, row in zip(self.names, table.tolist(), strict=True)
                ]
            ).reshape(table.shape)
        return layout.check_features(table, self.called, played=played)

    def covered(self, layout: Layout) -> CoveredInstances:
        """Find which of these instances a layout describes, by the same rule as sessions.

        An exclusion by a feature counts only if the table has a column for that feature.

        Raises:
            TableError: A column is absent, misspelt or in a unit that is not understood.
        """
        exclusions = self._exclusions(layout)
        names = [*layout.feature_names, *(exclusion.feature for exclusion in exclusions)]
        table = np.column_stack([self._features(layout), *exclusions.values()])
        known = replace(layout, excludes=tuple(exclusions))
        reasons = tuple(
            known.why_not({k: v for k, v in zip(names, row, strict=True) if v == v}, {})
            for row in table.tolist()
        )
        rows = [i for i, why in enumerate(reasons) if not why]
        return CoveredInstances(
            layout.name, self.rows(rows), reasons, (*self._notes(layout, table, rows),)
        )

    def looked(self, layout: Layout) -> list[bool | None]:
        """Whether a layout covers each of these instances; None where it excludes it.

        Raises:
            TableError: As for `covered`.
        """
        exclusions = self._exclusions(layout)
        broken = [
            any(e.broken_by(v) for e, v in zip(exclusions, row, strict=True) if v == v)
            for row in np.reshape([*exclusions.values()], (-1, len(self))).T.tolist()
        ]
        covered = self.covered(layout).reasons
        return [None if out else not why for out, why in zip(broken, covered, strict=True)]

    def rows(self, rows: Rows) -> Instances:
        """Select instances, by index or by mask."""
        picked: list[int] = np.arange(len(self))[np.asarray(rows) if len(rows) else []].tolist()
        return Instances(
            self.columns,
            self.values[picked],
            tuple(self.paradigms[i] for i in picked) if self.paradigms else (),
            tuple(self.names[i] for i in picked) if self.names else (),
            self.units,
            tuple(self.lines[i] for i in picked) if self.lines else (),
            self.text,
            None if self.played_before is None else self.played_before[picked],
        )

    def _features(self, layout: Layout) -> Floats:
        """The features that a layout uses, in its units; NaN where they are missing."""
        unknown = np.full(len(self), np.nan)
        return np.stack(
            [self._column_of(feature, layout, unknown) for feature in layout.features], axis=1
        )

    def _exclusions(self, layout: Layout) -> dict[Exclusion, Floats]:
        """The features by which a layout excludes, as far as they are here, in its units."""
        columns: dict[Exclusion, Floats] = {}
        for exclusion in layout.excludes:
            if exclusion.feature in self:
                columns[exclusion] = self._in_unit(exclusion.feature, exclusion.unit)
            else:
                self._check_spelling(exclusion.feature, layout)
        return columns

    def misleading(self, layout: Layout) -> dict[str, Floats]:
        """By the name of each cue, whether it misleads: 1 or 0, NaN where it is not there.

        Cues whose feature has no column are left out.

        Raises:
            TableError: A column has another unit, or nearly the name of the feature.
        """
        found: dict[str, Floats] = {}
        for cue in layout.cues:
            if cue.feature in self:
                found[cue.name] = cue.misleads(self._in_unit(cue.feature, cue.unit))
            else:
                self._check_spelling(cue.feature, layout)
        return found

    def _column_of(self, feature: Feature, layout: Layout, unknown: Floats) -> Floats:
        if feature.name in self:
            return self._in_unit(feature.name, feature.unit)
        if feature.counts:
            return unknown if self.played_before is None else self.played_before
        if feature.name not in _features_of_calibration(layout):
            self._check_spelling(feature.name, layout)
        return unknown if feature.if_missing is not None else self.column(feature.name)

    def _in_unit(self, name: str, wanted: str) -> Floats:
        unit = self.units[self._place(name)] if self.units else None
        if unit is None:
            return self.column(name)
        try:
            return self.column(name) * conversion(unit, wanted)
        except UnitError as error:
            raise TableError(f"column {name} [{unit}]: {error}") from None

    def _check_spelling(self, name: str, layout: Layout) -> None:
        """Refuse that a column which is not there has one of nearly its name, or is of text."""
        if name in self.text:
            raise TableError(self.text[name])
        known = {
            *layout.feature_names,
            *(exclusion.feature for exclusion in layout.excludes),
            *(cue.feature for cue in layout.cues),
        }
        for column in self.columns:
            if column not in known and nearest(column, [name]):
                raise TableError(
                    f"column {column!r} is unknown to layout {layout.name}. Did you mean {name!r}? "
                    "Call it so, or take it out of the table"
                )

    def _notes(self, layout: Layout, table: Floats, rows: Sequence[int]) -> Iterable[str]:
        """What is assumed of the instances that are described, in sentences."""
        yield from assumed_values(layout, table[rows], but=chances_of(layout))
        for feature, values in zip(layout.features, table[rows].T, strict=False):
            low, high, unit = feature.low, feature.high, feature.unit
            there = values[np.isfinite(values)]
            if unit == "1" or feature.if_missing is not None or not there.any():
                continue
            if there.max() < low + _NARROW * (high - low):
                yield (
                    f"{feature.name} is {there.min():g} to {there.max():g} {unit} here, and layout "
                    f"{layout.name} is made for {low:g} to {high:g}: is it a logarithm, or in "
                    "another unit?"
                )
        for column in self.columns:
            if plain_name(column) in _WEIGHTS and column not in layout.feature_names:
                yield f"column {column} is no demand or weight here: outcomes count as one each"
        if self.text:
            yield f"columns of text are not meta-features and are left out: {', '.join(self.text)}"
        absent = [
            exclusion.feature for exclusion in layout.excludes if exclusion.feature not in self
        ]
        if absent:
            yield (
                f"the table has no column {', '.join(absent)}, by which layout {layout.name} "
                "leaves instances out: none is left out by it"
            )
        for cue in layout.cues:
            if cue.feature not in self:
                yield (
                    f"the table has no column {cue.feature}: an agent that relies on {cue.name} is "
                    f"not told apart from one that has {cue.mimics}"
                )
        if layout.calibration is not None and rows:
            known = {name for name, _ in layout.calibration.instances}
            lost = sum(name not in known for name in self.names) if self.names else len(self)
            if lost:
                yield (
                    f"{lost} of {len(self)} instances have no row in the calibration "
                    f"{layout.calibration.name}: they are predicted by their demands alone"
                )

    def called(self, row: int) -> str:
        """What a message calls an instance: its name, its line in a file, or its row from 0."""
        if self.names:
            return f"instance {self.names[row]}"
        return f"line {self.lines[row]}" if self.lines else f"row {row}"

    def _place(self, name: str) -> int:
        try:
            return self.columns.index(name)
        except ValueError:
            hint = guess(name, self.columns)
            columns = ", ".join(self.columns)
            raise TableError(f"no column {name!r}; columns: {columns}.{hint}") from None


def chances_of(layout: Layout) -> set[str]:
    """Features that are the chance level of noise, which `with_average_chance` fills in."""
    links = (node.link for node in layout.derived)
    return {
        link.nu for link in links if isinstance(link, NoiseMixture) and isinstance(link.nu, str)
    }


def check_chances(layout: Layout, known: Collection[str], who: str) -> None:
    """Refuse a layout whose chance level is an average of outcomes that are not there yet.

    Args:
        layout: The layout.
        known: Features that have values.
        who: What does not know it, as in "a session".

    Raises:
        TableError: The chance level of its noise has no values.
    """
    for name in sorted(chances_of(layout) - {*known}):
        raise TableError(
            f"layout {layout.name} ({layout.variant}) takes {name} as 1 less the average of all "
            f"outcomes of an agent, which {who} does not know. Take another variant, and fit this "
            f"one to what was played by `layout fit`, or give a column {name}"
        )


def assumed_values(layout: Layout, table: Floats, *, but: Collection[str] = ()) -> Iterable[str]:
    """What a layout fills in by itself, with how often, in sentences without their ends.

    Args:
        layout: The layout.
        table: (instances, features and perhaps more), NaN where one is missing.
        but: Features of which nothing is said where no row has them.
    """
    for feature, column in zip(layout.features, table.T, strict=False):
        lost = int(np.isnan(column).sum())
        taught = feature.name in _features_of_calibration(layout)
        elsewhere = taught or (feature.name in but and lost == len(column))
        if lost and feature.if_missing is not None and not elsewhere:
            unit = f" {feature.unit}" * (feature.unit != "1")
            who = f"{lost} of {len(column)} instances have no" if lost < len(column) else "no"
            yield f"{who} {feature.name}: {feature.if_missing:g}{unit} is taken (if_missing)"


def with_average_chance(
    instances: Instances, layout: Layout, outcomes: Floats
) -> tuple[Instances, list[str]]:
    """Instances with the chance level of noise where no column has it: 1 less the average outcome.

    So Burden et al. 2023 print it, of each agent.

    Returns:
        The instances, and what was taken, in a sentence without its end.
    """
    notes: list[str] = []
    for name in sorted(chances_of(layout)):
        rule = layout.features[layout.feature_names.index(name)].if_missing
        there = name in instances and np.isfinite(instances.column(name)).any()
        if rule is not None and not there and len(outcomes):
            chance = 1.0 - float(np.nanmean(outcomes))
            kept = [k for k, column in enumerate(instances.columns) if column != name]
            filled = np.full((len(instances), 1), chance)
            instances = replace(
                instances,
                columns=(*(instances.columns[k] for k in kept), name),
                values=np.hstack([instances.values[:, kept], filled]),
                units=(*(instances.units[k] for k in kept), None) if instances.units else (),
            )
            notes.append(f"no {name}: 1 less the average outcome, {chance:.2f}, is taken")
    return instances, notes


def _features_of_calibration(layout: Layout) -> set[str]:
    """Features that a table does not have, since a calibration knows them."""
    return {layout.feature_names[i] for i in layout.taught}


@dataclass(frozen=True, eq=False)
class CoveredInstances:
    """The instances of a table that a layout describes, and why it does not describe the others.

    Attributes:
        layout: Name of the layout.
        instances: Those that it describes.
        reasons: For every instance of the table, why the layout does not describe it; empty if it
            does.
        notes: What is assumed of those that it describes, in sentences.
    """

    layout: str
    instances: Instances
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> list[int]:
        """Rows of the table that the layout describes."""
        return [i for i, why in enumerate(self.reasons) if not why]

    @property
    def gaps(self) -> str:
        """Reasons with counts, as in "21 of 37: no reward; 16: rewardDistance above 40 m"."""
        return told_gaps(left_out(self.reasons), len(self.reasons))


def left_out(reasons: Iterable[str]) -> dict[str, int]:
    """How many instances are left out by reason, the most frequent first."""
    return dict(Counter(filter(None, reasons)).most_common())


def told_gaps(counts: Mapping[str, int], total: int) -> str:
    """Reasons with counts, as in "21 of 37: no reward; 16: rewardDistance above 40 m"."""
    told = [f"{number}: {why}" for why, number in counts.items()]
    if told:
        number, _, why = told[0].partition(":")
        told[0] = f"{number} of {total}:{why}"
    return "; ".join(told)


@dataclass(frozen=True, eq=False)
class OutcomeTable:
    """Outcomes of agents on instances.

    Attributes:
        instances: The instances.
        agents: Names of the agents.
        outcomes: (agents, instances): success 1, failure 0, or a score; NaN where not played.
        weights: (instances,): how many outcomes each counts as; None for one each.
    """

    instances: Instances
    agents: tuple[str, ...]
    outcomes: Floats
    weights: Floats | None = None

    def __post_init__(self) -> None:
        if self.outcomes.shape != (len(self.agents), len(self.instances)):
            raise TableError(
                f"outcomes have shape {self.outcomes.shape}; {len(self.agents)} agents and "
                f"{len(self.instances)} instances are given"
            )

    def of(self, agent: str) -> tuple[Instances, Floats]:
        """Return the instances that an agent played, and its outcomes on them.

        Raises:
            TableError: There is no such agent.
        """
        outcomes = self._row(agent)
        played = np.isfinite(outcomes)
        return self.instances.rows(played), outcomes[played]

    def weights_of(self, agent: str) -> Floats | None:
        """How many outcomes each that `of` returns counts as; None for one each.

        Raises:
            TableError: There is no such agent.
        """
        played = np.isfinite(self._row(agent))
        return None if self.weights is None else self.weights[played]

    def _row(self, agent: str) -> Floats:
        if agent not in self.agents:
            raise TableError(
                f"no agent {agent!r}; agents: {', '.join(self.agents)}.{guess(agent, self.agents)}"
            )
        return self.outcomes[self.agents.index(agent)]

    def covered(self, layouts: Sequence[Layout]) -> CoveredOutcomes:
        """The outcomes on the instances that all of some layouts describe.

        Raises:
            TableError: A column is absent, misspelt or in a unit that is not understood, none of
                the instances is described, or an outcome is not of a layout's kind.
        """
        reasons = [""] * len(self.instances)
        notes: dict[str, None] = {}
        for layout in layouts:
            covered = self.instances.covered(layout)
            if not covered.rows:
                raise TableError(
                    f"layout {layout.name} covers none of the instances: {covered.gaps}"
                )
            reasons = [a or b for a, b in zip(reasons, covered.reasons, strict=True)]
            notes |= dict.fromkeys(covered.notes)
            if len(layout.outcomes) == 1 and isinstance(layout.outcome, Bernoulli):
                self._check_passed()
        rows = [i for i, why in enumerate(reasons) if not why]
        if not rows:
            raise TableError(f"no instance is covered by all layouts: {left_out(reasons)}")
        kept = OutcomeTable(
            self.instances.rows(rows),
            self.agents,
            self.outcomes[:, rows],
            None if self.weights is None else self.weights[rows],
        )
        return CoveredOutcomes(kept, self, tuple(reasons), tuple(notes))

    def _check_passed(self) -> None:
        wrong = np.isfinite(self.outcomes) & (self.outcomes != 0.0) & (self.outcomes != 1.0)
        for agent, row in zip(*np.nonzero(wrong), strict=True):
            raise TableError(
                f"agent {self.agents[agent]}, {self.instances.called(row)}: the outcome is "
                f"{self.outcomes[agent, row]:g}; success is 1, failure 0, and an empty cell was "
                "not played. Rewards on arenas become outcomes by pass marks: `layout fit "
                "--battery FOLDER --outcomes TABLE`"
            )


@dataclass(frozen=True, eq=False)
class CoveredOutcomes:
    """The outcomes that layouts describe, and what was left out.

    Attributes:
        table: The outcomes on the instances that are described.
        given: All outcomes.
        reasons: For every instance, why it is left out; empty if it is not.
        notes: What is assumed, and what was left out before, in sentences.
    """

    table: OutcomeTable
    given: OutcomeTable
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def coverage(self, agent: str) -> dict[str, Any]:
        """How many of an agent's outcomes count, of how many, and why the others do not."""
        outcomes = self.given.outcomes[self.given.agents.index(agent)]
        played = np.flatnonzero(np.isfinite(outcomes)).tolist()
        reasons = [self.reasons[i] for i in played]
        return {
            "covered": sum(not why for why in reasons),
            "of": len(reasons),
            "left_out": left_out(reasons),
        }


def read_csv(
    source: Path | str, agents: Sequence[str], *, ignore: Collection[str] = ()
) -> OutcomeTable:
    """Read a table with one row per instance: its meta-features and the outcomes of agents.

    An empty cell is an outcome that was not played, or a meta-feature that is not known. The words
    true and false count as 1 and 0.

    Args:
        source: A file, or the text itself. A text of one line is the name of a file.
        agents: The columns that hold outcomes; all other columns are meta-features, by their names
            and perhaps with units in brackets. Layouts have them in their own units. Columns of
            text are left out, and a layout that needs one is refused.
        ignore: Columns to leave out.

    Raises:
        TableError: The table cannot be read, or may mean something else; the message names row and
            column.
    """
    sheet = read_sheet(source, agents)
    if lost := [agent for agent in agents if agent not in sheet]:
        raise TableError(
            f"no column {lost[0]!r} of outcomes; columns: {', '.join(sheet.names)}."
            f"{guess(lost[0], sheet.names)}"
        )
    check_alike(agents, "agents")
    none = {"instance", "paradigm", *agents, *ignore}
    others = [c for c in sheet.names if c not in none]
    text = {column: why for column in others if (why := sheet.why_text(column))}
    columns = [column for column in others if column not in text]
    values = [sheet.numbers(column) for column in columns]
    instances = Instances(
        tuple(columns),
        np.array(values, np.float64).reshape(len(columns), len(sheet.rows)).T,
        tuple(sheet.column("paradigm")) if "paradigm" in sheet else (),
        sheet.row_names("instance") if "instance" in sheet else (),
        tuple(sheet.unit(column) for column in columns),
        sheet.lines,
        text,
    )
    outcomes = np.array([sheet.outcomes(a) for a in agents], np.float64)
    return OutcomeTable(instances, tuple(agents), outcomes.reshape(len(agents), len(sheet.rows)))
