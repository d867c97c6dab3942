"""Choices for several slots, each of which counts on those before it, and the chances of one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.bank import History
from animalcat.layouts.adaptive.policy import Choice, Chooser
from animalcat.layouts.adaptive.selectors import propensities
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.watching.watch import DOUBT


def choose_several(
    chooser: Chooser, posterior: LivePosterior, history: History, episode: int, count: int
) -> list[Choice]:
    """At most `count` choices, for `episode` and those that follow it."""
    made: list[Choice] = []
    for number in range(episode, episode + count):
        pending = (*history.pending, *(choice.index for choice in made))
        choice = chooser.choose(posterior, replace(history, pending=pending), number)
        if choice is None:
            break
        made.append(choice)
    return made


def chances_of(
    chooser: Chooser, posterior: LivePosterior, history: History
) -> npt.NDArray[np.float64]:
    """The probability of each instance to be chosen next; 0 if none is left."""
    branches = chooser._branches(posterior, history, False, DOUBT, None, None)
    return propensities(branches, len(chooser.bank))
