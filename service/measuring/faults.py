"""Tells which arenas could not be played, since the backend failed there again and again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from animalcat.layouts.adaptive.statuses import EXHAUSTED
from animalcat.service.batteries.naming import some
from animalcat.text.counts import count_of
from animalcat.values import Episode

MAX_FAULTS: Final = 3
"""Backend faults of one instance after which it is set aside."""


def unplayable(attempts: Iterable[Episode]) -> dict[str, str]:
    """Arenas that were set aside as the backend failed too often, each with the last cause.

    Args:
        attempts: The attempts of a session, in order.
    """
    causes: dict[str, list[str]] = {}
    for episode in attempts:
        if episode.backend_fault:
            causes.setdefault(episode.decision.instance, []).append(episode.cause)
    return {
        name: of_instance[-1]
        for name, of_instance in causes.items()
        if len(of_instance) >= MAX_FAULTS
    }


def reason_with_lost(reason: str, lost: dict[str, str]) -> str:
    """Why a session ended, and what it could not play.

    Args:
        reason: Why it ended.
        lost: What `unplayable` found.
    """
    if not lost:
        return reason
    if reason == EXHAUSTED:
        reason = "what could be played was played"
    many = f"{count_of(len(lost), 'arena')} ({some(list(lost))})"
    cause = list(lost.values())[-1]
    return (
        f"{reason}; {many} could not be played, since the backend failed {MAX_FAULTS} times at "
        f"each, most recently with: {cause}"
    )
