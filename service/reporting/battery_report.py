"""Puts the report on a battery together, as plain data.

It answers five questions: what is in the battery, whether it can be passed, what it could tell, how
reliably, and which impostors it would let through.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from animalcat.arena_configs.instance import Instance
from animalcat.layouts.library import LAYOUTS
from animalcat.layouts.model.spec import Layout
from animalcat.service.batteries.battery import Battery
from animalcat.service.batteries.impostors import ENOUGH, Impostor, impostors
from animalcat.service.errors import ServiceError
from animalcat.service.library.layouts import layout_on
from animalcat.service.measuring.coverage import coverage, covered_features
from animalcat.service.reporting.demands import Demand, demands_of
from animalcat.service.reporting.precision import (
    AGENTS,
    TANGLED,
    UNKNOWN,
    NodePrecision,
    Precision,
    Tick,
    precision,
)
from animalcat.service.reporting.reliability import CHOOSING
from animalcat.text.counts import count_of

VERSION: Final = 1
"""Version of the JSON; readers refuse newer ones."""

CHOSEN: Final = "chosen"
AT_RANDOM: Final = "at random"
"""How arenas come: the default policy chooses, or the order is random."""

MAPS: Final = 360
"""Most maps on a sheet."""
MAPS_EACH: Final = 12
"""Most maps of one paradigm."""
_ALWAYS: Final = (("wayLength", "rewardDistance"), ("goalSize", "rewardSize"))
"""Demands that are said of an instance without a layout, the first that is measured of each."""

RULES: Final[Mapping[str, str]] = {
    "sheet": (
        f"Every paradigm has the same number of maps, at most {MAPS_EACH}, of instances that are "
        "spread evenly over its own in order of name."
    ),
    "precision": (
        f"{AGENTS} agents are drawn from the layout's prior. Each plays every covered instance "
        "once, as the layout says that it would, and gets the posterior of its outcomes. SDs are "
        "roots of the mean posterior variance over the agents: what to expect of an agent about "
        "which nothing is known. This is the best case: a session that plays fewer instances, or "
        "an agent that the layout does not describe, leaves more."
    ),
    "tangle": (
        "The battery cannot tell two nodes apart where the correlation of their expected posterior "
        f"is {TANGLED:g} or more, with either sign."
    ),
    "reliability": (
        "The standard error is the root of the mean posterior variance over the same agents. The "
        "reliability is 1 - that variance / the variance of the prior: 0 if nothing is learnt, 1 "
        "if all is known (Green et al. 1984, marginal reliability). Sessions play so many arenas, "
        f"chosen by the default policy ({CHOOSING} of the agents), or in a random order (all). It "
        "depends on the prior, in which some agents are mostly noise: among agents that are "
        "more alike, the same standard error means a lower reliability."
    ),
    "impostors": (
        "An impostor relies on a cue, and not on what the arenas ask for. Those instances are "
        "counted in which the two differ. Where there are none, no session can tell it from an "
        "agent that has what is asked for, or that lacks it, as the cue may be; with fewer than "
        f"{ENOUGH}, a session meets few of them. Impostors that follow a colour of the camera's "
        "picture are not counted, since no demand says what the camera shows."
    ),
}
"""How what the report says was found, in words."""


class Covering(NamedTuple):
    """A shipped layout that covers some of the battery.

    Attributes:
        layout: Its name.
        covered: Number of instances that it covers.
    """

    layout: str
    covered: int


class SheetRow(NamedTuple):
    """One instance on the contact sheet.

    Attributes:
        name: Its name.
        demands: Its main demands, in their units.
        shown: Whether it has a map.
    """

    name: str
    demands: dict[str, float]
    shown: bool


class SheetPart(NamedTuple):
    """One paradigm on the contact sheet.

    Attributes:
        heading: The paradigm, behind its suite if there is one, as in `suite: paradigm`.
        rows: Its instances by name.
    """

    heading: str
    rows: tuple[SheetRow, ...]


class ReliabilityValue(NamedTuple):
    """How precisely sessions of one length know a capability.

    Attributes:
        capability: Its name.
        arenas: How arenas are chosen: `CHOSEN` or `AT_RANDOM`.
        episodes: How many.
        unit: Unit of the standard error, as it is read.
        standard_error: Root of the mean posterior variance.
        reliability: 1 - its square / the prior's variance.
    """

    capability: str
    arenas: str
    episodes: int
    unit: str
    standard_error: float
    reliability: float


@dataclass(frozen=True, eq=False)
class BatteryReport:
    """All that a report on a battery says.

    Attributes:
        name: Name of the battery.
        battery: The battery.
        demands: What its instances ask for.
        sheet: The contact sheet.
        layouts: Shipped layouts that cover some of it.
        impostors: By which cues an agent could pass without what is asked for.
        precision: What a layout could at best know; None without a layout.
    """

    name: str
    battery: Battery
    demands: tuple[Demand, ...]
    sheet: tuple[SheetPart, ...]
    layouts: tuple[Covering, ...]
    impostors: tuple[Impostor, ...]
    precision: Precision | None

    @property
    def shown(self) -> list[str]:
        """Names of the instances that the contact sheet has maps of, in its order."""
        return [row.name for part in self.sheet for row in part.rows if row.shown]

    @property
    def reliability_values(self) -> list[ReliabilityValue]:
        """Standard errors and reliabilities of each capability; empty without a layout."""
        known = self.precision
        nodes = {} if known is None else {node.name: node for node in known.nodes}
        return [
            ReliabilityValue(
                one.name,
                how,
                after.episodes,
                nodes[one.name].reads_in,
                nodes[one.name].read(found.sd),
                found.reliability,
            )
            for one in (() if known is None else known.reliability)
            for how in (CHOSEN, AT_RANDOM)
            for after in one.lengths
            if (found := after.chosen if how == CHOSEN else after.at_random) is not None
        ]

    @property
    def reliability_rows(self) -> list[dict[str, str]]:
        """The same as a table for people: a row for each capability and number of episodes."""
        rows: dict[tuple[str, int], dict[str, str]] = {}
        for value in self.reliability_values:
            heads = {
                "capability": value.capability,
                "episodes": str(value.episodes),
                "unit": value.unit,
            }
            row = rows.setdefault(
                (value.capability, value.episodes), heads | {CHOSEN: "", AT_RANDOM: ""}
            )
            row[value.arenas] = f"{number(value.standard_error)} ({value.reliability:.2f})"
        names = {name: k for k, (name, _) in enumerate(rows)}
        return [rows[key] for key in sorted(rows, key=lambda key: (names[key[0]], key[1]))]

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values, as documented by the schema `battery_report`."""
        battery, marks = self.battery, self.battery.marks
        return _round_values(
            {
                "version": VERSION,
                "battery": self.name,
                "digest": battery.digest,
                "instances": len(battery.instances),
                "suites": len({each.suite for each in battery.instances if each.suite}),
                "paradigms": len(self.sheet),
                "groups": len(set(battery.groups.values())),
                "problems": list(battery.problems),
                "unsolved": battery.unsolved and dict(battery.unsolved),
                **marks.to_dict(),
                "summary": list(summary(self)),
                "rules": dict(RULES),
                "demands": [_demand(demand) for demand in self.demands],
                "sheet": [
                    {"heading": part.heading, "instances": [row._asdict() for row in part.rows]}
                    for part in self.sheet
                ],
                "layouts": [covering._asdict() for covering in self.layouts],
                "precision": None if self.precision is None else _precision(self.precision),
                "impostors": [impostor.to_dict() for impostor in self.impostors],
            }
        )


