"""Looks after stores: whether they are whole, backups, and what may go.

    from animalcat import data

    data.verify("study").damage
    data.backup("study", "/backup/study.tar")

`animalcat data` does the same. All of it works on the data directory itself, and needs no server;
where one works on the directory, it has what it serves removed by that. Whoever can read and write
the directory may do it. What goes wrong is an `AnimalcatError`.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

from animalcat.client import Client
from animalcat.client.blocking_client import connect
from animalcat.service.host.lock import local_address, running_server
from animalcat.service.host.private import proof_for_own
from animalcat.service.host.settings import Settings
from animalcat.service.upkeep.backup import BackedUp, back_up
from animalcat.service.upkeep.place import DataError, Place, Tell, open_place, silent
from animalcat.service.upkeep.pruning import Loss, Plan, Pruned, plan_pruning
from animalcat.service.upkeep.pruning import prune as prune_planned
from animalcat.service.upkeep.restore import Restored
from animalcat.service.upkeep.restore import restore as restore_backup
from animalcat.service.upkeep.verifying import Damage, Verified
from animalcat.service.upkeep.verifying import verify as verify_store

__all__ = [
    "BackedUp",
    "Damage",
    "DataError",
    "Loss",
    "Plan",
    "Pruned",
    "Restored",
    "Verified",
    "backup",
    "plan",
    "prune",
    "restore",
    "verify",
]


def __dir__() -> list[str]:
    """What there is, for completion: the public names, and not where they live."""
    return list(__all__)


Folder: TypeAlias = str | os.PathLike[str]


def verify(
    folder: Folder = ".animalcat", *, store: str | None = None, tell: Tell = silent
) -> Verified:
    """Check that everything in a store is as it was stored.

    Args:
        folder: The data directory.
        store: URL of its PostgreSQL; None for what `ANIMALCAT_STORE` says, empty for none.
        tell: Called with words, and with how much is done of how much, as it goes on.

    Raises:
        AnimalcatError: There is no store, or it cannot be read.
    """
    with open_place(settings_for(folder, store)) as place:
        return verify_store(place, tell)


def backup(
    folder: Folder,
    to: Folder,
    *,
    with_keys: bool = False,
    store: str | None = None,
    tell: Tell = silent,
) -> BackedUp:
    """Make a backup of all of a store, which may be in use; see `verify` for other arguments.

    Args:
        folder: The data directory.
        to: An archive whose name ends in .tar or .tar.gz.
        with_keys: Whether tokens and keys are in it too.
        store: See `verify`.
        tell: See `verify`.

    Raises:
        AnimalcatError: It cannot be made; the store is as it was.
    """
    with open_place(settings_for(folder, store)) as place:
        return back_up(place, Path(to), with_keys=with_keys, tell=tell)


def restore(
    source: Folder, folder: Folder, *, store: str | None = None, tell: Tell = silent
) -> Restored:
    """Restore a backup into an empty place, with the kind of database that it is of.

    Args:
        source: The backup.
        folder: The data directory; it is made if it is not there.
        store: See `verify`.
        tell: See `verify`.

    Raises:
        AnimalcatError: The place is not empty, or the backup is damaged; the place is as it was.
    """
    return restore_backup(Path(source), settings_for(folder, store), tell)


def plan(
    folder: Folder = ".animalcat",
    *,
    older_than: timedelta = timedelta(),
    owner: str = "",
    audit: bool = False,
    store: str | None = None,
    tell: Tell = silent,
) -> Plan:
    """Say what `prune` would remove with the same arguments; nothing is removed.

    Args:
        folder: The data directory.
        older_than: How long ago something of a session was written for the last time, at least.
        owner: Subject to whom it belongs. With neither, no session is meant.
        audit: Whether lines of the audit log are meant instead, by their age.
        store: See `verify`.
        tell: See `verify`.

    Raises:
        AnimalcatError: There is no store.
    """
    with open_place(settings_for(folder, store)) as place:
        return plan_pruning(place, older_than=older_than, owner=owner, audit=audit, tell=tell)


def prune(
    folder: Folder, planned: Plan, *, store: str | None = None, tell: Tell = silent
) -> Pruned:
    """Remove what `plan` has said.

    Args:
        folder: The data directory.
        planned: What to remove.
        store: See `verify`.
        tell: See `verify`.

    Raises:
        AnimalcatError: There is no store, or a server has come meanwhile.
    """
    with open_place(settings_for(folder, store)) as place, _client_of_server(place) as server:
        return prune_planned(place, planned, server, tell)


def settings_for(folder: Folder | None = None, store: str | None = None) -> Settings:
    """Return the settings of a store.

    Args:
        folder: The data directory; None for what `ANIMALCAT_HOME` says.
        store: URL of its PostgreSQL; None for what `ANIMALCAT_STORE` says.
    """
    given: dict[str, Any] = {}
    if folder is not None:
        given["home"] = Path(folder).expanduser()
    if store is not None:
        given["store"] = store
    return Settings(**given)


@contextmanager
def _client_of_server(place: Place) -> Generator[Client | None]:
    """Yield a client of the server that works on a data directory; None if there is none."""
    holder = running_server(place.home)
    if holder is None:
        yield None
        return
    address = local_address(place.home) or holder.address
    if not address:
        raise DataError(
            f"a server (process {holder.pid}) uses {place.home} but does not answer yet; try again",
            "UNAVAILABLE",
        )
    with connect(address, **proof_for_own(place.home)) as client:
        yield client
