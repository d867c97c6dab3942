"""How values of nodes are read: in the unit of the feature that asks for them, and in words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.summary import NodeSummary, hdi
from animalcat.layouts.model.links import LogisticMargin
from animalcat.layouts.model.nodes import GAP, Latent
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.model.units import NOT_KNOWN, plain_unit
from animalcat.layouts.model.validation import ancestors_of
from animalcat.layouts.reporting.profile import NodeNote, NodeWords

Floats: TypeAlias = npt.NDArray[np.float64]

PHRASES: Final[Mapping[str, str]] = {
    "rewardDistance": "finds goals up to {} away",
    "goalDistance": "finds goals up to {} away",
    "wayLength": "reaches goals up to {} away",
    "rewardSize": "sees goals down to {} across",
    "goalSize": "sees goals down to {} across",
    "timeUnderOcc": "remembers a hidden goal for up to {}",
    "hiddenStanding": "remembers a hidden goal for up to {}",
    "numPositions": "keeps track of up to {} hiding places",
    "wayTurns": "masters ways with up to {} turns",
    "rewards": "collects up to {} rewards",
}
"""How success in half of the attempts is said of capabilities whose layout has no phrase for
readers, by the feature that asks most for it. Features that are not here are named."""
_SEES: Final = "sees goals "
_IS_TOLD: Final = "is told of goals and finds them "
"""How a phrase begins that is about sight, and how it begins for an agent that needs none."""
_NOTHING: Final = NodeNote()
_STEPS: Final = 400
_FINER: Final = 4
"""Digits that an end of an interval gets at most, so that it does not pass the other end."""
_SAME: Final = 0.01
"""By what share of its range a demand may differ and still count as the same."""
_NUMBERS: Final = re.compile(r"\[([^\[\]|]*)\|([^\[\]|]*)\]")
_MINUS: Final = re.compile(r"(?<!\w)-(?=\d)")


class Vocabulary(NamedTuple):
    """What sentences call that which was played.

    Attributes:
        many: Instances.
        again: Instances of which some were played more than once.
        setting: What instances of one paradigm have in common.
    """

    many: str
    again: str
    setting: str


class Marks(NamedTuple):
    """Where a picture marks an estimate, in the node's own unit: what the words say, and no more.

    Attributes:
        low: Lower end of the interval.
        high: Its upper end.
        at: The estimate, or the bound where evidence is from one side alone; None if not known.
        open: Which end is open, so that an arrow stands there: "low", "high" or "".
    """

    low: float
    high: float
    at: float | None
    open: str


ARENAS: Final = Vocabulary("arenas", "episodes", "the apparatus")
SAMPLES: Final = Vocabulary("samples", "samples", "the task")


@dataclass(frozen=True, eq=False)
class Scale:
    """How the values of a node are read.

    Attributes:
        phrase: What it can do, with a gap for the value: "finds goals up to {} away".
        unit: Unit of the value; empty where there is none, "%" for a share.
        factor: A value in this unit is the node's value times this, where there is no curve.
        curve: Values of the node in ascending order, and what each is in this unit; what is between
            is interpolated. None where the factor says it.
        rising: Whether a more able agent has a larger value.
        feature: The feature by which a capability is read; empty if by none.
        margin: Whether the value is where success and failure are equally likely.
        low: Least value that any instance can ask for.
        high: Largest such value.
        ends: The ends of the node's range, in its own unit.
        asked: The hardest value of the feature that was asked, in this unit, as the one end of all
            values. Words claim nothing beyond it, also where the layout counts a value as more, as
            of a goal behind.
    """

    phrase: str
    unit: str
    factor: float = 1.0
    curve: tuple[Floats, Floats] | None = None
    rising: bool = True
    feature: str = ""
    margin: bool = False
    low: float = -math.inf
    high: float = math.inf
    ends: tuple[float, float] = (-math.inf, math.inf)
    asked: tuple[float, float] = (-math.inf, math.inf)

    @property
    def counted(self) -> Scale:
        """The same as the layout counts, whatever was asked: for values beside a demand."""
        return replace(self, asked=(-math.inf, math.inf))

    def convert(self, value: float) -> float:
        """A value of the node in this unit."""
        if self.curve is None:
            return self.factor * value
        return float(np.interp(value, *self.curve))

    def converted(self, values: Floats) -> Floats:
        """Values of the node in this unit; the array has the same shape."""
        return self.factor * values if self.curve is None else np.interp(values, *self.curve)

    def stretch(self, values: Floats) -> Floats:
        """How far this unit goes where the node goes by one, at values of any shape; above 0."""
        if self.curve is None:
            return np.full(values.shape, abs(self.factor))
        x, y = self.curve
        at = np.clip(np.searchsorted(x, values) - 1, 0, len(x) - 2)
        return (np.abs(np.diff(y)) / np.diff(x))[at]

    def said(self, value: float) -> float:
        """A value of the node in this unit, but nothing beyond what was asked."""
        return min(max(self.convert(value), self.asked[0]), self.asked[1])

    def say(self, node: NodeSummary, note: NodeNote = _NOTHING) -> str:
        """Say what a node's estimate and interval mean."""
        return f"{self.read(node)} (90 %: {self.interval(*self.spanned(note, *node.hdi))})"

    def read(self, node: NodeSummary) -> str:
        """Say what a node's estimate means."""
        if self.full(node):
            hardest = self.fill(figure(self.said(node.mean), 0.0))
            return f"{hardest} (the hardest that was asked) in more than half of its attempts"
        if self.margin and self.beyond(node.mean):
            easiest = self.fill(figure(self.said(node.mean), 0.0))
            return f"{easiest} (the easiest there is) in less than half of its attempts"
        return f"{self.fill(self.value(node.mean, *node.hdi))}{self.rate}"

    def value(self, value: float, low: float, high: float) -> str:
        """A value of the node in this unit, as exact as its interval allows; without the unit."""
        return figure(self.said(value), self.width(low, high))

    def interval(self, low: float, high: float, finer: float = 1.0) -> str:
        """The interval between two values of the node, in this unit.

        Args:
            low: One end.
            high: The other.
            finer: How many times finer than usual its ends are given.
        """
        width = self.width(low, high) / finer
        ends = sorted((low, high), key=self.convert)
        # An end that is beyond what is asked is said exactly, so the other is not rounded past it.
        for _ in range(_FINER):
            if float(self._number(ends[0], width)) <= float(self._number(ends[1], width)):
                break
            width /= 10.0
        first, last = (self.end(end, width) for end in ends)
        return _with(last if first == last else f"{first} to {last}", self.unit)

    def quantity(self, value: float, low: float, high: float) -> str:
        """A value of the node and its interval, in this unit; its ends are those of the demand."""
        interval = self.interval(low, high)
        said = _with(self.end(value, self.width(low, high)), self.unit)
        return said if interval == said else f"{said} ({interval})"

    def exactly(self, value: float) -> str:
        """A value of the node that is known exactly, as a demand is, in this unit."""
        return _minus(_with(figure(self.convert(value), 0.0), self.unit))

    def edge(self, value: float) -> str:
        """A value of the node, or what was asked at most or at least if that is nearer."""
        return _minus(_with(figure(self.said(value), 0.0), self.unit))

    def floor(self, value: float) -> bool:
        """Whether a value of the node is 0 in this unit, below which there is nothing."""
        return self.rising and figure(self.said(value), 0.0) == "0"

    def told(
        self, value: float, low: float, high: float, *, known: bool, note: NodeNote = _NOTHING
    ) -> str:
        """A value and its interval for people: a bound alone, or where little was learnt no value.

        Args:
            value: The estimate.
            low: Lower end of the interval.
            high: Its upper end.
            known: Whether enough was learnt for the estimate to be said.
            note: Says whether it is bounded from one side alone.
        """
        if not known:
            return _minus(f"{NOT_KNOWN} ({self.interval(low, high)})")
        if note.bound is not None:
            return _minus(self.bounded(note, low, high))
        return _minus(self.quantity(value, *self.spanned(note, low, high)))

    def beyond(self, value: float) -> str:
        """Where a value of the node lies past what any instance asks for: "over", "under" or ""."""
        shown, (low, high) = self.said(value), self._edges
        if shown == high:
            return "over"
        return "under" if shown == low and low > 0.0 else ""

    def past(self, value: float) -> bool:
        """Whether a value of the node is more ability than any instance asks for."""
        return self.margin and self.said(value) == self._edges[1 if self.rising else 0]

    def none(self, value: float) -> bool:
        """Whether a value of the node is no more ability than the easiest instance asks for."""
        return self.margin and self.said(value) == self._edges[0 if self.rising else 1]

    @property
    def _edges(self) -> tuple[float, float]:
        """The least and the greatest value that words have."""
        return max(self.low, self.asked[0]), min(self.high, self.asked[1])

    def end(self, value: float, width: float) -> str:
        """A value of the node as the end of a range; without the unit.

        Args:
            value: The value.
            width: Standard deviation, in this unit, that its digits are to show.
        """
        return _with(self.beyond(value), self._number(value, width))

    def _number(self, value: float, width: float) -> str:
        # What instances ask for at most is known exactly, and rounded it might be 0.
        return figure(self.said(value), 0.0 if self.beyond(value) else width)

    def brief(
        self,
        mean: float,
        low: float,
        high: float,
        *,
        known: bool = True,
        note: NodeNote = _NOTHING,
    ) -> NodeWords:
        """An estimate and its interval as a table has room for them: "21 m" and "17 to 25 m".

        Args:
            mean: The estimate.
            low: Lower end of the interval.
            high: Its upper end.
            known: Whether enough was learnt, as `learnt` says; else the estimate is not said.
            note: Says whether it is bounded from one side alone; then the bound is said.
        """
        ends = self.spanned(note, low, high) if known or note.bound is None else (low, high)
        if not known:
            return NodeWords(NOT_KNOWN, _minus(self.interval(*ends)))
        if note.bound is not None:
            return NodeWords(_minus(self.bounded(note, low, high)), _minus(self.interval(*ends)))
        value = _with(self.end(mean, self.width(*ends)), self.unit)
        return NodeWords(_minus(value), _minus(self.interval(*ends)))

    def of_profile(self, node: Mapping[str, Any]) -> NodeWords:
        """What `brief` says of a node of a profile.

        Args:
            node: The node, as JSON.
        """
        return self.brief(
            node["mean"], *node["hdi"], known=node.get("known", True), note=NodeNote.of_node(node)
        )

    def marks(self, node: Mapping[str, Any]) -> Marks:
        """Where a picture marks a node of a profile: at the values that `of_profile` says.

        Args:
            node: The node, as JSON.
        """
        note = NodeNote.of_node(node)
        low, high = map(float, node["hdi"])
        if not node.get("known", True):
            return Marks(low, high, None, "")
        low, high = self.spanned(note, low, high)
        if note.bound is None:
            return Marks(low, high, node["mean"], "")
        return Marks(low, high, note.bound, "high" if note.side == "at least" else "low")

    def difference(self, first: Floats, second: Floats) -> NodeWords:
        """How far one agent is from another in this unit: "+6 m" and "+2 to +10 m".

        Args:
            first: Draws of the node for one agent.
            second: As many for the other.
        """
        apart = self.converted(first) - self.converted(second)
        low, high = hdi(apart, np.full(len(apart), 1.0 / len(apart)))
        return self.difference_words(float(apart.mean()), low, high)

    def difference_words(self, mean: float, low: float, high: float) -> NodeWords:
        """Say a difference that is in this unit already.

        Args:
            mean: The difference.
            low: Lower end of its interval.
            high: Its upper end.
        """
        width = (high - low) / 3.3
        said, first, last = (_show_sign(figure(number, width)) for number in (mean, low, high))
        return NodeWords(
            _minus(_with(said, self.unit)), _minus(_with(f"{first} to {last}", self.unit))
        )

    def width(self, low: float, high: float) -> float:
        """The standard deviation, in this unit, of a 90 % interval between two values."""
        return abs(self.convert(high) - self.convert(low)) / 3.3

    def full(self, node: NodeSummary) -> bool:
        """Whether the estimate is at or beyond what the hardest instance asks for."""
        return self.past(node.mean)

    def spanned(self, note: NodeNote, low: float, high: float) -> tuple[float, float]:
        """The ends of the interval that is said: where there is a bound, it is one of them.

        The other is the end of the node's range then, so that the interval holds what the bound
        says. Estimate and interval have the same number. The interval under a flat prior, where
        that was looked at, is within.

        Args:
            note: Says whether the node is bounded from one side alone, and by what.
            low: Lower end of the interval of highest density.
            high: Its upper end.
        """
        if note.bound is None:
            both = (low, high, *(note.flat or ()))
            return min(both), max(both)
        if note.side == "at least":
            return note.bound, self.ends[1] if math.isfinite(self.ends[1]) else high
        return self.ends[0] if math.isfinite(self.ends[0]) else low, note.bound

    def bounded(self, note: NodeNote, low: float, high: float) -> str:
        """Say what evidence from one side means: "at least 21 m", of diameters "0.8 m or less"."""
        assert note.bound is not None
        width = self.width(*self.spanned(note, low, high))
        value = _with(self._number(note.bound, width), self.unit)
        if self.rising:
            return f"{note.side} {value}"
        return f"{value} or {'less' if note.side == 'at least' else 'more'}"

    def proved(self, note: NodeNote, low: float, high: float) -> str:
        """The same within a sentence: "finds goals up to at least 21 m away (no limit ...)"."""
        missing = "limit was found" if note.side == "at least" else "ability was shown"
        return f"{self.phrase.replace(GAP, self.bounded(note, low, high))} (no {missing})"

    def fill(self, value: str) -> str:
        """Put a value into the phrase, with its unit."""
        return self.phrase.replace(GAP, _with(value, self.unit))

    @property
    def rate(self) -> str:
        """How often: half of the attempts where the value is that of a margin."""
        return " in half of its attempts" if self.margin else ""