def battery_report(
    name: str,
    battery: Battery,
    layout: Layout | None = None,
    maps: int = MAPS,
    tick: Tick = lambda done, total: None,
) -> BatteryReport:
    """Report on a battery.

    Args:
        name: Name of the battery.
        battery: The battery.
        layout: The layout that the agents would be measured by; None to leave out what they could
            be known to.
        maps: Most maps on the contact sheet.
        tick: Told how many agents have been simulated, of how many.

    Raises:
        ServiceError: The layout does not fit the battery, or covers none of it.
    """
    known = None
    if layout is not None:
        covered_features(layout, battery)  # says so if there are none
        known = precision(layout, battery, tick)
    return BatteryReport(
        name=name,
        battery=battery,
        demands=demands_of(battery),
        sheet=_sheet(battery, layout, maps),
        layouts=tuple(_covering(battery)),
        impostors=impostors(battery.instances),
        precision=known,
    )


def summary(report: BatteryReport) -> Iterator[str]:
    """What a reader should know first, in sentences."""
    instances = report.battery.instances
    suites = len({instance.suite for instance in instances if instance.suite})
    of_suites = f" of {count_of(suites, 'suite')}" if suites else ""
    yield (
        f"{count_of(len(instances), 'instance')} in {count_of(len(report.sheet), 'paradigm')}"
        f"{of_suites}."
    )
    groups = len(set(report.battery.groups.values()))
    if groups < len(instances):
        yield (
            f"They are {count_of(groups, 'group')} of variants: instances of the same suite, "
            "paradigm and task that have equal demands, and differ in looks if in anything."
        )
    constant = sum(demand.distinct == 1 for demand in report.demands)
    lacking = sum(demand.distinct == 0 for demand in report.demands)
    yield (
        f"Of {count_of(len(report.demands), 'demand')}, {len(report.demands) - constant - lacking} "
        f"differ between instances, {constant} have one value throughout, and {lacking} are "
        "measured for no instance."
    )
    yield from _passing(report.battery)
    known = report.precision
    if known is not None:
        yield from _knowledge(known)
    elif report.layouts:
        coverings = ", ".join(
            f"{covering.layout} ({covering.covered})" for covering in report.layouts
        )
        yield f"Shipped layouts that cover some of it, with numbers of instances: {coverings}."
    else:
        yield "No shipped layout covers any of it."
    if alike := [one.agent for one in report.impostors if not one.parting]:
        yield f"No instance shows by its cue an agent that {'; or one that '.join(alike)}."


