"""Puts the report on a battery together, as plain data."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from animalcat.layouts.library import LAYOUTS
from animalcat.layouts.model.spec import Layout
from animalcat.service.batteries.balance import BINS, LEAST, Balance, balances
from animalcat.service.batteries.battery import Battery
from animalcat.service.batteries.impostors import ENOUGH, Impostor, impostors
from animalcat.service.batteries.separation import (
    ALIKE,
    APART,
    END,
    MOST,
    Separation,
    separation,
)
from animalcat.service.errors import ServiceError
from animalcat.service.library.layouts import layout_on
from animalcat.service.measuring.coverage import coverage, covered_features
from animalcat.service.reporting.additions import (
    ADDED,
    CANDIDATES,
    WORTH,
    Addition,
    additions,
)
from animalcat.service.reporting.charts import number, signed
from animalcat.service.reporting.correlations import (
    CLOSE,
    SAME,
    Correlations,
    Pair,
    Picture,
    correlations,
    picture,
)
from animalcat.service.reporting.demands import LOOK, MOST_HEADINGS, DemandTable
from animalcat.service.reporting.kinship import kinship
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
from animalcat.service.reporting.sheet import MAPS, MAPS_EACH, SheetPart, sheet
from animalcat.service.reporting.spread import GAP, Spread, spreads

VERSION: Final = 1
"""Version of the JSON; readers refuse newer ones."""

CHOSEN: Final = "chosen"
AT_RANDOM: Final = "at random"
"""How arenas come: the default policy chooses, or the order is random."""

_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")

RULES: Final[Mapping[str, str]] = {
    "gap": (
        f"A gap is an interval of at least {100 * GAP:g} % of a demand's range in which no "
        "instance lies. Of counts and codes it is a run of values that no instance has. The "
        "range is the layout's, else that of the demand's definition where it has two ends, else "
        "from the least to the greatest value."
    ),
    "separates": (
        "What a demand separates is the share of the variance of its ranks that lies between the "
        "headings of the contact sheet (eta squared, adjusted for their number): 0 where they are "
        "alike in it, 1 where it is the same under every heading."
    ),
    "correlation": (
        "Correlations are Spearman's, over the instances that have both demands. Demands go "
        f"together from {CLOSE:g} on, with either sign. They are nested by definition where one is "
        "computed from the other, bounds it or contains it, so that no choice of instances can "
        f"take them apart. In the picture a demand stands for others from {SAME:g} on."
    ),
    "separation": (
        f"Two demands are told apart where neither Spearman's nor Pearson's correlation is above "
        f"{MOST:g}, with either sign. An end is the easiest or hardest {100 * END:g} % of a "
        "demand's range in the layout; which end is easy follows from the success of agents of the "
        f"layout's prior. A pair differs in one demand by at least {100 * APART:g} % of its range, "
        f"and in no other by more than {100 * ALIKE:g} %. Where controls and variants are known, "
        "both instances of a pair are of one draw, so that they are alike in all else."
    ),
    "looks": (
        "Cramer's V of the paradigm and a colour, corrected for chance (Bergsma 2013): 0 where "
        "every paradigm has the colours alike, 1 where they tell the paradigm. Of more than "
        f"{BINS} values, {BINS} parts of equal numbers are compared. Paradigms with fewer than "
        f"{LEAST} instances that have the colour are left out. A paradigm with one colour alone "
        "cannot be told from that colour."
    ),
    "impostors": (
        "An impostor goes by a cue, and not by what the arenas ask for. Counted are the instances "
        "in which the two part. Where there are none, no session can tell it from an agent that "
        "has what is asked for, or that lacks it, as the cue may be; with fewer than "
        f"{ENOUGH}, a session meets few of them. Impostors that follow a colour of the camera's "
        "picture are not counted, since no demand says what the camera shows."
    ),
    "sheet": (
        f"Every paradigm has the same number of maps, at most {MAPS_EACH}. The first is of its "
        "most typical instance by the ranks of all demands, each further one of the instance that "
        f"differs most from those shown before. Of more than {MOST_HEADINGS} paradigms, those of "
        "a suite share a heading, or those whose names are alike up to the first hyphen."
    ),
    "precision": (
        f"{AGENTS} agents are drawn from the layout's prior. Each plays every covered instance "
        "once, as the layout says that it would, and gets the posterior of its outcomes. SDs are "
        "roots of the mean posterior variance over the agents: what one may expect of an agent of "
        "whom nothing is known. This is the best case: a session that plays fewer instances, or "
        "an agent that the layout does not describe, leaves more."
    ),
    "reliability": (
        "The standard error is the root of the mean posterior variance over the same agents. The "
        "reliability is 1 - that variance / the variance of the prior: 0 if nothing is learnt, 1 "
        "if all is known (Green et al. 1984, marginal reliability). Sessions play so many arenas, "
        f"chosen by the default policy ({CHOOSING} of the agents), or in a random order (all). It "
        "depends on the prior, in which some agents are mostly noise: among agents who are "
        "more alike, the same standard error is a lower reliability."
    ),
    "tangle": (
        "The battery cannot tell two nodes apart where the correlation of their expected posterior "
        f"is {TANGLED:g} or more, with either sign."
    ),
    "addition": (
        f"For precision, {CANDIDATES} demand vectors that fill the layout's ranges evenly are "
        f"compared. In every round the one is taken of which {ADDED} instances most lower the "
        "expected variance of the capability that is then worst known, as a share of its prior; a "
        f"capability that none of them helps by {100 * WORTH:g} % is left out. For gaps, an "
        "instance in the middle of the widest. Against correlations, an instance that is high in "
        "one of two demands that rise together and low in the other, or high in both where one "
        "falls as the other rises. "
        "Whether an arena can be made that has the demands is not checked, beyond the distances "
        "that an arena of 40 m has room for and the sizes of goals."
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
        table: Its demands.
        spreads: How far each is covered.
        correlations: Which go together.
        picture: Which of them the picture of the correlations shows.
        sheet: The contact sheet.
        layouts: Shipped layouts that cover some of it.
        separation: Which demands of the layout, or of the one that the battery is meant for, can be
            told apart; None without a layout.
        looks: Which colours go together with the paradigm.
        impostors: By which cues an agent could pass without what is asked for.
        precision: What a layout could at best know; None without a layout.
        additions: Instances to add.
    """

    name: str
    battery: Battery
    table: DemandTable
    spreads: tuple[Spread, ...]
    correlations: Correlations
    picture: Picture
    sheet: tuple[SheetPart, ...]
    layouts: tuple[Covering, ...]
    separation: Separation | None
    looks: tuple[Balance, ...]
    impostors: tuple[Impostor, ...]
    precision: Precision | None
    additions: tuple[Addition, ...]

    @property
    def shown(self) -> list[str]:
        """Names of the instances that the contact sheet shows, in its order."""
        return [row.name for part in self.sheet for row in part.rows if row.shown]

    @property
    def close(self) -> list[Pair]:
        """Demands that go together although neither is nested in the other."""
        return [pair for pair in self.correlations.pairs() if not pair.kinship]

    @property
    def nested(self) -> list[Pair]:
        """Demands that go together by definition."""
        return [pair for pair in self.correlations.pairs() if pair.kinship]

    @property
    def constant(self) -> list[Spread]:
        """Demands that have one value in the whole battery."""
        return [spread for spread in self.spreads if spread.constant]

    @property
    def unmeasured(self) -> list[Spread]:
        """Demands that no instance has."""
        return [spread for spread in self.spreads if not spread.measured]

    @property
    def separating(self) -> list[Spread]:
        """Demands by what they separate between paradigms, most first.

        Looks are left out, and what few instances have. Of demands that are nested, the first
        stands for the others.
        """
        known = [
            s
            for s in self.spreads
            if s.separates is not None
            and s.demand.group != LOOK
            and s.measured >= self.correlations.least
        ]
        best: list[Spread] = []
        for spread in sorted(known, key=lambda s: -(s.separates or 0.0)):
            if not any(kinship(spread.demand.name, better.demand.name) for better in best):
                best.append(spread)
        return best

    @property
    def missing(self) -> dict[str, dict[str, int]]:
        """Why demands are not measured: for each reason, demands with numbers of instances.

        Reasons that differ in numbers alone are one.
        """
        alike: dict[str, set[str]] = {}
        counts: dict[str, Counter[str]] = {}
        for spread in self.spreads:
            for why, count in spread.missing.items():
                form = _NUMBER.sub("#", why)
                alike.setdefault(form, set()).add(why)
                counts.setdefault(form, Counter())[spread.demand.name] += count
        ordered = sorted(counts, key=lambda form: -max(counts[form].values()))
        return {_one_reason(alike[form]): dict(counts[form]) for form in ordered}

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
        return _rounded(
            {
                "version": VERSION,
                "battery": self.name,
                "digest": self.battery.digest,
                "instances": len(self.table.names),
                "suites": len(
                    {instance.suite for instance in self.battery.instances if instance.suite}
                ),
                "paradigms": len(set(self.table.paradigms)),
                "groups": len(set(self.battery.groups.values())),
                "problems": list(self.battery.problems),
                "unsolved": self.battery.unsolved and dict(self.battery.unsolved),
                "summary": list(summary(self)),
                "rules": dict(RULES),
                "missing": [
                    {"reason": why, "demands": counts} for why, counts in self.missing.items()
                ],
                "demands": [_spread(spread) for spread in self.spreads],
                "correlations": self._correlations(),
                "sheet": [
                    {
                        "heading": part.heading,
                        "stands_out": [outlier._asdict() for outlier in part.stands_out],
                        "instances": [row._asdict() for row in part.rows],
                    }
                    for part in self.sheet
                ],
                "layouts": [covering._asdict() for covering in self.layouts],
                "separation": None if self.separation is None else self.separation.to_dict(),
                "looks": [look.to_dict() for look in self.looks],
                "impostors": [impostor.to_dict() for impostor in self.impostors],
                "precision": None if self.precision is None else _precision(self.precision),
                "additions": [_addition(addition) for addition in self.additions],
            }
        )

    def _correlations(self) -> dict[str, Any]:
        related = self.correlations
        return {
            "least_instances": related.least,
            "demands": list(related.names),
            "rho": related.rho.tolist(),
            "constant": {spread.demand.name: spread.quantiles[0] for spread in self.constant},
            "pairs": [
                {**pair._asdict(), "kinship": pair.kinship or None} for pair in related.pairs()
            ],
        }


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
    table = DemandTable.of(battery)
    covered = spreads(table, layout)
    related = correlations(table)
    known = None
    if layout is not None:
        covered_features(layout, battery)  # says so if there are none
        known = precision(layout, battery, tick)
    return BatteryReport(
        name=name,
        battery=battery,
        table=table,
        spreads=tuple(covered),
        correlations=related,
        picture=picture(table, related, layout),
        sheet=tuple(sheet(table, layout, maps)),
        layouts=tuple(_covering(battery)),
        separation=_separation(battery, layout),
        looks=balances(battery.instances),
        impostors=impostors(battery.instances),
        precision=known,
        additions=tuple(additions(table, covered, related, known)),
    )