def scale_of(layout: Layout, index: int, features: Floats | None = None) -> Scale:
    """Find how the values of one node are read.

    A capability with a margin is read in the unit of the feature that asks most for it, if the
    feature's value follows from the demand. The other features are then at their lowest. Where they
    ask nothing at their lowest, they are at the middle of the given instances instead, provided
    that they do not change what the feature asks.

    Args:
        layout: The layout.
        index: Column of the node among the latents.
        features: (instances, features), for instance those of a battery.
    """
    prior = layout.latents[index].prior
    scale = replace(_scale_of(layout, index, features), ends=(prior.low, prior.high))
    if not scale.feature or features is None or not len(features):
        return scale
    values = features[:, layout.feature_names.index(scale.feature)]
    values = values[np.isfinite(values)]
    if not len(values):
        return scale
    asked = (-math.inf, float(values.max())) if scale.rising else (float(values.min()), math.inf)
    return replace(scale, asked=asked)


def _scale_of(layout: Layout, index: int, features: Floats | None) -> Scale:
    node = layout.latents[index]
    if node.kind == "capability":
        scale = _by_feature(Evaluator(layout), index, features)
        if scale is not None:
            return scale
    about = describe_node(node)
    if node.reads:
        factor, unit = (100.0, "%") if node.is_share else plain_unit(node.unit)
        return Scale(node.reads, unit, factor)
    if node.is_share:
        chance = re.fullmatch(r"chance to (\w+)(.*)", about)
        phrase = f"has a {about or node.name} of {{}}"
        if chance:
            verb = f"{chance[1]}es" if chance[1].endswith("o") else f"{chance[1]}s"
            phrase = f"{verb}{chance[2]} {{}} of the time"
        return Scale(phrase, "%", 100.0)
    factor, unit = plain_unit(node.unit)
    phrase = f"has a {node.name} ({about}) of {{}}" if about else f"has a {node.name} of {{}}"
    return Scale(phrase, unit, factor)


