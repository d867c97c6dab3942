"""Derives the ids of sessions and campaigns from a digest of what was asked for.

The same session therefore has the same id in another data directory, and its recordings have the
same bytes. Fields that were added later count only if they differ from their defaults, so that the
same request keeps the id it once had.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic_core import to_json

from animalcat import names
from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec
from animalcat.layouts.adaptive.plan import Allocation, Policy, StoppingRule
from animalcat.layouts.library import LAYOUTS, variants
from animalcat.service.model import CampaignSpec, SessionSpec

_SESSION: Final = TypeAdapter(SessionSpec)
_CAMPAIGN: Final = TypeAdapter(CampaignSpec)
_ALWAYS: Final[Mapping[type, tuple[str, ...]]] = {
    SessionSpec: (
        "agent",
        "battery",
        "battery_digest",
        "layout",
        "layout_variant",
        "policy",
        "stop",
        "seed",
        "backend",
        "observation_spec",
        "action_timeout_seconds",
        "record_pixels",
        "certify",
        "slots",
    ),
    Policy: (
        "name",
        "random_share",
        "sharpness",
        "exposures",
        "probes",
        "cool_down",
        "per_second",
        "about",
        "order",
        "generate",
        "enough",
    ),
    StoppingRule: (
        "max_episodes",
        "target_sd",
        "targets",
        "target_width",
        "futility",
        "max_seconds",
        "stop_at_alarm",
        "combine",
    ),
    ObservationSpec: ("camera", "rays", "decision_period"),
    CameraSpec: ("resolution", "grayscale"),
    RaySpec: ("per_side", "max_degrees", "tags"),
    CampaignSpec: ("agents", "session", "allocation"),
    Allocation: ("budget", "common", "block", "at_once", "alike", "confidence"),
}
"""Fields that count even at their defaults, in this order.

They are those of the first ids, and nothing is ever added to them.
"""


def session_id(spec: SessionSpec) -> str:
    """Return the id that a session should have: its agent, and a digest of what was asked for."""
    agent = names.to_component(spec.agent.rsplit(":", 1)[-1])[:40]
    return f"{agent}-{_digest(spec)}"


def campaign_id(spec: CampaignSpec) -> str:
    """Return the id of a campaign: a digest of what was asked for."""
    return f"campaign-{_digest(spec)}"


def asked_for(spec: SessionSpec | CampaignSpec) -> dict[str, Any]:
    """Return what a caller asked for as plain values, which are equal for equal requests.

    The decision rules and the digest of a shipped layout are left out. Like the versions of
    packages, they come with the server. The default variant of a shipped layout is asked for in the
    same way whether it is named or not.
    """
    if isinstance(spec, CampaignSpec):
        return _asked(spec, json.loads(_CAMPAIGN.dump_json(spec)))
    return _asked(spec, json.loads(_SESSION.dump_json(spec)))


def _digest(spec: SessionSpec | CampaignSpec) -> str:
    return hashlib.sha256(to_json(asked_for(spec), inf_nan_mode="null")).hexdigest()[:8]


def _asked(value: Any, dumped: Any) -> Any:
    if not is_dataclass(value):
        return dumped
    always = _ALWAYS.get(type(value), ())
    later = [
        field.name
        for field in fields(value)
        if field.name not in always and getattr(value, field.name) != _default(field)
    ]
    if isinstance(value, SessionSpec):
        brought = {"rules", "layout_digest"} if value.layout in LAYOUTS else {"rules"}
        later = [name for name in later if name not in brought]
        if value.layout in LAYOUTS and value.layout_variant == variants(value.layout)[0]:
            dumped = {**dumped, "layout_variant": ""}
    kept = (*always, *sorted(later))
    return {name: _asked(getattr(value, name), dumped[name]) for name in kept}


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
