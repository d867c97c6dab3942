"""Layouts by digest; what was observed of an attempt, and what played it."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0005"
down_revision: Final = "0004"


def upgrade() -> None:
    """Add table and columns."""
    for name in ("outcomes", "versions"):
        op.add_column("episodes", sa.Column(name, sa.JSON, nullable=False, server_default="{}"))
    op.create_table(
        "layouts",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("variant", sa.String(200), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        if_not_exists=True,
    )