def scale_in(evaluator: Evaluator, index: int, row: Floats, scale: Scale) -> Scale:
    """How a capability is read in one arena: by the same feature, where all others are as there.

    Args:
        evaluator: Of the layout.
        index: Column of the node among the latents.
        row: (features,) of the arena.
        scale: How the node is read elsewhere, which stands where the feature asks nothing here.
    """
    if not scale.feature:
        return scale
    k = evaluator.layout.feature_names.index(scale.feature)
    demand = _demands_along(evaluator, index, row, k)
    if demand is None or (demand[-1] > demand[0]) != scale.rising:
        return scale
    return replace(scale, curve=_curve(evaluator.layout, k, demand))


def informed_layout(layout: Layout) -> Layout:
    """The same layout, with phrases for agents that are told the arena's true state.

    To be told where goals are is not to see them. So what begins with "sees goals" is said to be
    found by what the agent is told. Nothing else changes, also not the layout's digest.
    """
    phrases = {
        layout.latent_names[k]: scale.phrase
        for k in layout.capabilities
        if (scale := scale_of(layout, k)).phrase.startswith(_SEES)
    }
    latents = [
        replace(node, reads=f"{_IS_TOLD}{phrases[node.name].removeprefix(_SEES)}")
        if node.name in phrases
        else node
        for node in layout.latents
    ]
    return replace(layout, latents=tuple(latents))


