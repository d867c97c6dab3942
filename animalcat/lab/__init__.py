"""A whole study from Python: make batteries, measure agents, and look at what was found.

`local` and `connect` give a `Lab`, and `Arena` makes arenas; animalcat has these names too, with
`Result` and `measure`. The others are what a lab gives back: a `LabBattery`; of a result its
`Profile`, `Pictures` and `Episodes`, of which each `LabEpisode` has an `Explanation`
and a `Video`; a `ResultList` of several sessions, and a `CampaignResult` of several agents.

`lab` has `local` and `connect`. `arena` makes arenas and `batteries` batteries of them, on which
`battery_report` reports; `agents` reads what an agent may be given as. `result` is what a session
found out, with its `profile`, `episodes` and `pictures`; `campaigns` are of several agents, `drawn`
reads what a comparison needs, `group` the same of several persons together, and `forecast` predicts
a battery. `recordings`, `path` and
`received` read what they need from the server. `progress` shows how far a session is. `within`
measures in this process, without a server; and `policies` makes agents of what was trained, behind
the `wrappers` with which it was.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from animalcat.lab.arena import Arena
    from animalcat.lab.batteries import LabBattery
    from animalcat.lab.campaigns import CampaignResult
    from animalcat.lab.episodes import Episodes, Explanation, LabEpisode, Video
    from animalcat.lab.lab import Lab, connect, local
    from animalcat.lab.pictures import Pictures
    from animalcat.lab.profile import Profile
    from animalcat.lab.result import Result, ResultList

__all__ = [
    "Arena",
    "CampaignResult",
    "Episodes",
    "Explanation",
    "Lab",
    "LabBattery",
    "LabEpisode",
    "Pictures",
    "Profile",
    "Result",
    "ResultList",
    "Video",
    "connect",
    "local",
]

_HOME = {
    "Arena": "arena",
    "CampaignResult": "campaigns",
    "Episodes": "episodes",
    "Explanation": "episodes",
    "Lab": "lab",
    "LabBattery": "batteries",
    "LabEpisode": "episodes",
    "Pictures": "pictures",
    "Profile": "profile",
    "Result": "result",
    "ResultList": "result",
    "Video": "episodes",
    "connect": "lab",
    "local": "lab",
}
"""Where each name lives."""


def __getattr__(name: str) -> Any:
    """The public names, imported when they are first used: an arena must not load gRPC."""
    if name not in _HOME:
        raise AttributeError(f"module 'animalcat.lab' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"animalcat.lab.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    """What there is, for completion: the public names, and not where they live."""
    return list(__all__)
