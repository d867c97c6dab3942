"""Adds a single episode to a report on a session: its picture, and why it ended as it did."""

from __future__ import annotations

from base64 import b64encode
from typing import Final

from markupsafe import escape

_BEFORE: Final = '<section id="capabilities">'
"""What a report has after its verdict."""


def with_episode(page: str, heading: str, words: str, picture: bytes) -> str:
    """Add an episode to a report, below its verdict.

    Args:
        page: The report, as `session_page` makes it.
        heading: What the episode is.
        words: Why it ended as it did.
        picture: A PNG of it.

    Returns:
        The page, which still loads nothing from elsewhere.
    """
    before, heading_found, after = page.partition(_BEFORE)
    assert heading_found, "a report has its capabilities in a section of their own"
    source = f"data:image/png;base64,{b64encode(picture).decode()}"
    section = (
        f'<section id="episode">\n<h2>{escape(heading)}</h2>\n<p>{escape(words)}</p>\n'
        f'<figure class="plot"><img src="{source}" style="max-width:100%" '
        f'alt="The end of the episode: what the agent saw, and its path from above"></figure>\n'
        "</section>\n\n"
    )
    return f"{before}{section}{heading_found}{after}"
