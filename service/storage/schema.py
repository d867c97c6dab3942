"""Defines the tables of the relational store."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    text,
)

REVISION: Final = "r1"
"""Revision of the schema; `migrations/versions` has the step that leads to each revision."""

metadata: Final = MetaData()

meta: Final = Table(
    "meta",
    metadata,
    Column("key", String(40), primary_key=True),
    Column("value", String(200), nullable=False),
)

alembic_version: Final = Table(
    "alembic_version",
    metadata,
    Column("version_num", String(32), primary_key=True),
)

batteries: Final = Table(
    "batteries",
    metadata,
    Column("id", String(100), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("instances", Integer, nullable=False),
    Column("problems", JSON, nullable=False),
    Column("suites", JSON, nullable=False),
    Index("batteries_by_digest", "digest"),
)

layouts: Final = Table(
    "layouts",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("variant", String(200), nullable=False),
    Column("text", Text, nullable=False),
    Index("layouts_by_name", "name", "variant", "digest"),
)

sessions: Final = Table(
    "sessions",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("id", String(100), nullable=False, unique=True),
    Column("request_id", String(200), nullable=True, unique=True),
    Column("spec", JSON, nullable=False),
    Column("state", String(20), nullable=False),
    Column("reason", Text, nullable=False),
    Column("created", DateTime(timezone=False), nullable=False),
    # Derived for lists: copied from the latest attempt or the profile.
    Column("capabilities", JSON, nullable=False),
    Column("misfit", Text, nullable=False),
    # Derived for filters: copied from the spec.
    Column("agent", String(200), nullable=False),
    Column("battery", String(100), nullable=False),
    Column("battery_digest", String(64), nullable=False),
    Column("paused", Boolean, nullable=False),
    # Who plays it; it may become known after the session has begun.
    Column("identity", JSON, nullable=False),
    # Derived for lists: how many of its episodes count, how many of those are successes, and how
    # many were practice. Each change of an attempt changes them in the same transaction.
    Column("episodes", Integer, nullable=False),
    Column("successes", Integer, nullable=False),
    Column("practised", Integer, nullable=False),
    # Derived: the sum of what its agent spent on attempts; each that ends adds to it.
    Column("spent", JSON, nullable=False),
    # The campaign to which it belongs; null if to none.
    Column("campaign", String(100), nullable=True),
    Index("sessions_by_agent", "agent", "seq"),
    Index("sessions_by_battery", "battery_digest"),
    Index("sessions_by_battery_name", "battery", "seq"),
    Index("sessions_by_state", "state", "seq"),
    Index("sessions_by_campaign", "campaign"),
)

campaigns: Final = Table(
    "campaigns",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("id", String(100), nullable=False, unique=True),
    Column("spec", JSON, nullable=False),
    Column("sessions", JSON, nullable=False),
    Column("created", DateTime(timezone=False), nullable=False),
    # Derived for filters: copied from the spec.
    Column("battery", String(100), nullable=False),
    Column("battery_digest", String(64), nullable=False),
    Index("campaigns_by_battery", "battery", "seq"),
    Index("campaigns_by_digest", "battery_digest"),
)

_SESSION: Final = "sessions.id"

episodes: Final = Table(
    "episodes",
    metadata,
    Column("session", String(100), ForeignKey(_SESSION), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("decision", JSON, nullable=False),
    Column("agent_instance", String(200), nullable=False),
    Column("outcome", String(20), nullable=True),
    Column("counts", Boolean, nullable=False),
    Column("episode_return", Float, nullable=False),
    Column("steps", Integer, nullable=False),
    Column("ended_by", String(20), nullable=True),
    Column("cause", Text, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("outcomes", JSON, nullable=False),
    Column("versions", JSON, nullable=False),
    # Why a person declared the outcome invalid, so that it does not count; else empty.
    Column("invalid", Text, nullable=False),
    # What the agent spent; empty while the attempt is open.
    Column("spent", JSON, nullable=False),
    # What a person has said of an attempt at which the agent's code failed; else empty.
    Column("ruling", String(20), nullable=False),
    # Whether the agent had seen the arena before: its code failed there, or it withdrew.
    Column("seen", Boolean, nullable=False),
)

_COUNTS: Final = text("counts")
# The database itself enforces that at most one attempt at an episode counts.
Index(
    "one_counts",
    episodes.c.session,
    episodes.c.number,
    unique=True,
    sqlite_where=_COUNTS,
    postgresql_where=_COUNTS,
)

AWAITED: Final = text("ruling = 'AWAITED'")
"""Which attempts wait for a person's ruling; literal, as above."""
Index(
    "episodes_awaited",
    episodes.c.session,
    episodes.c.number,
    sqlite_where=AWAITED,
    postgresql_where=AWAITED,
)

certificates: Final = Table(
    "certificates",
    metadata,
    Column("session", String(100), ForeignKey(_SESSION), primary_key=True),
    Column("n", Integer, primary_key=True),
    Column("passed", Boolean, nullable=False),
    Column("result", JSON, nullable=False),
    Column("draws", String(500), nullable=False),
)

profiles: Final = Table(
    "profiles",
    metadata,
    Column("session", String(100), ForeignKey(_SESSION), primary_key=True),
    Column("profile", JSON, nullable=False),
)

chain: Final = Table(
    "chain",
    metadata,
    Column("session", String(100), ForeignKey(_SESSION), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("what", String(40), nullable=False),
    Column("content", String(64), nullable=False),
    Column("recording", String(64), nullable=False),
    Column("digest", String(64), nullable=False),
)

owners: Final = Table(
    "owners",
    metadata,
    # The resource name of what belongs to somebody; what has no row belongs to nobody.
    Column("item", String(210), primary_key=True),
    Column("owner", String(200), nullable=False),
    Index("owners_by_owner", "owner"),
)

audit: Final = Table(
    "audit",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("created", DateTime(timezone=False), nullable=False),
    Column("request", String(100), nullable=False),
    Column("subject", String(200), nullable=False),
    Column("caller", String(300), nullable=False),
    Column("role", String(20), nullable=False),
    Column("action", String(100), nullable=False),
    Column("object", Text, nullable=False),
    Column("result", String(40), nullable=False),
    Column("words", Text, nullable=False),
    Column("peer", String(200), nullable=False),
    Column("server", String(200), nullable=False),
    Column("times", Integer, nullable=False),
    Index("audit_by_subject", "subject", "seq"),
    Index("audit_by_time", "created"),
)
