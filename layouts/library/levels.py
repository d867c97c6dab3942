"""Writes a layout for items whose demands are levels of scales, and says what they can tell."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import yaml
from scipy.special import expit, ndtri

from animalcat.layouts.library import LAYOUTS, parse_layout
from animalcat.layouts.model.frames import sheet_of
from animalcat.layouts.model.priors import MovedBeta, ScaledBeta
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.model.tables import (
    Sheet,
    TableError,
    guess,
    like_number,
    plain_name,
    read_sheet,
)

if TYPE_CHECKING:
    import pandas as pd

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.int64]

SLOPE: Final = round(math.log(19.0), 3)
"""Slope in logits per level, unless one is given: with it, an agent passes 19 of 20 items one level
below what it masters half of the time, and 1 of 20 one level above."""
FEW: Final = 10
"""Fewer items than this are too few: for a scale, for its hardest level, to tell scales apart."""
SAME: Final = 0.95
"""Scales whose levels correlate by at least this are measured as one."""
ALIKE: Final = 0.8
"""Scales whose levels correlate by at least this, and less than `SAME`, are named."""
OUTCOMES: Final = 5
"""Number of well-chosen outcomes by which it is judged whether items can tell a scale apart: about
what each of 18 scales gets of 100 choices."""
TOLD: Final = 0.55
"""Items can tell a scale apart if so many outcomes are expected to leave less than this share of
the prior's standard deviation. Sessions leave about 0.8 of that, since they learn of the others."""
_TOP: Final = 1.0
"""By how many levels the range of an ability ends above the hardest level."""
_LOCATION, _SCALE = 1.5, 1.2
"""The prior of an ability, as of `MovedBeta`: its median is at 0.93 of the range, and one agent in
twenty is below 0.32 of it."""
_LAPSES: Final = ScaledBeta(0.0, 0.5, 0.3)
"""The prior of the share of lapses."""
_MOST: Final = 20.0
"""Greatest level; a column that has more holds no levels of a rubric."""
_LEAST_HIGH: Final = 10.0
"""Least upper end of the range of levels that the written layout takes."""
CHANCE: Final = "chance"
"""The column with the chance to pass an item by guessing, unless another one is named."""
UNGUESSABLE: Final = "UG"
"""The same as ADeLe has it: how far an item cannot be guessed, in per cent."""
_IDS: Final = frozenset(
    (
        *("instance", "id", "idx", "index", "item", "itemid", "sample", "sampleid", "name"),
        *("question", "questionid", "dataset", "datasetname", "benchmark", "task", "source"),
        *("paradigm", "subset", "split"),
    )
)
"""Names of columns, without case and what is between words, that say which item it is."""
_GRID: Final = (np.arange(400) + 0.5) / 400
"""Quantiles of a prior that stand for it."""
_WIDTH: Final = 100


@dataclass(frozen=True, slots=True)
class DemandScale:
    """One capability of a written layout, and what the items can tell of it.

    Attributes:
        ability: Name of its latent node.
        columns: The columns of demands on it; several if the items do not tell them apart.
        items: Number of items that ask for it, at any level above 0.
        hardest: The hardest level that at least `FEW` items ask for, or more.
        above: Number of items that ask for more than that.
        slope: Slope in logits per level.
        left: The share of the prior's standard deviation that `OUTCOMES` well-chosen outcomes are
            expected to leave while nothing is known of the other scales.
    """

    ability: str
    columns: tuple[str, ...]
    items: int
    hardest: float
    above: int
    slope: float
    left: float = math.nan

    @property
    def told_apart(self) -> bool:
        """Whether the items can tell it apart, by the rule of `TOLD`."""
        return self.left < TOLD

    @property
    def called(self) -> str:
        """What it is called for readers."""
        return " or ".join(self.columns)

    @property
    def prior(self) -> MovedBeta:
        """The prior of the ability."""
        return MovedBeta(0.0, self.hardest + _TOP, _LOCATION, _SCALE)

    def asked(self, scales: Sequence[str], levels: Floats) -> Floats:
        """The level of it that each item asks for, (items,)."""
        return levels[:, [scales.index(column) for column in self.columns]].max(axis=1)


