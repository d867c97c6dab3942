"""Why an episode ended as it did: what it asked for, what decided, and what would tell more.

This is the triangulation of Burden et al. 2023, Figure 2: one failure has several candidate
explanations, the posterior says how likely each is, and another instance of the battery tells them
apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.information import contrast_of_groups
from animalcat.layouts.explaining.limits import best_value, expected_outcome, thin_draws
from animalcat.layouts.explaining.wording import (
    Scale,
    all_of,
    figure,
    percent,
    scale_in,
    scale_of,
)
from animalcat.layouts.inference.summary import hdi
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import NodeNote, learnt

Floats: TypeAlias = npt.NDArray[np.float64]

CHANCE: Final = "chance"
"""What decided where noise did, or where no node would have changed the outcome by `_LEAST`."""
DRAWS: Final = 1000
CANDIDATE: Final = 0.05
"""Least share of draws of a candidate explanation."""
_LEAST: Final = 0.02
_TELLS: Final = 0.1
"""Least information, in bits, of an instance that tells candidates apart. That much has one which
two equally likely candidates pass in a third and in two thirds of tries, so that its outcome makes
the one twice as likely as the other. What tells less leaves the question as it is."""
_SHOWN: Final = 3
"""Most instances that are named to tell candidates apart."""


@dataclass(frozen=True)
class Need:
    """What an episode asked of one node.

    Attributes:
        node: Name of the node.
        kind: Capability, bias or robustness.
        unit: Unit of demand and margin.
        demand: The demand, for a capability that has one; else None.
        margin: Mean of the capability less the demand; None without a demand.
        interval: 90 % interval of the margin.
        asks: The demand as readers read it, as in "38 m of rewardDistance with rewardBehind 1";
            empty without one.
        has: The estimate and its 90 % interval the same way, in an arena that is like this one in
            all other features.
        known: Whether enough was learnt of the node for an estimate to be said.
        ahead: Probability that the capability is above the demand.
        decided: Share of draws in which this node cost the most success.
        changed: Features of the like arena without that demand; empty where the node was taken at
            its best instead.
        without: Success predicted there, and its 90 % interval.
    """

    node: str
    kind: str
    unit: str
    demand: float | None
    margin: float | None
    interval: tuple[float, float] | None
    asks: str
    has: str
    known: bool
    ahead: float | None
    decided: float
    changed: dict[str, float]
    without: tuple[float, float, float]

    @property
    def short(self) -> bool:
        """Whether the agent falls short of it: of a demand by its estimate, or there is none."""
        return self.margin is None or self.margin < 0.0


@dataclass(frozen=True)
class Discriminator:
    """An instance of the battery that tells the candidates apart.

    Attributes:
        instance: Its name.
        bits: Expected information about which candidate is right.
        predicted: Success predicted by each candidate.
    """

    instance: str
    bits: float
    predicted: dict[str, float]


@dataclass(frozen=True)
class Explanation:
    """Why an episode ended as it did.

    Attributes:
        instance: Name of the instance.
        happened: How the episode ended, in a sentence; empty if that is not known.
        outcome: Its outcome as a share of its maximum: 1 for success.
        expected: Success that the posterior expects of the instance, knowing the outcome.
        demands: The features that the layout uses, by name.
        needs: What was asked of each node that plays a part, the likeliest to have decided first.
        chance: Share of draws in which noise decided, or nothing.
        discriminators: Instances that tell the candidates apart, the best first; empty if there is
            but one candidate.
        sentences: The explanation in words.
    """

    instance: str
    happened: str
    outcome: float
    expected: float
    demands: dict[str, float]
    needs: tuple[Need, ...]
    chance: float
    discriminators: tuple[Discriminator, ...]
    sentences: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values, as the schema "episode_explain" documents them."""
        needs = [
            {
                **asdict(need),
                "interval": None if need.interval is None else list(need.interval),
                "without": dict(zip(("mean", "low", "high"), need.without, strict=True)),
            }
            for need in self.needs
        ]
        return {
            **asdict(self),
            "needs": needs,
            "discriminators": [asdict(discriminator) for discriminator in self.discriminators],
            "sentences": list(self.sentences),
        }


