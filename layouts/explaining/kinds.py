"""What kind of agent this is, with probabilities from a declared computation.

The kinds are those of Burden et al. 2023, section 5.1: able; a single weakness (their "Achilles
heel"); a fraudster, whose success depends on something that should not matter, or who goes by a
cue; and a context agent, whose success depends on the apparatus. An agent that does well only where
a demand is high has a single strength. What is none of them, or cannot be told, is unclear.

The computation compares explanations of the outcomes. The *layout* explains them by its leave-one-
out predictions. A *rival* lets the rate of success differ between the strata of one grouping of the
episodes: paradigms, looks that should not matter, where a cue misleads, or any other feature. Each
explanation has a marginal likelihood, and so a probability. If the layout explains the outcomes,
the draws of its posterior say whether the agent is able or has a single weakness.
`docs/design/verdicts.md` has the priors, and how often it is right.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from animalcat.layouts.explaining.limits import (
    EDGE,
    HARDEST,
    Costs,
    expected_outcome,
    leave_one_out,
)
from animalcat.layouts.explaining.wording import ARENAS, Vocabulary
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.model.likelihood import as_shares
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import learnt
from animalcat.layouts.watching.strata import (
    MISLEADS,
    PARADIGM,
    Stratification,
    stratifications,
)
from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
AgentKind: TypeAlias = Literal[
    "able", "single weakness", "single strength", "fraudster", "context", "unclear"
]
Role: TypeAlias = Literal["paradigm", "irrelevant", "cue", "demand"]

KINDS: Final[tuple[AgentKind, ...]] = get_args(AgentKind)
_OF_CAPABILITIES: Final[tuple[AgentKind, ...]] = ("able", "single weakness", "single strength")
"""Kinds that say of capabilities or demands what the agent can do."""
PRIOR_LAYOUT: Final = 0.7
"""Prior probability that the layout explains the outcomes; the rest is shared equally by paradigms,
things that should not matter, cues, and other features."""
LEADS: Final = "leads to the goal"
"""Name of the stratum in which a cue does not mislead."""
WEAK: Final = 0.2
"""Success that a node must cost, on the instances on which it costs most, to be a weakness."""
ABLE: Final = 0.7
"""Least success, over the battery, of an agent without weaknesses for it to count as able."""
NAMED: Final = 0.5
"""Least probability of a kind that is named; below it the kind is unclear."""
LEAST: Final = 8
"""Fewest episodes with an outcome from which a kind is named."""
_SHIFTS: Final = np.linspace(-6.0, 6.0, 49)
"""Possible shifts of the logit of success in a stratum."""
_SHIFT_SD: Final = 2.0
_SHARPNESS: Final = np.array([0.5, 1.0, 2.0])
"""Possible factors of the logit: how much sharper the agent is than the layout predicts."""
_MAY_DECIDE: Final = 0.1
"""Least probability of a rival that is named among several that may decide."""
_MOST_NAMED: Final = 3
"""Most of them that are named."""
_CUTS: Final = 12
"""Most places at which a feature is cut in two."""


@dataclass(frozen=True, eq=False)
class PlayedEpisodes:
    """The episodes that an agent played: features, outcomes and paradigms.

    Attributes:
        features: (episodes, features), in the layout's order and units.
        outcomes: (episodes,) or (episodes, outcomes), of the layout's kinds; NaN where missing.
        weights: (episodes,), how many outcomes each counts as; None for one each, 0 where nothing
            was observed.
        paradigms: The paradigm of each episode; empty if unknown.
        outside: Features that the layout does not use, each (episodes,); NaN where unknown.
        irrelevant: Names of the outside features that should not matter, such as colours.
        misleading: By the name of each cue of the layout, (episodes,): 1 where it misleads, 0 where
            it leads to the goal, NaN where it is not there.
        words: What sentences call what was played.
    """

    features: Floats
    outcomes: Floats
    weights: Floats | None = None
    paradigms: Sequence[str] = ()
    outside: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    irrelevant: Collection[str] = ()
    misleading: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    words: Vocabulary = ARENAS

    def __len__(self) -> int:
        return len(self.features)

    def shares(self, layout: Layout, columns: Floats) -> Floats:
        """Outcomes as shares of their maximum, (episodes, outcomes); NaN where none counts.

        Args:
            layout: The layout.
            columns: Those of the features, as `Evaluator.columns` returns them.
        """
        shares = as_shares(layout, columns, self.outcomes)
        if self.weights is not None:
            shares[self.weights == 0.0] = np.nan
        return shares

    @property
    def repeated(self) -> bool:
        """Whether any instance was played more than once."""
        return self.weights is not None and bool(((self.weights > 0) & (self.weights < 1)).any())


@dataclass(frozen=True)
class RivalExplanation:
    """An explanation of the outcomes that competes with the layout's: rates that differ by strata.

    Attributes:
        role: Whether it is by paradigm, by something that should not matter, by where a cue
            misleads, or by a demand.
        name: Name of the feature or the cue; "paradigm" for paradigms.
        probability: Posterior probability.
        low: The stratum in which the agent succeeds least.
        high: The stratum in which it succeeds most.
        rates: Share of successes in these two strata.
        strength: Whether the layout has it that the second asks for more than the first.
    """

    role: Role
    name: str
    probability: float
    low: str
    high: str
    rates: tuple[float, float]
    strength: bool = False


@dataclass(frozen=True)
class KindEstimate:
    """The most probable kind of an agent, with the probabilities of all kinds.

    Attributes:
        kind: The kind; "unclear" if none has at least the probability `NAMED`.
        probability: Its posterior probability; of "unclear", 1 less that of the likeliest kind.
        probabilities: Of all kinds, summing to 1.
        weakness: Name of the node that is most likely the single weakness; empty if there is none.
        rival: The most probable rival of the layout. If any rivals speak for this kind, it is one
            of them. None if nothing divides the episodes.
        why: Why the kind is unclear, in words; else empty.
    """

    kind: AgentKind
    probability: float
    probabilities: Mapping[str, float]
    weakness: str
    rival: RivalExplanation | None
    why: str = ""

    def unread(self, why: str) -> KindEstimate:
        """The same where no capability is to be read: then none is strong or weak.

        On what else success depends stays told, since that rests on outcomes alone.

        Args:
            why: Why none is to be read, in words.
        """
        read = sum(self.probabilities[kind] for kind in _OF_CAPABILITIES)
        left = {
            kind: 0.0 if kind in _OF_CAPABILITIES else share
            for kind, share in self.probabilities.items()
        }
        left["unclear"] += read
        if self.kind not in (*_OF_CAPABILITIES, "unclear"):
            return replace(self, probabilities=left, weakness="")
        likeliest = max(share for kind, share in left.items() if kind != "unclear")
        return replace(
            self,
            kind="unclear",
            probability=1.0 - likeliest,
            probabilities=left,
            weakness="",
            why=why,
        )


def first_outcome(shares: Floats) -> Floats:
    """The first outcome that was observed at all: the one that says what was failed, (episodes,).

    Args:
        shares: (episodes, outcomes), as `PlayedEpisodes.shares` returns them.
    """
    return shares[:, int(np.isfinite(shares).any(axis=0).argmax())]


def find_kind(layout: Layout, draws: Floats, played: PlayedEpisodes, cost: Costs) -> KindEstimate:
    """Compute the probability of each kind.

    Args:
        layout: The layout.
        draws: (draws, latents) of its posterior given all that was played; they weigh the same.
        played: What was played.
        cost: What the nodes cost on the battery, for draws of the same posterior.
    """
    able, single, weakness = _by_layout(layout, draws, cost)
    evaluator = Evaluator(layout)
    columns = evaluator.columns(played.features)
    shares = played.shares(layout, columns)
    rivals, p_layout = _rivals(evaluator, draws, played, columns, shares)
    named: list[AgentKind] = [name for name in KINDS if name != "unclear"]
    probabilities: dict[str, float] = dict.fromkeys(KINDS, 0.0)
    probabilities["able"] = p_layout * able
    probabilities["single weakness"] = p_layout * single
    for candidate in rivals:
        probabilities[_kind_of(candidate)] += candidate.probability
    probabilities["unclear"] = max(0.0, 1.0 - sum(probabilities[name] for name in named))
    best = max(named, key=lambda kind: probabilities[kind])
    observed = int(np.count_nonzero(np.isfinite(shares).any(axis=1)))
    first = first_outcome(shares)
    failed, passed = bool((first < 1.0).any()), bool((first > 0.0).any())
    why = _why(
        *(observed, able, single, probabilities, best, p_layout, rivals, played.words),
        failed=failed,
        passed=passed,
    )
    of_kind = [] if why else [candidate for candidate in rivals if _kind_of(candidate) == best]
    rival = max(of_kind or rivals, key=lambda candidate: candidate.probability, default=None)
    if why:
        return KindEstimate(
            "unclear", 1.0 - probabilities[best], probabilities, weakness, rival, why
        )
    return KindEstimate(best, probabilities[best], probabilities, weakness, rival)


def _why(
    n: int,
    able: float,
    single: float,
    probabilities: Mapping[str, float],
    best: str,
    p_layout: float,
    rivals: Sequence[RivalExplanation],
    words: Vocabulary,
    *,
    failed: bool,
    passed: bool,
) -> str:
    """Why no kind can be named; empty if one can."""
    if n < LEAST:
        one = words.again.removesuffix("s")
        return f"{n} {words.again} are too few" if n != 1 else f"one {one} is too little"
    if probabilities[best] >= NAMED:
        return ""
    if not failed:
        return "it never failed, and too little is known about what it can do"
    if not passed:
        return "it never passed, so nothing shows what it does well"
    if p_layout < NAMED:
        likely = [one for one in rivals if one.probability >= _MAY_DECIDE]
        likely = sorted(likely, key=lambda one: -one.probability)[:_MOST_NAMED]
        if len(likely) < 2:
            return "several explanations are possible, and none is likely enough to be named"
        names = [words.setting if one.role == "paradigm" else one.name for one in likely]
        return (
            f"{', '.join(names[:-1])} or {names[-1]} may be what decides, and what was played does "
            "not tell them apart"
        )
    if able + single < NAMED / 2:
        return "more than one weakness, or chance, makes it fail"
    return f"the most likely, {best}, has a probability of only {probabilities[best]:.2f}"


def _kind_of(rival: RivalExplanation) -> AgentKind:
    """The kind of an agent whose outcomes this rival explains.

    A demand makes a single weakness if the agent does well where it is lowest, whatever shape the
    layout gives it. If it does well only where the layout has it that more is asked for, that is a
    strength.
    """
    if rival.role == "paradigm":
        return "context"
    if rival.role == "irrelevant":
        return "fraudster"
    if rival.role == "cue":
        return "fraudster" if rival.low == MISLEADS else "unclear"
    low, high = rival.rates
    if high < ABLE:
        return "unclear"
    if high - low < WEAK:
        return "able"
    return "single strength" if rival.strength else "single weakness"


def _by_layout(layout: Layout, draws: Floats, cost: Costs) -> tuple[float, float, str]:
    """Shares of draws that are able and that have one weakness, and which that is.

    An agent with one weakness does well on the fifth of the battery on which it does best.
    A weakness must be likelier than it was before anything was played. A node of which next to
    nothing was learnt is no second weakness, but it keeps an agent from being called able.
    """
    weak = cost.alone >= WEAK
    enough = cost.able >= ABLE
    count = max(1, round(HARDEST * cost.success.shape[1]))
    somewhere = np.sort(cost.success, axis=1)[:, -count:].mean(axis=1) >= ABLE
    able = float(np.mean(enough & ~weak.any(axis=0)))
    before = np.array([node.prior.sd for node in layout.latents])
    known = np.array([learnt(*sds) for sds in zip(draws.std(axis=0), before, strict=True)])
    single_weakness = enough & somewhere & (weak[known].sum(axis=0) == 1)
    shown = (
        weak
        & (known & (weak.mean(axis=1) > cost.weak_before(WEAK)))[:, np.newaxis]
        & single_weakness
    )
    if not shown.any():
        return able, 0.0, ""
    return (
        able,
        float(shown.any(axis=0).mean()),
        layout.latents[int(shown.sum(axis=1).argmax())].name,
    )


def _rivals(
    evaluator: Evaluator, draws: Floats, played: PlayedEpisodes, columns: Floats, shares: Floats
) -> tuple[list[RivalExplanation], float]:
    """All rivals of the layout, and the probability that the layout explains the outcomes.

    Of several outcomes the first counts that was observed at all.
    """
    outcome = int(np.isfinite(shares).any(axis=0).argmax())
    y = shares[:, outcome]
    there = np.flatnonzero(np.isfinite(y))
    weights = np.ones(len(y)) if played.weights is None else played.weights
    y, weights = y[there], weights[there]
    ways = _groupings(evaluator.layout, played, there) if len(there) else []
    if not ways:
        return [], 1.0
    predicted = leave_one_out(evaluator, draws, columns[there], y, weights, outcome)
    base = portable.logit(np.clip(predicted, EDGE, 1.0 - EDGE))
    tilted = [_tilt_likelihoods(factor * base, y, weights) for factor in _SHARPNESS]
    counts = np.column_stack([weights * y, weights * (1.0 - y)])
    alone = _evidence([np.zeros(len(y), np.int64)], tilted, counts)
    logs = [np.log(PRIOR_LAYOUT) + alone]
    names: list[tuple[Role, Stratification]] = []
    roles: list[Role] = ["paradigm", "irrelevant", "demand"]
    if evaluator.layout.cues:
        roles.append("cue")
    for role in roles:
        own = [(way, cuts) for r, way, cuts in ways if r == role]
        for way, cuts in own:
            share = (1.0 - PRIOR_LAYOUT) / len(roles) / len(own)
            # Where the feature is unknown, its rival says what the layout says.
            known = way.labels >= 0
            some = counts[known]
            among = [table[known] for table in tilted]
            evidence = _evidence([labels[known] for labels in (way.labels, *cuts)], among, some)
            if role == "paradigm":
                evidence = np.logaddexp(
                    evidence, _likelihood_of_two_rates(way.labels, counts)
                ) - np.log(2.0)
            if not known.all():
                evidence += alone - _evidence([np.zeros(len(some), np.int64)], among, some)
            logs.append(np.log(share) + evidence)
            names.append((role, way))
    shares = np.exp(np.array(logs) - portable.logsumexp(logs))
    rivals = [
        _rival(role, way, float(share), y, weights)
        for (role, way), share in zip(names, shares[1:], strict=True)
    ]
    rows = played.features[there]
    rivals = [
        replace(rival, strength=_asks_more(evaluator, rows, way, rival))
        if rival.role == "demand"
        else rival
        for rival, (_, way) in zip(rivals, names, strict=True)
    ]
    return rivals, float(shares[0])


def _rival(
    role: Role, way: Stratification, share: float, y: Floats, weights: Floats
) -> RivalExplanation:
    known = way.labels >= 0
    labels, weights = way.labels[known], weights[known]
    number = np.bincount(labels, weights, len(way.strata))
    passed = np.bincount(labels, weights * y[known], len(way.strata))
    held = np.flatnonzero(number > 0.0)
    smooth = (passed[held] + 0.5) / (number[held] + 1.0)
    low, high = int(held[np.argmin(smooth)]), int(held[np.argmax(smooth)])
    rates = (float(passed[low] / number[low]), float(passed[high] / number[high]))
    return RivalExplanation(role, way.name, share, way.strata[low], way.strata[high], rates)


def _asks_more(
    evaluator: Evaluator, rows: Floats, way: Stratification, rival: RivalExplanation
) -> bool:
    """Whether a middling agent would pass less where this one passes more, by one demand alone.

    The two strata are compared at their medians, with every other demand of an episode as it was.
    What the layout does not use asks for nothing.
    """
    layout = evaluator.layout
    if way.name not in layout.feature_names:
        return False
    at = layout.feature_names.index(way.name)
    middle = np.array([[node.prior.mean for node in layout.latents]])
    passes: list[float] = []
    for name in (rival.low, rival.high):
        like = rows.copy()
        values = rows[way.labels == way.strata.index(name), at]
        if not np.isfinite(values).all():
            return False
        like[:, at] = np.median(values)
        passes.append(float(expected_outcome(evaluator, middle, evaluator.columns(like)).mean()))
    return passes[1] < passes[0]


def _groupings(
    layout: Layout, played: PlayedEpisodes, rows: Ints
) -> list[tuple[Role, Stratification, list[Ints]]]:
    """Ways to group the episodes: by paradigm and by every feature, with its cuts in two.

    What a calibration taught is no demand, so it is none of them.
    """
    own = {
        name: played.features[rows, i]
        for i, name in enumerate(layout.feature_names)
        if i not in layout.taught
    }
    told = {cue.feature for cue in layout.cues}
    outside = {
        name: np.asarray(values, np.float64)[rows]
        for name, values in played.outside.items()
        if name not in told
    }
    columns = _distinct({**own, **outside})
    paradigms = [str(played.paradigms[i]) if played.paradigms else "" for i in rows]
    groupings: list[tuple[Role, Stratification, list[Ints]]] = []
    for way in stratifications(paradigms, columns):
        if way.name == PARADIGM:
            groupings.append(("paradigm", way, []))
            continue
        role: Role = "irrelevant" if way.name in played.irrelevant else "demand"
        groupings.append((role, way, _cuts(columns[way.name])))
    for name, misleads in played.misleading.items():
        own = misleads[rows]
        labels = (own == 1.0).astype(np.int64)
        if 0 < labels.sum() < len(labels):
            # Without its cue, such an agent may search, or do nothing.
            lost = (own != 0.0).astype(np.int64)
            way = Stratification(name, (LEADS, MISLEADS), labels, "cue")
            groupings.append(("cue", way, [lost] if lost.min() < lost.max() else []))
    return groupings


def _distinct(columns: Mapping[str, Floats]) -> dict[str, Floats]:
    """Leave out features that rise or fall just as an earlier one: they cannot be told apart."""
    kept: dict[str, Floats] = {}
    seen: set[bytes] = set()
    for name, values in columns.items():
        ranks = np.unique(values, return_inverse=True)[1].ravel()
        marks = {ranks.tobytes(), (ranks.max(initial=0) - ranks).tobytes()}
        if not marks & seen:
            kept[name] = values
        seen |= marks
    return kept


def _cuts(values: Floats) -> list[Ints]:
    """Ways to cut a feature in two between its values; -1 where it is unknown."""
    known = values[np.isfinite(values)]
    levels = np.unique(known)
    middles = (levels[1:] + levels[:-1]) / 2.0
    if len(middles) > _CUTS:
        middles = np.unique(np.quantile(known, np.linspace(0.0, 1.0, _CUTS + 2)[1:-1]))
    below = np.where(np.isfinite(values), 0, -1)
    return [np.where(values > middle, 1, below).astype(np.int64) for middle in middles]


def _tilt_likelihoods(base: Floats, y: Floats, weights: Floats) -> Floats:
    """Log likelihood of every episode at every shift of its logit, (episodes, shifts)."""
    z = base[:, np.newaxis] + _SHIFTS
    each = y[:, np.newaxis]
    return weights[:, np.newaxis] * (
        each * portable.log_expit(z) + (1.0 - each) * portable.log_expit(-z)
    )


def _evidence(ways: Sequence[Ints], tilted: Sequence[Floats], counts: Floats) -> float:
    """Log marginal likelihood of one explanation: mean over its ways of grouping.

    The first way is the strata, with half of the prior; cuts in two share the other half. Within a
    way, half is on rates of their own (uniform), and half on the layout's predictions with a shift
    of the logit (normal) in every stratum.
    """
    evidences: list[float] = []
    for labels in ways:
        passed, failed = (_sums(labels, column) for column in counts.T)
        rates = float(np.sum(_rate(passed, failed)))
        shifted = [_shift_logit(labels, table) for table in tilted]
        evidences.append(
            float(
                np.logaddexp(rates, portable.logsumexp(shifted) - np.log(len(shifted)))
                - np.log(2.0)
            )
        )
    if len(evidences) == 1:
        return evidences[0]
    cuts = float(portable.logsumexp(evidences[1:]) - np.log(len(evidences) - 1))
    return float(np.logaddexp(evidences[0], cuts) - np.log(2.0))


def _sums(labels: Ints, values: Floats) -> Floats:
    """Sum of the values of every stratum, (strata,)."""
    return np.bincount(labels, values).astype(np.float64)


def _rate(passed: Floats, failed: Floats) -> Floats:
    """Log marginal likelihood of outcomes with one unknown rate, uniform before."""
    whole = portable.gammaln(passed + failed + 2.0)
    return np.asarray(portable.gammaln(passed + 1.0) + portable.gammaln(failed + 1.0) - whole)


def _likelihood_of_two_rates(labels: Ints, counts: Floats) -> float:
    """Log marginal likelihood of two rates: every stratum has the one or the other.

    All assignments of strata to rates are equally likely before. Only those are summed that divide
    the strata by their share of successes, which is nearly all that counts, and never too much.
    """
    sums = np.column_stack([_sums(labels, column) for column in counts.T])
    sums = sums[sums.sum(axis=1) > 0.0]
    if len(sums) < 2:
        return -np.inf
    ordered = sums[np.argsort(sums[:, 0] / sums.sum(axis=1))]
    below: Floats = np.cumsum(ordered, axis=0)[:-1]
    above: Floats = ordered.sum(axis=0) - below
    each = _rate(below[:, 0], below[:, 1]) + _rate(above[:, 0], above[:, 1])
    return float(portable.logsumexp(each) + np.log(2.0) - len(sums) * np.log(2.0))


_LOG_NORMAL: Final = -0.5 * (_SHIFTS / _SHIFT_SD) ** 2
_LOG_PRIOR: Final = _LOG_NORMAL - float(np.logaddexp.reduce(_LOG_NORMAL))


def _shift_logit(labels: Ints, table: Floats) -> float:
    sums = np.zeros((int(labels.max()) + 1, table.shape[1]))
    np.add.at(sums, labels, table)
    held = np.bincount(labels) > 0
    return float(portable.logsumexp(sums[held] + _LOG_PRIOR, axis=1).sum())