@dataclass(frozen=True, eq=False)
class DemandLayout:
    """A layout that was written for a table of demands.

    Attributes:
        text: The layout as YAML, with comments.
        scales: Its capabilities, in the order of the table's columns.
        items: Number of items in the table.
        distinct: Number of different vectors of demands.
        incomplete: By scale, in how many items its cell is empty; such items are left out.
        left_out: How many items have an empty cell.
        dropped: By column that is no capability, why not.
        notes: What else the items do not tell, in sentences.
        ignored: Columns of the table that are neither scales nor names.
    """

    text: str
    scales: tuple[DemandScale, ...]
    items: int
    distinct: int
    incomplete: Mapping[str, int]
    left_out: int
    dropped: Mapping[str, str]
    notes: tuple[str, ...]
    ignored: tuple[str, ...]

    @property
    def told(self) -> tuple[str, ...]:
        """All that is to be known of the table beside `scales`, in sentences."""
        told: list[str] = []
        if self.left_out:
            each = ", ".join(f"{column} {count}" for column, count in self.incomplete.items())
            told.append(
                f"{self.left_out} of {self.items} items are left out, since a cell is empty: "
                f"{each}. Sessions leave them out too"
            )
        told += [f"{column} is no scale here: {why}" for column, why in self.dropped.items()]
        if self.ignored:
            told.append(f"these columns hold no levels: {', '.join(self.ignored)}")
        return (*told, *self.notes)

    @cached_property
    def layout(self) -> Layout:
        """The layout, checked."""
        return parse_layout(self.text)


def demand_layout(
    table: Path | str | pd.DataFrame,
    name: str = "levels",
    *,
    scales: Sequence[str] = (),
    ids: Sequence[str] = (),
    slope: float | Mapping[str, float] = SLOPE,
    chance: float | str = 0.0,
) -> DemandLayout:
    """Write a layout for items whose demands are levels of scales, 0 and up.

    Each scale is a capability; level 0 asks for nothing. An item is passed if every demand is met,
    so the chances to meet each are multiplied (conjunctive, or non-compensatory, as in Whitely
    1980); and by guessing, with the item's chance. What the items cannot tell is not fitted in
    silence. A scale for which nothing, or always the same, is asked has no capability. Scales that
    go together are one. Thin scales, and those that are much alike, are named.

    Args:
        table: A CSV file, its text, or a pandas table, with one row for each item. Cells of scales
            are numbers, or empty where the demand is not known; such items are left out.
        name: Name of the layout.
        scales: Columns of demands; by default all in which at least half of the cells are numbers,
            but for those that name items.
        ids: Columns that together name an item; by default those that are called so, as `sample
            id`, `item` or `dataset`.
        slope: Slope in logits per level, for all scales or by column. `SLOPE` for those not named.
        chance: The chance to pass an item by guessing: a number for all, or the column that has it.
            By default it is 0, or the column `chance` or else `UG` if there is one. `UG` is
            ADeLe's unguessability, 100 less the chance in per cent.

    Returns:
        The layout, with what the items can tell.

    Raises:
        TableError: The table cannot be read, an item is there twice, a level is no number or below
            0, or no scale is left.
        ValueError: The slope or the chance is out of range, or the name is that of a shipped
            layout.
    """
    if name in LAYOUTS:
        raise ValueError(f"layout {name!r} is shipped; give yours another name")
    sheet = read_sheet(table) if isinstance(table, str | Path) else sheet_of(table)
    found = _Columns.of(sheet, scales, ids, chance)
    _check_names(sheet, found.ids)
    levels = np.array([_levels(sheet, column) for column in found.scales]).T
    floor = _chances(sheet, found.chance)
    complete = np.isfinite(levels).all(axis=1)
    lacking = np.isnan(levels).sum(axis=0).tolist()
    if not complete.any():
        raise TableError(
            "every item has an empty cell in some scale; name those that are complete by scales"
        )
    levels, floor = levels[complete], floor[complete]
    dropped = _told_nothing(found.scales, levels)
    kept = [k for k, column in enumerate(found.scales) if column not in dropped]
    if not kept:
        why = "; ".join(f"{column}: {reason}" for column, reason in dropped.items())
        raise TableError(f"no scale is left that the items tell anything of: {why}")
    _check_slopes(slope, found.scales)
    groups, notes = _merge_scales([found.scales[k] for k in kept], levels[:, kept])
    drafts = [_scale(group, found.scales, levels, slope) for group in groups]
    left = _share_left(drafts, found.scales, levels, floor)
    made = tuple(replace(one, left=share) for one, share in zip(drafts, left, strict=True))
    result = DemandLayout(
        text="",
        scales=made,
        items=len(sheet.rows),
        distinct=len(np.unique(levels, axis=0)),
        incomplete={c: n for c, n in zip(found.scales, lacking, strict=True) if n},
        left_out=int((~complete).sum()),
        dropped=dropped,
        notes=(*notes, *(note for scale in made for note in _notes_on(scale))),
        ignored=found.ignored,
    )
    written = replace(result, text=_heading(result) + _text_of(name, made, found))
    _ = written.layout
    return written


