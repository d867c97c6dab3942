"""Campaigns, and what they allow their sessions."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0004"
down_revision: Final = "0003"


def upgrade() -> None:
    """Add table and column."""
    op.add_column("sessions", sa.Column("allowed", sa.Integer, nullable=True))
    # Stores of that time made new tables before they changed old ones, and could die in between.
    op.create_table(
        "campaigns",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("id", sa.String(100), nullable=False, unique=True),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("sessions", sa.JSON, nullable=False),
        sa.Column("created", sa.DateTime(timezone=False), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        if_not_exists=True,
    )
