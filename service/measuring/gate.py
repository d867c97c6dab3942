"""The gate of predictive power: a profile of scores is read where its layout predicts scores."""

from __future__ import annotations

from typing import Final

from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.checking.predict import LayoutAssessor, held_out, splits
from animalcat.layouts.checking.screening import gated, predictive_power
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.reporting.profile import Profile

LEAST_OUTCOMES: Final = 20
"""Fewer say next to nothing: a fifth of them is held out."""
SPLITS: Final = 5
"""How often a fifth is held out, so that little hangs on which."""


def through_gate(profile: Profile, learner: Learner, seed: int) -> Profile:
    """A profile with how well its layout predicts held-out scores, as in Tesic et al. (2025).

    Where R2 is below `screening.LEAST_R2`, every capability says "not to be read". Layouts of other
    outcomes, and of several, have no gate; nor have sessions of fewer outcomes than
    `LEAST_OUTCOMES`, of which nothing is said.

    Args:
        profile: The profile.
        learner: Was told the outcomes.
        seed: Of splits, fits and the interval of R2.
    """
    layout, data = learner.layout, learner.data()
    if [outcome.kind for outcome in layout.outcomes] != ["score"]:
        return profile
    if len(data.outcomes) < LEAST_OUTCOMES:
        return profile
    played = Instances(layout.feature_names, data.features)
    parts = splits(len(played), seed, SPLITS)
    kept = held_out(LayoutAssessor(layout, seed, by="live"), played, data.outcomes, parts)
    return gated(profile, predictive_power(kept, seed=seed))
