"""Looks after stores: what takes room, what is whole, backups, and what may go or move.

    from animalcat import data

    data.show("study").total
    data.verify("study").damage
    data.backup("study", "/backup/study.tar.zst")

`animalcat data` does the same. All of it works on the data directory itself, and needs no server;
where one works on the directory, it has what it serves removed by that. Whoever can read and write
the directory may do it. What goes wrong is an `AnimalcatError`.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

from animalcat.client import Client
from animalcat.client.blocking_client import connect
from animalcat.installing import needing
from animalcat.values import SessionState

with needing("animalcat.data", "server"):
    from animalcat.service.host.lock import local_address, running_server
    from animalcat.service.host.private import shown_to_own
    from animalcat.service.host.settings import Settings
    from animalcat.service.upkeep.backup import BackedUp, back_up
    from animalcat.service.upkeep.moving import Moved, MovedDatabase
    from animalcat.service.upkeep.moving import move as move_session
    from animalcat.service.upkeep.moving import move_database as move_whole
    from animalcat.service.upkeep.place import DataError, Place, Tell, made, opened, silent
    from animalcat.service.upkeep.pruning import (
        Loss,
        Part,
        Plan,
        Pruned,
        Wanted,
        has_server,
        plan_pruning,
    )
    from animalcat.service.upkeep.pruning import prune as prune_planned
    from animalcat.service.upkeep.restore import Repaired, Restored
    from animalcat.service.upkeep.restore import repair as repair_store
    from animalcat.service.upkeep.restore import restore as restore_backup
    from animalcat.service.upkeep.sizes import BatteryUse, SessionUse, Usage, usage
    from animalcat.service.upkeep.verifying import Damage, Verified
    from animalcat.service.upkeep.verifying import verify as verify_store

__all__ = [
    "BackedUp",
    "BatteryUse",
    "Damage",
    "DataError",
    "Loss",
    "Moved",
    "MovedDatabase",
    "Part",
    "Plan",
    "Pruned",
    "Repaired",
    "Restored",
    "SessionUse",
    "Usage",
    "Verified",
    "backup",
    "move",
    "move_database",
    "plan",
    "prune",
    "repair",
    "restore",
    "show",
    "verify",
]


def __dir__() -> list[str]:
    """What there is, for completion: the public names, and not where they live."""
    return list(__all__)


Folder: TypeAlias = str | os.PathLike[str]


def show(folder: Folder = ".animalcat", *, store: str | None = None, tell: Tell = silent) -> Usage:
    """Add up what a store takes, by kind, session and battery.

    Args:
        folder: The data directory.
        store: URL of its PostgreSQL; None for what `ANIMALCAT_STORE` says, empty for none.
        tell: Called with words, and with how much is done of how much, as it goes on.

    Raises:
        AnimalcatError: There is no store, or it cannot be read.
    """
    with opened(settings_for(folder, store)) as place:
        return usage(place, tell)


def verify(
    folder: Folder = ".animalcat", *, store: str | None = None, tell: Tell = silent
) -> Verified:
    """Look whether all of a store is as it was stored; see `show` for the arguments.

    When it was interrupted, the next call reads only files again that were written since.

    Raises:
        AnimalcatError: There is no store, it cannot be read, or another look is under way.
    """
    with opened(settings_for(folder, store)) as place:
        return verify_store(place, tell)


def backup(
    folder: Folder, to: Folder, *, store: str | None = None, tell: Tell = silent
) -> BackedUp:
    """Make a backup of all of a store, which may be in use; see `show` for other arguments.

    Args:
        folder: The data directory.
        to: A folder, in which what an earlier backup has is kept; or an archive whose name ends in
            .tar.zst, .tar.gz or .zip.
        store: See `show`.
        tell: See `show`.

    Raises:
        AnimalcatError: It cannot be made; the store and an earlier backup are as they were.
    """
    with opened(settings_for(folder, store)) as place:
        return back_up(place, Path(to), tell)


def restore(
    source: Folder, folder: Folder, *, store: str | None = None, tell: Tell = silent
) -> Restored:
    """Restore a backup into an empty place, of whichever kind of database.

    Args:
        source: The backup.
        folder: The data directory; it is made if it is not there.
        store: See `show`.
        tell: See `show`.

    Raises:
        AnimalcatError: The place is not empty, or the backup is damaged; the place is as it was.
    """
    return restore_backup(Path(source), settings_for(folder, store), tell)


def repair(
    source: Folder, folder: Folder, *, store: str | None = None, tell: Tell = silent
) -> Repaired:
    """Put back what a store has lost, as far as a backup of it has that; see `restore`.

    Raises:
        AnimalcatError: The backup is damaged, or there is no store.
    """
    with opened(settings_for(folder, store)) as place:
        return repair_store(place, Path(source), tell)


def plan(
    folder: Folder = ".animalcat",
    *,
    sessions: Sequence[str] = (),
    states: Sequence[SessionState] = (),
    agent: str = "",
    battery: str = "",
    older_than: timedelta = timedelta(),
    empty: bool = False,
    owner: str = "",
    larger_than: int = 0,
    down_to: int | None = None,
    part: Part | str = Part.SESSIONS,
    with_campaigns: bool = False,
    leftovers: bool = False,
    person: str = "",
    store: str | None = None,
    tell: Tell = silent,
) -> Plan:
    """Say what `prune` would remove with the same arguments; nothing is removed.

    Args:
        folder: The data directory.
        sessions: Ids of sessions; none for all that the rest means. With nothing said, none is
            meant.
        states: Their states.
        agent: Their agent.
        battery: Their battery.
        older_than: How long ago something of them was written for the last time, at least.
        empty: Only those of which no attempt counts.
        owner: Subject to whom they belong.
        larger_than: Bytes that each takes, at least.
        down_to: Bytes that the store may take: of those that are meant, the ones that were written
            longest ago go, and no more than that takes. None for all.
        part: What of them: "sessions" for all, "recordings", "uncounted" for recordings of attempts
            that do not count, or "fits".
        with_campaigns: Whether a campaign goes all of whose sessions do; else its sessions stay.
        leftovers: Whether files go that belong to nothing.
        person: Subject all of whose data goes: sessions, campaigns, batteries and layouts that
            nobody else needs, and tokens. Nothing else may be said then.
        store: See `show`.
        tell: See `show`.

    Raises:
        AnimalcatError: There is no store, or no such session.
    """
    wanted = Wanted(
        tuple(sessions),
        tuple(states),
        agent,
        battery,
        older_than,
        empty,
        owner,
        larger_than,
        down_to,
    )
    with opened(settings_for(folder, store)) as place:
        return plan_pruning(
            place,
            wanted,
            Part(part),
            with_campaigns=with_campaigns,
            leftovers=leftovers,
            person=person,
            tell=tell,
        )


def prune(
    folder: Folder, planned: Plan, *, store: str | None = None, tell: Tell = silent
) -> Pruned:
    """Remove what `plan` has said.

    Args:
        folder: The data directory.
        planned: What to remove.
        store: See `show`.
        tell: See `show`.

    Raises:
        AnimalcatError: There is no store, or a server has come meanwhile.
    """
    with opened(settings_for(folder, store)) as place, asked(place) as server:
        return prune_planned(place, planned, server, tell)


def move(
    session: str,
    folder: Folder,
    to: Folder,
    *,
    keep: bool = False,
    store: str | None = None,
    to_store: str = "",
    to_artefacts: str = "",
    tell: Tell = silent,
) -> Moved:
    """Move a session with its recordings from one store to another, under the same id.

    When it was interrupted, the same call again finishes it.

    Args:
        session: Its id.
        folder: The data directory where it is.
        to: The data directory where it is to be; an empty one is made if it is not there.
        keep: Whether it stays where it is as well.
        store: See `show`.
        to_store: URL of the other PostgreSQL; empty for SQLite in `to`.
        to_artefacts: URL of the other object storage; empty for files in `to`.
        tell: See `show`.

    Raises:
        AnimalcatError: It cannot be moved; both stores keep what they had.
    """
    there = Settings(home=Path(to), store=to_store, artefacts=to_artefacts)
    with (
        opened(settings_for(folder, store)) as source,
        made(there) as target,
        asked(source) as server,
    ):
        return move_session(source, target, session, keep=keep, server=server, tell=tell)


def move_database(folder: Folder, to_store: str, *, tell: Tell = silent) -> MovedDatabase:
    """Move a store's SQLite into an empty PostgreSQL; files stay in the data directory.

    When it was interrupted, the same call again finishes it. From then on `ANIMALCAT_STORE` has to
    say the URL.

    Args:
        folder: The data directory, which no server uses.
        to_store: URL of the PostgreSQL.
        tell: See `show`.

    Raises:
        AnimalcatError: It cannot be moved; the store is as it was.
    """
    with opened(settings_for(folder, "")) as place:
        return move_whole(place, to_store, tell)


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
def asked(place: Place) -> Generator[Client | None]:
    """Yield a client of the server that works on a data directory alone; None if there is none."""
    holder = running_server(place.home) if has_server(place) else None
    if holder is None:
        yield None
        return
    address = local_address(place.home) or holder.address
    if not address:
        raise DataError(
            f"a server (process {holder.pid}) uses {place.home} but does not answer yet; try again",
            "UNAVAILABLE",
        )
    with connect(address, **shown_to_own(place.home)) as client:
        yield client
