"""Remembers which folders the agent of a session must not see, for when the session is resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from animalcat.cli.shared.agent_process import ticket_for
from animalcat.client import Client
from animalcat.client.values import Session
from animalcat.files import write_whole
from animalcat.folders import cache_folder

HIDDEN: Final = "hidden"
"""Folder with a file for each session that hides something, in one that no agent sees."""


def remember_hidden(client: Client, sessions: Iterable[Session], folders: Sequence[Path]) -> None:
    """Note which folders the agents of sessions must not see.

    Args:
        client: Of the server that has the sessions.
        sessions: The sessions.
        folders: The folders; if there are none, nothing is noted.
    """
    if not folders:
        return
    content = json.dumps([str(folder.resolve()) for folder in folders]).encode()
    for session in sessions:
        write_whole(_note(client, session), content)


def hidden_folders(client: Client, sessions: Iterable[Session]) -> tuple[Path, ...]:
    """Return the folders that were noted for any of some sessions.

    Args:
        client: Of the server that has the sessions.
        sessions: The sessions.
    """
    found: list[str] = []
    for session in sessions:
        note = _note(client, session)
        if note.exists():
            found += json.loads(note.read_bytes())
    return tuple(Path(folder) for folder in dict.fromkeys(found))


def _note(client: Client, session: Session) -> Path:
    """The file for a session: in the server's data directory, or elsewhere if that is not here."""
    ticket = ticket_for(client, session)
    data = "" if ticket is None else ticket.folder
    here = Path(data) / HIDDEN if data and os.access(data, os.W_OK) else cache_folder(HIDDEN)
    return here / f"{session.id}.json"
