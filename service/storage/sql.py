"""Implements the store with SQLAlchemy, on SQLite in a data directory or on PostgreSQL by URL."""

from __future__ import annotations

import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Label,
    Row,
    Select,
    String,
    case,
    cast,
    create_engine,
    delete,
    event,
    func,
    insert,
    select,
    text,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    NoSuchModuleError,
    OperationalError,
)
from sqlalchemy.pool import ConnectionPoolEntry

from animalcat.envs.types import EndedBy
from animalcat.extending.installing import install
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.service.ids import asked_values
from animalcat.service.model import BatteryRecord, LayoutRecord, StoredCampaign, StoredCertificate
from animalcat.service.storage import owners, records, schema
from animalcat.service.storage.artefacts import Artefacts, recording_key
from animalcat.service.storage.audit import AuditLog
from animalcat.service.storage.chain import (
    BEGINNING,
    CERTIFICATE,
    PROFILE,
    STANDING,
    Chain,
    ChainLink,
    content_digest,
    make_link,
)
from animalcat.service.storage.errors import (
    AlreadyFinishedError,
    InUseError,
    StoreInUseError,
    UnreadableError,
    readable,
)
from animalcat.service.storage.listing import (
    BadPageError,
    CampaignFilter,
    EpisodeFilter,
    Listing,
    Page,
    SessionFilter,
    WhoseFilter,
)
from animalcat.service.storage.migrate import WRITE_LOCK, StoreUnreachableError, bring_up_to_date
from animalcat.service.storage.rows import OF_SESSION, Snapshot
from animalcat.text import names
from animalcat.values import (
    BY_DEFAULT,
    NOBODY,
    NOTHING,
    CampaignSpec,
    CapabilityStatus,
    Decision,
    Episode,
    Identity,
    Outcome,
    Ruling,
    Session,
    SessionSpec,
    SessionState,
    Spent,
)
from animalcat.values.sessions import WaitState

DATABASE: Final = "animalcat.sqlite"
"""File of the database in a data directory."""
_AT_ONCE: Final = 500
"""Most ids that a query names."""
_HOLDER: Final = "holder"
"""Key under which a PostgreSQL database says which server holds it."""
_TRY_TO_HOLD: Final = text(
    "SELECT pg_try_advisory_lock(hashtextextended(CAST(current_schema() AS text), :key))"
)
_HOLD_SECONDS: Final = 2.0
_NOTICED_SOON: Final = text(
    "SELECT set_config('tcp_keepalives_idle', '10', false), "
    "set_config('tcp_keepalives_interval', '5', false), "
    "set_config('tcp_keepalives_count', '3', false)"
)
"""Lets PostgreSQL notice soon that the machine of a server has died."""
_WAL_TRIES: Final = 100
_WAL_PAUSE_SECONDS: Final = 0.05
"""How often, and how long after one another, a new connection tries to write ahead."""


