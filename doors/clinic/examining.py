"""A clinic for items: which tell nothing, contradict their demands, differ, or are twins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from animalcat.doors.clinic import items as statistics
from animalcat.doors.clinic.answers import Responses, responses_in
from animalcat.doors.clinic.items import RATE, Z90, Abilities, Flags, ShortForm, Tick
from animalcat.doors.clinic.population import NODES
from animalcat.layouts.checking.predict import LayoutAssessor
from animalcat.layouts.checking.scores import Estimate
from animalcat.layouts.explaining.wording import few_of, inflect_words
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.model.tables import TableError

if TYPE_CHECKING:
    import pandas as pd

Floats: TypeAlias = npt.NDArray[np.float64]

LEAST: Final = 3
"""Fewest agents, and items: each is judged by the others."""
HELD_OUT: Final = 10
"""Fewest agents of whom some are held out."""
EXTREME: Final = 0.02
"""Share of agents on one side, up to which an item is at its floor or ceiling."""
TOO_MANY: Final = 10_000
"""Agents from which it is not said how many would be enough."""
NAMED: Final = 4
"""Names in a sentence."""
REGRESSION: Final = "regression"
"""What says what items demand, where no layout does."""


class Finding(NamedTuple):
    """What is said where something is found, with gaps and forms as `inflect_words` has them.

    Attributes:
        means: What is wrong with an item, in a few words; empty if nothing is.
        of_item: The sentence on an item.
        of_set: The sentence on the whole set; empty if several kinds share one.
    """

    means: str
    of_item: str
    of_set: str = ""


_PARTED: Final = "{able:.0f} in 100 able agents pass it, and {weak:.0f} in 100 weak ones"
FINDINGS: Final[Mapping[str, Finding]] = {
    "tells": Finding(
        "",
        f"{_PARTED}.",
        "{tells} of {items} items separate able agents from weak ones: able ones pass them more "
        "often than shuffled outcomes would show.",
    ),
    "floor": Finding(
        "nobody passes", "{few} of {agents} agents passed it: among them it is hardly informative."
    ),
    "ceiling": Finding(
        "everybody passes",
        "{few} of {agents} agents failed it: among them it is hardly informative.",
        "{n} item[|s] [is|are] hardly informative among these {agents} agents: {floor} that nearly "
        "nobody passes, and {ceiling} that nearly everybody does.",
    ),
    "reversed": Finding(
        "able agents fail it more often",
        f"{_PARTED}: look for a wrong key, or for words that mislead.",
        "{n} item[|s] [is|are] passed more often by weak agents.",
    ),
    "tells little": Finding(
        "able agents pass it no more often",
        f"{_PARTED}: it says little about what the others measure.",
        "{n} item[|s] [is|are] passed by weak agents hardly less often than by able ones.",
    ),
    "undecided": Finding(
        "",
        f"It seems that {_PARTED}: {{more}}.",
        "{n} item[|s] cannot be judged by {agents} agents{sure}.",
    ),
    "twin": Finding(
        "says what another item says",
        "Agents that pass it pass {twins} too, beyond what ability explains: together they say "
        "little more than one.",
        "{n} items stand in {groups_of_twins}: {spare} of them could be left out with little loss.",
    ),
    "against its demands": Finding(
        "far easier or harder than its demands say",
        "It is far {than} than its demands say (by {by:.1f} logits): a level is wrong, or a demand "
        "is missing.",
        "{n} item[|s] contradict[s|] the demands{explained}.",
    ),
    "differs by group": Finding(
        "easier for one group of agents of equal ability",
        "At equal ability group {best} finds it easier than group {worst} (by {gap:.1f} logits).",
        "{n} item[|s] differ[s|] between agents of equal ability of the groups {groups}.",
    ),
}
"""What may be found, in the order in which it is said of an item."""
FAULTS: Final = {kind: finding.means for kind, finding in FINDINGS.items() if finding.means}
"""What is wrong with an item, in a few words."""


@dataclass(frozen=True, slots=True)
class ItemReport:
    """What is found about one item.

    Attributes:
        item: Its name.
        agents: Number of agents that played it.
        passed: Share of them that passed, or their mean score.
        able: Share that passes it among agents one standard deviation above the mean; None where
            there is no discrimination.
        weak: The same one below it.
        discrimination: Logits by which the odds of success rise per standard deviation of the
            ability that the other items measure, with its 90 % interval; None at floor or ceiling.
        kinds: What is wrong with it; or that it tells, or that this is undecided.
        more_agents: How many more agents would be enough; None where it is decided or not known.
        beyond_demands: Logits by which it is easier than its demands say; None if not known.
        differences: By group, logits by which it is easier for that group than for the first.
        twins: Names of its twins.
        sentence: What is found, in plain words.
    """

    item: str
    agents: int
    passed: float
    able: float | None
    weak: float | None
    discrimination: Estimate | None
    kinds: tuple[str, ...]
    more_agents: int | None
    beyond_demands: float | None
    differences: Mapping[str, float]
    twins: tuple[str, ...]
    sentence: str = ""

    @property
    def faults(self) -> list[str]:
        """What is wrong with it."""
        return [kind for kind in self.kinds if kind in FAULTS]


@dataclass(frozen=True, eq=False)
class Clinic:
    """What is found about items.

    Attributes:
        agents: Number of agents.
        items: What is found about each, in the order given.
        reliability: Share of the spread of estimated abilities that is not error.
        ability: Abilities at which `standard_error` is given.
        standard_error: That of an ability by all items.
        estimates: (agents,): estimated abilities.
        twins: Groups of items of which each is the twin of another.
        demands: By demand, logits by which items are harder per unit; empty if there are none.
        explained: Share of the differences in difficulty that demands explain; None if there are
            none.
        by: What says what items demand: "regression", or a layout's name.
        groups: Names of the groups that were compared.
        short: A short form; None if too few agents can be held out.
        all_sure: Agents in all with which 9 in 10 items would be decided; None if not known.
        sentences: The findings on the whole set, in plain words.
        notes: What was left out or not looked at, with counts, in sentences.
    """

    agents: int
    items: tuple[ItemReport, ...]
    reliability: float
    ability: Floats
    standard_error: Floats
    estimates: Floats
    twins: tuple[tuple[str, ...], ...]
    demands: Mapping[str, Estimate]
    explained: float | None
    by: str
    groups: tuple[str, ...]
    short: ShortForm | None
    all_sure: int | None
    sentences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def faulty(self) -> tuple[ItemReport, ...]:
        """The items with which something is wrong."""
        return tuple(item for item in self.items if item.faults)

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        arrays = ("ability", "standard_error", "estimates")
        as_lists = {name: getattr(self, name).tolist() for name in arrays}
        return {"false_alarm_rate": RATE, **asdict(self), **as_lists}

    def to_frame(self) -> pd.DataFrame:
        """A row for each item."""
        import pandas as pd

        frame = pd.json_normalize([asdict(item) for item in self.items])
        return frame.drop(columns="discrimination", errors="ignore")  # of items without one


def clinic(
    responses: pd.DataFrame | Responses,
    *,
    demands: pd.DataFrame | None = None,
    groups: Mapping[str, str] | None = None,
    layout: Layout | None = None,
    length: int | None = None,
    seed: int = 0,
    tick: Tick = lambda what, done, total: None,
) -> Clinic:
    """Examine items by what agents did on them.

    Every alarm is one of many tests. Of the alarms of each kind `RATE` are false (Benjamini and
    Hochberg 1995), and a set whose items do not differ between groups has seldom an alarm that one
    does. What each item is compared with is in `animalcat.doors.clinic.items`.

    Args:
        responses: A table with a row for each agent, named by its index, and a column for each
            item: 0 and 1, or shares between them, empty where not played. Or `Responses`.
        demands: A table with a row for each item, named by its index, and a column of numbers for
            each demand.
        groups: The group of each agent, to compare groups of equal ability.
        layout: A layout that says what items demand, by features among `demands`; otherwise
            difficulty is regressed on the demands.
        length: Items of the short form; a third of them if not given.
        seed: Seed of what is left to chance.
        tick: Told of progress.

    Raises:
        TableError: The table has too few agents or items, or nothing differs in it.
    """
    if not isinstance(responses, Responses):
        responses = responses_in(responses, demands, groups)
    return _Examination(responses, layout, length, seed, tick).report()


class _Examination:
    """The steps of an examination, which share what was found before."""

    def __init__(
        self, given: Responses, layout: Layout | None, length: int | None, seed: int, tick: Tick
    ) -> None:
        self.notes = list(given.notes)
        self.given = self._check_responses(given)
        self.layout, self.seed, self.tick = layout, seed, tick
        self.y, self.items = self.given.outcomes, self.given.items
        self.length = max(2, round(len(self.items) / 3)) if length is None else length
        if not 1 <= self.length <= len(self.items):
            raise TableError(f"a short form of {self.length} items: there are {len(self.items)}")
        tick("fitting the population", 0, 1)
        self.model = statistics.fit_population(self.items, self.y)
        self.known = Abilities.of(self.model, self.y)
        self.found = statistics.discriminations(self.known, seed, tick)

    def _note(self, number: int, words: str, **gaps: object) -> None:
        """Note in words what concerns so many, if there are any."""
        if number:
            self.notes.append(inflect_words(words, number, **gaps))

    def _check_responses(self, given: Responses) -> Responses:
        """Leave out agents and items without outcomes, and refuse what cannot be examined."""
        there = np.isfinite(given.outcomes)
        for row, column in np.argwhere(there & (abs(given.outcomes - 0.5) > 0.5))[:1].tolist():
            raise TableError(
                f"agent {given.agents[row]}, item {given.items[column]}: "
                f"{given.outcomes[row, column]:g} is not from 0 to 1; say from which mark on a "
                "number is a success (--pass-mark, --pass-marks)"
            )
        rows, columns = np.flatnonzero(there.any(axis=1)), np.flatnonzero(there.any(axis=0))
        for what, kept, of, why in (
            ("agent", rows, given.agents, "an item is informative if it separates agents"),
            (
                "item",
                columns,
                given.items,
                "each item is judged by what the others say about agents",
            ),
        ):
            lost = len(of) - len(kept)
            self._note(lost, f"{{n}} {what}[|s] without any outcome [is|are] left out.")
            if len(kept) < LEAST:
                words = f"there [is|are] {{n}} {what}[|s] with outcomes, and {LEAST} are needed: "
                raise TableError(inflect_words(words, len(kept)) + why)
        y = given.outcomes[np.ix_(rows, columns)]
        if np.nanmax(y) == np.nanmin(y):
            raise TableError(
                f"all outcomes are {np.nanmax(y):g}: nothing separates the agents, so nothing can "
                "be said about the items"
            )
        empty, between = int(np.isnan(y).sum()), int(((y > 0.0) & (y < 1.0)).sum())
        self._note(empty, f"{{n}} of {y.size} cells are empty: they count as not played.")
        self._note(
            between,
            "{n} outcomes are between 0 and 1: each counts as so much of a success and of a "
            "failure, so precision is rather understated.",
        )
        return Responses(
            tuple(given.agents[i] for i in rows),
            tuple(given.items[i] for i in columns),
            y,
            tuple(given.groups[i] for i in rows) if given.groups else (),
            given.demands[columns] if given.demand_names else np.empty((len(columns), 0)),
            given.demand_names,
        )

    def report(self) -> Clinic:
        """Put everything together."""
        found, agents = self.found, len(self.y)
        played = np.isfinite(self.y).sum(axis=0)
        sides = np.stack([np.nansum(self.y, axis=0), np.nansum(1.0 - self.y, axis=0)])
        floor, ceiling = sides <= EXTREME * played
        told = ~(floor | ceiling)
        falls = statistics.false_discovery(np.where(told, found.falls, np.nan))
        rises = statistics.false_discovery(np.where(told, found.rises, np.nan))
        sure = falls | rises
        little = statistics.false_discovery(np.where(told & ~sure, found.little, np.nan))
        undecided = told & ~(sure | little)
        twins = self._twins()
        by, against = self._against(told)
        unequal = self._unequal()
        wanted = np.full(len(told), np.nan)
        if undecided.any():
            wanted = statistics.agents_wanted(self.known, found, undecided, self.seed)
        holds = {
            "tells": rises,
            "floor": floor,
            "ceiling": ceiling & ~floor,
            "reversed": falls,
            "tells little": little,
            "undecided": undecided,
            "twin": np.array([len(group) > 1 for group in twins]),
            "against its demands": against.alarms,
            "differs by group": unequal.alarms,
        }
        reports: list[ItemReport] = []
        for i, name in enumerate(self.items):
            slope, ease, reach = found.slope[i], found.ease[i], Z90 * found.error[i]
            ends = (float(slope), float(slope - reach), float(slope + reach))
            effects = zip(unequal.groups[1:], unequal.effects[i].tolist(), strict=True)
            one = ItemReport(
                item=name,
                agents=int(played[i]),
                passed=float(np.nanmean(self.y[:, i])),
                able=float(expit(ease + slope)) if told[i] else None,
                weak=float(expit(ease - slope)) if told[i] else None,
                discrimination=Estimate(*ends) if told[i] else None,
                kinds=tuple(kind for kind, which in holds.items() if which[i]),
                more_agents=_more(wanted[i], agents) if undecided[i] and slope <= reach else None,
                beyond_demands=float(against.left[i]) if np.isfinite(against.left[i]) else None,
                differences={group: gap for group, gap in effects if np.isfinite(gap)},
                twins=tuple(self.items[j] for j in twins[i] if j != i),
            )
            said = _words(one, unequal.groups[:1], float(sides[:, i].min()))
            reports.append(replace(one, sentence=said))
        made = Clinic(
            agents=agents,
            items=tuple(reports),
            reliability=statistics.reliability(self.known),
            ability=NODES,
            standard_error=1.0 / np.sqrt(1.0 + statistics.information(self.model).sum(axis=0)),
            estimates=self.known.share() @ NODES,
            twins=tuple(
                tuple(self.items[j] for j in group)
                for group in sorted({group for group in twins if len(group) > 1})
            ),
            demands=against.weights,
            explained=against.explained if by == REGRESSION else None,
            by=by,
            groups=unequal.groups,
            short=self._short(),
            all_sure=_all_sure(np.where(undecided, wanted, agents)[told], agents),
        )
        return replace(made, sentences=tuple(_summary(made)), notes=tuple(self.notes))

    def _twins(self) -> list[tuple[int, ...]]:
        """For each item, itself with its twins and their twins."""
        pairs, looked = statistics.twins(self.known, self.seed, self.tick)
        group = np.arange(len(self.items))
        words = "{n} item[|s] with fewer than {least} successes or failures could not be looked at "
        self._note(len(group) - looked, f"{words}for twins.", least=statistics.LEAST_SIDE)
        for one, other in pairs.tolist():
            group[group == group[other]] = group[one]
        return [tuple(np.flatnonzero(group == own).tolist()) for own in group]

    def _against(self, told: Flags) -> tuple[str, statistics.Contradictions]:
        """Items beside their demands, and what says what they demand; empty if nothing does."""
        names = list(self.given.demand_names)
        unknown = np.full(len(told), np.nan)
        nothing = "", statistics.Contradictions(unknown, np.zeros(len(told), bool), 0.0, {})
        if self.layout is not None:
            if not names:
                raise TableError(
                    f"layout {self.layout.name} takes the demands of the items, and there are none"
                )
            ease, error = self._beyond_layout(self.layout)
            by, demands, names = self.layout.name, np.empty((len(told), 0)), list[str]()
        elif names:
            by, ease, error = REGRESSION, self.found.ease, self.found.ease_error
            demands, names = self._independent()
        else:
            return nothing
        ease = np.where(told, ease, np.nan)
        usable = np.isfinite(ease) & np.isfinite(demands).all(axis=1)
        lost = int((np.isfinite(ease) & ~usable).sum())
        self._note(lost, "{n} item[|s] with an unknown demand [is|are] not compared with demands.")
        if usable.sum() < len(names) + 6:
            self.notes.append(
                f"Demands are not looked at: {int(usable.sum())} items have them all and are "
                f"neither at floor nor ceiling, and {len(names) + 6} are needed."
            )
            return nothing
        return by, statistics.contradictions(ease, error, demands, names)

    def _independent(self) -> tuple[Floats, list[str]]:
        """The demands that vary and are no sum of those before; the others are noted."""
        values, names = self.given.demands, self.given.demand_names
        known = values[np.isfinite(values).all(axis=1)]
        known = (known - known.mean(axis=0)) / (known.std(axis=0) + 1e-12) if len(known) else known
        kept: list[int] = []
        for k in range(len(names)):
            if np.linalg.matrix_rank(known[:, [*kept, k]], tol=1e-6) == len(kept) + 1:
                kept.append(k)
        lost = [name for k, name in enumerate(names) if k not in kept]
        self._note(
            len(lost),
            "{n} demand[|s] that [is|are] constant or follow[s|] from others [is|are] left out: "
            "{names}.",
            names=few_of(lost, NAMED) if lost else "",
        )
        return values[:, kept], [names[k] for k in kept]

    def _beyond_layout(self, layout: Layout) -> tuple[Floats, Floats]:
        """Logits by which items are easier than a layout, fitted to each agent, says."""
        table = Instances(self.given.demand_names, self.given.demands, (), self.items)
        covered = table.covered(layout)
        if not covered.rows:
            raise TableError(f"layout {layout.name} covers none of the items: {covered.gaps}")
        self._note(
            len(table) - len(covered.rows),
            "{n} item[|s] [is|are] not described by layout {name}, nor compared with it: {gaps}.",
            name=layout.name,
            gaps=covered.gaps,
        )
        rows = np.array(covered.rows)
        predicted = np.full(self.y.shape, np.nan)
        for agent, outcomes in enumerate(self.y):
            self.tick(f"fitting layout {layout.name}", agent, len(self.y))
            own = np.flatnonzero(np.isfinite(outcomes[rows]))
            if len(own):
                assessor = LayoutAssessor(layout, self.seed, by="live")
                played = covered.instances.rows(own)
                fitted = assessor.fit(played, outcomes[rows][own])
                predicted[agent, rows[own]] = fitted.predict(played)
        return statistics.ease_beyond(self.y, np.clip(predicted, 1e-4, 1.0 - 1e-4))

    def _unequal(self) -> statistics.Differences:
        """Groups of agents compared, as far as they are large enough."""
        groups, least = self.given.groups, statistics.LEAST_GROUP
        sizes = {name: groups.count(name) for name in sorted({*groups} - {""})}
        large = [name for name, size in sizes.items() if size >= least]
        for name, size in sizes.items():
            if name not in large:
                words = "Group {name} is not compared: it has {n} agent[|s], and {least} are "
                self._note(size, f"{words}needed.", name=name, least=least)
        self._note(groups.count(""), "{n} agent[|s] without a group [is|are] not compared.")
        if len(large) < 2:
            if groups:
                self.notes.append("Groups are not compared: two that are large enough are needed.")
            count = len(self.items)
            return statistics.Differences((), np.empty((count, 0)), np.zeros(count, bool))
        rows = [i for i, name in enumerate(groups) if name in large]
        own = [groups[i] for i in rows]
        return statistics.differences(self.model, self.y[rows], own, large, self.seed, self.tick)

    def _short(self) -> ShortForm | None:
        if len(self.y) >= HELD_OUT:
            return statistics.choose_short_form(
                self.items, self.y, self.length, self.seed, self.tick
            )
        words = (
            "There is no short form: of {n} agents none can be held out, and {least} are needed."
        )
        self._note(len(self.y), words, least=HELD_OUT)
        return None


def _words(item: ItemReport, reference: tuple[str, ...], side: float) -> str:
    """What is found about an item, a sentence a kind."""
    more = "no useful number of agents would be enough to be sure"
    if item.more_agents is not None:
        more = f"about {item.more_agents} more agents would be enough to be sure"
    elif item.discrimination is not None and item.discrimination.low > 0.0:
        more = "among so many items this may be chance"
    left, eases = item.beyond_demands or 0.0, dict.fromkeys(reference, 0.0) | {**item.differences}
    worst, *_, best = sorted(eases, key=eases.__getitem__) if len(eases) > 1 else ("", "")
    gaps = {
        "agents": item.agents,
        "few": "None" if side == 0.0 else f"Only {side:.3g}",
        "able": 100.0 * (item.able or 0.0),
        "weak": 100.0 * (item.weak or 0.0),
        "twins": few_of(item.twins, NAMED) if item.twins else "",
        "than": "easier" if left > 0.0 else "harder",
        "by": abs(left),
        "best": best,
        "worst": worst,
        "gap": eases.get(best, 0.0) - eases.get(worst, 0.0),
        "more": more,
    }
    return " ".join(FINDINGS[kind].of_item.format(**gaps) for kind in item.kinds)


def _summary(made: Clinic) -> list[str]:
    """The findings on the whole set, a sentence each."""
    count = {kind: sum(kind in item.kinds for item in made.items) for kind in FINDINGS}
    number = count | {"ceiling": count["floor"] + count["ceiling"]}
    always = {"tells", *(["against its demands"] if made.by else [])}
    always |= {"differs by group"} if made.groups else set()
    explained = f" as layout {made.by} weighs them"
    if made.explained is not None:
        share = f"{100 * made.explained:.0f} % of the differences in difficulty"
        explained = f", which explain {share}"
    gaps = {
        "agents": made.agents,
        "items": len(made.items),
        "floor": count["floor"],
        "ceiling": count["ceiling"],
        "tells": count["tells"],
        "groups_of_twins": inflect_words("{n} group[|s] of twins", len(made.twins)),
        "spare": sum(map(len, made.twins)) - len(made.twins),
        "explained": explained,
        "groups": few_of(made.groups, NAMED) if made.groups else "",
        "sure": f"; with {made.all_sure} agents in all, 9 in 10 items would be decided"
        if made.all_sure
        else "",
    }
    said = [
        inflect_words(finding.of_set, number[kind] or 1, n=number[kind] or "No", **gaps)
        for kind, finding in FINDINGS.items()
        if finding.of_set and (number[kind] or kind in always)
    ]
    order = 0.5 + float(np.arcsin(np.sqrt(made.reliability))) / np.pi
    said.append(
        f"At best, the whole set has a reliability of {made.reliability:.2f}: two of these agents, "
        f"drawn at random, are put in the right order {100 * order:.0f} times in 100."
    )
    if short := made.short:
        error, spare = short.error, short.at_random.value
        end = "." if error.high < spare else ", so it is no better."
        said.append(
            f"A short form of {len(short.items)} items misses the share of all items passed by "
            f"{error.value:.3f} ({error.low:.3f} to {error.high:.3f}) on average, on agents that "
            f"did not choose it; {len(short.items)} random items by {spare:.3f}{end}"
        )
    said.append(
        f"Of the alarms of each kind, {100 * RATE:.0f} in 100 are false (Benjamini and Hochberg)."
    )
    return said


def _all_sure(wanted: Floats, agents: int) -> int | None:
    """Agents with which 9 in 10 items are decided; None if all are, or if too many are needed."""
    if not (wanted != agents).any():
        return None
    most = np.quantile(np.nan_to_num(wanted, nan=np.inf), 0.9, method="higher")
    return int(most) if most <= TOO_MANY else None


def _more(wanted: float, agents: int) -> int | None:
    """How many more agents are wanted, rounded; None if too many."""
    if not wanted <= TOO_MANY:
        return None
    more = max(int(wanted) - agents, 1)
    return more if more < 20 else round(more, -1) if more < 500 else round(more, -2)
