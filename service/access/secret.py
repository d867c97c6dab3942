"""Keeps the secret of a server, from which each session gets one of its own.

All chance of a session follows from its seed and its secret. Seeds are small numbers that people
choose, and everything else that decides which arenas come is public: battery, layout, policy and
this code. Without the secret an agent could try seeds until what it sees agrees.
"""

from __future__ import annotations

import hmac
from dataclasses import replace
from pathlib import Path
from typing import Final

from pydantic_core import to_json

from animalcat.service.access.tokens import FOLDER, kept_key
from animalcat.service.ids import asked_values
from animalcat.values import CampaignSpec, SessionSpec

FILE: Final = "secret.key"
"""The file in the folder of tokens and keys."""
_DIGITS: Final = 32
"""Hexadecimal digits of a session's secret, which are 128 bits."""


class ServerSecret:
    """Gives sessions secrets that nobody can guess, and the same request always the same one.

    So the same request is the same session as long as it is made in the same data directory.
    """

    def __init__(self, data: Path, given: str | None = None) -> None:
        """Read the secret of a data directory, or make it.

        Args:
            data: The data directory.
            given: A secret to take instead. Where it is empty, sessions have none, and all of their
                chance follows from the seed alone.
        """
        if given is not None:
            self._key = given.encode()
            return
        self._key = kept_key(
            data / FOLDER / FILE,
            "agents could work out which arenas come",
            "new sessions get other secrets",
        )

    def of_session(self, spec: SessionSpec) -> str:
        """Return the secret of a session that is asked for."""
        return self._derive(replace(spec, secret=""))

    def of_campaign(self, spec: CampaignSpec) -> str:
        """Return the secret that all sessions of a campaign share."""
        return self._derive(replace(spec, session=replace(spec.session, secret="")))

    def _derive(self, spec: SessionSpec | CampaignSpec) -> str:
        if not self._key:
            return ""
        asked = to_json(asked_values(spec), inf_nan_mode="null")
        return hmac.digest(self._key, asked, "sha256").hex()[:_DIGITS]