def explain(
    bank: Bank,
    draws: Floats,
    features: npt.ArrayLike,
    outcome: float,
    *,
    instance: str = "",
    happened: str = "",
    weights: Floats | None = None,
    played: Sequence[str] = (),
    misfit: str = "",
    noted: Mapping[str, NodeNote] | None = None,
) -> Explanation:
    """Explain one episode.

    Args:
        bank: The battery, with its layout.
        draws: (draws, latents) of the posterior.
        features: (features,) of the episode's instance, in the layout's order and units.
        outcome: Its outcome as a share of its maximum: 1 for success. Of several, the first.
        instance: Name of the instance.
        happened: How the episode ended, in a sentence; it begins the explanation.
        weights: (draws,), as `LivePosterior.weights`; equal if not given.
        played: Names of instances that are not proposed, because they were played.
        misfit: Where the layout does not describe the agent, in words; empty if no alarm stands.
            Then the sentences blame nothing, and no instance is proposed.
        noted: The note of each node, as `notes` makes them; without it no node is known to be
            bounded from one side alone.

    Raises:
        ValueError: The outcome is missing.
    """
    if np.isnan(outcome):
        raise ValueError("the outcome is missing, so there is nothing to explain")
    layout, evaluator = bank.layout, bank.evaluator
    theta = thin_draws(draws, weights, DRAWS)
    row = np.asarray(features, np.float64).reshape(1, -1)
    columns = evaluator.columns(row)
    touched = np.flatnonzero(evaluator.touched(columns)[0])
    p = expected_outcome(evaluator, theta, columns)[:, 0]
    gains = np.zeros((len(layout.latents), len(theta)))
    for i in touched:
        better = theta.copy()
        better[:, i] = best_value(layout.latents[i])
        gains[i] = expected_outcome(evaluator, better, columns)[:, 0] - p
    # How likely each draw made this outcome is in the posterior already. Noise is chance.
    noise = [i for i, node in enumerate(layout.latents) if node.kind == "robustness"]
    decider = np.where(gains.max(axis=0) >= _LEAST, gains.argmax(axis=0), -1)
    decider[np.isin(decider, noise)] = -1
    demands = evaluator.demands(columns)[0]
    given = columns[0, : len(layout.features)]
    notes = noted or {}
    needs = [
        _need(
            bank,
            theta,
            int(i),
            given,
            decider,
            demands,
            notes.get(layout.latent_names[i], NodeNote()),
        )
        for i in touched
    ]
    needs.sort(key=lambda need: -need.decided)
    candidates = {
        need.node: decider == layout.latent_names.index(need.node)
        for need in needs
        if need.decided >= CANDIDATE
    }
    chance = float((decider < 0).mean())
    if chance >= CANDIDATE:
        candidates[CHANCE] = decider < 0
    discriminators = () if misfit else _discriminators(bank, theta, candidates, {instance, *played})
    named = dict(zip(layout.feature_names, given.tolist(), strict=True))
    mean = float(p.mean())
    unshown = [
        need.node
        for need in needs
        if need.kind == "capability" and notes.get(need.node, NodeNote()).side == "at most"
    ]
    words = (
        _words_against(instance, happened, outcome, misfit)
        if misfit
        else _words(
            layout, instance, happened, outcome, mean, needs, chance, discriminators, unshown
        )
    )
    return Explanation(
        instance, happened, outcome, mean, named, tuple(needs), chance, discriminators, words
    )


