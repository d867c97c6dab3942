"""How many tokens a model that plays may use at most, by the sizes of what it is told."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from animalcat.doors.speech.perceiving import health, words
from animalcat.doors.speech.prompts import prompt
from animalcat.doors.speech.tongue import Tongue
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.types import ObservationSpec

LETTERS: Final = 4.0
"""Letters of English a token, as providers of models say of their own."""
PIXELS: Final = 750.0
"""Pixels a token of a picture, as Anthropic says. Others count tiles, and differ by some half."""
PIECES: Final = 20
"""Observations whose words are measured."""


class Tokens(NamedTuple):
    """Tokens that a model uses.

    Attributes:
        given: Those that it is given, over all requests.
        returned: Those that it returns.
    """

    given: int
    returned: int


def most_tokens(
    tongue: Tongue, spec: ObservationSpec, episodes: int, answer: int = 60, time_budget: int = 250
) -> Tokens:
    """Say how many tokens a session takes at most, without a provider's cache.

    Every request holds the whole conversation of its episode, with the newest pictures alone. So
    the tokens of an episode grow with the square of its answers.

    Args:
        tongue: How the model is told what it perceives, and how it answers.
        spec: What observations hold.
        episodes: How many episodes are played.
        answer: Tokens of an answer.
        time_budget: Decisions of an episode, as its prompt names them.
    """
    rng = np.random.default_rng(0)
    told = [spec.generate(rng) for _ in range(PIECES)]
    sizes = [len(words(one, spec) if tongue.words else health(one)) for one in told]
    turn = float(np.mean(sizes)) / LETTERS + answer
    first = len(prompt(tongue, EpisodeInfo(0, 0, spec, time_budget))) / LETTERS
    turns = np.arange(1, tongue.answers + 1)
    seen = np.minimum(turns, tongue.history) if spec.camera is not None else 0 * turns
    given = first + turns * turn + seen * tongue.picture**2 / PIXELS
    return Tokens(round(episodes * float(given.sum())), episodes * tongue.answers * answer)
