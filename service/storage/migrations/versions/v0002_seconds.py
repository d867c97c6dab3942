"""How long an attempt took to play."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0002"
down_revision: Final = "0001"


def upgrade() -> None:
    """Add the column; what was played before took no time that is known."""
    op.add_column("episodes", sa.Column("seconds", sa.Float, nullable=False, server_default="0"))