class SqlStore:
    """Keeps batteries, layouts, sessions, decisions, episodes, certificates and profiles.

    Everything is in one relational database. What follows holds on SQLite and on PostgreSQL:

    - **Durable.** When a call returns, what it wrote survives the death of the process and of the
      machine.
    - **All or nothing.** A call that fails or is cut short has written nothing.
    - **By value.** Arguments and results are values: changing one changes nothing in the store.
    - **Snapshots.** A read sees one state of the store, never half of a write.
    - **Finished means finished.** A finished episode never changes, except that a person may
      declare its outcome invalid, or say what it is where the agent's code failed. At most one
      attempt at an episode counts. A session that is over keeps the state in which it ended.
    - **Threads.** Every method may be called from any thread at any time. Methods block, so never
      call them on an event loop. Each session has one writer, its engine. The store relies on that
      for the order of a session's records, and for nothing else.
    - **Unreadable records** affect only what they describe. A list still shows an unreadable item,
      with the reason (`SessionState.UNREADABLE`, `Campaign.unreadable`, `Episode.unreadable`). What
      appears in no list, such as a profile, raises `UnreadableError`.
    - **Unknown ids.** Reads return None or nothing; writes raise `KeyError`.

    Args:
        url: URL of the database: `sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/DATABASE`.

    Attributes:
        owners: To whom things belong.
        audit: The audit log.

    Raises:
        StoreVersionError: The database's schema is newer than this code, or is from before the
            first release.
        StoreUnreachableError: There is no such database, or no driver for it.
    """

    def __init__(self, url: str) -> None:
        # JSON is read as text, so that `records` can say what is wrong with it.
        self._engine = _engine(url, json_deserializer=_text)
        self._reader = self._engine.execution_options(animalcat_reads=True)
        self._line: AbstractContextManager[Any] = nullcontext()
        self._held: Connection | None = None
        self._holder = ""
        if self._engine.dialect.name == "sqlite":
            # Whoever waits for SQLite's own lock looks for it every 0.1 s, and may find it taken by
            # one that has just come for as long as there are any. So those of this process line up.
            self._line = threading.Lock()
            event.listen(self._engine, "connect", _configure_sqlite)
            event.listen(self._engine, "begin", _begin)
        else:
            event.listen(self._engine, "begin", _begin_alone)
            self._reader = self._reader.execution_options(isolation_level="REPEATABLE READ")
        self.owners = owners.Owners(self._reader, self._changing)
        self.audit = AuditLog(self._reader, self._changing)
        try:
            bring_up_to_date(self._engine)
        except OperationalError as error:
            if self._engine.dialect.name == "sqlite":
                raise
            raise StoreUnreachableError(
                f"the database {self._engine.url.render_as_string(hide_password=True)} cannot be "
                f"used: {str(error.orig).strip()}"
            ) from error

    @classmethod
    def in_directory(cls, data: Path, url: str = "") -> SqlStore:
        """Open the store of a data directory: the file `animalcat.sqlite` in it.

        Args:
            data: The directory; it is made where it is not there.
            url: URL of the database if it is another one; empty if it is not.
        """
        data.mkdir(parents=True, exist_ok=True)
        return cls(url or f"sqlite:///{(data / DATABASE).resolve()}")

    def id(self) -> str:
        """Return the id of this database, unlike that of any other; the first call draws it."""
        table, key = schema.meta, "id"
        query = select(table.c.value).where(table.c.key == key)
        with self._reader.connect() as db:
            if mark := db.scalar(query):
                return str(mark)
        with self._changing() as db:
            mark = db.scalar(query)  # again: another process may have been quicker
            if not mark:
                mark = secrets.token_hex(16)
                db.execute(insert(table).values(key=key, value=mark))
            return str(mark)

    def hold(self, server: str) -> None:
        """Keep other servers from a PostgreSQL database until `close`.

        Called again, it holds a database again whose connection was lost meanwhile. An SQLite
        database is kept by the lock of its data directory alone.

        Args:
            server: Unique to this run of the server.

        Raises:
            StoreInUseError: Another server holds it, or has held it since.
        """
        if self._engine.dialect.name == "sqlite":
            return
        if self._held is not None:
            try:
                self._held.scalar(select(1))
                return
            except DBAPIError:
                self._held.invalidate()
                self._held.close()
                self._held = None
        held = self._engine.connect().execution_options(
            isolation_level="AUTOCOMMIT", animalcat_reads=True
        )
        table, key = schema.meta, schema.meta.c.key == _HOLDER
        try:
            held.execute(_NOTICED_SOON)
            taken = _try_to_hold(held)
            holder = held.scalar(select(table.c.value).where(key)) or "unknown"
            if not taken or self._holder not in ("", holder):  # or one has come and gone
                raise StoreInUseError(_holder_of(self._engine, holder))
            held.execute(delete(table).where(key))
            held.execute(insert(table).values(key=_HOLDER, value=server))
        except BaseException:
            held.invalidate()  # which gives the lock up
            held.close()
            raise
        self._held, self._holder = held, server

    @contextmanager
    def _changing(self) -> Generator[Connection]:
        """A transaction that writes; those of this process have it one after another.

        Raises:
            StoreInUseError: The database was held, and another server has come since.
        """
        with self._line, self._engine.begin() as db:
            if self._holder:
                table = schema.meta
                holder = db.scalar(select(table.c.value).where(table.c.key == _HOLDER))
                if holder != self._holder:
                    raise StoreInUseError(_holder_of(self._engine, holder or "unknown"))
            yield db

    def put_battery(self, battery: BatteryRecord) -> None:
        """Store a battery; if its id exists, it refers to the new content from now on.

        A new one belongs to the record's owner; one that exists stays whose it is.
        """
        table = schema.batteries
        values = {
            "digest": battery.digest,
            "instances": battery.instances,
            "problems": list(battery.problems),
            "suites": dict(battery.suites),
        }
        with self._changing() as db:
            changed = db.execute(update(table).where(table.c.id == battery.id).values(values))
            if not changed.rowcount:
                db.execute(insert(table).values(id=battery.id, **values))
                owners.own(db, names.battery_name(battery.id), battery.owner)

    def battery(self, battery: str) -> BatteryRecord | None:
        """Return the battery with this id; None if there is none."""
        with self._reader.connect() as db:
            row = db.execute(
                _select_owned("batteries").where(schema.batteries.c.id == battery)
            ).one_or_none()
        return None if row is None else _battery(row)

    def batteries(
        self, page: Page = Page(), contains: str = "", whose: WhoseFilter = WhoseFilter()
    ) -> Listing[BatteryRecord]:
        """List batteries in order of id.

        Args:
            page: Which page.
            contains: What their ids have in them, in the same case; empty for all.
            whose: To whom they belong, and who asks.

        Raises:
            BadPageError: The page's token did not come from such a list.
        """
        table = schema.batteries
        query = (
            _select_owned("batteries")
            .where(owners.whose_condition("batteries", whose))
            .order_by(table.c.id)
        )
        if page.after:
            query = query.where(table.c.id > _name(page.after, "battery"))
        if contains:  # LIKE does not heed the case on SQLite
            query = query.where(func.replace(table.c.id, contains, "") != table.c.id)
        rows, more = self._page(query, page)
        return Listing(map(_battery, rows), f"battery/{rows[-1].id}" if more else "")

    def battery_ids(self) -> list[str]:
        """Return the ids of all batteries in order."""
        table = schema.batteries
        with self._reader.connect() as db:
            return list(db.scalars(select(table.c.id).order_by(table.c.id)))

    def delete_battery(self, battery: str) -> bool:
        """Delete a battery.

        Returns:
            Whether its content may be deleted too, because no other battery has the same.

        Raises:
            KeyError: There is no such battery.
            InUseError: A session or a campaign was made with it.
        """
        table, sessions, campaigns = schema.batteries, schema.sessions, schema.campaigns
        with self._changing() as db:
            digest = db.scalar(select(table.c.digest).where(table.c.id == battery))
            if digest is None:
                raise KeyError(f"no battery {battery}")
            for what, part in (("campaign", campaigns), ("session", sessions)):
                with_it = select(part.c.id).where(part.c.battery_digest == digest)
                user = db.scalar(with_it.limit(1))
                if user is not None:
                    raise InUseError(
                        f"{what} {user} was made with battery {battery}; delete that {what} first"
                    )
            db.execute(delete(table).where(table.c.id == battery))
            owners.forget(db, names.battery_name(battery))
            same = select(table.c.id).where(table.c.digest == digest).limit(1)
            return db.scalar(same) is None

    def put_layout(self, layout: LayoutRecord) -> None:
        """Store a layout; one with the same digest stays as it is.

        A new one belongs to the record's owner. One that somebody else brings, too, belongs to
        nobody from then on, so that all may see it.
        """
        table, item = schema.layouts, names.layout_name(layout.digest)
        values = {"digest": layout.digest, "name": layout.name}
        values |= {"variant": layout.variant, "text": layout.text}
        with self._changing() as db:
            if db.scalar(select(table.c.digest).where(table.c.digest == layout.digest)) is None:
                db.execute(insert(table).values(values))
                owners.own(db, item, layout.owner)
            elif layout.owner not in ("", owners.owner_of(db, item)):
                owners.forget(db, item)

    def layout(self, digest: str) -> LayoutRecord | None:
        """Return the layout with this digest; None if there is none."""
        table = schema.layouts
        with self._reader.connect() as db:
            row = db.execute(_select_owned("layouts").where(table.c.digest == digest)).one_or_none()
        return None if row is None else _layout(row)

    def layouts(
        self,
        page: Page = Page(),
        but: Collection[str] = (),
        whose: WhoseFilter = WhoseFilter(),
    ) -> Listing[LayoutRecord]:
        """List layouts in order of name, variant and digest.

        Args:
            page: Which page.
            but: Digests of those that are left out.
            whose: To whom they belong, and who asks.

        Raises:
            BadPageError: The page's token did not come from such a list.
        """
        table = schema.layouts
        order = (table.c.name, table.c.variant, table.c.digest)
        query = _select_owned("layouts").where(table.c.digest.not_in(but))
        query = query.where(owners.whose_condition("layouts", whose)).order_by(*order)
        if page.after:
            last = self.layout(_name(page.after, "layout"))
            if last is None:
                raise _bad_page(page.after)
            query = query.where(tuple_(*order) > tuple_(last.name, last.variant, last.digest))
        rows, more = self._page(query, page)
        return Listing(map(_layout, rows), f"layout/{rows[-1].digest}" if more else "")

    def create_session(
        self,
        wanted: str,
        spec: SessionSpec,
        created: datetime,
        request_id: str = "",
        owner: str = "",
        identity: Identity = NOBODY,
    ) -> Session:
        """Store a new session that waits for its agent.

        Args:
            wanted: The id it should have; if that is taken, it gets `{wanted}-2`, `{wanted}-3`, ...
            spec: The session's specification.
            created: Time of creation, with time zone.
            request_id: A repeated call with the same id returns the session of the first one and
                writes nothing; empty for no such protection.
            owner: Subject to whom it belongs; empty for nobody.
            identity: Who has to play it.

        Raises:
            ValueError: The request id was used for another request (see `ids.asked_values`), or by
                another owner.
        """
        table = schema.sessions
        with self._changing() as db:
            if request_id:
                known = _find_requested(db, request_id)
                if known is not None:
                    if asked_values(known.spec) != asked_values(spec) or known.owner != owner:
                        raise ValueError(f"request id {request_id!r} was used for another session")
                    return known
            taken = set(db.scalars(select(table.c.id).where(table.c.id.startswith(wanted))))
            name, k = wanted, 1
            while name in taken:
                k += 1
                name = f"{wanted}-{k}"
            db.execute(
                insert(table).values(
                    id=name,
                    request_id=request_id or None,
                    spec=records.SPEC.write(spec),
                    state=SessionState.WAITING.name,
                    reason="",
                    created=created.astimezone(UTC).replace(tzinfo=None),
                    capabilities=records.CAPABILITIES.write(records.Capabilities()),
                    misfit="",
                    agent=spec.agent,
                    battery=spec.battery,
                    battery_digest=spec.battery_digest,
                    paused=False,
                    identity=records.IDENTITY.write(identity),
                    episodes=0,
                    successes=0,
                    practised=0,
                    spent=records.SPENT.write(NOTHING),
                )
            )
            owners.own(db, names.session_name(name), owner)
            _add_link(db, name, BEGINNING)
            _add_link(db, name, STANDING)
            return _one_session(db, name)

    def session(self, session: str) -> Session | None:
        """Return the session with this id; None if there is none."""
        with self._reader.connect() as db:
            row = db.execute(_session_query().where(schema.sessions.c.id == session)).one_or_none()
        return None if row is None else _session(row)

    def has_session(self, session: str) -> bool:
        """Return whether there is a session with this id, readable or not."""
        this = select(schema.sessions.c.seq).where(schema.sessions.c.id == session)
        with self._reader.connect() as db:
            return db.scalar(this) is not None

    def requested(self, request_id: str) -> Session | None:
        """Return the session that was created under this request id; None if there is none."""
        with self._reader.connect() as db:
            return _find_requested(db, request_id)

    def sessions(
        self, wanted: SessionFilter = SessionFilter(), page: Page = Page()
    ) -> Listing[Session]:
        """List sessions, newest first.

        Raises:
            BadPageError: The page's token did not come from such a list.
        """
        table = schema.sessions
        query = _session_query()
        if wanted.agent:
            query = query.where(table.c.agent == wanted.agent)
        if wanted.battery:
            query = query.where(table.c.battery == wanted.battery)
        if wanted.states:
            query = query.where(_in_states(wanted, page))
        query = query.where(owners.whose_condition("sessions", wanted.whose))
        rows, following = self._newest(query, table.c.seq, page)
        return Listing(map(_session, rows), following)

    def sessions_by_id(self, ids: Iterable[str]) -> dict[str, Session]:
        """Return sessions by their ids, as they stood at one time; unknown ids are left out."""
        wanted, found = list(ids), dict[str, Session]()
        with self._reader.connect() as db:
            for k in range(0, len(wanted), _AT_ONCE):
                these = schema.sessions.c.id.in_(wanted[k : k + _AT_ONCE])
                for row in db.execute(_session_query().where(these)):
                    found[row.id] = _session(row)
        return found

    def session_ids(self) -> list[str]:
        """Return the ids of all sessions, newest first, without reading their specifications."""
        table = schema.sessions
        with self._reader.connect() as db:
            return list(db.scalars(select(table.c.id).order_by(table.c.seq.desc())))

    def recount(self, session: str) -> tuple[SessionCounts, SessionCounts]:
        """Return what is kept of a session's numbers, and what its attempts say they are.

        Raises:
            KeyError: There is no such session.
        """
        table, played = schema.sessions, schema.episodes
        with self._reader.connect() as db:
            kept = db.execute(
                select(table.c.episodes, table.c.successes, table.c.practised, table.c.spent).where(
                    table.c.id == session
                )
            ).one_or_none()
            if kept is None:
                raise KeyError(f"no session {session}")
            rows = db.execute(
                select(played.c.outcome, played.c.counts, played.c.invalid, played.c.spent).where(
                    played.c.session == session
                )
            )
            counted = _sum_counts(
                _counts_added(*row[:3], records.SPENT.read(row.spent)) for row in rows
            )
            return SessionCounts(*kept[:3], records.SPENT.read(kept.spent)), counted

    def standings(self, limit: int) -> dict[str, WaitState]:
        """Return how the newest sessions stand that are not over, by id, without their specs."""
        table = schema.sessions
        asked = SessionFilter(states=(SessionState.WAITING, SessionState.RUNNING))
        columns = (table.c.id, table.c.state, table.c.paused)
        query = select(*columns, _count_unjudged()).where(_in_states(asked, Page(limit)))
        with self._reader.connect() as db:
            rows = db.execute(query.order_by(table.c.seq.desc()).limit(limit)).all()
        return {
            row.id: WaitState(
                SessionState[row.state],
                row.paused,
                _as_numbers(row.unjudged),
            )
            for row in rows
        }

    def count_sessions(self) -> dict[str, int]:
        """Return the number of sessions by the name of their state, without reading their specs."""
        state = schema.sessions.c.state
        with self._reader.connect() as db:
            return {
                row[0]: row[1] for row in db.execute(select(state, func.count()).group_by(state))
            }

    def try_to_write(self) -> None:
        """Write a row that stands for nothing, and so find out whether anything can be written."""
        table, key = schema.meta, "written"
        value = secrets.token_hex(8)
        with self._changing() as db:
            if not db.execute(update(table).where(table.c.key == key).values(value=value)).rowcount:
                db.execute(insert(table).values(key=key, value=value))

    def delete_session(self, session: str, first: Callable[[], None] = lambda: None) -> None:
        """Delete a session and everything that belongs to it.

        Args:
            session: Its id.
            first: Deletes what is kept elsewhere. It is called once the store has found that the
                session may be deleted; if it fails, the store deletes nothing.

        Raises:
            KeyError: There is no such session.
            InUseError: The session is running, or belongs to a campaign.
        """
        table = schema.sessions
        with self._changing() as db:
            if _one_session(db, session).state is SessionState.RUNNING:
                raise InUseError(f"session {session} is running; cancel it first")
            if campaign := _campaign_of(db, session):
                raise InUseError(
                    f"session {session} belongs to campaign {campaign}; delete that campaign first"
                )
            first()
            for part in OF_SESSION:
                db.execute(delete(part).where(part.c.session == session))
            db.execute(delete(table).where(table.c.id == session))
            owners.forget(db, names.session_name(session))

    @contextmanager
    def snapshot(self) -> Generator[Snapshot]:
        """Read rows as they are stored, all of one state, for the block."""
        with self._reader.connect() as db:
            yield Snapshot(db)

    def forget_marks(self) -> None:
        """Forget the id of the database, as of a copy of one that goes on."""
        with self._changing() as db:
            db.execute(delete(schema.meta))

    def nobody_plays(self) -> None:
        """Store that no session is being played: its only server starts just now, or none runs."""
        for session in self.sessions(SessionFilter(states=(SessionState.RUNNING,))):
            self.set_state(session.id, SessionState.WAITING)

    def set_state(self, session: str, state: SessionState, reason: str = "") -> Session:
        """Change a session's state.

        Raises:
            KeyError: There is no such session.
            AlreadyFinishedError: The session is over, in another state.
        """
        with self._changing() as db:
            _change_state(db, session, state, reason)
            _add_link(db, session, STANDING)
            return _one_session(db, session)

    def pause(self, session: str, paused: bool) -> Session:
        """Store whether a person has paused a session.

        Raises:
            KeyError: There is no such session.
            AlreadyFinishedError: The session is over.
        """
        table = schema.sessions
        with self._changing() as db:
            before = _one_session(db, session)
            if before.state.over:
                raise AlreadyFinishedError(f"{session} is {before.state.name.lower()}")
            db.execute(update(table).where(table.c.id == session).values(paused=paused))
            return _one_session(db, session)

    def extend(self, session: str, stop: StoppingRule) -> Session:
        """Store another stopping rule of a session, which then waits for its agent.

        A profile that it has is kept until it ends again.

        Raises:
            KeyError: There is no such session.
        """
        table = schema.sessions
        with self._changing() as db:
            before = _one_session(db, session)
            spec = records.SPEC.write(replace(before.spec, stop=stop))
            changed = {"spec": spec, "state": SessionState.WAITING.name, "reason": ""}
            db.execute(update(table).where(table.c.id == session).values(changed))
            _add_link(db, session, BEGINNING)
            _add_link(db, session, STANDING)
            return _one_session(db, session)

    def identify(self, session: str, identity: Identity) -> None:
        """Store who plays a session.

        Raises:
            KeyError: There is no such session.
        """
        table = schema.sessions
        with self._changing() as db:
            row = update(table).where(table.c.id == session)
            if not db.execute(row.values(identity=records.IDENTITY.write(identity))).rowcount:
                raise KeyError(f"no session {session}")
            _add_link(db, session, STANDING)

    def create_campaign(self, campaign: StoredCampaign) -> StoredCampaign:
        """Store a campaign, unless its id exists; return what is stored.

        Raises:
            KeyError: One of its sessions does not exist.
        """
        table = schema.campaigns
        with self._changing() as db:
            row = db.execute(
                _select_owned("campaigns").where(table.c.id == campaign.id)
            ).one_or_none()
            if row is not None:
                return _campaign(row)
            for session in campaign.sessions:
                _one_session(db, session)
            db.execute(
                insert(table).values(
                    id=campaign.id,
                    spec=records.CAMPAIGN.write(campaign.spec),
                    sessions=list(campaign.sessions),
                    created=campaign.created.astimezone(UTC).replace(tzinfo=None),
                    battery=campaign.spec.session.battery,
                    battery_digest=campaign.spec.session.battery_digest,
                )
            )
            for k in range(0, len(campaign.sessions), _AT_ONCE):
                its_own = schema.sessions.c.id.in_(campaign.sessions[k : k + _AT_ONCE])
                free = its_own & schema.sessions.c.campaign.is_(None)
                db.execute(update(schema.sessions).where(free).values(campaign=campaign.id))
            owners.own(db, names.campaign_name(campaign.id), campaign.owner)
        return campaign

    def campaign(self, campaign: str) -> StoredCampaign | None:
        """Return the campaign with this id; None if there is none."""
        table = schema.campaigns
        with self._reader.connect() as db:
            row = db.execute(_select_owned("campaigns").where(table.c.id == campaign)).one_or_none()
        return None if row is None else _campaign(row)

    def campaign_of(self, session: str) -> str:
        """Return the id of the campaign to which a session belongs; empty if there is none."""
        with self._reader.connect() as db:
            return _campaign_of(db, session)

    def campaign_ids(self) -> list[str]:
        """Return the ids of all campaigns, newest first, without reading their specifications."""
        table = schema.campaigns
        with self._reader.connect() as db:
            return list(db.scalars(select(table.c.id).order_by(table.c.seq.desc())))

    def campaigns(
        self, wanted: CampaignFilter = CampaignFilter(), page: Page = Page()
    ) -> Listing[StoredCampaign]:
        """List campaigns, newest first.

        Raises:
            BadPageError: The page's token did not come from such a list.
        """
        table = schema.campaigns
        query = _select_owned("campaigns").where(owners.whose_condition("campaigns", wanted.whose))
        if wanted.battery:
            query = query.where(table.c.battery == wanted.battery)
        rows, following = self._newest(query, table.c.seq, page)
        return Listing(map(_campaign, rows), following)

    def campaign_counts(self, campaigns: Iterable[str]) -> dict[str, CampaignCounts]:
        """Return how far the sessions of campaigns are, by the campaign's id."""
        table = schema.sessions
        states = [state.name for state in SessionState if not state.over]
        query = (
            select(
                table.c.campaign,
                func.sum(table.c.episodes),
                func.sum(case((table.c.state.in_(states), 1), else_=0)),
            )
            .where(table.c.campaign.in_(list(campaigns)))
            .group_by(table.c.campaign)
        )
        with self._reader.connect() as db:
            return {row[0]: CampaignCounts(int(row[1]), int(row[2])) for row in db.execute(query)}

    def delete_campaign(self, campaign: str) -> None:
        """Delete a campaign. Its sessions stay, and may then be deleted.

        Raises:
            KeyError: There is no such campaign.
            InUseError: One of its sessions is not over.
        """
        table, sessions = schema.campaigns, schema.sessions
        with self._changing() as db:
            row = db.execute(select(table).where(table.c.id == campaign)).one_or_none()
            if row is None:
                raise KeyError(f"no campaign {campaign}")
            its_own = _session_query().where(sessions.c.id.in_(_sessions_of(row)))
            for session in map(_session, db.execute(its_own)):
                if not session.state.over:
                    raise InUseError(
                        f"session {session.id} of campaign {campaign} is not over; cancel it first"
                    )
            left = sessions.c.campaign == campaign
            db.execute(update(sessions).where(left).values(campaign=None))
            db.execute(delete(table).where(table.c.id == campaign))
            owners.forget(db, names.campaign_name(campaign))

    def open_episode(
        self,
        episode: Episode,
        capabilities: tuple[CapabilityStatus, ...] = (),
        misfit: str = "",
    ) -> None:
        """Store a decision and the beginning of an attempt at it, before anything moves.

        Args:
            episode: The attempt; its outcome is None.
            capabilities: How well each capability is known before the attempt, for lists; if empty,
                the stored ones and the stored misfit stay.
            misfit: Where the alarm finds, before the attempt, that predictions fail.

        Raises:
            KeyError: There is no such session.
            AlreadyFinishedError: The attempt exists, or another at this number counts already.
        """
        table = schema.episodes
        with self._changing() as db:
            known = select(schema.sessions.c.id).where(schema.sessions.c.id == episode.session)
            if db.scalar(known) is None:  # without its counts, which take longer the more there is
                raise KeyError(f"no session {episode.session}")
            counted = db.scalar(
                select(func.count()).where(
                    table.c.session == episode.session,
                    table.c.number == episode.number,
                    table.c.counts,
                )
            )
            if counted:
                raise AlreadyFinishedError(f"episode {episode.number} of {episode.session} counts")
            _insert(
                db,
                insert(table).values(episode_values(episode)),
                f"attempt {episode.attempt} at episode {episode.number} exists",
            )
            if capabilities:
                _set_knowledge(db, episode.session, capabilities, misfit)
                _add_link(db, episode.session, STANDING)

    def finish_episode(self, episode: Episode, files: Artefacts | None = None) -> None:
        """Store an attempt's recording, then how it ended: outcome, summary and chain at once.

        Args:
            episode: The attempt with its outcome.
            files: Where its recording is, if it has one; None where nothing is recorded.

        Raises:
            KeyError: There is no such attempt.
            AlreadyFinishedError: The attempt is finished, or another at this number counts already.
        """
        table, recording = schema.episodes, ""
        if files is not None:
            key = recording_key(episode.session, episode.number, episode.attempt)
            recording = files.digest(key)
        with self._changing() as db:
            attempt = (
                (table.c.session == episode.session)
                & (table.c.number == episode.number)
                & (table.c.attempt == episode.attempt)
            )
            row = db.execute(select(table.c.outcome).where(attempt)).one_or_none()
            if row is None:
                raise KeyError(
                    f"{episode.session} has no episode {episode.number}-{episode.attempt}"
                )
            if row.outcome is not None:
                raise AlreadyFinishedError(
                    f"episode {episode.number}-{episode.attempt} of {episode.session} is finished"
                )
            _insert(
                db,
                update(table).where(attempt).values(episode_values(episode)),
                f"episode {episode.number} of {episode.session} counts already",
            )
            _count(db, episode, episode.spent)
            _add_link(db, episode.session, f"{episode.number}-{episode.attempt}", recording)

    def invalidate_episode(self, session: str, number: int, attempt: int, reason: str) -> Episode:
        """Declare the outcome of an attempt invalid; its record stays but no longer counts.

        Another attempt at the same number may then begin. The first reason stays.

        Args:
            session: Id of the session.
            number: Number of the episode.
            attempt: Which attempt at the episode; it must count, or have been declared invalid
                before.
            reason: Why it is invalid, in words.

        Raises:
            KeyError: There is no such attempt.
            ValueError: The attempt never counted, or the reason is empty.
        """
        if not reason:
            raise ValueError("give the reason why the outcome is invalid")
        table = schema.episodes
        this = (
            (table.c.session == session) & (table.c.number == number) & (table.c.attempt == attempt)
        )
        with self._changing() as db:
            row = db.execute(select(table).where(this)).one_or_none()
            if row is None:
                raise KeyError(f"{session} has no episode {number}-{attempt}")
            if not row.counts and not row.invalid:
                raise ValueError(f"episode {number}-{attempt} of {session} does not count anyway")
            still = this & table.c.counts
            if db.execute(update(table).where(still).values(counts=False, invalid=reason)).rowcount:
                before = _counts_added(row.outcome, row.counts, row.invalid)
                no_more = (-before.episodes, -before.successes, -before.practised)
                _change_counts(db, session, SessionCounts(*no_more))  # it was spent all the same
                _add_link(db, session, f"{number}-{attempt}")
            return _episode(db.execute(select(table).where(this)).one())

    def judge_failures(self, session: str, ruling: Ruling) -> list[Episode]:
        """Store what a person says of the attempts at which the agent's code failed.

        Those that wait for it get the outcome of the ruling; all others stay as they are.

        Args:
            session: Id of the session.
            ruling: What they are.

        Returns:
            The attempts that were judged, as they are now.

        Raises:
            KeyError: There is no such session.
            ValueError: The ruling says nothing.
        """
        table = schema.episodes
        waits = (table.c.session == session) & (table.c.ruling == Ruling.AWAITED.name)
        if ruling is Ruling.AWAITED:
            raise ValueError("say what it is: repeat, failure or fault")
        with self._changing() as db:
            _one_session(db, session)
            judged = [
                replace(
                    attempt,
                    outcome=ruling.outcome,
                    ruling=ruling,
                    outcomes=BY_DEFAULT if ruling.outcome.counts else attempt.outcomes,
                )
                for attempt in readable(map(_episode, db.execute(select(table).where(waits)).all()))
            ]
            for attempt in judged:
                this = (table.c.number == attempt.number) & (table.c.attempt == attempt.attempt)
                db.execute(update(table).where(waits & this).values(episode_values(attempt)))
                _count(db, attempt)
                _add_link(db, session, f"{attempt.number}-{attempt.attempt}")
            return judged

    def episodes(
        self,
        session: str,
        wanted: EpisodeFilter = EpisodeFilter(),
        page: Page = Page(),
        *,
        newest_first: bool = False,
    ) -> Listing[Episode]:
        """List the attempts of a session in order of number and attempt.

        Args:
            session: The session.
            wanted: Which attempts.
            page: Which page.
            newest_first: Whether they are in the reverse order.

        Raises:
            BadPageError: The page's token did not come from such a list.
        """
        table = schema.episodes
        place = (table.c.number, table.c.attempt)
        query = select(table).where(table.c.session == session)
        if wanted.outcomes:
            query = query.where(table.c.outcome.in_([outcome.name for outcome in wanted.outcomes]))
        if wanted.over is not None:
            query = query.where(table.c.outcome.is_not(None) == wanted.over)
        if wanted.number is not None:
            query = query.where(table.c.number == wanted.number)
        if page.after:
            last = tuple_(*_numbers(page.after, 2))
            query = query.where(tuple_(*place) < last if newest_first else tuple_(*place) > last)
        order = [column.desc() for column in place] if newest_first else place
        rows, more = self._page(query.order_by(*order), page)
        following = f"{rows[-1].number}-{rows[-1].attempt}" if more else ""
        return Listing(map(_episode, rows), following)

    def last_told(self, session: str) -> str:
        """Return the digest of the last link about an attempt of a session; empty without one."""
        table = schema.chain
        mine = select(table.c.digest).where(
            table.c.session == session,
            table.c.what.not_in([BEGINNING, STANDING, PROFILE]),
            table.c.what.not_like(f"{CERTIFICATE}%"),
        )
        with self._reader.connect() as db:
            return db.scalar(mine.order_by(table.c.seq.desc()).limit(1)) or ""

    def last_attempt(self, session: str, number: int) -> int | None:
        """Return the last attempt at an episode of a session; None if there is none."""
        table = schema.episodes
        this = (table.c.session == session) & (table.c.number == number)
        with self._reader.connect() as db:
            return db.scalar(select(func.max(table.c.attempt)).where(this))

    def all_episodes(
        self,
        wanted: EpisodeFilter = EpisodeFilter(),
        page: Page = Page(),
        whose: WhoseFilter = WhoseFilter(),
    ) -> Listing[Episode]:
        """List the attempts of all sessions: by session, oldest first, then as `episodes` does.

        Args:
            wanted: Which attempts.
            page: Which page.
            whose: To whom the sessions belong, and who asks.

        Raises:
            BadPageError: The page's token did not come from such a list.
        """
        table, sessions = schema.episodes, schema.sessions
        place = (sessions.c.seq, table.c.number, table.c.attempt)
        query = select(table, sessions.c.seq).join(sessions, sessions.c.id == table.c.session)
        query = query.where(owners.whose_condition("sessions", whose))
        if wanted.outcomes:
            query = query.where(table.c.outcome.in_([outcome.name for outcome in wanted.outcomes]))
        if wanted.over is not None:
            query = query.where(table.c.outcome.is_not(None) == wanted.over)
        if page.after:
            last = _numbers(page.after, 3)
            # The first says the same in part, and lets a database begin at the right session.
            query = query.where(sessions.c.seq >= last[0], tuple_(*place) > tuple_(*last))
        rows, more = self._page(query.order_by(*place), page)
        following = f"{rows[-1].seq}-{rows[-1].number}-{rows[-1].attempt}" if more else ""
        return Listing(map(_episode, rows), following)

    def first_outcomes(self, sessions: Mapping[str, int]) -> dict[str, dict[str, bool]]:
        """Return whether sessions passed the instances that they played first.

        Args:
            sessions: By the session's id, how many of its episodes.

        Returns:
            By the session's id: whether each instance of the battery was passed, itself or its
            twin. Of one that was played more than once, the first outcome that counts is told.
            What did not count, and what cannot be read, is left out.
        """
        table = schema.episodes
        columns = (table.c.session, table.c.number, table.c.outcome, table.c.decision)
        ended = [outcome.name for outcome in Outcome if outcome.counts]
        found: dict[str, dict[str, bool]] = {session: {} for session in sessions}
        wanted = list(sessions)
        with self._reader.connect() as db:
            for k in range(0, len(wanted), _AT_ONCE):
                these = table.c.session.in_(wanted[k : k + _AT_ONCE])
                early = table.c.number < max(sessions.values())
                query = select(*columns).where(
                    these, early, table.c.outcome.in_(ended), table.c.invalid == ""
                )
                place = (table.c.session, table.c.number, table.c.attempt)
                for row in db.execute(query.order_by(*place)):
                    if row.number < sessions[row.session]:
                        with suppress(UnreadableError):
                            chosen = records.DECISION.read(row.decision).chosen
                            passed = row.outcome == Outcome.SUCCESS.name
                            found[row.session].setdefault(chosen, passed)
        return found

    def _newest(
        self, query: Select[Any], seq: ColumnElement[int], page: Page
    ) -> tuple[Sequence[Row[Any]], str]:
        """Return the rows of a page, newest first, and the token of the next page."""
        if page.after:
            query = query.where(seq < _numbers(page.after, 1)[0])
        rows, more = self._page(query.order_by(seq.desc()), page)
        return rows, str(rows[-1].seq) if more else ""

    def _page(self, query: Select[Any], page: Page) -> tuple[Sequence[Row[Any]], bool]:
        """Return the rows of a page, and whether more follow."""
        if not page.limit:
            with self._reader.connect() as db:
                return db.execute(query).all(), False
        with self._reader.connect() as db:
            rows = db.execute(query.limit(page.limit + 1)).all()
        return rows[: page.limit], len(rows) > page.limit

    def put_certificate(
        self, session: str, certificate: StoredCertificate, draws: str = ""
    ) -> None:
        """Store a certificate.

        Args:
            session: The session.
            certificate: The certificate.
            draws: SHA-256 of the file of its draws; empty without one.

        Raises:
            KeyError: There is no such session.
            AlreadyFinishedError: The session already has a certificate for that n.
        """
        with self._changing() as db:
            _one_session(db, session)
            _insert(
                db,
                insert(schema.certificates).values(
                    session=session,
                    n=certificate.n,
                    passed=certificate.passed,
                    result=dict(certificate.result),
                    draws=certificate.draws,
                ),
                f"{session} has a certificate for n = {certificate.n}",
            )
            _add_link(db, session, f"{CERTIFICATE}{certificate.n}", draws)

    def certificates(self, session: str) -> dict[int, StoredCertificate]:
        """Return all certificates of a session by n, the number of episodes certified."""
        table = schema.certificates
        with self._reader.connect() as db:
            rows = db.execute(
                select(table).where(table.c.session == session).order_by(table.c.n)
            ).all()
        return {row.n: _certificate(row) for row in rows}

    def finish_session(
        self,
        session: str,
        state: SessionState,
        reason: str,
        profile: Mapping[str, Any],
        capabilities: tuple[CapabilityStatus, ...],
        misfit: str = "",
        fit: str = "",
    ) -> Session:
        """End a session, and store its profile and what its alarm found, at once.

        Args:
            session: The session.
            state: How it ended.
            reason: Why.
            profile: The profile.
            capabilities: How well each capability is known.
            misfit: What its alarm found.
            fit: SHA-256 of the file of the fit that the profile rests on; empty without one.

        Raises:
            KeyError: There is no such session.
            AlreadyFinishedError: The session is over already.
        """
        with self._changing() as db:
            if _one_session(db, session).state.over:
                raise AlreadyFinishedError(f"{session} is over")
            _change_state(db, session, state, reason)
            table = schema.profiles  # one that was extended has a profile already
            db.execute(delete(table).where(table.c.session == session))
            db.execute(insert(table).values(session=session, profile=dict(profile)))
            _add_link(db, session, PROFILE, fit)
            _set_knowledge(db, session, capabilities, misfit)
            _add_link(db, session, STANDING)
            return _one_session(db, session)

    def profile(self, session: str) -> dict[str, Any] | None:
        """Return the exported profile as JSON values; None if the session has none yet."""
        table = schema.profiles
        with self._reader.connect() as db:
            profile_json = db.scalar(select(table.c.profile).where(table.c.session == session))
        return (
            None
            if profile_json is None
            else records.read_json(f"profile of {session}", profile_json)
        )

    def chain(self, session: str) -> Chain:
        """Return the chain of a session, and the digests of what is stored now.

        Whatever is stored for good adds a link (see `storage.chain`): the session's specification,
        how it stands, the end of an attempt, a certificate, the profile, and an outcome declared
        invalid. What cannot be read is told in the chain, and nothing is raised for it.
        """
        table = schema.chain
        columns = (table.c.what, table.c.content, table.c.recording, table.c.digest)
        links: tuple[ChainLink, ...] = ()
        now: dict[str, str] = {}
        damage: list[str] = []
        # One look at all of it, since a session that goes on adds links between two; and each part
        # by itself within, so that what can be read is read.
        with _collect_damage(damage, "the database"), self._reader.connect() as db:
            with _collect_damage(damage, "its chain"), db.begin_nested():
                rows = db.execute(
                    select(*columns).where(table.c.session == session).order_by(table.c.seq)
                )
                links = tuple(ChainLink(*row) for row in rows)
            for what, read in _CONTENTS.items():
                with _collect_damage(damage, what), db.begin_nested():
                    now |= read(db, session)
        return Chain(links, now, tuple(damage))

    def damage(self) -> tuple[str, ...]:
        """Look for damage of the database itself; one sentence each, and none where it is whole."""
        problems: list[str] = []
        if self._reader.dialect.name == "sqlite":
            with _collect_damage(problems, "the database"), self._reader.connect() as db:
                rows = db.execute(text("PRAGMA quick_check(20)")).scalars().all()
                problems += [f"the database is damaged: {row}" for row in rows if row != "ok"]
        return tuple(problems)

    def close(self) -> None:
        """Free the store's resources; a second call does nothing."""
        if self._held is not None:
            self._held.invalidate()
            self._held.close()
            self._held = None
        self._engine.dispose()


