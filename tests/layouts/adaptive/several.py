"""Choices for several slots, each of which counts on those before it being played."""

from __future__ import annotations

from dataclasses import replace

from animalcat.layouts.adaptive.bank import History
from animalcat.layouts.adaptive.policy import Choice, Chooser
from animalcat.layouts.inference.live import LivePosterior


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
