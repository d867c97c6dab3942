"""What lists are filtered by gets columns; room for pausing and for outcomes declared invalid."""

from __future__ import annotations

import json
from typing import Any, Final, cast

import sqlalchemy as sa
from alembic import op

revision: Final = "0006"
down_revision: Final = "0005"

_COLUMNS: Final = {"agent": 200, "battery": 100, "battery_digest": 64}


def upgrade() -> None:
    """Add the columns, and fill them from the specs; from what is unreadable nothing is taken."""
    for name, length in _COLUMNS.items():
        op.add_column(
            "sessions", sa.Column(name, sa.String(length), nullable=False, server_default="")
        )
    for name in ("battery", "battery_digest"):
        op.add_column(
            "campaigns",
            sa.Column(name, sa.String(_COLUMNS[name]), nullable=False, server_default=""),
        )
    op.add_column(
        "sessions", sa.Column("paused", sa.Boolean, nullable=False, server_default=sa.false())
    )
    op.add_column("episodes", sa.Column("invalid", sa.Text, nullable=False, server_default=""))
    _fill("sessions", tuple(_COLUMNS))
    _fill("campaigns", ("battery", "battery_digest"), "session")
    op.create_index("sessions_by_agent", "sessions", ["agent", "seq"])
    op.create_index("sessions_by_battery", "sessions", ["battery_digest"])


def _fill(table: str, names: tuple[str, ...], inner: str = "") -> None:
    """Copy what the columns are to hold out of the specs, or out of a part of them."""
    db = op.get_bind()
    seq, stored = sa.column("seq", sa.Integer), sa.column("spec", sa.JSON)
    columns = [sa.column(name, sa.String) for name in names]
    rows = sa.table(table, seq, stored, *columns)
    # As text: a spec that is damaged must not stop the others.
    for number, text in db.execute(
        sa.select(seq, sa.cast(stored, sa.Text)).select_from(rows)
    ).all():
        spec = _parsed(text)
        found = _texts(spec.get(inner) if inner else spec)
        values = {name: found[name][: _COLUMNS[name]] for name in names if name in found}
        if values:
            db.execute(sa.update(rows).where(seq == number).values(values))


def _parsed(text: str) -> dict[str, Any]:
    try:
        found: Any = json.loads(text)
    except ValueError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _texts(values: Any) -> dict[str, str]:
    if not isinstance(values, dict):
        return {}
    return {k: v for k, v in cast("dict[str, Any]", values).items() if isinstance(v, str)}
