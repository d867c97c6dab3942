"""How many simulators may play a campaign at once."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0010"
down_revision: Final = "0009"


def upgrade() -> None:
    """Add the column; campaigns of before have no limit of their own."""
    op.add_column(
        "campaigns", sa.Column("max_workers", sa.Integer, nullable=False, server_default="0")
    )