class _Columns(NamedTuple):
    """What each column of a table is: of demands, of names, of the chance to guess, or ignored.

    Instead of a column there may be one chance for all items.
    """

    scales: tuple[str, ...]
    ids: tuple[str, ...]
    chance: float | str
    ignored: tuple[str, ...]

    @classmethod
    def of(
        cls, sheet: Sheet, scales: Sequence[str], ids: Sequence[str], chance: float | str
    ) -> _Columns:
        """Sort the columns of a table; refuse names that are not there or name two things."""
        named = [*scales, *ids, *([chance] if isinstance(chance, str) else [])]
        listed = ", ".join(sheet.names)
        for column, count in Counter(named).items():
            if column not in sheet:
                hint = guess(column, sheet.names)
                raise TableError(f"no column {column!r}; columns: {listed}.{hint}")
            if count > 1:
                raise TableError(f"column {column!r} is named twice, or as two things")
        if not isinstance(chance, str):
            if not 0.0 <= chance < 1.0:
                raise ValueError(f"chance is {chance:g}; give a number from 0 and below 1")
            there = [name for name in (CHANCE, UNGUESSABLE) if name in sheet and name not in named]
            if there and chance > 0.0:
                raise TableError(
                    f"a chance of {chance:g} is stated, and the table has a column {there[0]!r}; "
                    "state none, or take the column out"
                )
            chance = there[0] if there else chance
        taken = {*named, chance}
        ids = ids or [n for n in sheet.names if n not in taken and plain_name(n) in _IDS]
        rest = [n for n in sheet.names if n not in taken and n not in ids]
        found = [*scales] or [n for n in rest if _mostly_numbers(sheet.column(n))]
        if not found:
            raise TableError(f"no column has demands: numbers, 0 and up; columns: {listed}")
        ordered = tuple(n for n in sheet.names if n in found)
        return cls(ordered, tuple(ids), chance, tuple(n for n in rest if n not in found))


def _mostly_numbers(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell]
    return bool(filled) and sum(map(like_number, filled)) >= len(filled) / 2.0


def _levels(sheet: Sheet, column: str) -> Floats:
    values = np.array(sheet.numbers(column))
    for row in np.flatnonzero((values < 0.0) | (values > _MOST))[:1].tolist():
        why = (
            "0 and up, and 0 asks for nothing. Leave the cell empty where the level is not known"
            if values[row] < 0.0
            else f"at most {_MOST:g}. Name the columns of demands if this is none"
        )
        raise TableError(
            f"{sheet.called(row)}, column {column}: the level is {values[row]:g}; levels are {why}"
        )
    return values


def _chances(sheet: Sheet, chance: float | str) -> Floats:
    if not isinstance(chance, str):
        return np.full(len(sheet.rows), chance)
    values = np.array(sheet.numbers(chance))
    values = np.nan_to_num(1.0 - values / 100.0 if chance == UNGUESSABLE else values)
    for row in np.flatnonzero((values < 0.0) | (values >= 1.0))[:1].tolist():
        raise TableError(
            f"{sheet.called(row)}, column {chance}: the chance to pass by guessing is "
            f"{values[row]:g}; it is a share from 0 and below 1, as 0.25 for four options"
        )
    return values


