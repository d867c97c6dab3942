"""The episodes of a long session, in parts that its page draws when they are opened."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from animalcat.service.reporting.session_report import EpisodeRow

MOST_WHOLE: Final = 500
"""Most attempts that a page shows as they are; of more, it has parts."""
LAST: Final = 50
"""Latest attempts that a page with parts shows as they are."""
_MOST_PARTS: Final = 200
_ARENAS: Final = 100
"""Arenas that a page reads together."""


@dataclass(frozen=True)
class Part:
    """Attempts that follow each other.

    Attributes:
        words: Which they are and what became of them, in words.
        passed: Share of those that count that were passed, in per cent; None where none counts.
        rows: What a page needs to draw them, packed.
    """

    words: str
    passed: int | None
    rows: str


@dataclass(frozen=True)
class Parts:
    """All attempts of a long session.

    Attributes:
        parts: The attempts, in order.
        arenas: What a page needs to say of the arenas, some together, packed.
        together: How many arenas are together.
    """

    parts: Sequence[Part]
    arenas: Sequence[str]
    together: int = _ARENAS


def parts_of(episodes: Sequence[EpisodeRow], maps: Mapping[str, str]) -> Parts | None:
    """Split the attempts of a long session; None where there are few.

    Args:
        episodes: All attempts, in order.
        maps: Maps of arenas as SVG, by name, of those that have one.
    """
    if len(episodes) <= MOST_WHOLE:
        return None
    places: dict[str, int] = {}
    arenas: list[tuple[str, ...]] = []
    for row in episodes:
        if row.instance not in places:
            places[row.instance] = len(arenas)
            told = (row.instance, row.paradigm, row.demands, str(maps.get(row.instance, "")))
            arenas.append(told)
    size = max(MOST_WHOLE, -(-len(episodes) // _MOST_PARTS))
    return Parts(
        [_part(episodes[k : k + size], places) for k in range(0, len(episodes), size)],
        [_pack(arenas[k : k + _ARENAS]) for k in range(0, len(arenas), _ARENAS)],
    )


def _part(episodes: Sequence[EpisodeRow], places: Mapping[str, int]) -> Part:
    counts = Counter(row.outcome for row in episodes)
    said = ", ".join(f"{n} {outcome}" for outcome, n in counts.most_common())
    counted = counts["success"] + counts["failure"]
    return Part(
        f"Episodes {episodes[0].number} to {episodes[-1].number}: {said}",
        round(100 * counts["success"] / counted) if counted else None,
        _pack(
            [
                (
                    *(row.number, row.attempt, places[row.instance], row.why, row.predicted),
                    *(row.outcome, row.mark, row.ended),
                )
                for row in episodes
            ]
        ),
    )


def _pack(value: Any) -> str:
    """JSON as a page unpacks it: compressed by zlib, in base 64."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return b64encode(zlib.compress(text.encode(), 9)).decode()
