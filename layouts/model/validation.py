"""Checks of a layout's graph; every message names the node and lists the valid choices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import cast

from animalcat.layouts.model.codec import SpecificationError
from animalcat.layouts.model.expressions import ONE, Range
from animalcat.layouts.model.links import Gate, LogisticMargin, NoiseMixture
from animalcat.layouts.model.nodes import GAP, Beta, Binomial, Derived, Feature, Latent, OutcomeNode
from animalcat.text.formulas import FormulaError


def order_derived(derived: Iterable[Derived]) -> tuple[Derived, ...]:
    """Sort derived nodes so that each comes after its parents.

    Raises:
        SpecificationError: There is a cycle; the message shows it.
    """
    by_name = {node.name: node for node in derived}
    graph = {node.name: node.link.parents for node in by_name.values()}
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        cycle = " -> ".join(cast("list[str]", error.args[1]))
        raise SpecificationError(f"the graph has a cycle: {cycle}") from None
    return tuple(by_name[name] for name in order if name in by_name)


def check_graph(
    features: Sequence[Feature],
    latents: Sequence[Latent],
    derived: Sequence[Derived],
    outcomes: Sequence[OutcomeNode],
) -> None:
    """Require a sound graph.

    Raises:
        SpecificationError: A name is unknown or declared twice, there is a cycle, units differ, an
            outcome may leave [0, 1] or is declared twice, a node has no influence, a demand depends
            on the agent, a rule for missing values cannot hold, or a phrase for readers cannot be
            filled in or is that of another node.
    """
    _check_names(features, latents, derived)
    nodes = order_derived(derived)
    ranges = _check_nodes(features, latents, nodes)
    _check_margins(latents, nodes)
    _check_feature_inputs(features, nodes)
    _check_outcomes(features, latents, derived, outcomes, ranges)
    _check_missing(features, derived, outcomes)
    _check_phrases(latents)


def _check_names(
    features: Sequence[Feature], latents: Sequence[Latent], derived: Sequence[Derived]
) -> None:
    names = [node.name for node in (*features, *latents, *derived)]
    for name in names:
        if not name or names.count(name) > 1:
            raise SpecificationError(f"node {name!r} is declared {names.count(name)} times")
    if not latents:
        raise SpecificationError("latents: a layout needs at least one")
    for node in derived:
        for parent in node.link.parents:
            if parent not in names:
                valid = ", ".join(sorted(names))
                raise SpecificationError(
                    f"node {node.name}: {parent!r} is not a node of the layout; valid: {valid}"
                )


def _check_phrases(latents: Sequence[Latent]) -> None:
    """Check that readers can tell every node from the others, and have a place for its value."""
    seen: dict[str, str] = {}
    for node in latents:
        if not node.reads:
            continue
        rest = node.reads.replace(GAP, "", 1)
        if GAP not in node.reads or "{" in rest or "}" in rest or "\n" in node.reads.strip():
            raise SpecificationError(
                f"latent {node.name}: reads {node.reads!r} needs {GAP} exactly once, where the "
                "value stands with its unit, in one line without other braces; for example "
                f"reads: finds goals up to {GAP} away"
            )
        same = seen.setdefault(" ".join(node.reads.split()), node.name)
        if same != node.name:
            raise SpecificationError(
                f"latent {node.name}: reads {node.reads!r} is what {same} reads too, and readers "
                "could not tell them apart; say of each what it alone is about"
            )


def _check_nodes(
    features: Sequence[Feature], latents: Sequence[Latent], nodes: Sequence[Derived]
) -> dict[str, Range]:
    """Check units and ranges of the derived nodes, and return the ranges of all nodes."""
    units = {node.name: node.unit for node in (*features, *latents, *nodes)}
    ranges: dict[str, Range] = {node.name: (node.low, node.high) for node in features}
    ranges |= {node.name: (node.prior.low, node.prior.high) for node in latents}
    for node in nodes:
        if problem := node.link.unit_problem(units, node.unit):
            raise SpecificationError(f"node {node.name}: units differ: {problem}")
        try:
            ranges[node.name] = node.link.bounds(ranges)
        except FormulaError as error:
            raise SpecificationError(f"node {node.name}: {error}") from None
    return ranges


def _check_outcomes(
    features: Sequence[Feature],
    latents: Sequence[Latent],
    derived: Sequence[Derived],
    outcomes: Sequence[OutcomeNode],
    ranges: Mapping[str, Range],
) -> None:
    names = [outcome.name for outcome in outcomes]
    if not names:
        raise SpecificationError("outcomes: a layout needs at least one")
    if twice := [name for name in names if names.count(name) > 1]:
        raise SpecificationError(f"outcome {twice[0]!r} is declared {names.count(twice[0])} times")
    parents = {node.name: node.link.parents for node in derived}
    for outcome in outcomes:
        _check_outcome(features, latents, parents, outcome, ranges)
    roots = [outcome.parents[0] for outcome in outcomes]
    influential = ancestors_of([p for outcome in outcomes for p in outcome.parents], parents)
    lost = [n.name for n in (*features, *latents, *derived) if n.name not in influential]
    if lost:
        raise SpecificationError(
            f"{', '.join(lost)}: no influence on the outcome; every node must reach "
            f"{' or '.join(dict.fromkeys(roots))}"
        )


def _check_outcome(
    features: Sequence[Feature],
    latents: Sequence[Latent],
    parents: Mapping[str, tuple[str, ...]],
    outcome: OutcomeNode,
    ranges: Mapping[str, Range],
) -> None:
    where, likelihood, root = f"outcome {outcome.name}", outcome.likelihood, outcome.parents[0]
    if root not in parents:
        raise SpecificationError(
            f"{where}: {root!r} is not a derived node; valid: {', '.join(sorted(parents))}"
        )
    low, high = ranges[root]
    if low < 0.0 or high > 1.0:
        raise SpecificationError(
            f"{where}: node {root} is not sure to be within [0, 1]: it may be {low:g} to {high:g}"
        )
    feature_names = [node.name for node in features]
    if isinstance(likelihood, Binomial):
        trials = likelihood.trials
        if trials not in feature_names:
            raise SpecificationError(
                f"{where}: {trials!r} is not a feature; valid: {', '.join(feature_names)}"
            )
        if (fewest := ranges[trials][0]) < 1.0:
            raise SpecificationError(
                f"{where}: {trials} may be {fewest:g}, and without a trial there is no outcome; "
                f"set the low of {trials} to 1"
            )
    if isinstance(likelihood, Beta):
        size = likelihood.sample_size
        if size in feature_names or size not in ranges:
            valid = ", ".join([*(node.name for node in latents), *sorted(parents)])
            raise SpecificationError(f"{where}: {size!r} is not a node; valid: {valid}")
        if ranges[size][0] < 0.0:
            raise SpecificationError(f"{where}: node {size} may be below 0")


def _check_margins(latents: Sequence[Latent], nodes: Sequence[Derived]) -> None:
    """Check that demands depend on features alone, since margins are shown for each instance."""
    of_agent = {node.name for node in latents}
    for node in nodes:
        if of_agent.intersection(node.link.parents):
            of_agent.add(node.name)
    for node in nodes:
        if isinstance(node.link, LogisticMargin) and node.link.demand in of_agent:
            raise SpecificationError(
                f"node {node.name}: demand {node.link.demand} depends on the agent; "
                "a demand follows from features alone"
            )


def _check_feature_inputs(features: Sequence[Feature], nodes: Sequence[Derived]) -> None:
    """Check that gates and chance levels are features within [0, 1]."""
    by_name = {node.name: node for node in features}
    for node in nodes:
        match node.link:
            case Gate(_, on) | NoiseMixture(_, _, str() as on):
                feature = by_name.get(on)
                if feature is None or feature.low < 0.0 or feature.high > 1.0:
                    valid = [f.name for f in features if f.low >= 0 and f.high <= 1]
                    raise SpecificationError(
                        f"node {node.name}: {on!r} is not a feature within [0, 1]; valid: "
                        f"{', '.join(valid) or 'none'}"
                    )
                if feature.unit != ONE:
                    raise SpecificationError(f"node {node.name}: {on} has a unit")
            case _:
                pass


def _check_missing(
    features: Sequence[Feature], derived: Sequence[Derived], outcomes: Sequence[OutcomeNode]
) -> None:
    """Check that a feature which may be missing reaches the outcome only through its gate."""
    gates = {node.link.when for node in derived if isinstance(node.link, Gate)}
    roots = [parent for outcome in outcomes for parent in outcome.parents]
    for feature in features:
        on = feature.only_with
        if not on:
            continue
        if on not in gates:
            raise SpecificationError(
                f"feature {feature.name}: only_with {on!r} is not the feature of a gate; valid: "
                f"{', '.join(sorted(gates)) or 'none, there is no gate'}"
            )
        if feature.name in ancestors_of(roots, open_parents(derived, {on: False})):
            raise SpecificationError(
                f"feature {feature.name}: it also plays a part where {on} is 0, so it cannot be "
                f"only_with {on}"
            )


def open_parents(
    derived: Iterable[Derived], values: Mapping[str, bool]
) -> dict[str, tuple[str, ...]]:
    """Parents of the derived nodes, without those that a gate of known value shuts out.

    Args:
        derived: The nodes.
        values: Known values of binary features.
    """
    parents: dict[str, tuple[str, ...]] = {}
    for node in derived:
        shut = ""
        if isinstance(node.link, Gate) and node.link.when in values:
            shut = node.link.otherwise if values[node.link.when] else node.link.input
        parents[node.name] = tuple(p for p in node.link.parents if p != shut)
    return parents


def ancestors_of(roots: Iterable[str], parents: Mapping[str, tuple[str, ...]]) -> set[str]:
    """The roots and all their ancestors."""
    names: set[str] = set()
    pending = list(roots)
    while pending:
        name = pending.pop()
        if name not in names:
            names.add(name)
            pending.extend(parents.get(name, ()))
    return names