def _separation(battery: Battery, layout: Layout | None) -> Separation | None:
    """Which demands can be told apart, of a layout or of the one that a battery is meant for."""
    if layout is None and battery.layout is not None and battery.layout.name in LAYOUTS:
        layout = layout_on(battery, battery.layout.name)
    return None if layout is None else separation(layout, battery.instances)


def summary(report: BatteryReport) -> Iterator[str]:
    """What a reader should know first, in sentences."""
    total, parts = len(report.table.names), len(report.sheet)
    varying, paradigms = report.table.varying, len(set(report.table.paradigms))
    shared = f" under {_count(parts, 'heading')}" if parts < paradigms else ""
    suites = len({instance.suite for instance in report.battery.instances if instance.suite})
    of_suites = f" of {_count(suites, 'suite')}" if suites else ""
    yield f"{_count(total, 'instance')} in {_count(paradigms, 'paradigm')}{of_suites}{shared}."
    for sentence in report.battery.marks.sentences:
        yield f"{sentence[:1].upper()}{sentence[1:]}."
    groups = len(set(report.battery.groups.values()))
    if groups < total:
        yield (
            f"They are {_count(groups, 'group')} of variants: instances of the same suite, "
            "paradigm and task that have equal demands, and differ in looks if in anything."
        )
    yield (
        f"Of {_count(len(report.spreads), 'demand')}, {len(varying)} differ between instances, "
        f"{len(report.constant)} have one value throughout, and {len(report.unmeasured)} are "
        "measured for no instance."
    )
    what = "headings" if parts < paradigms else "paradigms"
    if report.separating and parts > 1:
        most = [s for s in report.separating if s.separates and s.separates >= 0.5][:5]
        if most:
            names = ", ".join(f"{s.demand.name} ({s.separates:.2f})" for s in most)
            yield f"The demands that separate the {what} best are {names}."
        else:
            best = report.separating[0]
            yield (
                f"No demand separates the {what} well; the best is {best.demand.name} "
                f"({best.separates:.2f})."
            )
    if report.close:
        looks = {d.name for d in report.table.demands if d.group == LOOK}
        pair = next((p for p in report.close if not looks & {p.one, p.other}), report.close[0])
        yield (
            f"{_count(len(report.close), 'pair')} of demands go together although neither is "
            f"nested in the other, most of all {pair.one} and {pair.other} ({signed(pair.rho)})."
        )
    elif varying:
        yield "No two demands go together, except those that are nested by definition."
    if report.separation is not None:
        parted = report.separation
        yield (
            f"The demands of the layout {parted.layout} "
            + ("can be told apart." if not parted.failures else "cannot all be told apart.")
        )
    if fixed := sorted({name for look in report.looks for name in look.fixed}):
        yield f"Some paradigms have one colour alone: {', '.join(fixed)}."
    if alike := [one.agent for one in report.impostors if not one.parting]:
        yield f"No instance shows by its cue an agent that {'; or one that '.join(alike)}."
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


