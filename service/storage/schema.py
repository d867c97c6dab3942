"""The tables of the relational store."""

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

VERSION: Final = 5
"""Version of the schema; a store of a newer one is refused, of an older one brought up to date."""

STEPS: Final = {
    1: ("ALTER TABLE episodes ADD COLUMN seconds FLOAT NOT NULL DEFAULT 0",),
    2: ("ALTER TABLE sessions ADD COLUMN misfit TEXT NOT NULL DEFAULT ''",),
    3: ("ALTER TABLE sessions ADD COLUMN allowed INTEGER",),
    4: (
        "ALTER TABLE episodes ADD COLUMN outcomes JSON NOT NULL DEFAULT '{}'",
        "ALTER TABLE episodes ADD COLUMN versions JSON NOT NULL DEFAULT '{}'",
    ),
}
"""What brings a store of each version to the next; tables that are new are made by themselves."""

metadata: Final = MetaData()

meta: Final = Table(
    "meta",
    metadata,
    Column("key", String(40), primary_key=True),
    Column("value", String(200), nullable=False),
)

batteries: Final = Table(
    "batteries",
    metadata,
    Column("id", String(100), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("instances", Integer, nullable=False),
    Column("problems", JSON, nullable=False),
)

layouts: Final = Table(
    "layouts",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("variant", String(200), nullable=False),
    Column("text", Text, nullable=False),
)

sessions: Final = Table(
    "sessions",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("id", String(100), nullable=False, unique=True),
    Column("request_id", String(200), nullable=True, unique=True),
    Column("spec", JSON, nullable=False),
    Column("state", String(20), nullable=False),
    Column("reason", Text, nullable=False, default=""),
    Column("created", DateTime(timezone=False), nullable=False),
    # Episodes that may be begun for now; null: as the stopping rule says.
    Column("allowed", Integer, nullable=True),
    # Derived: copied from the latest attempt or the profile, for lists.
    Column("capabilities", JSON, nullable=False),
    Column("misfit", Text, nullable=False, server_default=""),
)

campaigns: Final = Table(
    "campaigns",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("id", String(100), nullable=False, unique=True),
    Column("spec", JSON, nullable=False),
    Column("sessions", JSON, nullable=False),
    Column("created", DateTime(timezone=False), nullable=False),
    Column("reason", Text, nullable=False, default=""),
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
    Column("counts", Boolean, nullable=False, default=False),
    Column("episode_return", Float, nullable=False),
    Column("steps", Integer, nullable=False),
    Column("ended_by", String(20), nullable=True),
    Column("cause", Text, nullable=False),
    Column("seconds", Float, nullable=False, server_default="0"),
    Column("outcomes", JSON, nullable=False, server_default="{}"),
    Column("versions", JSON, nullable=False, server_default="{}"),
)

_COUNTS: Final = text("counts")
# The database itself keeps that at most one attempt at a number counts.
Index(
    "one_counts",
    episodes.c.session,
    episodes.c.number,
    unique=True,
    sqlite_where=_COUNTS,
    postgresql_where=_COUNTS,
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
