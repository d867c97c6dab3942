"""Decides whether a profile of scores may be read, by how well its layout predicts scores."""

from __future__ import annotations

from typing import Final

from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.checking.predict import LayoutAssessor, predict_held_out, splits
from animalcat.layouts.checking.screening import Power, gate_profile, predictive_power
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.reporting.profile import Profile

LEAST_OUTCOMES: Final = 20
"""Fewest outcomes for the gate: of fewer, the fifth held out would say next to nothing."""
SPLITS: Final = 5
"""How often another fifth is held out, so that little depends on the split."""


def through_gate(profile: Profile, learner: Learner, seed: int) -> Profile:
    """Add to a profile how well its layout predicts held-out scores.

    If R2 is below `screening.LEAST_R2`, every capability is marked "not to be read". The profile is
    returned unchanged where `power_of` has nothing to say.

    Args:
        profile: The profile.
        learner: The learner that was told the session's outcomes.
        seed: Seed of the splits, the fits and the interval of R2.
    """
    power = power_of(learner, seed)
    return profile if power is None else gate_profile(profile, power)


def power_of(learner: Learner, seed: int) -> Power | None:
    """Tell how well a layout predicts held-out scores, as in Tesic et al. (2025).

    Args:
        learner: The learner that was told the session's outcomes.
        seed: Seed of the splits, the fits and the interval of R2.

    Returns:
        None unless the layout has a single outcome, a score, and there are at least
        `LEAST_OUTCOMES` outcomes.
    """
    layout, data = learner.layout, learner.data()
    if [outcome.kind for outcome in layout.outcomes] != ["score"]:
        return None
    observed = data.weights > 0.0
    if observed.sum() < LEAST_OUTCOMES:
        return None
    played = Instances(layout.feature_names, data.features[observed])
    parts = splits(len(played), seed, SPLITS)
    kept = predict_held_out(
        LayoutAssessor(layout, seed, by="live"), played, data.outcomes[observed], parts
    )
    return predictive_power(kept, seed=seed)
