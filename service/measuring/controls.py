"""What a session played against its controls, from its attempts."""

from __future__ import annotations

from collections.abc import Sequence

from animalcat.arena_configs.taken import TAKEN
from animalcat.layouts.explaining.controls import (
    NOT_CHOSEN,
    ControlComparison,
    PlayedArena,
    compare_controls,
)
from animalcat.service.batteries.battery import Battery
from animalcat.service.batteries.naming import link_of
from animalcat.service.measuring.generation import played_instance
from animalcat.values import Episode, Outcome


def controls_of(battery: Battery, attempts: Sequence[Episode]) -> tuple[ControlComparison, ...]:
    """Compare what a session played with its controls.

    Args:
        battery: The session's battery.
        attempts: All its attempts.
    """
    counted = sorted((e for e in attempts if e.counts), key=lambda e: e.number)
    played: list[PlayedArena] = []
    about: dict[tuple[str, str], str] = {}
    for episode in counted:
        instance = played_instance(battery, episode.decision)
        link, origin = link_of(instance), instance.origin
        if link.control and origin is not None and origin.entry in battery.entries:
            control = battery.entries[origin.entry].family.controls[link.control]
            about[instance.paradigm, link.control] = control.description
        played.append(
            PlayedArena(
                instance.name,
                instance.paradigm,
                *link,
                episode.outcome is Outcome.SUCCESS,
                instance.features,
                chosen=episode.decision.reason not in NOT_CHOSEN,
            )
        )
    return compare_controls(played, TAKEN, about)
