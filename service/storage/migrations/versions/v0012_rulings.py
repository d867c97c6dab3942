"""What people say of attempts at which the agent's code failed, and arenas that were seen there."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0012"
down_revision: Final = "0011"


def upgrade() -> None:
    """Add the columns; of earlier attempts nothing is known."""
    op.add_column("episodes", sa.Column("ruling", sa.String(20), nullable=False, server_default=""))
    op.add_column(
        "episodes", sa.Column("seen", sa.Boolean, nullable=False, server_default=sa.false())
    )