def _check_names(sheet: Sheet, ids: Sequence[str]) -> None:
    """Refuse a table in which an item is there twice."""
    names = [*zip(*map(sheet.column, ids), strict=True)]
    first = {name: row for row, name in reversed([*enumerate(names)])}
    twice = [row for row, name in enumerate(names) if first[name] != row]
    if twice:
        name = names[twice[0]]
        raise TableError(
            f"{len(twice)} items are there more than once, of which the first is "
            f"{', '.join(map(repr, name))} ({' and '.join(ids)}; {sheet.called(first[name])} and "
            f"{sheet.called(twice[0])}); name the columns that together name an item by ids"
        )


def _check_slopes(slope: float | Mapping[str, float], scales: Sequence[str]) -> None:
    named = slope if isinstance(slope, Mapping) else {"all scales": slope}
    for column, value in named.items():
        if not 0.0 < value <= 100.0:
            raise ValueError(f"slope of {column} is {value:g}; give a number above 0, up to 100")
        if isinstance(slope, Mapping) and column not in scales:
            raise ValueError(f"slope of {column!r}: there is no such scale.{guess(column, scales)}")


def _told_nothing(scales: Sequence[str], levels: Floats) -> dict[str, str]:
    """By scale of which the items tell nothing, why not."""
    why: dict[str, str] = {}
    for column, values in zip(scales, levels.T, strict=True):
        asking = int(np.count_nonzero(values > 0.0))
        if not asking:
            why[column] = "no item asks for it"
        elif (values == values[0]).all():
            why[column] = f"all items ask for the same level, {values[0]:g}"
        elif asking < FEW:
            why[column] = f"{asking} items ask for it, which are too few"
    return why


def _merge_scales(scales: Sequence[str], levels: Floats) -> tuple[list[list[str]], list[str]]:
    """Groups of scales that are measured as one, and what is to be said of others."""
    alike = np.atleast_2d(np.corrcoef(levels.T))
    group = np.arange(len(scales))
    notes: list[str] = []
    for i, j in sorted((i, j) for j, i in combinations(range(len(scales)), 2)):
        apart = int(np.count_nonzero(levels[:, i] != levels[:, j]))
        pair, correlated = f"{scales[j]} and {scales[i]}", f"correlate by {alike[i, j]:.2f}"
        if alike[i, j] >= SAME or apart < FEW:
            group[group == max(group[i], group[j])] = min(group[i], group[j])
            notes.append(
                f"{pair} are measured as one: their levels {correlated}, and {apart} items have "
                "different ones"
            )
        elif alike[i, j] >= ALIKE:
            notes.append(
                f"{pair} are much alike: their levels {correlated}, so what is known of one "
                "depends on the other"
            )
    members = [
        [scales[k] for k in np.flatnonzero(group == own).tolist()] for own in np.unique(group)
    ]
    return members, notes


def _scale(
    group: Sequence[str], scales: Sequence[str], levels: Floats, slope: float | Mapping[str, float]
) -> DemandScale:
    slopes = slope if isinstance(slope, Mapping) else dict.fromkeys(group, slope)
    least = min(float(slopes.get(column, SLOPE)) for column in group)
    made = DemandScale(f"{_stem(group[0])}Ability", (*group,), 0, 0.0, 0, least)
    values = made.asked(scales, levels)
    asking = np.sort(values[values > 0.0])
    hardest = float(asking[-min(FEW, len(asking))])
    above = int(np.count_nonzero(values > hardest))
    return replace(made, items=len(asking), hardest=hardest, above=above)


def _stem(column: str) -> str:
    """The name of a scale in one word: "Causal Reasoning" is causalReasoning, and QLl stays QLl."""
    words = re.findall(r"[^\W_]+", column)
    if not words:
        raise TableError(f"column {column!r} has no letters or digits in its name; give it some")
    short = len(words) == 1 and not words[0].islower() and len(words[0]) < 5
    first = words[0] if short else words[0][0].lower() + words[0][1:]
    stem = first + "".join(word[0].upper() + word[1:] for word in words[1:])
    return stem if stem[0].isalpha() else f"scale{stem}"


