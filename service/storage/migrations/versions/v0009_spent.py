"""What agents spend on attempts: time, tokens and money."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0009"
down_revision: Final = "0008"


def upgrade() -> None:
    """Add the column; of earlier attempts nothing is known."""
    column = sa.Column("spent", sa.JSON, nullable=False, server_default="{}")
    op.add_column("episodes", column)
