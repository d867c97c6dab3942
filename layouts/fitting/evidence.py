"""Reads which rows of a table of outcomes are evidence, and what each of them counts as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.pooling import Play, weigh_outcomes
from animalcat.text.counts import count_of

if TYPE_CHECKING:
    import pandas as pd

AGENT = "agent"
"""Name of the agent in a table that names none."""


class CountedRows(NamedTuple):
    """The rows of a table that count.

    Attributes:
        frame: These rows, with an agent each, by session, episode and attempt.
        weights: (rows,): how many outcomes each counts as; None for one each.
        notes: What was left out, merged or weighted down, in sentences.
    """

    frame: pd.DataFrame
    weights: npt.NDArray[np.float64] | None
    notes: tuple[str, ...]


def evidence_of(table: pd.DataFrame) -> CountedRows:
    """Return the rows of a table of outcomes that count; the order of its rows changes nothing.

    Args:
        table: The table, as `animalcat.outcomes.check_outcomes` returns it.

    Raises:
        ContradictionError: An attempt of a session is there twice, with different outcomes.
    """
    frame = table.assign(agent=table["agent"].fillna(AGENT))
    frame = frame.sort_values(
        ["agent", "session", "episode", "attempt", "instance", "outcome"], kind="stable"
    )
    taken_back = {_attempt(row) for row in _rows(frame[frame["outcome"] == "invalid"])}
    stands = np.array([_attempt(row) not in taken_back for row in _rows(frame)], bool)
    counts = frame["outcome"].isin(["success", "failure"]).to_numpy(bool) & stands
    notes: list[str] = []
    if left := int((~counts).sum()):
        kinds = frame["outcome"][~counts].value_counts()
        by_kind = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
        notes.append(f"left out {left} of {len(frame)} rows as no evidence: {by_kind}")
    frame = frame[counts]
    counted = weigh_outcomes([_play(row) for row in _rows(frame)])
    caused = (frame["outcome"] == "failure") & (frame["cause"].fillna("") != "")
    if (known := int(caused.sum())) > 0:
        notes.append(
            f"{count_of(known, 'failure')} did not come from the arena but from what the column "
            "`cause` says, such as lateness; they count as failures, as in the session"
        )
    kept = counted.weights > 0.0
    weights = counted.weights[kept]
    return CountedRows(
        frame[kept].reset_index(drop=True),
        weights if (weights < 1.0).any() else None,
        (*notes, *counted.notes),
    )


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(key): None if value != value else value for key, value in row.items()}
        for row in frame.astype(object).where(frame.notna(), None).to_dict("records")
    ]


def _attempt(row: dict[str, Any]) -> tuple[Any, ...]:
    """Which attempt of which session a row is; nothing that another row is, where it says none."""
    if not row["session"] or row["episode"] is None:
        return (id(row),)
    return row["agent"], row["session"], row["episode"], row["attempt"] or 0


def _play(row: dict[str, Any]) -> Play:
    known = bool(row["session"]) and row["episode"] is not None
    arena = (row["arena"], row["arena_seed"] or "") if row["arena"] else row["instance"]
    return Play(
        agent=row["agent"],
        item=arena,
        outcome=float(row["outcome"] == "success"),
        attempt=(row["episode"], row["attempt"] or 0) if known else "",
        session=row["session"] if known else "",
        weight=row["weight"],
        fingerprint=row["agent_fingerprint"] or "",
    )
