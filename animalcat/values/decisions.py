"""Why an instance was chosen, and what was made where the battery has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Final, NamedTuple

from animalcat.arena_configs.instance import Instance
from animalcat.layouts.adaptive.battery_rate import Wager
from animalcat.layouts.adaptive.peers import Peers

PRACTICE: Final = "practice"
"""Reason of the decision for an episode that does not count."""


class MadeAs(StrEnum):
    """What an instance that is not in the battery was made as."""

    OFFER = auto()
    """For demands that the session wanted and the battery lacks."""
    TWIN = auto()
    """A new arena of the same family, in the place of an instance of the battery."""
    VARIATION = auto()
    """The same arena turned, shifted, mirrored or in other colours, in the place of an instance."""


@dataclass(frozen=True, slots=True)
class MadeInstance:
    """An instance that a session made, stored complete so that nobody needs to make it again.

    Attributes:
        offer: Name of the offer that it was made for, or of the battery's instance in whose place
            it is.
        instance: The instance, with the features that its arena has. Clients are told of it what
            play depends on.
        arena_yaml: Its fixed arena, as YAML.
        made_as: What it was made as.
        distance: How far its demands are from those that were wanted: the root of the summed
            squares of the shares by which they differ.
        note: How it differs from what was wanted, in words; empty if it does not.
    """

    offer: str
    instance: Instance
    arena_yaml: str
    made_as: MadeAs = MadeAs.OFFER
    distance: float = 0.0
    note: str = ""


class Alternative(NamedTuple):
    """An instance that was not chosen, and the selector's score for it."""

    instance: str
    score: float


@dataclass(frozen=True, slots=True)
class Decision:
    """The choice of an instance, and the reasons for it.

    Attributes:
        instance: Name of the instance.
        score: The selector's score; a larger one means that playing it is worth more.
        propensity: Probability with which the policy chose it.
        predicted: Predicted probability of success.
        margins: By capability, the posterior mean minus the demand, in the capability's unit.
        reason: The kind of reason, in a word: "informative", "random", "listed", "generated",
            "probe", "person", "practice", "plugin", "check" or "pair".
        alternatives: The best that could have been played instead, best first.
        because: Why this instance and no other, in words; empty if there is no more to say.
        made: The instance if the session made it, and so is not in the battery.
        pending: Number of earlier episodes whose outcome was not known; the choice allows for them.
        peers: The instances of its paradigm that could then have been played for the first time,
            itself among them. None for a repeat, for an instance made on demand, and if the choice
            did not depend on the battery.
        wager: What its outcome will say of the success rate on the whole battery. None for what
            peers are None for, and for clients, who are not told.
        played_before: How many arenas the agent had played before, as far as that is practice
            (`Episode.practises`). None where the session's layout does not count them.
    """

    instance: str
    score: float
    propensity: float
    predicted: float
    margins: Mapping[str, float]
    reason: str
    alternatives: tuple[Alternative, ...] = ()
    because: str = ""
    made: MadeInstance | None = None
    pending: int = 0
    peers: Peers | None = None
    wager: Wager | None = None
    played_before: int | None = None

    @property
    def chosen(self) -> str:
        """The instance of the battery, or the offer, that was chosen, whatever is played for it."""
        return self.instance if self.made is None else self.made.offer
