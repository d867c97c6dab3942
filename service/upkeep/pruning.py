"""Removes what is not wanted any more, after saying what will be lost."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Final, Protocol

from sqlalchemy import Text, cast

from animalcat import names
from animalcat.errors import AnimalcatError
from animalcat.service.access.outbox import Outbox, by_command
from animalcat.service.access.tokens import FOLDER as ACCESS
from animalcat.service.access.tokens import Tokens
from animalcat.service.batteries.battery import BATTERIES
from animalcat.service.host.lock import DirectoryLock, running_server
from animalcat.service.measuring.certificates import CERTIFICATES
from animalcat.service.measuring.kept_fits import kept_fit_key
from animalcat.service.storage import schema
from animalcat.service.storage.artefacts import PERSONS, RECORDINGS, found_files, recording_key
from animalcat.service.storage.audit import CUT
from animalcat.service.storage.chain import PROFILE
from animalcat.service.storage.errors import InUseError
from animalcat.service.storage.listing import CampaignFilter, WhoseFilter
from animalcat.service.storage.rows import named
from animalcat.service.upkeep.place import DataError, Place, Remove, Tell, said, silent
from animalcat.service.upkeep.sizes import SessionUse, usage
from animalcat.values import SessionState

STRAY_SECONDS: Final = 24 * 3600.0
"""Age from which a file that belongs to nothing is no part of anything that is under way."""
_BY_COMMAND: Final = "by a command on its data"


class Part(StrEnum):
    """What of sessions, or beside them, is to be removed."""

    SESSIONS = "sessions"
    """Whole sessions, with all that belongs to them."""
    RECORDINGS = "recordings"
    """Their recordings alone."""
    UNCOUNTED = "uncounted"
    """Recordings of attempts that do not count: void, faults, declared invalid."""
    FITS = "fits"
    """The fits of their profiles, which are made again when a plot or an export needs them."""
    AUDIT = "audit"
    """Lines of the audit log, and nothing of sessions."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which sessions are meant; what is left out accepts all.

    Attributes:
        sessions: Ids.
        states: States.
        agent: Name of the agent.
        battery: Id of the battery.
        older_than: How long ago something of it was last written, at least.
        empty: Only those of which no attempt counts.
        owner: Subject to whom it belongs.
        larger_than: Bytes that it takes, at least.
        down_to: Bytes that the store may take: of the sessions that are meant, those that were
            written longest ago go, and no more than that takes. None for all of them.
    """

    sessions: Collection[str] = ()
    states: Collection[SessionState] = ()
    agent: str = ""
    battery: str = ""
    older_than: timedelta = timedelta()
    empty: bool = False
    owner: str = ""
    larger_than: int = 0
    down_to: int | None = None

    @property
    def everything(self) -> bool:
        """Whether nothing is said of them."""
        return self == Wanted()


@dataclass(frozen=True, slots=True)
class Loss:
    """What goes of a session.

    Attributes:
        use: The session, and what it takes.
        files: Number of files that go.
        bytes: Bytes that go.
    """

    use: SessionUse
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be removed, and what will not.

    Attributes:
        part: What of each session goes.
        losses: The sessions of which something goes.
        kept: Why sessions that are meant stay, by their ids.
        named: What else refers to a session that goes, a sentence each.
        campaigns: Campaigns that go.
        things: Resource names of batteries, layouts and tokens of a person that go.
        person: Subject whose data goes; empty for nobody's.
        lines: Number of lines of the audit log that go.
        before: The time of writing before which they go; None where none do.
        strays: Files and folders that belong to nothing, with their bytes.
    """

    part: Part
    losses: tuple[Loss, ...]
    kept: dict[str, str] = field(default_factory=dict[str, str])
    named: tuple[str, ...] = ()
    campaigns: tuple[str, ...] = ()
    things: tuple[str, ...] = ()
    person: str = ""
    lines: int = 0
    before: datetime | None = None
    strays: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def bytes(self) -> int:
        """Bytes that go, about."""
        return sum(loss.bytes for loss in self.losses) + sum(self.strays.values())

    @property
    def empty(self) -> bool:
        """Whether nothing goes."""
        return not (self.losses or self.campaigns or self.things or self.lines or self.strays)


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed.

    Attributes:
        plan: What was to be.
        done: Number of sessions of which something was removed.
        bytes: Bytes that were removed, about.
        kept: Why some were not after all, by their ids.
    """

    plan: Plan
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

    def delete_battery(self, battery: str) -> None:
        """Remove a battery that nothing was made with."""
        ...


def plan_pruning(
    place: Place,
    wanted: Wanted,
    part: Part = Part.SESSIONS,
    *,
    with_campaigns: bool = False,
    leftovers: bool = False,
    person: str = "",
    now: datetime | None = None,
    tell: Tell = silent,
) -> Plan:
    """Say what would be lost; nothing is removed.

    Args:
        place: The store.
        wanted: Which sessions are meant; with nothing said, none are.
        part: What of them.
        with_campaigns: Whether campaigns go all of whose sessions do; else their sessions stay.
        leftovers: Whether files go that belong to nothing, such as arenas that no name and no
            session stands for any more.
        person: Subject all of whose data is meant: sessions with their campaigns, batteries and
            layouts that nobody else needs, and tokens. Empty for nobody's.
        now: The time; None for the present one.
        tell: Told how far it is.
    """
    now = now or datetime.now(UTC)
    if person:
        if part is not Part.SESSIONS or not wanted.everything:
            raise DataError("a person's data goes as a whole: say nothing else of what is meant")
        wanted, with_campaigns = Wanted(owner=person), True
    if part is Part.AUDIT:
        if not wanted.older_than or wanted != Wanted(older_than=wanted.older_than) or leftovers:
            raise DataError("lines of the audit log go by --older-than, and by nothing else")
        before = now - wanted.older_than
        return Plan(part, (), lines=place.store.audit.old(before), before=before)
    if wanted.down_to is not None and with_campaigns:
        raise DataError("campaigns go as a whole, and not until something is small enough")
    used = usage(place, tell)
    meant = (
        [] if wanted.everything else [use for use in used.sessions if _is_meant(use, wanted, now)]
    )
    if wanted.empty:
        counting = _counting(place)
        meant = [use for use in meant if use.session not in counting]
    unknown = {*wanted.sessions} - {use.session for use in used.sessions}
    if unknown:
        raise DataError(f"{place.name} has no session {', '.join(sorted(unknown))}")
    kept: dict[str, str] = {}
    played = has_server(place)  # else it was when its server was killed
    for use in meant:
        if use.state == SessionState.RUNNING and played:
            kept[use.session] = "it is being played"
        elif part is not Part.SESSIONS and not use.over:
            kept[use.session] = f"it is {use.state}, and needs its files to go on"
    campaigns: list[str] = []
    if part is Part.SESSIONS:
        going = {use.session for use in meant} - kept.keys()
        campaigns = _campaigns(place, used.sessions, going, kept, with_campaigns=with_campaigns)
        if person:
            campaigns += _without_sessions(place, person)
    meant = [use for use in meant if use.session not in kept]
    losses = [_loss(place, use, part) for use in meant]
    losses = [loss for loss in losses if loss.files or part is Part.SESSIONS]
    if wanted.down_to is not None:
        losses = _enough(losses, used.total - wanted.down_to)
    gone = {loss.use.session for loss in losses} if part is Part.SESSIONS else set[str]()
    return Plan(
        part,
        tuple(losses),
        kept,
        tuple(_named(place, gone)),
        tuple(campaigns),
        tuple(_things(place, person, gone, campaigns, kept)) if person else (),
        person,
        strays=_strays(place, gone, now.timestamp()) if leftovers else {},
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
    with said(place.settings):
        if plan.before is not None:
            time = datetime.now(UTC)
            place.store.audit.cut(plan.before, lambda words: by_command(time, CUT, "", words))
        elif plan.part is Part.SESSIONS and not plan.empty:
            with removing(place, server) as take:
                for campaign in plan.campaigns:
                    if server is None:
                        name = names.campaign_name(campaign)
                        _note(place, "DeleteCampaign", name, _BY_COMMAND)
                        place.store.delete_campaign(campaign)
                    else:
                        server.delete_campaign(campaign)
                for k, loss in enumerate(plan.losses):
                    tell("removing sessions", k, len(plan.losses))
                    try:
                        take(loss.use.session, _nothing)
                    except (InUseError, KeyError, AnimalcatError) as error:
                        kept[loss.use.session] = str(error).strip("'\"")
                        continue
                    done, size = done + 1, size + loss.bytes
                for thing in plan.things:
                    tell("removing what else is theirs")
                    try:
                        _remove_thing(place, thing, server)
                    except (InUseError, KeyError, AnimalcatError) as error:
                        kept[thing] = str(error).strip("'\"")
                if plan.person:
                    _note(place, "ForgetPerson", "", f"subject {plan.person}")
        else:
            for k, loss in enumerate(plan.losses):
                tell("removing files", k, len(plan.losses))
                try:
                    _give_up(place, loss.use.session, plan.part)
                except (InUseError, KeyError) as error:
                    kept[loss.use.session] = str(error).strip("'\"")
                    continue
                done, size = done + 1, size + loss.bytes
        for stray, taken in plan.strays.items():
            tell("removing what belongs to nothing")
            if _still_stray(place, stray):
                place.files.remove(stray)
                size += taken
    return Pruned(plan, done, size, kept)


@contextmanager
def removing(place: Place, server: Server | None) -> Generator[Remove]:
    """Yield what removes sessions from a store, and keeps its servers from them meanwhile.

    Args:
        place: The store.
        server: The server of the data directory; None where none runs.

    Raises:
        DirectoryInUseError: One runs.
    """
    if server is not None:

        def ask(session: str, first: Callable[[], None]) -> None:
            first()
            server.delete_session(session)

        yield ask
    else:
        lock = DirectoryLock(place.home)
        try:
            place.store.hold(f"data, process {os.getpid()}")
            place.store.nobody_plays()
            yield partial(_remove, place)
        finally:
            lock.release()


def _nothing() -> None:
    """What is looked at before a session goes that is not moved."""


def has_server(place: Place) -> bool:
    """Whether a server works on the data directory alone, which has to be asked then."""
    return running_server(place.home) is not None


def _note(place: Place, action: str, thing: str, words: str) -> None:
    """Leave for the audit log what is done here, where no server is asked to do it.

    Raises:
        OSError: It cannot be written, and so must not be done.
    """
    outbox = Outbox(place.home / ACCESS)
    with outbox.locked():
        outbox.put(datetime.now(UTC), action, thing, words)


def _remove(place: Place, session: str, first: Callable[[], None]) -> None:
    def files() -> None:
        first()
        _note(place, "DeleteSession", names.session_name(session), _BY_COMMAND)
        for kind in (RECORDINGS, CERTIFICATES):
            place.files.remove(f"{kind}/{session}")

    place.store.delete_session(session, files)


def _is_meant(use: SessionUse, wanted: Wanted, now: datetime) -> bool:
    return (
        (not wanted.sessions or use.session in wanted.sessions)
        and (not wanted.states or use.state in wanted.states)
        and (not wanted.agent or use.agent == wanted.agent)
        and (not wanted.battery or use.battery == wanted.battery)
        and (not wanted.owner or use.owner == wanted.owner)
        and use.total >= wanted.larger_than
        and now - use.changed >= wanted.older_than
    )


def _enough(losses: Sequence[Loss], size: int) -> list[Loss]:
    """Return what was written longest ago, so much of it as takes some bytes."""
    going: list[Loss] = []
    for loss in sorted(losses, key=lambda loss: loss.use.changed):
        if size <= 0:
            break
        going.append(loss)
        size -= loss.bytes
    return going


def _without_sessions(place: Place, person: str) -> Iterator[str]:
    """Yield the campaigns of a person none of whose sessions is there any more."""
    mine = CampaignFilter(whose=WhoseFilter(owner=person))
    for campaign in place.store.campaigns(mine):
        if not any(place.store.session(session) for session in campaign.sessions):
            yield campaign.id


def _things(
    place: Place, person: str, gone: set[str], campaigns: Collection[str], kept: dict[str, str]
) -> Iterator[str]:
    """Yield the names of what else is a person's; say of the rest who needs it."""
    for item, owner in place.store.owners.every().items():
        kind, _, key = item.partition("/")
        if owner != person or kind not in ("batteries", "layouts"):
            continue
        if user := _user(place, kind, key, gone, campaigns):
            kept[item] = f"{user} was made with it"
        else:
            yield item
    for token in Tokens(place.home).all():
        if token.subject == person and token.revoked is None:
            yield f"tokens/{token.id}"