def _need(
    bank: Bank,
    theta: Floats,
    i: int,
    row: Floats,
    decider: npt.NDArray[np.int64],
    demands: Floats,
    note: NodeNote,
) -> Need:
    layout = bank.layout
    node = layout.latents[i]
    demand = margin = ahead = None
    asks = ""
    interval: tuple[float, float] | None = None
    scale = scale_in(bank.evaluator, i, row, scale_of(layout, i, bank.features).counted)
    ends = hdi(theta[:, i], np.full(len(theta), 1.0 / len(theta)))
    known = note.known and learnt(float(theta[:, i].std()), node.prior.sd)
    has = scale.told(float(theta[:, i].mean()), *ends, known=known, note=note)
    if i in layout.capabilities and np.isfinite(value := demands[layout.capabilities.index(i)]):
        over = theta[:, i] - value
        low, high = np.quantile(over, [0.05, 0.95])
        demand, margin, ahead = float(value), float(over.mean()), float((over > 0.0).mean())
        interval = (float(low), float(high))
        asks = _ask(bank, i, scale, row, demand)
    changed, like, better = _without(bank, theta, i, row)
    predicted = expected_outcome(bank.evaluator, better, bank.evaluator.columns(like[np.newaxis]))[
        :, 0
    ]
    low, high = np.quantile(predicted, [0.05, 0.95])
    return Need(
        node.name,
        node.kind,
        node.unit,
        demand,
        margin,
        interval,
        asks,
        has,
        known,
        ahead,
        float((decider == i).mean()),
        changed,
        (float(predicted.mean()), float(low), float(high)),
    )


def _ask(bank: Bank, i: int, scale: Scale, row: Floats, demand: float) -> str:
    """Say what an arena has of the feature by which a capability is read, and what weighs on it."""
    layout, evaluator = bank.layout, bank.evaluator
    if not scale.feature:
        return scale.exactly(demand)
    weighed: list[str] = []
    place = layout.capabilities.index(i)
    for k, feature in enumerate(layout.features):
        if feature.name in {scale.feature, *layout.gates} or row[k] == feature.low:
            continue
        other = row.copy()
        other[k] = feature.low
        changed = evaluator.demands(evaluator.columns(other[np.newaxis]))[0, place]
        if np.isfinite(changed) and changed != demand:
            weighed.append(_feature(layout, feature.name, float(row[k])))
    has = float(row[layout.feature_names.index(scale.feature)])
    asks = f"{figure(has, 0.0)} {scale.unit}".rstrip() + f" of {scale.feature}"
    return f"{asks} with {all_of(weighed)}" if weighed else asks


def _without(
    bank: Bank, theta: Floats, i: int, row: Floats
) -> tuple[dict[str, float], Floats, Floats]:
    """The like arena without the demand on a node, and the draws to predict it with.

    A gate that keeps the node out is shut; else the feature that asks most of it takes its easiest
    value. Where there is neither, the node is taken at its best.
    """
    layout, evaluator = bank.layout, bank.evaluator
    if layout.latents[i].kind == "capability":
        for name in sorted(layout.gates):
            at = layout.feature_names.index(name)
            like = row.copy()
            like[at] = 0.0
            if row[at] == 1.0 and not evaluator.touched(evaluator.columns(like[np.newaxis]))[0, i]:
                return {name: 0.0}, like, theta
        scale = scale_of(layout, i, bank.features).counted
        if scale.feature:
            like = row.copy()
            at = layout.feature_names.index(scale.feature)
            easiest = scale.low if scale.rising else scale.high
            like[at] = easiest
            return {scale.feature: float(easiest)}, like, theta
    better = theta.copy()
    better[:, i] = best_value(layout.latents[i])
    return {}, row, better


def _discriminators(
    bank: Bank, theta: Floats, candidates: dict[str, npt.NDArray[np.bool_]], without: set[str]
) -> tuple[Discriminator, ...]:
    if len(candidates) < 2:
        return ()
    names = list(candidates)
    bits, predicted = contrast_of_groups(bank, theta, [candidates[name] for name in names])
    order: list[int] = np.argsort(-bits, kind="stable").tolist()
    discriminators: list[Discriminator] = []
    seen: set[int] = set()
    for row in order:
        kind = int(bank.place[row])
        if bits[row] < _TELLS:
            break
        if bank.offered[row] or bank.names[row] in without or kind in seen:
            continue
        seen.add(kind)
        each = dict(zip(names, predicted[:, row].tolist(), strict=True))
        discriminators.append(Discriminator(bank.names[row], float(bits[row]), each))
        if len(discriminators) == _SHOWN:
            break
    return tuple(discriminators)