def _engine(url: str, **options: Any) -> Engine:
    for scheme in ("postgres://", "postgresql://"):
        if url.startswith(scheme):
            url = "postgresql+psycopg://" + url.removeprefix(scheme)
    if not url.startswith("sqlite:"):
        options["pool_pre_ping"] = True  # a database that was restarted is found again
        # Else the driver gives bytes where the database says nothing of its encoding (SQL_ASCII).
        options["connect_args"] = {"client_encoding": "utf8"}
    try:
        return create_engine(url, **options)
    except NoSuchModuleError as error:
        raise StoreUnreachableError(
            "only SQLite and PostgreSQL are supported; give "
            "postgresql://USER:PASSWORD@HOST/DATABASE"
        ) from error
    except ArgumentError:
        raise StoreUnreachableError(
            "the store is not a URL of a database; give postgresql://USER:PASSWORD@HOST/DATABASE"
        ) from None
    except ModuleNotFoundError as error:
        raise StoreUnreachableError(
            f"the driver of the database is missing ({error.name}); install it with: "
            f"{install('postgres')}"
        ) from error


def _try_to_hold(db: Connection) -> bool:
    """Take the lock of a database for a connection; the server before may just have ended."""
    end = time.monotonic() + _HOLD_SECONDS
    while not (taken := bool(db.scalar(_TRY_TO_HOLD, {"key": WRITE_LOCK}))):
        if time.monotonic() > end:
            break
        time.sleep(_WAL_PAUSE_SECONDS)
    return taken


