"""Where predictions fail, once the alarm says so."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0003"
down_revision: Final = "0002"


def upgrade() -> None:
    """Add the column."""
    op.add_column("sessions", sa.Column("misfit", sa.Text, nullable=False, server_default=""))