def _knowledge(known: Precision) -> Iterator[str]:
    covered = len(known.bank.names)
    yield (
        f"The layout {known.layout.name} ({known.layout.variant or 'default'}) covers "
        f"{_count(covered, 'instance')}."
    )
    kept = "; ".join(
        f"{n.name} {number(n.read(n.sd))} of {number(n.read(n.prior_sd))} {n.reads_in}".rstrip()
        for n in known.nodes
        if n.kind == "capability"
    )
    yield f"What is then left of the prior's standard deviations is at best: {kept}."
    yield from _reliability_words(known)
    blind = [n.name for n in known.nodes if n.kind == "capability" and n.kept >= UNKNOWN]
    if blind:
        yield f"Almost nothing can be learnt about {', '.join(blind)}."
    if known.tangles:
        tangles = ", ".join(
            f"{t.one} and {t.other} ({signed(t.correlation)})" for t in known.tangles
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
    told: list[str] = []
    for one in known.reliability:
        chosen = one.lengths[middle].chosen
        if chosen is not None:
            node = nodes[one.name]
            error = f"{number(node.read(chosen.sd))} {node.reads_in}".rstrip()
            told.append(f"{one.name} {error} (reliability {chosen.reliability:.2f})")
    yield (
        f"Standard errors after {lengths[middle].episodes} episodes that the default policy "
        f"chooses: {'; '.join(told)}."
    )


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


def _spread(spread: Spread) -> dict[str, Any]:
    demand = spread.demand
    ends = ("least", "lower_quarter", "middle", "upper_quarter", "greatest")
    return {
        "name": demand.name,
        "unit": demand.unit,
        "about": demand.about,
        "group": demand.group,
        "measured": spread.measured,
        "missing": dict(spread.missing),
        "quantiles": dict(zip(ends, spread.quantiles, strict=True)) if spread.measured else None,
        "distinct": spread.distinct,
        "stepped": spread.stepped,
        "range": {"low": spread.low, "high": spread.high, "of": spread.source},
        "outside": spread.outside,
        "histogram": [bin._asdict() for bin in spread.bins],
        "gaps": [{**gap._asdict(), "share": spread.share(gap)} for gap in spread.gaps],
        "separates": spread.separates,
    }


def _precision(known: Precision) -> dict[str, Any]:
    return {
        "layout": known.layout.name,
        "variant": known.layout.variant,
        "digest": known.layout.digest,
        "agents": AGENTS,
        "covered": len(known.bank.names),
        "not_covered": known.reasons,
        "nodes": [_node(node) for node in known.nodes],
        "correlations": known.correlations.tolist(),
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
        "range": [node.low, node.high],
        "prior_sd": node.prior_sd,
        "sd": node.sd,
        "sd_best": node.best,
        "sd_worst": node.worst,
        "width_90": node.width,
        "share_of_range": node.share,
        "share_of_prior": node.kept,
        "sd_by_truth": {part.name: part.sd for part in node.thirds},
    }


def _addition(addition: Addition) -> dict[str, Any]:
    return {
        "rule": addition.rule,
        "demands": dict(addition.demands),
        "instances": addition.count,
        "like": addition.like or None,
        "node": addition.node or None,
        "sd_before": addition.before,
        "sd_after": addition.after,
        "share": addition.share,
        "correlation": addition.correlation,
    }


def _one_reason(alike: Collection[str]) -> str:
    """One reason for several that differ in numbers alone: of those, from the least to the most."""
    numbers = [list(map(float, _NUMBER.findall(why))) for why in sorted(alike)]
    ends = iter([(min(each), max(each)) for each in zip(*numbers, strict=True)])

    def told(_: re.Match[str]) -> str:
        low, high = next(ends)
        return f"{low:g}" if low == high else f"{low:g} to {high:g}"

    return _NUMBER.sub(told, min(alike))


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _rounded(value: Any) -> Any:
    """JSON values with six significant digits; None for what is no finite number."""
    if isinstance(value, dict):
        return {key: _rounded(entry) for key, entry in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [_rounded(entry) for entry in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