def _user(place: Place, kind: str, key: str, gone: set[str], campaigns: Collection[str]) -> str:
    """Name what was made with a battery or a layout, and stays; empty for nothing."""
    record = place.store.battery(key) if kind == "batteries" else None
    with place.store.snapshot() as snapshot:
        for what, table, going in (
            ("session", schema.sessions, gone),
            ("campaign", schema.campaigns, set(campaigns)),
        ):
            made = cast(table.c.spec, Text).contains(key)
            if kind == "batteries":
                made = table.c.battery_digest == ("" if record is None else record.digest)
            if left := snapshot.column(table.c.id, made) - going:
                return f"{what} {min(left)}"
    return ""


def _remove_thing(place: Place, thing: str, server: Server | None) -> None:
    """Remove a battery or a layout that nothing needs, or revoke a token.

    Raises:
        InUseError: Something was made with it.
    """
    kind, _, key = thing.partition("/")
    if kind == "tokens":
        Tokens(place.home).revoke(key)
    elif kind == "layouts":
        _note(place, "DeleteLayout", thing, _BY_COMMAND)
        place.store.delete_layout(key)
    elif server is not None:
        server.delete_battery(key)
    else:
        record = place.store.battery(key)
        _note(place, "DeleteBattery", thing, _BY_COMMAND)
        if place.store.delete_battery(key) and record is not None:
            place.files.remove(f"{BATTERIES}/{record.digest}")


