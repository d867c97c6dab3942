"""The text that goes to a backend in an arena's place, where an instance has demands alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

_BEGINS: Final = "!Demands "


class Demands(NamedTuple):
    """An instance without an arena, as a backend is told it.

    Attributes:
        instance: Its name.
        demands: Its meta-features by name, in the units of its battery.
    """

    instance: str
    demands: Mapping[str, float]


def demand_text(instance: str, demands: Mapping[str, float]) -> str:
    """Write the text of an instance; the same instance always gives the same."""
    return _BEGINS + json.dumps({"instance": instance, "demands": {**demands}}, sort_keys=True)


def demands_in(text: str) -> Demands | None:
    """Read what `demand_text` wrote; None of the text of an arena."""
    if not text.startswith(_BEGINS):
        return None
    told: dict[str, Any] = json.loads(text.removeprefix(_BEGINS))
    return Demands(told["instance"], told["demands"])
