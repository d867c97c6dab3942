"""Tells whether a database is damaged, by what it says."""

from __future__ import annotations

from typing import Final

from sqlalchemy.exc import DBAPIError

_SIGNS: Final = (
    "malformed",
    "not a database",
    "invalid page in block",
    "could not read block",
    "missing chunk number",
)
"""What SQLite and PostgreSQL say where their files hold what they did not write."""

REMEDY: Final = (
    "Copy it away with all files of the data directory, then restore a backup. Without one, "
    "`sqlite3 animalcat.sqlite .recover` gets what can be read of SQLite; `session show --verify` "
    "then says of each session what is as it was stored"
)


def damage_of(error: DBAPIError) -> str:
    """Return what a database says of its own damage; empty if the error is another one."""
    said = str(error.orig).strip()
    return said if any(sign in said.lower() for sign in _SIGNS) else ""