def _counting(place: Place) -> set[str]:
    """Sessions of which an attempt counts, or is still open."""
    table = schema.episodes
    with place.store.snapshot() as snapshot:
        return snapshot.column(table.c.session, table.c.counts | table.c.outcome.is_(None))


def _campaigns(
    place: Place,
    sessions: Sequence[SessionUse],
    going: set[str],
    kept: dict[str, str],
    *,
    with_campaigns: bool,
) -> list[str]:
    """Keep the sessions of campaigns that stay; return the campaigns that go."""
    ended = {use.session for use in sessions if use.over}
    known = {use.session for use in sessions}
    gone: list[str] = []
    for campaign in place.store.campaigns():
        its_own = going & {*campaign.sessions}
        if not its_own:
            continue
        there = known & {*campaign.sessions}
        if with_campaigns and there <= going and there <= ended:
            gone.append(campaign.id)
            continue
        why = "--with-campaigns removes it too, once all of its sessions are over and meant"
        for session in its_own:
            kept[session] = f"campaign {campaign.id} refers to it; {why}"
    return gone


def _loss(place: Place, use: SessionUse, part: Part) -> Loss:
    if part is Part.SESSIONS:
        return Loss(use, use.files, use.total)
    keys = _keys(place, use.session, part)
    return Loss(use, len(keys), sum(keys.values()))


