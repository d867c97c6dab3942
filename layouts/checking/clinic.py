"""A clinic for items: which tell nothing, contradict their demands, differ, or are twins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from animalcat.layouts.checking import items as statistics
from animalcat.layouts.checking.items import RATE, Z90, Abilities, Tick
from animalcat.layouts.checking.population import NODES
from animalcat.layouts.checking.predict import LayoutAssessor
from animalcat.layouts.checking.scores import Estimate, bootstrap
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.model.tables import TableError

if TYPE_CHECKING:
    import pandas as pd

Floats: TypeAlias = npt.NDArray[np.float64]
Kind: TypeAlias = Literal[
    "floor", "ceiling", "reversed", "tells little", "twin", "against its demands",
    "differs by group", "undecided", "tells",
]  # fmt: skip

LEAST_AGENTS: Final = 3
"""Fewest agents."""
LEAST_ITEMS: Final = 3
"""Fewest items: each is judged by the others."""
HELD_OUT: Final = 10
"""Fewest agents of whom some are held out."""
PARTS: Final = 5
"""Parts of the agents, each of which is held out once."""
EXTREME: Final = 0.02
"""Share of agents on one side, up to which an item is at its floor or ceiling."""
TOO_MANY: Final = 10_000
"""Agents from which it is not said how many would be enough."""
FAULTS: Final[Mapping[Kind, str]] = {
    "floor": "nobody passes",
    "ceiling": "everybody passes",
    "reversed": "able agents fail it more often",
    "tells little": "able agents pass it no more often",
    "twin": "says what another item says",
    "against its demands": "far easier or harder than its demands say",
    "differs by group": "easier for one group of agents of equal ability",
}
"""What is wrong with an item, in a few words."""


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
    kinds: tuple[Kind, ...]
    more_agents: int | None
    beyond_demands: float | None
    differences: Mapping[str, float]
    twins: tuple[str, ...]
    sentence: str

    @property
    def faulty(self) -> bool:
        """Whether something is wrong with it."""
        return any(kind in FAULTS for kind in self.kinds)


@dataclass(frozen=True, slots=True)
class ShortFormReport:
    """A short form of the items, and what it loses on agents that did not choose it.

    Attributes:
        items: Its items, the most telling first.
        error: Mean absolute error of the predicted share of all items passed.
        at_random: The same of as many random items.
        rank_correlation: Spearman's correlation of that share with the true one.
        agents: Number of agents that were held out.
    """

    items: tuple[str, ...]
    error: Estimate
    at_random: Estimate
    rank_correlation: float
    agents: int


@dataclass(frozen=True, slots=True)
class DemandWeight:
    """By how many logits items are harder per unit of a demand, with the 90 % interval."""

    demand: str
    harder: Estimate


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
        demands: What demands explain; empty if there are none.
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
    demands: tuple[DemandWeight, ...]
    explained: float | None
    by: str
    groups: tuple[str, ...]
    short: ShortFormReport | None
    all_sure: int | None
    sentences: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def faulty(self) -> tuple[ItemReport, ...]:
        """The items with which something is wrong."""
        return tuple(item for item in self.items if item.faulty)

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {
            "agents": self.agents,
            "false_alarm_rate": RATE,
            "reliability": self.reliability,
            "sentences": list(self.sentences),
            "items": [
                asdict(item) | {"differences": dict(item.differences)} for item in self.items
            ],
            "twins": [list(names) for names in self.twins],
            "by": self.by,
            "explained": self.explained,
            "demands": [asdict(one) for one in self.demands],
            "groups": list(self.groups),
            "short_form": None if self.short is None else asdict(self.short),
            "standard_error": [
                {"ability": float(a), "standard_error": float(s)}
                for a, s in zip(self.ability, self.standard_error, strict=True)
            ],
            "agents_for_nine_in_ten": self.all_sure,
            "notes": list(self.notes),
        }

    def to_frame(self) -> pd.DataFrame:
        """A row for each item."""
        import pandas as pd

        return pd.DataFrame([_row(item) for item in self.items])


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

    Every alarm is one of many tests, and of the alarms of each kind `RATE` are false (Benjamini and
    Hochberg 1995). What each item is compared with is in `animalcat.layouts.checking.items`.

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
    given = responses if isinstance(responses, Responses) else of_frame(responses, demands, groups)
    return _Examination(given, layout, length, seed, tick).report()


def of_frame(
    frame: pd.DataFrame, demands: pd.DataFrame | None, groups: Mapping[str, str] | None
) -> Responses:
    """Responses from tables.

    Raises:
        TableError: A cell is no number from 0 to 1, a name is there twice, or an item has no
            demands.
    """
    import pandas as pd

    agents, items = [*map(str, frame.index)], [*map(str, frame.columns)]
    for what, names in (("agent", agents), ("item", items)):
        if twice := [name for name in names if names.count(name) > 1][:1]:
            raise TableError(f"{what} {twice[0]!r} is there {names.count(twice[0])} times")
    numbers = frame.apply(pd.to_numeric, errors="coerce")
    if wrong := np.argwhere((numbers.isna() & frame.notna()).to_numpy()).tolist():
        row, column = wrong[0]
        cell = frame.iat[row, column]
        raise TableError(f"agent {agents[row]}, item {items[column]}: {cell!r} is no number")
    values = np.empty((len(items), 0))
    names: list[str] = []
    if demands is not None:
        names = [*map(str, demands.columns)]
        table = demands.set_axis(pd.Index([*map(str, demands.index)]), axis=0)
        values = table.reindex(items).to_numpy(np.float64)
    own = tuple(str((groups or {}).get(agent, "")) for agent in agents)
    outcomes = numbers.to_numpy(np.float64)
    return Responses(
        tuple(agents), tuple(items), outcomes, own if groups else (), values, tuple(names)
    )


def checked(given: Responses) -> tuple[Responses, list[str]]:
    """Leave out agents and items without outcomes, and refuse what cannot be examined.

    Raises:
        TableError: There are too few agents or items, an outcome is not from 0 to 1, or all are
            equal.
    """
    notes = list(given.notes)
    y = given.outcomes
    wrong = np.argwhere(np.isfinite(y) & ((y < 0.0) | (y > 1.0)))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise TableError(
            f"agent {given.agents[row]}, item {given.items[column]}: {y[row, column]:g} is not "
            "from 0 to 1; say from which mark on a number is a success (--pass-mark, --pass-marks)"
        )
    there = np.isfinite(y)
    rows, columns = np.flatnonzero(there.any(axis=1)), np.flatnonzero(there.any(axis=0))
    for what, lost in (("agent", len(y) - len(rows)), ("item", y.shape[1] - len(columns))):
        if lost:
            notes.append(f"{_count(lost, what)} without any outcome {_is(lost)} left out.")
    y = y[np.ix_(rows, columns)]
    if len(rows) < LEAST_AGENTS:
        raise TableError(
            f"there {_is(len(rows))} {_count(len(rows), 'agent')} with outcomes, and "
            f"{LEAST_AGENTS} are needed: what an item tells is how it parts agents"
        )
    if len(columns) < LEAST_ITEMS:
        raise TableError(
            f"there {_is(len(columns))} {_count(len(columns), 'item')} with outcomes, and "
            f"{LEAST_ITEMS} are needed: each item is judged by what the others say of agents"
        )
    if np.nanmax(y) == np.nanmin(y):
        raise TableError(
            f"all outcomes are {np.nanmax(y):g}: nothing parts the agents, so nothing can be said "
            "of the items"
        )
    empty = int((~np.isfinite(y)).sum())
    if empty:
        notes.append(f"{empty} of {y.size} cells are empty: they count as not played.")
    between = int(((y > 0.0) & (y < 1.0)).sum())
    if between:
        notes.append(
            f"{between} outcomes are between 0 and 1: each counts as so much of a success and of a "
            "failure, so precision is rather understated."
        )
    kept = Responses(
        tuple(given.agents[i] for i in rows),
        tuple(given.items[i] for i in columns),
        y,
        tuple(given.groups[i] for i in rows) if given.groups else (),
        given.demands[columns] if given.demand_names else np.empty((len(columns), 0)),
        given.demand_names,
    )
    return kept, notes


class _Examination:
    """The steps of an examination, which share what was found before."""

    def __init__(
        self, given: Responses, layout: Layout | None, length: int | None, seed: int, tick: Tick
    ) -> None:
        self.given, self.notes = checked(given)
        self.layout, self.seed, self.tick = layout, seed, tick
        self.y = self.given.outcomes
        count = len(self.given.items)
        self.length = max(2, round(count / 3)) if length is None else length
        if not 1 <= self.length <= count:
            raise TableError(f"a short form of {self.length} items: there are {count}")
        tick("fitting the population", 0, 1)
        self.model = statistics.fit_population(self.given.items, self.y)
        self.known = Abilities.of(self.model, self.y)
        self.found = statistics.discriminations(self.known, seed, tick)
        self.played = np.isfinite(self.y).sum(axis=0)

    def report(self) -> Clinic:
        """Put everything together."""
        found = self.found
        passed = np.nanmean(self.y, axis=0)
        sides = np.stack([np.nansum(self.y, axis=0), np.nansum(1.0 - self.y, axis=0)])
        floor, ceiling = sides <= EXTREME * self.played
        told = ~(floor | ceiling)

        def alarmed(p: Floats) -> npt.NDArray[np.bool_]:
            return statistics.false_discovery(np.where(told, p, np.nan)) & told

        falls, rises = alarmed(found.falls), alarmed(found.rises)
        told_yet = falls | rises
        little = alarmed(np.where(told_yet, np.nan, found.little))
        pairs, looked = statistics.twins(self.known, self.seed, self.tick)
        if looked < len(told):
            self.notes.append(
                f"{_count(len(told) - looked, 'item')} with fewer than {statistics.LEAST_SIDE} "
                "successes or failures could not be looked at for twins."
            )
        clusters = _clusters([(pair.one, pair.other) for pair in pairs])
        against = self._against(told)
        unequal = self._unequal()
        undecided = told & ~(falls | little | rises)
        wanted = np.full(len(told), np.nan)
        if undecided.any():
            wanted = statistics.agents_wanted(self.known, found, undecided, self.seed)
        reports: list[ItemReport] = []
        for i, name in enumerate(self.given.items):
            mates = next((group for group in clusters if i in group), ())
            left = None if against is None else float(against.left[i])
            kinds = [
                kind
                for kind, holds in (
                    ("floor", floor[i]),
                    ("ceiling", ceiling[i] and not floor[i]),
                    ("reversed", falls[i]),
                    ("tells little", little[i]),
                    ("twin", bool(mates)),
                    ("against its demands", against is not None and against.alarms[i]),
                    ("differs by group", unequal is not None and unequal.alarms[i]),
                    ("undecided", undecided[i]),
                    ("tells", rises[i]),
                )
                if holds
            ]
            slope, error = float(found.slope[i]), float(found.error[i])
            open_yet = undecided[i] and slope <= Z90 * error
            more = _more(wanted[i], len(self.y)) if open_yet else None
            one = ItemReport(
                name,
                int(self.played[i]),
                float(passed[i]),
                float(expit(found.ease[i] + slope)) if told[i] else None,
                float(expit(found.ease[i] - slope)) if told[i] else None,
                Estimate(slope, slope - Z90 * error, slope + Z90 * error) if told[i] else None,
                tuple(kinds),  # pyright: ignore[reportArgumentType]
                more,
                None if left is None or left != left else left,
                {}
                if unequal is None or np.isnan(unequal.effects[i]).any()
                else dict(zip(unequal.groups[1:], unequal.effects[i].tolist(), strict=True)),
                tuple(self.given.items[j] for j in mates if j != i),
                "",
            )
            words = " ".join(self._words(one, unequal, sides[:, i]))
            reports.append(replace(one, sentence=words))
        short = self._short()
        share = self.known.share()
        error = 1.0 / np.sqrt(1.0 + statistics.information(self.model).sum(axis=0))
        decided = np.where(rises | falls | little, len(self.y), wanted)[told]
        sure = None
        if undecided.any() and np.isfinite(decided).mean() >= 0.9:
            sure = int(
                np.quantile(np.where(np.isfinite(decided), decided, np.inf), 0.9, method="higher")
            )
            sure = sure if sure <= TOO_MANY else None
        twin_names = tuple(tuple(self.given.items[i] for i in group) for group in clusters)
        weights = (
            ()
            if against is None
            else tuple(
                DemandWeight(name, Estimate(*values)) for name, values in against.weights.items()
            )
        )
        made = Clinic(
            len(self.y), tuple(reports), statistics.reliability(self.known), NODES, error,
            share @ NODES, twin_names, weights,
            None if against is None or self.layout is not None else against.explained,
            "" if against is None else "regression" if self.layout is None else self.layout.name,
            () if unequal is None else unequal.groups, short, sure, (), (),
        )  # fmt: skip
        said = tuple(_summary(made))
        return replace(made, sentences=said, notes=tuple(self.notes))

    def _against(self, told: npt.NDArray[np.bool_]) -> statistics.Contradictions | None:
        """Items beside their demands, by a layout or by regression."""
        if not self.given.demand_names:
            if self.layout is not None:
                raise TableError(
                    f"layout {self.layout.name} takes the demands of the items, and there are none"
                )
            return None
        if self.layout is not None:
            ease, error = self._beyond_layout(self.layout)
            demands, names = np.empty((len(told), 0)), list[str]()
        else:
            ease, error = self.found.ease, self.found.ease_error
            demands, names = self._independent()
        ease = np.where(told, ease, np.nan)
        usable = np.isfinite(ease) & np.isfinite(demands).all(axis=1)
        lost = int((np.isfinite(ease) & ~usable).sum())
        if lost:
            self.notes.append(
                f"{_count(lost, 'item')} with an unknown demand {_is(lost)} not compared with "
                "demands."
            )
        if usable.sum() < len(names) + 6:
            self.notes.append(
                f"Demands are not looked at: {int(usable.sum())} items have them all and are "
                f"neither at floor nor ceiling, and {len(names) + 6} are needed."
            )
            return None
        return statistics.contradictions(ease, error, demands, names)

    def _independent(self) -> tuple[Floats, list[str]]:
        """The demands that vary and are no sum of those before; the others are noted."""
        values, kept = self.given.demands, list[int]()
        known = values[np.isfinite(values).all(axis=1)]
        lost: list[str] = []
        for k, name in enumerate(self.given.demand_names):
            wide = known[:, [*kept, k]]
            wide = np.column_stack(
                [np.ones(len(known)), (wide - wide.mean(0)) / (wide.std(0) + 1e-12)]
            )
            if len(known) and np.linalg.matrix_rank(wide, tol=1e-6) == wide.shape[1]:
                kept.append(k)
            else:
                lost.append(name)
        if lost:
            self.notes.append(
                f"{_count(len(lost), 'demand')} that {'is' if len(lost) == 1 else 'are'} constant "
                f"or follow{'s' * (len(lost) == 1)} from others {_is(len(lost))} left out: "
                f"{_few(lost)}."
            )
        return values[:, kept], [self.given.demand_names[k] for k in kept]

    def _beyond_layout(self, layout: Layout) -> tuple[Floats, Floats]:
        """Logits by which items are easier than a layout, fitted to each agent, says."""
        table = Instances(self.given.demand_names, self.given.demands, (), self.given.items)
        covered = table.covered(layout)
        if gaps := len(table) - len(covered.rows):
            self.notes.append(
                f"{_count(gaps, 'item')} {_is(gaps)} not described by layout {layout.name} and not "
                f"compared with it: {covered.gaps}."
            )
        if not covered.rows:
            raise TableError(f"layout {layout.name} covers none of the items: {covered.gaps}")
        rows = np.array(covered.rows)
        predicted = np.full(self.y.shape, np.nan)
        for agent, outcomes in enumerate(self.y):
            self.tick(f"fitting layout {layout.name}", agent, len(self.y))
            own = np.flatnonzero(np.isfinite(outcomes[rows]))
            if len(own):
                fitted = LayoutAssessor(layout, self.seed, by="live").fit(
                    covered.instances.rows(own), outcomes[rows][own]
                )
                predicted[agent, rows[own]] = fitted.predict(covered.instances.rows(own))
        return statistics.ease_beyond(self.y, np.clip(predicted, 1e-4, 1.0 - 1e-4))

    def _unequal(self) -> statistics.Differences | None:
        """Groups of agents compared, as far as they are large enough."""
        groups = self.given.groups
        if not groups:
            return None
        sizes = {name: groups.count(name) for name in sorted(set(groups)) if name}
        large = [name for name, size in sizes.items() if size >= statistics.LEAST_GROUP]
        for name, size in sizes.items():
            if name not in large:
                self.notes.append(
                    f"Group {name} is not compared: it has {_count(size, 'agent')}, and "
                    f"{statistics.LEAST_GROUP} are needed."
                )
        if nameless := groups.count(""):
            self.notes.append(
                f"{_count(nameless, 'agent')} without a group {_is(nameless)} not compared."
            )
        if len(large) < 2:
            self.notes.append("Groups are not compared: two that are large enough are needed.")
            return None
        chosen = [i for i, name in enumerate(groups) if name in large]
        own = [groups[i] for i in chosen]
        return statistics.differences(self.model, self.y[chosen], own, large, self.tick)

    def _short(self) -> ShortFormReport | None:
        if len(self.y) < HELD_OUT:
            self.notes.append(
                f"There is no short form: of {_count(len(self.y), 'agent')} none can be held out, "
                f"and {HELD_OUT} are needed."
            )
            return None
        made = statistics.shortened(self.y, self.length, self.seed, PARTS, self.tick)
        full, own = made.full, made.predicted
        off, spare = np.abs(own - full), made.at_random
        zero = np.zeros(len(full))

        def mean(a: Floats, b: Floats) -> float:
            return float(np.mean(a - b))

        return ShortFormReport(
            tuple(self.given.items[i] for i in made.chosen),
            bootstrap(mean, off, zero, self.seed),
            bootstrap(mean, spare, zero, self.seed),
            _spearman(own, full),
            len(full),
        )

    def _words(
        self, item: ItemReport, unequal: statistics.Differences | None, sides: Floats
    ) -> list[str]:
        """What is found about an item, a sentence a kind."""
        said: list[str] = []
        able, weak = (f"{100 * (one or 0.0):.0f}" for one in (item.able, item.weak))
        parted = f"{able} in 100 able agents pass it, and {weak} in 100 weak ones"
        for kind in item.kinds:
            match kind:
                case "floor" | "ceiling":
                    few = float(sides[0 if kind == "floor" else 1])
                    who = "None" if few == 0.0 else f"Only {few:.3g}"
                    done = "passed" if kind == "floor" else "failed"
                    said.append(
                        f"{who} of {item.agents} agents {done} it: among them it tells next to "
                        "nothing."
                    )
                case "reversed":
                    said.append(f"{parted}: look for a wrong key, or for words that mislead.")
                case "tells little":
                    said.append(f"{parted}: it tells little of what the others measure.")
                case "twin":
                    said.append(
                        f"Who passes it passes {_few(item.twins)} too, beyond what ability "
                        "explains: together they tell little more than one."
                    )
                case "against its demands":
                    left = item.beyond_demands or 0.0
                    said.append(
                        f"It is far {'easier' if left > 0 else 'harder'} than its demands say (by "
                        f"{abs(left):.1f} logits): a level is wrong, or a demand is missing."
                    )
                case "differs by group":
                    assert unequal is not None
                    every = {unequal.groups[0]: 0.0, **item.differences}
                    best, worst = (
                        max(every, key=every.__getitem__),
                        min(every, key=every.__getitem__),
                    )
                    said.append(
                        f"At equal ability group {best} finds it easier than group {worst} (by "
                        f"{every[best] - every[worst]:.1f} logits)."
                    )
                case "undecided":
                    at = item.discrimination
                    more = (
                        f"about {item.more_agents} more agents would be enough to be sure"
                        if item.more_agents is not None
                        else "among so many items this may be chance"
                        if at is not None and at.low > 0.0
                        else "no useful number of agents would be enough to be sure"
                    )
                    said.append(f"It seems that {parted}: {more}.")
                case "tells":
                    said.append(f"{parted}.")
        return said


def _summary(made: Clinic) -> list[str]:
    """The findings on the whole set, a sentence each."""
    items, of = made.items, len(made.items)
    kinds: tuple[Kind, ...] = (*FAULTS, "undecided", "tells")
    count = {kind: sum(kind in item.kinds for item in items) for kind in kinds}
    said = [
        f"{count['tells']} of {of} items part the agents: able ones pass them more often than "
        "outcomes shuffled between agents would."
    ]
    if nothing := count["floor"] + count["ceiling"]:
        said.append(
            f"{_count(nothing, 'item')} tell{'s' * (nothing == 1)} next to nothing among these "
            f"{made.agents} agents: {count['floor']} that nearly nobody passes, and "
            f"{count['ceiling']} that nearly everybody does."
        )
    if nothing := count["tells little"]:
        said.append(
            f"{_count(nothing, 'item')} {_is(nothing)} passed by weak agents hardly less often "
            "than by able ones."
        )
    if wrong := count["reversed"]:
        said.append(f"{_count(wrong, 'item')} {_is(wrong)} passed more often by weak agents.")
    if unsure := count["undecided"]:
        sure = (
            f"; with {made.all_sure} agents in all, 9 in 10 items would be decided"
            if made.all_sure
            else ""
        )
        said.append(f"{_count(unsure, 'item')} cannot be judged by {made.agents} agents{sure}.")
    if made.twins:
        spare = sum(map(len, made.twins)) - len(made.twins)
        said.append(
            f"{count['twin']} items stand in {_count(len(made.twins), 'group')} of twins: {spare} "
            "of them could be left out with little loss."
        )
    if made.by:
        against = count["against its demands"]
        said.append(
            f"{_some(against, 'item')} contradict{'s' * (against < 2)} the demands"
            + (
                f" as layout {made.by} weighs them."
                if made.explained is None
                else f", which explain {100 * made.explained:.0f} % of the differences in "
                "difficulty."
            )
        )
    if made.groups:
        unequal = count["differs by group"]
        said.append(
            f"{_some(unequal, 'item')} differ{'s' * (unequal < 2)} between agents of equal ability "
            f"of the groups {_few(made.groups)}."
        )
    order = 0.5 + float(np.arcsin(np.sqrt(made.reliability))) / np.pi
    said.append(
        f"The whole set can at best tell with a reliability of {made.reliability:.2f}: two of "
        f"these agents, drawn at random, are put in the right order {100 * order:.0f} times in 100."
    )
    if short := made.short:
        said.append(
            f"A short form of {len(short.items)} items misses the share of all items passed by "
            f"{short.error.value:.3f} ({short.error.low:.3f} to {short.error.high:.3f}) on "
            f"average, on agents that did not choose it; {len(short.items)} random items by "
            f"{short.at_random.value:.3f}"
            + ("." if short.error.high < short.at_random.value else ", so it is no better.")
        )
    said.append(
        f"Of the alarms of each kind, {100 * RATE:.0f} in 100 are false (Benjamini and Hochberg)."
    )
    return said


def _some(number: int, what: str) -> str:
    return _count(number, what) if number else f"No {what}"


def _row(item: ItemReport) -> dict[str, Any]:
    at = item.discrimination
    return {
        "item": item.item,
        "agents": item.agents,
        "passed": item.passed,
        "discrimination": None if at is None else at.value,
        "low": None if at is None else at.low,
        "high": None if at is None else at.high,
        "found": ", ".join(item.kinds),
        "more_agents": item.more_agents,
        "beyond_demands": item.beyond_demands,
        "twins": ", ".join(item.twins),
        "sentence": item.sentence,
    }


def _more(wanted: float, agents: int) -> int | None:
    if not np.isfinite(wanted) or wanted > TOO_MANY:
        return None
    more = max(int(wanted) - agents, 1)
    return more if more < 20 else round(more, -1) if more < 500 else round(more, -2)


def _clusters(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Groups of items that pairs join."""
    group: dict[int, set[int]] = {}
    for one, other in pairs:
        joined = group.get(one, {one}) | group.get(other, {other})
        group |= dict.fromkeys(joined, joined)
    return sorted({tuple(sorted(members)) for members in group.values()})


def _spearman(one: Floats, other: Floats) -> float:
    from scipy.stats import rankdata

    a, b = rankdata(one), rankdata(other)
    return float(np.corrcoef(a, b)[0, 1]) if np.ptp(a) and np.ptp(b) else float("nan")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _few(names: Sequence[str], most: int = 4) -> str:
    """Names in a sentence, at most so many of them."""
    shown = [*names[:most], *([f"{len(names) - most} others"] if len(names) > most else [])]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
