"""To whom things belong, with whom they are shared, and the audit log."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "r2"
down_revision: Final = "r1"


def upgrade() -> None:
    """Make the tables and indexes; what there is belongs to nobody."""
    op.create_table(
        "owners",
        sa.Column("item", sa.String(210), primary_key=True),
        sa.Column("owner", sa.String(200), nullable=False),
    )
    op.create_index("owners_by_owner", "owners", ["owner"])
    op.create_table(
        "shares",
        sa.Column("item", sa.String(210), primary_key=True),
        sa.Column("circle", sa.String(210), primary_key=True),
    )
    op.create_index("shares_by_circle", "shares", ["circle"])
    op.create_table(
        "audit",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("id", sa.String(64), nullable=False, unique=True),
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
        sa.Column("begun", sa.Integer, nullable=True, unique=True),
        sa.Column("digest", sa.String(64), nullable=False),
    )
    op.create_index("audit_by_subject", "audit", ["subject", "seq"])
    op.create_index("audit_by_time", "audit", ["created"])
