"""Defines what the store alone knows; the other values are those of `animalcat.values`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from animalcat.values import CampaignSpec


@dataclass(frozen=True, slots=True)
class StoredCampaign:
    """A campaign as it is stored.

    Attributes:
        id: Id, the last component of its name.
        spec: Its specification.
        sessions: Ids of its sessions, in the order of the agents.
        created: Time of creation, with time zone.
        unreadable: Why its record cannot be read, and then its spec has no content; empty if it
            can.
        owner: Subject to whom it belongs; empty for nobody.
    """

    id: str
    spec: CampaignSpec
    sessions: tuple[str, ...]
    created: datetime
    unreadable: str = ""
    owner: str = ""


@dataclass(frozen=True, slots=True)
class StoredCertificate:
    """A comparison of the live posterior with NUTS at a checkpoint.

    Attributes:
        n: Number of episodes that the fit has seen.
        passed: Whether the live posterior may stay.
        result: What was compared, as JSON values.
        draws: File of the fit's draws, relative to the data directory; empty if there is none.
    """

    n: int
    passed: bool
    result: Mapping[str, Any]
    draws: str = ""


@dataclass(frozen=True, slots=True)
class BatteryRecord:
    """A battery as lists show it.

    Attributes:
        id: Id, the last component of its name.
        digest: SHA-256 of its content.
        instances: Number of its instances.
        problems: Problems found in its files, one line each.
        suites: Number of its instances by suite; without those that are of none.
        owner: Subject to whom it belongs; empty for nobody.
    """

    id: str
    digest: str
    instances: int
    problems: tuple[str, ...] = ()
    suites: Mapping[str, int] = field(default_factory=dict[str, int])
    owner: str = ""


@dataclass(frozen=True, slots=True)
class LayoutRecord:
    """A layout kept in the store, so that a session can be read without the layout's file.

    Attributes:
        digest: SHA-256 of the layout, its key in the store.
        name: Name of the layout.
        variant: Variant of the layout; empty for the default one.
        text: The layout as YAML.
        owner: Subject to whom it belongs; empty for nobody.
    """

    digest: str
    name: str
    variant: str
    text: str
    owner: str = ""