def _passing(battery: Battery) -> Iterator[str]:
    """Whether the battery can be passed."""
    for sentence in battery.marks.sentences:
        yield f"{sentence[:1].upper()}{sentence[1:]}."
    if battery.unsolved:
        yield (
            f"The planner, which knows where everything is, does not solve "
            f"{count_of(len(battery.unsolved), 'arena')}: they may be beyond it rather than beyond "
            "everyone."
        )
    elif battery.unsolved is not None:
        yield "The planner, which knows where everything is, solves every arena."


def _knowledge(known: Precision) -> Iterator[str]:
    covered = len(known.bank.names)
    yield (
        f"The layout {known.layout.name} ({known.layout.variant or 'default'}) covers "
        f"{count_of(covered, 'instance')}."
    )
    kept = "; ".join(
        f"{n.name} {number(n.read(n.sd))} of {number(n.read(n.prior_sd))} {n.reads_in}".rstrip()
        for n in known.nodes
        if n.kind == "capability"
    )
    yield f"At best, this is then left of the prior's standard deviations: {kept}."
    yield from _reliability_words(known)
    blind = [n.name for n in known.nodes if n.kind == "capability" and n.kept >= UNKNOWN]
    if blind:
        yield f"Almost nothing can be learnt about {', '.join(blind)}."
    if known.tangles:
        tangles = ", ".join(
            f"{t.one} and {t.other} ({show_correlation(t.correlation)})" for t in known.tangles
        )
        yield f"The battery cannot tell these apart: {tangles}."
    elif not blind:
        yield "The battery can tell all nodes of the layout apart."


def _reliability_words(known: Precision) -> Iterator[str]:
    """What sessions of a middling length find out of each capability, in a sentence."""
    nodes = {node.name: node for node in known.nodes}
    lengths = [one for one in known.reliability[0].lengths if one.chosen is not None]
    if not lengths:
        return
    middle = len(lengths) // 2
    errors: list[str] = []
    for one in known.reliability:
        chosen = one.lengths[middle].chosen
        if chosen is not None:
            node = nodes[one.name]
            error = f"{number(node.read(chosen.sd))} {node.reads_in}".rstrip()
            errors.append(f"{one.name} {error} (reliability {chosen.reliability:.2f})")
    yield (
        f"Standard errors after {lengths[middle].episodes} episodes that the default policy "
        f"chooses: {'; '.join(errors)}."
    )