def words_of(
    node: NodeSummary,
    scale: Scale,
    note: NodeNote = _NOTHING,
    *,
    known: bool = True,
) -> NodeWords:
    """Say a node's estimate and its interval.

    Args:
        node: The node.
        scale: How it is read.
        note: Says from which side alone there is evidence, if so, and the bound that this gives; or
            what the agent may go by instead, and then there is no estimate to say.
        known: Whether enough was learnt of it, as `learnt` says. Else there is no estimate to say.
    """
    brief = scale.brief(node.mean, *node.hdi, known=known, note=note)
    if not known:
        return brief._replace(estimate=f"{NOT_KNOWN} ({brief.interval})")
    if note.instead:
        return brief._replace(estimate=f"not told apart from relying on {note.instead}")
    if note.bound is not None:
        what = "noise" if node.kind == "robustness" else "ability"
        found = "no limit found" if note.side == "at least" else f"no {what} shown"
        return brief._replace(estimate=f"{found}: {brief.estimate}")
    if node.kind == "capability":
        estimate = scale.read(node)
    else:
        estimate = _with(scale.value(node.mean, *node.hdi), scale.unit)
    return brief._replace(estimate=_minus(estimate))


def plain_scale(unit: str) -> Scale:
    """How values are read where nothing but their unit is known; "10 m" is read in metres."""
    factor, name = plain_unit(unit)
    return Scale("{}", name, factor)