def _share_left(
    scales: Sequence[DemandScale], columns: Sequence[str], levels: Floats, floor: Floats
) -> list[float]:
    """For each ability, the share of the prior's deviation that some outcomes leave.

    An item tells of a scale if the agent meets all other demands. So an outcome is a success with
    the chance to meet this demand, times that of an agent of the prior to meet all others. At every
    level, the items for which that is greatest are taken; outcomes are chosen one after another
    for the greatest expected drop of variance.
    """
    abilities = [scale.prior.from_standard(ndtri(_GRID)) for scale in scales]
    logs = np.zeros((len(scales), len(levels)))
    met: list[tuple[Floats, Rows, Floats]] = []
    for k, (scale, ability) in enumerate(zip(scales, abilities, strict=True)):
        distinct, places = np.unique(scale.asked(columns, levels), return_inverse=True)
        curves = np.asarray(expit(scale.slope * (ability - distinct[:, np.newaxis])), np.float64)
        curves[distinct == 0.0] = 1.0
        logs[k] = np.log(curves.mean(axis=1))[places]
        met.append((distinct, places, curves))
    others = np.exp(logs.sum(axis=0) - logs) * (1.0 - float(_LAPSES.mean))
    shares: list[float] = []
    for ability, own, (distinct, places, curves) in zip(abilities, others, met, strict=True):
        chances: list[Floats] = []
        for place in np.flatnonzero(distinct > 0.0).tolist():
            rows = np.flatnonzero(places == place)
            best = rows[np.argsort(-own[rows], kind="stable")[:FEW]]
            guess_right = float(floor[best].mean())
            chances.append(guess_right + (1.0 - guess_right) * own[best].mean() * curves[place])
        even = np.full(len(ability), 1.0 / len(ability))
        left = _expected_sd(ability, even, np.array(chances), OUTCOMES)
        shares.append(left / float(np.std(ability)))
    return shares


def _expected_sd(values: Floats, weights: Floats, chances: Floats, outcomes: int) -> float:
    """Standard deviation of an ability that is expected after outcomes, chosen one after another.

    The ability has values with weights, (quantiles,), and passes items by `chances`, (items,
    quantiles).
    """
    centred = values - weights @ values
    if not outcomes:
        return math.sqrt(float(weights @ centred**2))
    success = chances @ weights
    drops = (chances @ (weights * centred)) ** 2 / np.maximum(success * (1.0 - success), 1e-12)
    best = int(np.argmax(drops))
    p = float(success[best])
    total = 0.0
    for chance, likely in ((p, chances[best]), (1.0 - p, 1.0 - chances[best])):
        if chance > 0.0:
            after = weights * likely / chance
            total += chance * _expected_sd(values, after, chances, outcomes - 1)
    return total


def _notes_on(scale: DemandScale) -> list[str]:
    """What is to be said of a single scale."""
    notes: list[str] = []
    if scale.above:
        what = "1 item asks" if scale.above == 1 else f"{scale.above} items ask"
        notes.append(
            f"{scale.called}: {what} for more than {scale.hardest:g}, too few to tell of a harder "
            f"level; the range ends at {scale.hardest + _TOP:g}"
        )
    if not scale.told_apart:
        notes.append(
            f"{scale.called}: hard to tell apart; {OUTCOMES} outcomes leave {scale.left:.0%} of "
            "the prior's standard deviation"
        )
    return notes


def _heading(made: DemandLayout) -> str:
    """The comment at the head of the text."""
    paragraphs = (
        f"Written by `animalcat layout new` for {made.items} items with levels of demands; "
        f"{made.items - made.left_out} of them are complete, with {made.distinct} different "
        "vectors of demands.",
        "An item is passed if every demand is met, or else by guessing. The chances to meet each "
        "are multiplied: a smaller one is not made up for by the others. Level 0 asks for nothing "
        "and costs nothing.",
        "The range of an ability ends one level above the hardest that it is asked for by "
        f"{FEW} items or more. Its prior leans to able: since items ask for many abilities at "
        "once, with uniform priors hardly any agent would pass anything.",
        "What these items can tell. `left` is the share of the prior's standard deviation that "
        f"{OUTCOMES} well-chosen outcomes are expected to leave while nothing is known of the "
        f"other scales. Below {TOLD:g} the items can tell a scale apart.",
    )
    width = max(len(scale.called) for scale in made.scales)
    lines = [
        "\n#\n".join(map(_comment, paragraphs)),
        f"#   {'scale':{width}}  items  hardest  left",
    ]
    lines += [
        f"#   {s.called:{width}}  {s.items:5}  {s.hardest:7g}  {s.left:4.2f}" for s in made.scales
    ]
    if made.told:
        lines += ["#", *(_comment(f"{note}.", "- ") for note in made.told)]
    return "\n".join(lines) + "\n"


