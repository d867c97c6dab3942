"""Removes what is old, or somebody's, after saying what will be lost."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, Protocol

from animalcat.errors import AnimalcatError
from animalcat.service.access.audit import by_command
from animalcat.service.host.lock import DirectoryLock, running_server
from animalcat.service.measuring.certificates import CERTIFICATES
from animalcat.service.storage.artefacts import RECORDINGS
from animalcat.service.storage.audit import BEGUN
from animalcat.service.storage.errors import InUseError
from animalcat.service.upkeep.place import DataError, Place, Tell, say_errors, silent
from animalcat.text import names
from animalcat.values import Session, SessionState

_BY_COMMAND: Final = "by a command on its data"


@dataclass(frozen=True, slots=True)
class Loss:
    """A session that goes.

    Attributes:
        session: Its id.
        agent: Its agent.
        battery: Id of its battery.
        state: Its state.
        owner: Subject to whom it belongs; empty for nobody.
        changed: When something of it was last written, as far as its files tell.
        episodes: Number of its episodes that count.
        files: Number of its files.
        bytes: Their bytes.
    """

    session: str
    agent: str
    battery: str
    state: str
    owner: str
    changed: datetime
    episodes: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be removed, and what will not.

    Attributes:
        losses: The sessions that go.
        kept: Why sessions that are meant stay, by their ids.
        campaigns: Campaigns that go with all of their sessions.
        lines: Number of lines of the audit log that go.
        before: The time of writing before which they go; None where none do.
    """

    losses: tuple[Loss, ...] = ()
    kept: dict[str, str] = field(default_factory=dict[str, str])
    campaigns: tuple[str, ...] = ()
    lines: int = 0
    before: datetime | None = None

    @property
    def bytes(self) -> int:
        """Bytes of the files that go."""
        return sum(loss.bytes for loss in self.losses)


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed.

    Attributes:
        done: Number of sessions.
        bytes: Bytes of their files.
        kept: Why some stay after all, by their ids.
    """

    done: int
    bytes: int
    kept: dict[str, str]


class Server(Protocol):
    """A server that removes what its sessions may be at work on; a client is one."""

    def delete_session(self, session: str) -> None:
        """Remove a session with its files."""
        ...

    def delete_campaign(self, campaign: str) -> None:
        """Remove a campaign, without its sessions."""
        ...


def plan_pruning(
    place: Place,
    *,
    older_than: timedelta = timedelta(),
    owner: str = "",
    audit: bool = False,
    now: datetime | None = None,
    tell: Tell = silent,
) -> Plan:
    """Say what would be lost; nothing is removed.

    Args:
        place: The store.
        older_than: How long ago something of a session was last written, at least.
        owner: Subject to whom it belongs. With neither, no session is meant.
        audit: Whether lines of the audit log are meant instead, by their age.
        now: The time; None for the present one.
        tell: Told how far it is.

    Raises:
        DataError: Lines of the audit log are meant, and not by their age alone.
    """
    now = now or datetime.now(UTC)
    if audit:
        if not older_than or owner:
            raise DataError("lines of the audit log are chosen by --older-than alone")
        before = now - older_than
        return Plan(lines=place.store.audit.count(before), before=before)
    if not older_than and not owner:
        return Plan()
    tell("looking at sessions")
    sessions = {session.id: session for session in place.store.sessions()}
    losses = {
        loss.session: loss
        for loss in _losses(place, sessions)
        if now - loss.changed >= older_than and owner in ("", loss.owner)
    }
    kept: dict[str, str] = {}
    if running_server(place.home) is not None:  # else it was when its server was killed
        playing = [name for name in losses if sessions[name].state is SessionState.RUNNING]
        kept = dict.fromkeys(playing, "it is being played")
    going, campaigns = losses.keys() - kept, list[str]()
    for campaign in place.store.campaigns():
        its_own = {*campaign.sessions} & sessions.keys()
        if its_own <= going and all(sessions[name].state.over for name in its_own):
            campaigns += [campaign.id] if its_own else []
        else:
            why = f"it belongs to campaign {campaign.id}, which stays as not all of it is meant"
            kept |= dict.fromkeys(its_own & going, why)
    return Plan(
        tuple(loss for name, loss in losses.items() if name not in kept), kept, tuple(campaigns)
    )


def prune(place: Place, plan: Plan, server: Server | None = None, tell: Tell = silent) -> Pruned:
    """Remove what a plan says.

    Args:
        place: The store.
        plan: What to remove.
        server: The server of the data directory; None where none runs.
        tell: Told how far it is.

    Raises:
        DataError: A server has come meanwhile.
    """
    kept: dict[str, str] = {}
    done = size = 0
    with say_errors(place.settings):
        if plan.before is not None:
            with _note_in_audit(
                place, "CutAudit", "", f"lines before {plan.before:%Y-%m-%d %H:%M}"
            ):
                place.store.audit.remove(plan.before)
        if not plan.losses:
            return Pruned(0, 0, {})
        with _removing(place, server) as (take_campaign, take_session):
            for campaign in plan.campaigns:
                take_campaign(campaign)
            for k, loss in enumerate(plan.losses):
                tell("removing sessions", k, len(plan.losses))
                try:
                    take_session(loss.session)
                except (InUseError, KeyError, AnimalcatError) as error:
                    kept[loss.session] = str(error).strip("'\"")
                    continue
                done, size = done + 1, size + loss.bytes
    return Pruned(done, size, kept)


@contextmanager
def _removing(
    place: Place, server: Server | None
) -> Generator[tuple[Callable[[str], None], Callable[[str], None]]]:
    """Yield what removes a campaign, and a session; servers are kept away meanwhile.

    Raises:
        DirectoryInUseError: One has come.
        StoreInUseError: One of another directory has the database.
    """
    if server is not None:
        yield server.delete_campaign, server.delete_session
        return
    lock = DirectoryLock(place.home)
    try:
        place.store.hold(f"data prune, process {os.getpid()}")
        place.store.nobody_plays()
        yield partial(_remove_campaign, place), partial(_remove_session, place)
    finally:
        lock.release()


def _remove_campaign(place: Place, campaign: str) -> None:
    with _note_in_audit(place, "DeleteCampaign", names.campaign_name(campaign), _BY_COMMAND):
        place.store.delete_campaign(campaign)


def _remove_session(place: Place, session: str) -> None:
    def files() -> None:
        for kind in (RECORDINGS, CERTIFICATES):
            place.files.remove(f"{kind}/{session}")

    with _note_in_audit(place, "DeleteSession", names.session_name(session), _BY_COMMAND):
        place.store.delete_session(session, files)


@contextmanager
def _note_in_audit(place: Place, action: str, thing: str, words: str) -> Generator[None]:
    """Write into the audit log what is done in the block, before and after."""
    line = replace(by_command(action, thing, words), result=BEGUN)
    (number,) = place.store.audit.write([line])
    try:
        yield
    except Exception as error:
        failed = replace(line, seq=number, result="FAILED", words=str(error))
        place.store.audit.write([failed])
        raise
    place.store.audit.write([replace(line, seq=number, result="done")])


def _losses(place: Place, sessions: dict[str, Session]) -> Generator[Loss]:
    """Yield what would be lost with each session."""
    files, size = defaultdict[str, int](int), defaultdict[str, int](int)
    changed = dict[str, float]()
    for kind in (RECORDINGS, CERTIFICATES):
        for stored in place.files.walk(kind):
            session = stored.key.split("/")[1]
            files[session] += 1
            size[session] += stored.size
            changed[session] = max(changed.get(session, 0.0), stored.changed)
    for name, session in sessions.items():
        written = datetime.fromtimestamp(changed.get(name, 0.0), UTC)
        yield Loss(
            name,
            session.spec.agent,
            session.spec.battery,
            session.state.value,
            session.owner,
            max(session.created, written),
            session.episodes,
            files[name],
            size[name],
        )