def _keys(place: Place, session: str, part: Part) -> dict[str, int]:
    """Return the files of a part of a session that are there, with their bytes."""
    if part is Part.FITS:
        folder = f"{CERTIFICATES}/{session}"
        there = {stored.key: stored.size for stored in place.files.walk(folder)}
        key = kept_fit_key(session)
        return {key: there[key]} if key in there else {}
    there = {s.key: s.size for s in place.files.walk(f"{RECORDINGS}/{session}")}
    if part is Part.UNCOUNTED and there:
        counting = {
            recording_key(session, attempt.number, attempt.attempt)
            for attempt in place.store.episodes(session)
            if attempt.counts
        }
        there = {key: size for key, size in there.items() if key not in counting}
    return there


def _give_up(place: Place, session: str, part: Part) -> None:
    """Remove files of a session that is over, once its chain says so."""
    keys = _keys(place, session, part)
    if part is Part.FITS:
        whats = [PROFILE]
    else:
        whats = [key.rpartition("/")[2].removesuffix(".mcap") for key in keys]
    _note(place, "RemoveFiles", names.session_name(session), f"{part.value}, {len(keys)} files")
    place.store.give_up_files(session, whats)
    if part is Part.RECORDINGS:
        place.files.remove(f"{RECORDINGS}/{session}")
        return
    for key in keys:
        place.files.remove(key)