def describe_node(node: Latent) -> str:
    """What a node is, in a few words: the beginning of its explanation."""
    return re.split(r"[;:]|, in units", node.about)[0].strip()


def figure(value: float, width: float) -> str:
    """A number with no more digits than a standard deviation of that width gives a meaning to."""
    most = 2 - math.floor(math.log10(abs(value))) if value else 2
    digits = min(-math.floor(math.log10(width)), most) if width > 0.0 else most
    shown = f"{value:.{max(0, digits)}f}"
    if width <= 0.0 and "." in shown:
        shown = shown.rstrip("0").rstrip(".")
    return "0" if float(shown) == 0.0 else shown


def percent(share: float) -> str:
    """A share in per cent."""
    return f"{100.0 * share:.0f} %"


def all_of(names: Sequence[str]) -> str:
    """Names as a list in a sentence: "a", "a and b", "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def few_of(names: Sequence[str], most: int = 3) -> str:
    """The first of many names: "a, b, c and 34 more"."""
    if len(names) <= most + 1:
        return all_of(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def inflect_words(text: str, number: int, **gaps: object) -> str:
    """Words in the number that is meant: "{n} item[|s] [is|are] left out of {layout}".

    Args:
        text: The words, with forms of one and of several, and gaps.
        number: How many are meant, which fills the gap `n` unless something else is given for it.
        **gaps: What fills the other gaps.
    """
    formed = _NUMBERS.sub(lambda match: match[1 if number == 1 else 2], text)
    return formed.format(**{"n": number, **gaps})


def _minus(text: str) -> str:
    return _MINUS.sub("−", text)


def _show_sign(number: str) -> str:
    return number if number.startswith("-") or number == "0" else f"+{number}"


def _with(value: str, unit: str) -> str:
    return f"{value} {unit}".strip()


def _by_feature(evaluator: Evaluator, index: int, features: Floats | None) -> Scale | None:
    """Read a capability by its main feature; None if no feature alone decides its demand."""
    layout = evaluator.layout
    lowest = _open_gates(layout, np.array([f.low for f in layout.features]))
    typical = lowest
    if features is not None and len(features):
        typical = _open_gates(layout, np.nanmedian(features, axis=0))
    main = _main_feature(evaluator, index, typical)
    if main is None:
        return None
    feature, demand = main
    pure = _demands_along(evaluator, index, lowest, feature)
    base, demand = (typical, demand) if pure is None else (lowest, pure)
    # What is 0 at its lowest is absent there, and the reading is that of the plain case.
    others = [j for j in range(len(lowest)) if j != feature and (pure is None or lowest[j] != 0.0)]
    if _is_mixed(evaluator, index, base, features, feature, demand, others):
        return None
    return _read_by(layout, index, feature, demand)


def _is_mixed(
    evaluator: Evaluator,
    index: int,
    base: Floats,
    features: Floats | None,
    k: int,
    demand: Floats,
    others: Sequence[int],
) -> bool:
    """Whether other features change what one feature asks of a capability, wherever it asks."""
    layout = evaluator.layout
    some = np.array([[f.low, f.high] for f in layout.features]).T
    if features is not None and len(features):
        some = np.array([np.nanmin(features, axis=0), np.nanmax(features, axis=0)])
    slack = _SAME * float(np.ptp(demand))
    for j in others:
        for value in some[:, j]:
            if layout.features[j].name in layout.gates or not math.isfinite(value):
                continue
            row = base.copy()
            row[j] = value
            other = _demands_along(evaluator, index, row, k)
            if other is not None and float(np.abs(other - demand).max()) > slack:
                return True
    return False


def _open_gates(layout: Layout, row: Floats) -> Floats:
    """The row with every gate open."""
    row = row.copy()
    row[[layout.feature_names.index(name) for name in layout.gates]] = 1.0
    return row


def _main_feature(evaluator: Evaluator, index: int, base: Floats) -> tuple[int, Floats] | None:
    """The feature that changes the demand most, with the demand over its range."""
    layout = evaluator.layout
    best: tuple[int, Floats] | None = None
    for k, feature in enumerate(layout.features):
        if feature.name in layout.gates or not math.isfinite(feature.high - feature.low):
            continue
        demand = _demands_along(evaluator, index, base, k)
        if demand is not None and (best is None or np.ptp(demand) > np.ptp(best[1])):
            best = (k, demand)
    return best


def _demands_along(evaluator: Evaluator, index: int, base: Floats, k: int) -> Floats | None:
    """Demand on a capability over the range of one feature; None if it does not rise or fall."""
    layout = evaluator.layout
    rows = np.tile(base, (_STEPS, 1))
    rows[:, k] = np.linspace(layout.features[k].low, layout.features[k].high, _STEPS)
    place = layout.capabilities.index(index)
    demand = evaluator.demands(evaluator.columns(rows))[:, place]
    steps = np.diff(demand)
    steady = bool((steps >= 0.0).all() or (steps <= 0.0).all())
    return demand if np.isfinite(demand).all() and steady and np.ptp(demand) > 0.0 else None


def _curve(layout: Layout, k: int, demand: Floats) -> tuple[Floats, Floats]:
    """Demands in ascending order, and the value of the feature that asks for each."""
    values = np.linspace(layout.features[k].low, layout.features[k].high, _STEPS)
    x, y = (demand, values) if demand[-1] > demand[0] else (demand[::-1], values[::-1])
    x, first = np.unique(x, return_index=True)
    return x, y[first]


def _read_by(layout: Layout, index: int, k: int, demand: Floats) -> Scale:
    feature = layout.features[k]
    rising = bool(demand[-1] > demand[0])
    curve = _curve(layout, k, demand)
    phrase = layout.latents[index].reads or _phrase(layout, index, feature.name, rising=rising)
    unit = "" if feature.unit == "1" else feature.unit
    return Scale(
        phrase,
        unit,
        curve=curve,
        rising=rising,
        feature=feature.name,
        margin=True,
        low=float(curve[1].min()),
        high=float(curve[1].max()),
    )


def _phrase(layout: Layout, index: int, feature: str, *, rising: bool) -> str:
    """What a capability is said to do whose layout does not say it: by the demand's name.

    A demand on several capabilities says nothing of any alone, so each is named then.
    """
    phrase = PHRASES.get(feature, f"masters {feature} {'up' if rising else 'down'} to {GAP}")
    others = [
        node
        for k, node in enumerate(layout.latents)
        if k != index and feature in _demand_nodes(layout, node.name)
    ]
    return f"{phrase}, by its {layout.latents[index].name}" if others else phrase


def _demand_nodes(layout: Layout, capability: str) -> set[str]:
    """Names of all nodes that make up the demands on a capability."""
    parents = {node.name: node.link.parents for node in layout.derived}
    demands = [
        node.link.demand
        for node in layout.derived
        if isinstance(node.link, LogisticMargin) and node.link.ability == capability
    ]
    return set(ancestors_of(demands, parents))