def _verb(outcome: float) -> str:
    return "passed" if outcome >= 1.0 else "failed" if outcome <= 0.0 else "did not fully pass"


def _words_against(instance: str, happened: str, outcome: float, misfit: str) -> tuple[str, ...]:
    """What can be said where the layout does not describe the agent."""
    said = [happened] if happened else []
    said.append(f"It {_verb(outcome)} {instance or 'the arena'}.")
    why = "passed" if outcome >= 1.0 else "failed"
    said.append(
        f"The alarm stands: the layout does not describe this agent {misfit}. So it cannot say "
        f"why the agent {why} here, nor which arena would say more."
    )
    return tuple(said)


def _words(
    layout: Layout,
    instance: str,
    happened: str,
    outcome: float,
    mean: float,
    needs: Sequence[Need],
    chance: float,
    discriminators: Sequence[Discriminator],
    unshown: Sequence[str],
) -> tuple[str, ...]:
    failed = outcome < 1.0
    said = [happened] if happened else []
    said.append(
        f"It {_verb(outcome)} {instance or 'the arena'}; if it played {instance or 'it'} again, "
        f"the layout would expect it to pass in {percent(mean)} of attempts."
    )
    first = needs[0] if needs and needs[0].decided > 0.0 else None
    lacking = [need for need in needs if need.demand is not None and need.short and need.known]
    none_alone = first is None or chance > first.decided
    if none_alone and failed and len(lacking) > 1:
        each = "; ".join(
            f"{need.node}, where it asks for {need.asks} and it masters {need.has}"
            for need in lacking
        )
        said.append(
            "Of what this layout knows, several capabilities fall short at once, so none of them "
            f"decided alone: {each}."
        )
    elif first is None or chance > first.decided:
        said.append(
            f"Of what this layout knows, most likely only {CHANCE} decided "
            f"({percent(chance)} of draws): no capability costs more success here than noise does."
        )
    elif failed and not first.short:  # what it masters by its estimate made nothing fail
        said.append(
            "Of what this layout knows, nothing clearly made it fail. It is nearest to its limit "
            f"in {first.node}: the arena asks for {first.asks}, and it masters more, "
            f"{first.has}. It may have been {CHANCE}, or something that the layout has no node for."
        )
    else:
        what = "made it fail" if failed else "came nearest to making it fail"
        sure = "most likely" if first.known else "it is unclear, but perhaps"
        if first.node in unshown and len(unshown) > 1:
            shown = f"it showed no ability in {' or '.join(unshown)}"
            sure = f"it is unclear, since {shown}, but perhaps"
        asked = f": the arena asks for {first.asks}, and it masters {first.has}"
        gap = asked if first.asks else ""
        said.append(
            f"Of what this layout knows, {sure} {first.node} {what} ({percent(first.decided)} "
            f"of draws){gap}."
        )
        mean_without, low, high = first.without
        where = ", ".join(_feature(layout, name, value) for name, value in first.changed.items())
        like = f"In the same arena with {where}" if where else f"With {first.node} at its best"
        said.append(
            f"{like}, success is predicted in {percent(mean_without)} of attempts (90 %: "
            f"{100 * low:.0f} to {percent(high)})."
        )
    if discriminators:
        best = discriminators[0]
        each = ", ".join(f"{percent(p)} if it was {name}" for name, p in best.predicted.items())
        said.append(
            f"The arena that best distinguishes the candidates is {best.instance}: success {each}."
        )
    elif failed:
        said.append("No other arena of the battery would say much more about why.")
    return tuple(said)


def _feature(layout: Layout, name: str, value: float) -> str:
    feature = next(f for f in layout.features if f.name == name)
    unit = "" if feature.unit == "1" else f" {feature.unit}"
    return f"{name} {figure(value, 0.0)}{unit}"