def _named(place: Place, gone: set[str]) -> Iterator[str]:
    """Name what refers to a session that goes, and keeps its own copy of what it needs."""
    if not gone:
        return
    table = schema.sessions
    compared = ~cast(table.c.spec, Text).contains('"against": null')
    with place.store.snapshot() as snapshot:
        for row in snapshot.rows(table, compared):
            session = named(table, row)
            if session["id"] in gone:
                continue
            with suppress(ValueError, TypeError, KeyError):  # `verify` tells of those
                against = json.loads(session["spec"])["against"]["session"]
                if against in gone:
                    yield (
                        f"session {session['id']} was played against {against}; it keeps the "
                        "outcomes of that"
                    )


def _strays(place: Place, gone: set[str], now: float) -> dict[str, int]:
    """Return what belongs to nothing, and nobody is writing any more."""
    with place.store.snapshot() as snapshot:
        sessions = snapshot.column(schema.sessions.c.id) - gone
    found: dict[str, int] = {}
    for kind in (RECORDINGS, CERTIFICATES):
        for name in place.files.names(kind):
            if name not in sessions and name not in gone and not name.startswith((".", PERSONS)):
                _add_stray(place, found, f"{kind}/{name}", now)
    digests = _battery_digests(place)
    for name in place.files.names(BATTERIES):
        if name.startswith(".new-") or (
            not name.startswith(".") and name.removesuffix(".tar") not in digests
        ):
            _add_stray(place, found, f"{BATTERIES}/{name}", now)
    return found


def _add_stray(place: Place, found: dict[str, int], key: str, now: float) -> None:
    files = list(place.files.walk(key)) or list(found_files(place.home, key))
    if all(now - stored.changed >= STRAY_SECONDS for stored in files):
        found[key] = sum(stored.size for stored in files)


def _battery_digests(place: Place) -> set[str]:
    tables = schema.sessions, schema.campaigns
    with place.store.snapshot() as snapshot:
        used = set[str](snapshot.column(schema.batteries.c.digest))
        return used.union(*(snapshot.column(table.c.battery_digest) for table in tables))


def _still_stray(place: Place, key: str) -> bool:
    """Look again whether something belongs to nothing, as an import may have come meanwhile."""
    top, _, name = key.partition("/")
    if top == BATTERIES:
        return name.removesuffix(".tar") not in _battery_digests(place)
    return place.store.session(name) is None