def number(value: float) -> str:
    """A number with three significant digits, as people write it."""
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    shown = f"{value:.{min(digits, 4)}f}" if digits < 6 else f"{value:.2g}"
    shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
    return shown.replace("-", "−") if shown not in ("-0", "") else "0"


def show_correlation(value: float) -> str:
    """A correlation with two decimals and a true minus."""
    return f"{value:.2f}".replace("-", "−")


def _sheet(battery: Battery, layout: Layout | None, maps: int) -> tuple[SheetPart, ...]:
    """The instances by paradigm, and which of them are shown by a map."""
    parts: dict[str, list[Instance]] = {}
    for instance in battery.instances:
        heading = ": ".join(filter(None, (instance.suite, instance.paradigm)))
        parts.setdefault(heading, []).append(instance)
    sizes = [len(instances) for instances in parts.values()]
    each = max(
        (k for k in range(1, MAPS_EACH + 1) if sum(min(k, n) for n in sizes) <= maps), default=0
    )
    names = () if layout is None else layout.feature_names
    sheet: list[SheetPart] = []
    for place, heading in enumerate(sorted(parts)):
        instances = parts[heading]
        count = min(each or int(place < maps), len(instances))
        shown = {k * len(instances) // count for k in range(count)}
        rows = (
            SheetRow(one.name, _main_demands(one, names), k in shown)
            for k, one in enumerate(instances)
        )
        sheet.append(SheetPart(heading, tuple(rows)))
    return tuple(sheet)


def _main_demands(instance: Instance, names: Sequence[str]) -> dict[str, float]:
    """The layout's demands that are not 0; else how far the goal is, and how large."""
    features = instance.features
    chosen = [name for name in names if features.get(name)]
    if not chosen:
        chosen = [next((name for name in either if name in features), "") for either in _ALWAYS]
    return {name: features[name] for name in chosen if name}


def _covering(battery: Battery) -> Iterator[Covering]:
    """Shipped layouts about the battery's demands, those that cover most first."""
    coverings: list[Covering] = []
    for name in LAYOUTS:
        layout = layout_on(battery, name)
        if not set(layout.feature_names) & set(battery.units):
            continue
        try:
            covered = len(coverage(layout, battery).features)
        except ServiceError:  # its units differ
            continue
        if covered:
            coverings.append(Covering(name, covered))
    yield from sorted(coverings, key=lambda covering: -covering.covered)


def _demand(demand: Demand) -> dict[str, Any]:
    ends = ("least", "lower_quarter", "middle", "upper_quarter", "greatest")
    quantiles = dict(zip(ends, demand.quantiles, strict=True)) if demand.measured else None
    return {**demand._asdict(), "missing": dict(demand.missing), "quantiles": quantiles}


def _precision(known: Precision) -> dict[str, Any]:
    return {
        "layout": known.layout.name,
        "variant": known.layout.variant,
        "digest": known.layout.digest,
        "agents": AGENTS,
        "covered": len(known.bank.names),
        "not_covered": known.reasons,
        "nodes": [_node(node) for node in known.nodes],
        "tangles": [tangle._asdict() for tangle in known.tangles],
        "reliability": [
            {
                "name": node.name,
                "lengths": [
                    {
                        "episodes": one.episodes,
                        "chosen": one.chosen and one.chosen._asdict(),
                        "at_random": one.at_random._asdict(),
                    }
                    for one in node.lengths
                ],
            }
            for node in known.reliability
        ],
    }


def _node(node: NodePrecision) -> dict[str, Any]:
    return {
        "name": node.name,
        "kind": node.kind,
        "unit": node.unit,
        "about": node.about,
        "prior_sd": node.prior_sd,
        "sd": node.sd,
        "share_of_range": node.share,
        "share_of_prior": node.kept,
    }


def _round_values(value: Any) -> Any:
    """JSON values with six significant digits; None for what is not a finite number."""
    if isinstance(value, dict):
        return {key: _round_values(entry) for key, entry in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [_round_values(entry) for entry in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