def _comment(text: str, mark: str = "") -> str:
    """Text as a comment, in lines that are not too long."""
    return fill(
        text,
        _WIDTH - 1,
        initial_indent=f"# {mark}",
        subsequent_indent="# " + " " * len(mark),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _text_of(name: str, scales: Sequence[DemandScale], found: _Columns) -> str:
    """The text of the layout, without its heading."""
    used = {column for scale in scales for column in scale.columns}
    columns = [column for column in found.scales if column in used]
    floor = found.chance if isinstance(found.chance, str) else CHANCE
    for called, count in Counter([*columns, floor, *(one.ability for one in scales)]).items():
        if count > 1:
            raise TableError(
                f"two columns would be called {called!r} in the layout; rename one of them"
            )
    high = max(_LEAST_HIGH, *(math.ceil(one.prior.high) for one in scales))
    percent = found.chance == UNGUESSABLE
    features: dict[str, Any] = {
        column: {"unit": "1", "low": 0, "high": _tidy(high), "about": f"level of {column}"}
        for column in columns
    }
    features[floor] = {
        "unit": "1",
        "low": 0,
        "high": 100 if percent else 1,
        "if_missing": 100 * percent if isinstance(found.chance, str) else _tidy(found.chance),
        "about": "unguessability in per cent" if percent else "chance to pass by guessing",
    }
    latents: dict[str, Any] = {}
    derived: dict[str, Any] = {}
    for one in scales:
        top = {"low": 0, "high": _tidy(one.prior.high), "location": _LOCATION, "scale": _SCALE}
        latents[one.ability] = {
            "kind": "capability",
            "unit": "1",
            "prior": {"moved_beta": top},
            "about": f"level of {one.called} that it masters half of the time",
            "reads": f"masters {one.called} up to level {{}}",
        }
        stem, demand = one.ability.removesuffix("Ability"), one.columns[0]
        if len(one.columns) > 1:
            demand = f"{stem}Demand"
            derived[demand] = _link("maximum", inputs=[*one.columns])
        derived[f"{stem}Performance"] = _link(
            "logistic_margin", ability=one.ability, demand=demand, slope=_tidy(one.slope), absent=0
        )
    latents["lapseRate"] = {
        "kind": "robustness",
        "unit": "1",
        "prior": {"scaled_beta": {"low": 0, "high": _LAPSES.high, "alpha": _LAPSES.alpha}},
        "about": "share of items that it fails although every demand is met",
    }
    derived |= {
        "allMet": _link(
            "product", inputs=[name for name in derived if name.endswith("Performance")]
        ),
        "attending": _link("noise_mixture", performance="allMet", noise="lapseRate", nu=0),
        "guessing": _link("weighted_sum", inputs=[floor], weights=[-0.01], constant=1)
        if percent
        else _link("scaled", input=floor, factor=1),
        "passing": _link("formula", formula="1 - (1 - guessing) * (1 - attending)"),
    }
    whole = {
        "name": name,
        "variant": "success",
        "source": "animalcat, on demands that were annotated as levels of scales",
        "about": f"{len(scales)} abilities by levels of demands, all of which have to be met",
        "prior_from": "abilities lean to able, since an item asks for many at once. Half of the "
        "prior is in the uppermost fifteenth of a range, and a twentieth in the lowest third. "
        "Lapses are mostly rare",
        "features": features,
        "latents": latents,
        "derived": derived,
        "outcome": {"bernoulli": {"probability": "passing"}},
    }
    return yaml.safe_dump(
        whole, sort_keys=False, allow_unicode=True, default_flow_style=None, width=_WIDTH
    )


def _link(kind: str, **of: object) -> dict[str, Any]:
    return {"link": {kind: of}}


def _tidy(value: float) -> float | int:
    """A whole number without a point."""
    return int(value) if value == int(value) else value
