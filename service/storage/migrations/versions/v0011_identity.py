"""Who plays a session: the fingerprint of its agent."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0011"
down_revision: Final = "0010"


def upgrade() -> None:
    """Add the column; of the agents of sessions of before nothing is known."""
    op.add_column("sessions", sa.Column("identity", sa.JSON, nullable=False, server_default="{}"))
