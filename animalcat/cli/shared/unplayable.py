"""Tells of arenas that a session could not play, which make its command end with a failure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import typer

from animalcat.cli.shared.output import FAILED, say
from animalcat.client import Client
from animalcat.values import Session


def unplayable(profile: Mapping[str, Any]) -> Mapping[str, str]:
    """Arenas that were set aside as the backend failed there, each with the last cause."""
    return profile["provenance"].get("unplayable") or {}


def fail_if_unplayable(client: Client, sessions: Iterable[Session]) -> None:
    """End the command with a failure where a session could not play all of its arenas.

    Raises:
        typer.Exit: Some could not be played; they were said.
    """
    failed = False
    for session in sessions:
        lost = unplayable(client.profile(session))
        for arena, cause in lost.items():
            say(f"session {session.id} could not play {arena}: {cause}", err=True)
        failed = failed or bool(lost)
    if failed:
        raise typer.Exit(FAILED)
