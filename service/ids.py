"""Derives the ids of sessions and campaigns from a digest of what was asked for.

The same session therefore has the same id in another data directory, and its recordings have the
same bytes.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from pydantic import TypeAdapter

from animalcat.layouts.library import LAYOUTS, variants
from animalcat.text import names
from animalcat.values import CampaignSpec, SessionSpec

_SESSION: Final = TypeAdapter(SessionSpec)
_CAMPAIGN: Final = TypeAdapter(CampaignSpec)


def session_id(spec: SessionSpec) -> str:
    """Return the id that a session should have: its agent, and a digest of what was asked for."""
    agent = names.to_component(spec.agent.rsplit(":", 1)[-1])[:40]
    return f"{agent}-{_digest(spec)}"


def campaign_id(spec: CampaignSpec) -> str:
    """Return the id of a campaign: a digest of what was asked for."""
    return f"campaign-{_digest(spec)}"


def asked_values(spec: SessionSpec | CampaignSpec) -> dict[str, Any]:
    """Return what a caller asked for as plain values, which are equal for equal requests.

    The decision rules, plugins as they are installed, and the digest of a shipped layout are left
    out. Like the versions of packages, they come with the server. The default variant of a shipped
    layout is asked for in the same way whether it is named or not.
    """
    if isinstance(spec, CampaignSpec):
        whole = json.loads(_CAMPAIGN.dump_json(spec))
        return {**whole, "session": asked_values(spec.session)}
    asked = json.loads(_SESSION.dump_json(spec))
    del asked["rules"], asked["plugins"]
    for place, option in (
        (asked["policy"], "plugin"),
        (asked["policy"], "aim"),
        (asked, "replace_voids"),
        (asked, "played_before"),
        (asked, "prior"),
    ):
        if not place[option]:  # so that ids are the same as before there was the option
            del place[option]
    if spec.layout in LAYOUTS:
        del asked["layout_digest"]
        if spec.layout_variant == variants(spec.layout)[0]:
            asked["layout_variant"] = ""
    return asked


def _digest(spec: SessionSpec | CampaignSpec) -> str:
    text = json.dumps(asked_values(spec), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:8]
