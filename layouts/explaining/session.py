"""The verdict on the agent of an adaptive test, from its learner."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.statuses import lean_statuses
from animalcat.layouts.explaining.controls import ControlComparison, for_verdict
from animalcat.layouts.explaining.episode import Explanation, explain
from animalcat.layouts.explaining.flat import FlatPosterior, flat_posteriors
from animalcat.layouts.explaining.kinds import PlayedEpisodes
from animalcat.layouts.explaining.limits import thin_draws
from animalcat.layouts.explaining.notes import notes
from animalcat.layouts.explaining.prediction import PredictionTest, predicts
from animalcat.layouts.explaining.verdict import DRAWS, ControlFinding, Verdict, verdict
from animalcat.layouts.explaining.wording import ARENAS, Scale, Vocabulary, scale_of, words_of
from animalcat.layouts.inference.fit import FitData
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.reporting.profile import NOT_READ, NodeNote, Profile

Floats: TypeAlias = npt.NDArray[np.float64]

MISFITS: Final = 8
"""Most strata that a profile names as misfits."""


def played_episodes(
    learner: Learner, irrelevant: Collection[str] | None = None, words: Vocabulary = ARENAS
) -> PlayedEpisodes:
    """What a learner was told, with paradigms and all features.

    Args:
        learner: The learner.
        irrelevant: Names of the features outside the layout that should not matter, such as
            colours; by default all that the layout does not use.
        words: What sentences call what was played.
    """
    bank, data, rows = learner.bank, learner.data(own=True), learner.played
    return PlayedEpisodes(
        data.features,
        data.outcomes,
        data.weights,
        [bank.paradigms[row] for row in rows],
        {name: column[rows] for name, column in bank.outside.items()},
        frozenset(bank.outside) if irrelevant is None else irrelevant,
        {name: there[rows] for name, there in bank.misleading.items()},
        words,
    )


def verdict_of(
    learner: Learner,
    profile: Profile,
    draws: Floats | None = None,
    irrelevant: Collection[str] | None = None,
    controls: Sequence[ControlComparison] = (),
    words: Vocabulary = ARENAS,
) -> tuple[Profile, Verdict]:
    """Make the verdict that ends a profile.

    Args:
        learner: The learner that was told the outcomes.
        profile: Its profile, of the live posterior or of a fit.
        draws: (draws, latents) of the fit, if the profile is of one.
        irrelevant: As for `played_episodes`.
        controls: What was played against its controls.
        words: As for `played_episodes`.

    Returns:
        The profile with what belongs beside its estimates, and the verdict. A capability is not to
        be read if the layout predicts the agent worse than the agent's own average does. What is
        said of a limit, and its status, lean on the prior where a flat one says far less.
    """
    bank, posterior = learner.bank, learner.posterior
    prediction = prediction_of(learner, draws)
    if prediction.standing == "worse" and not learner.contradicted:
        profile = replace(profile, status=dict.fromkeys(profile.status, NOT_READ))
    result = verdict(
        profile,
        posterior.particles if draws is None else draws,
        played_episodes(learner, irrelevant, words),
        bank.features[~bank.offered],
        weights=posterior.weights if draws is None else None,
        misfit=learner.misfit,
        doubted=learner.doubted,
        prediction=prediction,
        finding=_finding(bank, controls),
        flat=_flat_of(learner, draws),
    )
    leaning = {name for name, note in result.notes.items() if note.leans}
    profile = replace(profile, status=lean_statuses(profile.status, leaning))
    of_nodes = {
        node.name: words_of(
            node,
            result.scales[k],
            result.notes[node.name],
            known=result.notes[node.name].known,
        )
        for k, node in enumerate(profile.nodes)
    }
    if result.inverted or profile.provenance.get("unheard"):
        profile = replace(profile, status=dict.fromkeys(profile.status, NOT_READ))
    profile = replace(
        profile,
        words=of_nodes,
        notes=result.notes,
        predicts=prediction.to_dict(),
        judgement=result.judgement.to_dict(),
        misfits=misfits_of(learner),
    )
    return profile, result


def _flat_of(learner: Learner, draws: Floats | None = None) -> dict[str, FlatPosterior]:
    """What is known of each capability under a flat prior, by draws of a fit or the live ones."""
    posterior, data = learner.posterior, learner.data()
    some = posterior.resampled() if draws is None else draws
    scales = [scale_of(learner.layout, k, data.features) for k in range(some.shape[1])]
    return flat_posteriors(learner.layout, some, scales, FitData(*data))


def _finding(bank: Bank, controls: Sequence[ControlComparison]) -> ControlFinding | None:
    """What controls say of why the agent fails, and of which nodes they ask less; None if nothing.

    A node is asked less if a control demands less of it in some pair, and more in none.
    """
    told, error = for_verdict(controls)
    if told is None:
        return None
    rows = {name: row for row, name in enumerate(bank.names)}
    known = [(rows[one], rows[other]) for one, other in told.pairs if {one, other} <= rows.keys()]
    demands = np.nan_to_num(bank.demands, nan=-np.inf)
    plain, changed = (demands[[pair[side] for pair in known]] for side in (0, 1))
    less = np.logical_and((changed < plain).any(axis=0), (changed <= plain).all(axis=0))
    layout = bank.layout
    eased = {layout.latents[i].name for k, i in enumerate(layout.capabilities) if bool(less[k])}
    return ControlFinding(told.sentence(error), told.standing(error), frozenset(eased))


def prediction_of(learner: Learner, draws: Floats | None = None) -> PredictionTest:
    """Tell whether the layout predicts the agent of a learner.

    Args:
        learner: The learner that was told the outcomes.
        draws: (draws, latents) of a fit to them; by default those of the live posterior.
    """
    posterior = learner.posterior
    some = (
        thin_draws(posterior.particles, posterior.weights, DRAWS)
        if draws is None
        else thin_draws(draws, None, DRAWS)
    )
    return predicts(learner.layout, learner.forecasts, some)


def misfits_of(learner: Learner, most: int = MISFITS) -> list[dict[str, Any]]:
    """Where predictions fail while an alarm stands, as JSON values, most evidence first.

    Args:
        learner: The learner that was told the outcomes.
        most: Most strata that are given.
    """
    return [asdict(suspect) for suspect in learner.suspects[:most]]


@dataclass(frozen=True)
class Standing:
    """What explanations need of a learner that was told all outcomes.

    Attributes:
        particles: (particles, latents) of its posterior.
        weights: (particles,), summing to 1.
        played: Names of the instances that were played, each once.
        misfit: Where the layout does not describe the agent; empty if no alarm stands.
        notes: The note of each node.
    """

    particles: Floats
    weights: Floats
    played: tuple[str, ...]
    misfit: str
    notes: Mapping[str, NodeNote]


def standing_of(learner: Learner) -> Standing:
    """Return what explanations need of a learner."""
    bank, posterior = learner.bank, learner.posterior
    scales = [scale_of(bank.layout, k, bank.features) for k in range(len(bank.layout.latents))]
    played = dict.fromkeys(bank.names[row] for row in learner.played)
    notes = notes_of(learner, learner.summary(), scales, _flat_of(learner))
    return Standing(posterior.particles, posterior.weights, tuple(played), learner.misfit, notes)


def explain_of(
    learner: Learner,
    instance: str,
    outcome: float,
    happened: str = "",
    standing: Standing | None = None,
    played_before: int | None = None,
) -> Explanation:
    """Explain an episode by the learner's posterior.

    Args:
        learner: The learner that was told the outcomes.
        instance: Name of the episode's instance.
        outcome: Its outcome as a share of its maximum: 1 for success, 0 for failure.
        happened: How the episode ended, in a sentence.
        standing: What is kept of a learner that was told the outcomes, if `learner` was not.
        played_before: How many instances the agent had played before it, if the layout counts that;
            by default as many as by now.

    Raises:
        KeyError: There is no such instance.
        ValueError: The outcome is missing.
    """
    known = standing or standing_of(learner)
    now = learner.bank.played_before if played_before is None else played_before
    return explain(
        learner.bank.at(now),
        known.particles,
        learner.features_of(instance, now),
        outcome,
        instance=instance,
        happened=happened,
        weights=known.weights,
        played=known.played,
        misfit=known.misfit,
        noted=known.notes,
    )


def notes_of(
    learner: Learner,
    nodes: Sequence[NodeSummary],
    scales: Sequence[Scale],
    flat: Mapping[str, FlatPosterior] = {},
) -> dict[str, NodeNote]:
    """Make the note of every node, by the live posterior.

    Args:
        learner: The learner that was told the outcomes.
        nodes: What it says of each node, as `Learner.summary`.
        scales: How the values of the nodes are read, in the layout's order.
        flat: What is known of nodes under flat priors, which is not looked at while play goes on.
    """
    posterior = learner.posterior
    draws = thin_draws(posterior.particles, posterior.weights, DRAWS)
    return notes(learner.layout, nodes, draws, learner.seen, scales, flat=flat)
