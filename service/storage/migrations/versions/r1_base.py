"""The schema with which history begins."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "r1"
down_revision: Final = None

_SESSION: Final = "sessions.id"


def upgrade() -> None:
    """Make the tables and indexes."""
    op.create_table(
        "meta",
        sa.Column("key", sa.String(40), primary_key=True),
        sa.Column("value", sa.String(200), nullable=False),
    )
    op.create_table(
        "batteries",
        sa.Column("id", sa.String(100), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("instances", sa.Integer, nullable=False),
        sa.Column("problems", sa.JSON, nullable=False),
        sa.Column("suites", sa.JSON, nullable=False),
    )
    op.create_index("batteries_by_digest", "batteries", ["digest"])
    op.create_table(
        "layouts",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("variant", sa.String(200), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_index("layouts_by_name", "layouts", ["name", "variant", "digest"])
    op.create_table(
        "sessions",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("id", sa.String(100), nullable=False, unique=True),
        sa.Column("request_id", sa.String(200), nullable=True, unique=True),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("created", sa.DateTime(timezone=False), nullable=False),
        sa.Column("capabilities", sa.JSON, nullable=False),
        sa.Column("misfit", sa.Text, nullable=False),
        sa.Column("agent", sa.String(200), nullable=False),
        sa.Column("battery", sa.String(100), nullable=False),
        sa.Column("battery_digest", sa.String(64), nullable=False),
        sa.Column("paused", sa.Boolean, nullable=False),
        sa.Column("identity", sa.JSON, nullable=False),
        sa.Column("episodes", sa.Integer, nullable=False),
        sa.Column("successes", sa.Integer, nullable=False),
        sa.Column("practised", sa.Integer, nullable=False),
        sa.Column("spent", sa.JSON, nullable=False),
        sa.Column("campaign", sa.String(100), nullable=True),
    )
    op.create_index("sessions_by_agent", "sessions", ["agent", "seq"])
    op.create_index("sessions_by_battery", "sessions", ["battery_digest"])
    op.create_index("sessions_by_battery_name", "sessions", ["battery", "seq"])
    op.create_index("sessions_by_state", "sessions", ["state", "seq"])
    op.create_index("sessions_by_campaign", "sessions", ["campaign"])
    op.create_table(
        "campaigns",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("id", sa.String(100), nullable=False, unique=True),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("sessions", sa.JSON, nullable=False),
        sa.Column("created", sa.DateTime(timezone=False), nullable=False),
        sa.Column("battery", sa.String(100), nullable=False),
        sa.Column("battery_digest", sa.String(64), nullable=False),
    )
    op.create_index("campaigns_by_battery", "campaigns", ["battery", "seq"])
    op.create_index("campaigns_by_digest", "campaigns", ["battery_digest"])
    op.create_table(
        "episodes",
        sa.Column("session", sa.String(100), sa.ForeignKey(_SESSION), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("decision", sa.JSON, nullable=False),
        sa.Column("agent_instance", sa.String(200), nullable=False),
        sa.Column("outcome", sa.String(20), nullable=True),
        sa.Column("counts", sa.Boolean, nullable=False),
        sa.Column("episode_return", sa.Float, nullable=False),
        sa.Column("steps", sa.Integer, nullable=False),
        sa.Column("ended_by", sa.String(20), nullable=True),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("outcomes", sa.JSON, nullable=False),
        sa.Column("versions", sa.JSON, nullable=False),
        sa.Column("invalid", sa.Text, nullable=False),
        sa.Column("spent", sa.JSON, nullable=False),
        sa.Column("ruling", sa.String(20), nullable=False),
        sa.Column("seen", sa.Boolean, nullable=False),
    )
    counts = sa.text("counts")
    op.create_index(
        "one_counts",
        "episodes",
        ["session", "number"],
        unique=True,
        sqlite_where=counts,
        postgresql_where=counts,
    )
    awaited = sa.text("ruling = 'AWAITED'")
    op.create_index(
        "episodes_awaited",
        "episodes",
        ["session", "number"],
        sqlite_where=awaited,
        postgresql_where=awaited,
    )
    op.create_table(
        "certificates",
        sa.Column("session", sa.String(100), sa.ForeignKey(_SESSION), primary_key=True),
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("passed", sa.Boolean, nullable=False),
        sa.Column("result", sa.JSON, nullable=False),
        sa.Column("draws", sa.String(500), nullable=False),
    )
    op.create_table(
        "profiles",
        sa.Column("session", sa.String(100), sa.ForeignKey(_SESSION), primary_key=True),
        sa.Column("profile", sa.JSON, nullable=False),
    )
    op.create_table(
        "chain",
        sa.Column("session", sa.String(100), sa.ForeignKey(_SESSION), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("what", sa.String(40), nullable=False),
        sa.Column("content", sa.String(64), nullable=False),
        sa.Column("recording", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
    )
    op.create_table(
        "owners",
        sa.Column("item", sa.String(210), primary_key=True),
        sa.Column("owner", sa.String(200), nullable=False),
    )
    op.create_index("owners_by_owner", "owners", ["owner"])
    op.create_table(
        "audit",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("created", sa.DateTime(timezone=False), nullable=False),
        sa.Column("request", sa.String(100), nullable=False),
        sa.Column("subject", sa.String(200), nullable=False),
        sa.Column("caller", sa.String(300), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("action", sa.String(100), nullable=False),
        sa.Column("object", sa.Text, nullable=False),
        sa.Column("result", sa.String(40), nullable=False),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column("peer", sa.String(200), nullable=False),
        sa.Column("server", sa.String(200), nullable=False),
        sa.Column("times", sa.Integer, nullable=False),
    )
    op.create_index("audit_by_subject", "audit", ["subject", "seq"])
    op.create_index("audit_by_time", "audit", ["created"])
