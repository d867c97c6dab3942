"""What a comparison reads of a session: its profile, and the draws that this rests on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from animalcat.layouts.model.spec import Layout, from_dict

if TYPE_CHECKING:
    from animalcat.client import Client
    from animalcat.client.async_client import SessionLike

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DrawnResults:
    """What a session found out about its agent, as far as a comparison needs it.

    Attributes:
        profile: The profile, as JSON.
        layout: The layout that was measured.
        chains: (chains, draws, latents).
        features: (episodes, features) of what it rests on.
        passed: By instance, whether it was passed when it was first played; empty where nobody
            asked.
    """

    profile: Mapping[str, Any]
    layout: Layout
    chains: Floats
    features: Floats
    passed: Mapping[str, bool]

    @property
    def agent(self) -> str:
        """Name of the agent."""
        return str(self.profile.get("provenance", {}).get("agent", "agent"))

    @property
    def draws(self) -> Floats:
        """All chains one after another, (draws, latents)."""
        return self.chains.reshape(-1, self.chains.shape[-1])


def drawn_results(client: Client, session: SessionLike, *, played: bool = False) -> DrawnResults:
    """Read what a comparison needs of a session.

    Args:
        client: Where the session is.
        session: Which.
        played: Whether to read what was played as well, and what came of it.
    """
    known = client.draws(session, played=played)
    layout = _layout(json.dumps(known.layout))
    return DrawnResults(known.profile, layout, known.draws, known.features, known.passed)


@lru_cache(maxsize=8)
def _layout(text: str) -> Layout:
    return from_dict(json.loads(text))
