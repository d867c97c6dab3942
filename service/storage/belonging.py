"""Looks whether a database and the files beside it belong together, before a server writes any.

Sessions have the same names everywhere, and so do their recordings. So of two databases with one
store of files, or of a database that was lost and begun anew, one would write over what the other
has kept. Every database has an id, and every store of files the id of its database as a mark.
"""

from __future__ import annotations

from typing import Final

from animalcat.service.storage.artefacts import MARK, Artefacts
from animalcat.service.storage.sql import SqlStore

KEPT: Final = ("recordings", "certificates", "batteries")
"""Folders of a store of files that belong to its database."""


class StrayPartsError(Exception):
    """A database and the files beside it do not belong together; the message says what to do."""


def check_belonging(store: SqlStore, files: Artefacts) -> None:
    """Check the mark of a store of files, and mark one that is empty or of this database.

    Args:
        store: The database.
        files: Has its files.

    Raises:
        StrayPartsError: They do not belong together.
    """
    own, empty, mark = store.id(), not store.count_sessions(), files.mark()
    if mark == own:
        return
    if mark:
        raise StrayPartsError(
            f"{files.folder} belongs to another database: its mark is {mark[:12]}, and this "
            f"database{', which is empty,' * empty} is {own[:12]}. Sessions of both would have "
            f"the same names and write over each other. {_remedy(files, own, empty)}"
        )
    if empty and (kept := files.holds(KEPT)):
        raise StrayPartsError(
            f"{files.folder} has {kept}, and the database that knows what it is of is gone: "
            f"this one is empty, and would write over it. {_remedy(files, own, empty)}"
        )
    files.set_mark(own)


def _remedy(files: Artefacts, own: str, empty: bool) -> str:
    mark = files.folder / MARK
    lost = (
        f"If what is there is no longer needed, move its folders {', '.join(KEPT)} away, and {mark}"
    )
    known = f"If they do belong together, write {own} into {mark}"
    return (
        "Restore the database that belongs to it (of SQLite animalcat.sqlite with the files "
        "animalcat.sqlite-wal and -shm beside it, if there are any), or choose another place. "
        f"{lost if empty else known}"
    )
