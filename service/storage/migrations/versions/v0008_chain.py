"""A chain of digests over what sessions leave behind."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0008"
down_revision: Final = "0007"


def upgrade() -> None:
    """Add the table; what was stored before has no links."""
    op.create_table(
        "chain",
        sa.Column("session", sa.String(100), sa.ForeignKey("sessions.id"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("what", sa.String(40), nullable=False),
        sa.Column("content", sa.String(64), nullable=False),
        sa.Column("recording", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
    )