def _holder_of(engine: Engine, holder: str) -> str:
    where = engine.url.render_as_string(hide_password=True)
    return (
        f"the database {where} is in use by another server, {holder}; stop that one, or choose "
        "another database with --store"
    )


def _configure_sqlite(connection: Any, _: ConnectionPoolEntry) -> None:
    # SQLAlchemy, not the driver, begins transactions (see `_begin`).
    connection.isolation_level = None
    _write_ahead(connection)
    for pragma in (
        # FULL and not NORMAL: in WAL mode, NORMAL may lose the last commits when power fails, and
        # an acknowledged outcome must not be lost. FULL costs one fsync per commit, two per
        # episode.
        "synchronous=FULL",
        "foreign_keys=ON",
        "busy_timeout=10000",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _write_ahead(connection: Any) -> None:
    # The first change of the mode needs the file alone, and SQLite does not wait for that.
    for _ in range(_WAL_TRIES):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            time.sleep(_WAL_PAUSE_SECONDS)
        else:
            return
    connection.execute("PRAGMA journal_mode=WAL")


def _begin(connection: Connection) -> None:
    # A transaction that first reads and then writes would fail with "database is locked" if another
    # one wrote in between. Taking the write lock at once makes it wait instead.
    reads = connection.get_execution_options().get("animalcat_reads", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _begin_alone(connection: Connection) -> None:
    # On PostgreSQL too, transactions that write come one after another. They are few and short, and
    # what holds on one of the two databases then holds on the other.
    if not connection.get_execution_options().get("animalcat_reads", False):
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": WRITE_LOCK})


@contextmanager
def _collect_damage(damage: list[str], what: str) -> Generator[None]:
    """Add what the database cannot read in the block to the damage, and go on."""
    try:
        yield
    except DBAPIError as error:
        damage.append(f"{what} cannot be read: {error.orig}")


def _of_beginning(db: Connection, session: str) -> dict[str, str]:
    table = schema.sessions
    return _of_row(db, session, BEGINNING, (table.c.id, table.c.spec, table.c.created))


def _of_standing(db: Connection, session: str) -> dict[str, str]:
    table = schema.sessions
    columns = (
        *(table.c.id, table.c.state, table.c.reason, table.c.capabilities, table.c.misfit),
        *(table.c.identity, table.c.agent, table.c.battery, table.c.battery_digest),
    )
    return _of_row(db, session, STANDING, columns)


def _of_row(
    db: Connection, session: str, what: str, columns: Sequence[ColumnElement[Any]]
) -> dict[str, str]:
    query = select(*columns).where(schema.sessions.c.id == session)
    row = db.execute(query).mappings().one_or_none()
    return {} if row is None else {what: content_digest(dict(row))}


def _of_attempts(db: Connection, session: str, only: str = "") -> dict[str, str]:
    """Digests of the attempts that are over; of one alone, as "NUMBER-ATTEMPT", if it is named."""
    table = schema.episodes
    query = select(table).where(table.c.session == session, table.c.outcome.is_not(None))
    if only:
        number, attempt = map(int, only.split("-"))
        query = query.where(table.c.number == number, table.c.attempt == attempt)
    rows = db.execute(query).mappings()
    return {f"{row['number']}-{row['attempt']}": content_digest(dict(row)) for row in rows}


def _of_certificates(db: Connection, session: str) -> dict[str, str]:
    query = select(schema.certificates).where(schema.certificates.c.session == session)
    rows = db.execute(query).mappings()
    return {f"{CERTIFICATE}{row['n']}": content_digest(dict(row)) for row in rows}


def _of_profile(db: Connection, session: str) -> dict[str, str]:
    query = select(schema.profiles).where(schema.profiles.c.session == session)
    row = db.execute(query).mappings().one_or_none()
    return {} if row is None else {PROFILE: content_digest(dict(row))}


_CONTENTS: Final[Mapping[str, Callable[[Connection, str], dict[str, str]]]] = {
    "its specification": _of_beginning,
    "how it stands": _of_standing,
    "the records of its attempts": _of_attempts,
    "its certificates": _of_certificates,
    "its profile": _of_profile,
}
"""What reads the digests of everything of a session that is stored for good, by what it is."""


def _content(db: Connection, session: str, what: str) -> str:
    """Return the digest of what a link is about, as it is stored now."""
    if what == BEGINNING:
        digests = _of_beginning(db, session)
    elif what == STANDING:
        digests = _of_standing(db, session)
    elif what == PROFILE:
        digests = _of_profile(db, session)
    elif what.startswith(CERTIFICATE):
        digests = _of_certificates(db, session)
    else:
        digests = _of_attempts(db, session, what)
    return digests[what]


def _add_link(db: Connection, session: str, what: str, recording: str | None = None) -> None:
    """Add a link about something that has just been stored.

    Args:
        db: The transaction in which it was stored.
        session: The session.
        what: What the link is about.
        recording: Digest of the file that belongs to it; None for that of the last link about the
            same.
    """
    table = schema.chain
    mine = select(table).where(table.c.session == session).order_by(table.c.seq.desc()).limit(1)
    last = db.execute(mine).one_or_none()
    if recording is None:
        known = db.execute(mine.where(table.c.what == what)).one_or_none()
        recording = "" if known is None else str(known.recording)
    content = _content(db, session, what)
    link = make_link("" if last is None else last.digest, what, content, recording)
    seq = 0 if last is None else last.seq + 1
    db.execute(insert(table).values(session=session, seq=seq, **link._asdict()))


def _numbers(token: str, n: int) -> list[int]:
    """Return the numbers in a page's token."""
    parts = token.split("-")
    if len(parts) != n or not all(part.isdecimal() and part.isascii() for part in parts):
        raise _bad_page(token)
    return [int(part) for part in parts]


def _name(token: str, what: str) -> str:
    """Return the name in a page's token."""
    kind, _, name = token.partition("/")
    if kind != what or not name:
        raise _bad_page(token)
    return name


def _bad_page(token: str) -> BadPageError:
    return BadPageError(f"{token[:40]!r} is not the token of a page; start with the first page")


def _insert(db: Connection, statement: Any, taken: str) -> None:
    try:
        db.execute(statement)
    except IntegrityError as error:
        raise AlreadyFinishedError(taken) from error


@cache
def _select_owned(kind: str) -> Select[Any]:
    """Return what reads rows of a kind with their owners."""
    return select(schema.metadata.tables[kind], owners.column(kind))


@cache
def _session_query() -> Select[Any]:
    return select(schema.sessions, owners.column("sessions"), _count_unjudged())


def _count_unjudged() -> Label[Any]:
    """Numbers of the episodes of a session of which nobody has said what they are, as text."""
    table, played = schema.sessions, schema.episodes
    numbers = func.aggregate_strings(cast(played.c.number, String), ",")
    awaited = select(numbers).where(played.c.session == table.c.id, schema.AWAITED)
    return awaited.correlate(table).scalar_subquery().label("unjudged")


def _as_numbers(unjudged: str | None) -> tuple[int, ...]:
    """What `_count_unjudged` found, as numbers."""
    return tuple(sorted(map(int, unjudged.split(",")))) if unjudged else ()


def _in_states(wanted: SessionFilter, page: Page) -> ColumnElement[bool]:
    """Which sessions are in states; of a page of a list over all agents, found state by state.

    So a page costs as much where few of many sessions, or nearly all, are in these states.
    """
    table = schema.sessions
    names = [state.name for state in wanted.states]
    if not page.limit or wanted.agent or wanted.battery:
        return table.c.state.in_(names)
    parts: list[Select[Any]] = []
    for name in names:
        part = select(table.c.seq).where(table.c.state == name)
        part = part.where(owners.whose_condition("sessions", wanted.whose))
        if page.after:
            part = part.where(table.c.seq < _numbers(page.after, 1)[0])
        newest = part.order_by(table.c.seq.desc()).limit(page.limit + 1).subquery()
        parts.append(select(newest.c.seq))
    return table.c.seq.in_(union_all(*parts))


class SessionCounts(NamedTuple):
    """What is kept of the numbers of a session's attempts.

    Attributes:
        episodes: How many count.
        successes: How many of those are successes.
        practised: How many were passed or failed for practice.
        spent: What was spent on all that are over.
    """

    episodes: int
    successes: int
    practised: int
    spent: Spent = NOTHING


class CampaignCounts(NamedTuple):
    """How far the sessions of a campaign are.

    Attributes:
        episodes: How many of their episodes count.
        going_on: How many of them are not over.
    """

    episodes: int
    going_on: int


def _counts_added(
    outcome: str | None, counts: bool, invalid: str, spent: Spent = NOTHING
) -> SessionCounts:
    """What an attempt adds to the numbers of its session."""
    passed = outcome == Outcome.SUCCESS.name
    # What was passed or failed and does not count, though nobody declared it invalid.
    practice = not counts and not invalid and (passed or outcome == Outcome.FAILURE.name)
    return SessionCounts(int(counts), int(counts and passed), int(practice), spent)


def _sum_counts(parts: Iterable[SessionCounts]) -> SessionCounts:
    episodes = successes = practised = 0
    spent = NOTHING
    for part in parts:
        episodes, successes = episodes + part.episodes, successes + part.successes
        practised, spent = practised + part.practised, spent + part.spent
    return SessionCounts(episodes, successes, practised, spent)


def _count(db: Connection, ended: Episode, spent: Spent = NOTHING) -> None:
    """Add an attempt that has just come to its end to the numbers of its session."""
    outcome = None if ended.outcome is None else ended.outcome.name
    _change_counts(db, ended.session, _counts_added(outcome, ended.counts, ended.invalid, spent))


def _change_counts(db: Connection, session: str, by: SessionCounts) -> None:
    table = schema.sessions
    this = table.c.id == session
    numbers = by._asdict()
    spent: Spent = numbers.pop("spent")
    changed: dict[str, Any] = {name: table.c[name] + n for name, n in numbers.items() if n}
    if spent != NOTHING:
        before = records.SPENT.read(db.execute(select(table.c.spent).where(this)).scalar_one())
        changed["spent"] = records.SPENT.write(before + spent)
    if changed:
        db.execute(update(table).where(this).values(changed))


def _find_requested(db: Connection, request_id: str) -> Session | None:
    this = schema.sessions.c.request_id == request_id
    row = db.execute(_session_query().where(this)).one_or_none()
    return None if row is None else _session(row)


def _one_session(db: Connection, session: str) -> Session:
    row = db.execute(_session_query().where(schema.sessions.c.id == session)).one_or_none()
    if row is None:
        raise KeyError(f"no session {session}")
    return _session(row)


def _change_state(db: Connection, session: str, state: SessionState, reason: str) -> None:
    before = _one_session(db, session).state
    if before.over and before != state:
        raise AlreadyFinishedError(f"{session} is {before.name.lower()}")
    table = schema.sessions
    db.execute(update(table).where(table.c.id == session).values(state=state.name, reason=reason))


def _set_knowledge(
    db: Connection, session: str, capabilities: tuple[CapabilityStatus, ...], misfit: str
) -> None:
    table = schema.sessions
    db.execute(
        update(table)
        .where(table.c.id == session)
        .values(
            capabilities=records.CAPABILITIES.write(records.Capabilities(capabilities)),
            misfit=misfit,
        )
    )


def episode_values(episode: Episode) -> dict[str, Any]:
    """Return the row of an attempt: values by the name of their column."""
    outcome, ended_by = episode.outcome, episode.ended_by
    return {
        "session": episode.session,
        "number": episode.number,
        "attempt": episode.attempt,
        "decision": records.DECISION.write(episode.decision),
        "agent_instance": episode.agent_instance,
        "outcome": None if outcome is None else outcome.name,
        "counts": episode.counts,
        "invalid": episode.invalid,
        "episode_return": episode.episode_return,
        "steps": episode.steps,
        "ended_by": None if ended_by is None else ended_by.name,
        "cause": episode.cause,
        "seconds": episode.seconds,
        "outcomes": dict(episode.outcomes),
        "versions": dict(episode.versions),
        "spent": records.SPENT.write(episode.spent),
        "ruling": "" if episode.ruling is None else episode.ruling.name,
        "seen": episode.seen,
    }


def _episode(row: Row[Any]) -> Episode:
    try:
        return Episode(
            session=row.session,
            number=row.number,
            attempt=row.attempt,
            decision=records.DECISION.read(row.decision),
            agent_instance=row.agent_instance,
            outcome=None
            if row.outcome is None
            else records.read_name("outcome", Outcome, row.outcome),
            episode_return=row.episode_return,
            steps=row.steps,
            ended_by=None
            if row.ended_by is None
            else records.read_name("ended_by", EndedBy, row.ended_by),
            cause=row.cause,
            seconds=row.seconds,
            outcomes=records.read_json("outcomes", row.outcomes),
            versions=records.read_json("versions", row.versions),
            invalid=row.invalid,
            spent=records.SPENT.read(row.spent),
            ruling=records.read_name("ruling", Ruling, row.ruling) if row.ruling else None,
            seen=row.seen,
        )
    except UnreadableError as error:
        return Episode(
            row.session,
            row.number,
            row.attempt,
            Decision("", 0.0, 0.0, 0.0, {}, ""),
            unreadable=f"unreadable: {error}",
        )


def _session(row: Row[Any]) -> Session:
    created = row.created.replace(tzinfo=UTC)
    try:
        return Session(
            id=row.id,
            spec=records.SPEC.read(row.spec),
            state=records.read_name("state", SessionState, row.state),
            reason=row.reason,
            created=created,
            episodes=row.episodes,
            successes=row.successes,
            capabilities=records.CAPABILITIES.read(row.capabilities).capabilities,
            misfit=row.misfit,
            paused=row.paused,
            practised=row.practised,
            spent=records.SPENT.read(row.spent),
            unjudged=_as_numbers(row.unjudged),
            identity=records.IDENTITY.read(row.identity),
            owner=row.owner or "",
        )
    except UnreadableError as error:
        return Session(
            id=row.id,
            spec=_no_spec(row.agent, row.battery),
            state=SessionState.UNREADABLE,
            reason=f"unreadable: {error}",
            created=created,
            episodes=row.episodes,
            successes=row.successes,
            owner=row.owner or "",
        )


def _campaign(row: Row[Any]) -> StoredCampaign:
    created = row.created.replace(tzinfo=UTC)
    try:
        spec = records.CAMPAIGN.read(row.spec)
    except UnreadableError as error:
        nothing_known = CampaignSpec((), _no_spec("", row.battery), 1)
        why = f"unreadable: {error}"
        return StoredCampaign(
            row.id, nothing_known, _sessions_of(row), created, why, owner=row.owner or ""
        )
    return StoredCampaign(row.id, spec, _sessions_of(row), created, owner=row.owner or "")


def _campaign_of(db: Connection, session: str) -> str:
    table = schema.sessions
    return db.scalar(select(table.c.campaign).where(table.c.id == session)) or ""


def _no_spec(agent: str, battery: str) -> SessionSpec:
    """Return a specification for a session whose own cannot be read."""
    try:
        names.check_component(battery, "battery")
    except names.BadNameError:
        battery = ""
    return SessionSpec(agent, battery, "", "", "", Policy(), StoppingRule())


def _sessions_of(row: Row[Any]) -> tuple[str, ...]:
    """Return the sessions of a campaign; none if even they cannot be read."""
    try:
        return tuple(records.read_json("sessions", row.sessions))
    except UnreadableError:
        return ()


def _battery(row: Row[Any]) -> BatteryRecord:
    try:
        problems = tuple(records.read_json("problems", row.problems))
        suites = dict(records.read_json("suites", row.suites))
    except UnreadableError as error:
        problems, suites = (f"unreadable: {error}",), dict[str, int]()
    return BatteryRecord(row.id, row.digest, row.instances, problems, suites, owner=row.owner or "")


def _layout(row: Row[Any]) -> LayoutRecord:
    return LayoutRecord(row.digest, row.name, row.variant, row.text, row.owner or "")


def _certificate(row: Row[Any]) -> StoredCertificate:
    result = records.read_json(f"certificate {row.n} of {row.session}", row.result)
    return StoredCertificate(row.n, row.passed, result, row.draws)


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()
