"""Pictures inside a page: SVG that takes its colours from the page and says what it shows."""

from __future__ import annotations

import io
import re
import warnings
from html import escape
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure

from animalcat.plots.style import BAD, GOOD, INK, MAIN, PAPER, PRIOR, SOFT

COLOURS: Final = {
    INK: "var(--ink)",
    SOFT: "var(--soft)",
    PRIOR: "var(--prior)",
    MAIN: "var(--main)",
    GOOD: "var(--good)",
    BAD: "var(--bad)",
    PAPER: "var(--page)",
    "#000000": "var(--ink)",
    # A layout's graph keeps its colours on a page that has none for it.
    "#2b2b2b": "var(--graph-ink,#2b2b2b)",
    "#6b6b6b": "var(--graph-soft,#6b6b6b)",
    "#666666": "var(--graph-soft,#666666)",
    "#555555": "var(--graph-soft,#555555)",
    "#d9d9d9": "var(--graph-seen,#d9d9d9)",
    "#cfe3f5": "var(--graph-capability,#cfe3f5)",
    "#fbe3c0": "var(--graph-bias,#fbe3c0)",
    "#f4d0d0": "var(--graph-robustness,#f4d0d0)",
    "#fdfdfd": "var(--graph-derived,#fdfdfd)",
}
"""The page's colour for each colour of a picture; it says which one that is in the dark."""
_COLOUR: Final = re.compile("|".join(COLOURS))
_ID: Final = re.compile(r' id="([^"]+)"')
_USED: Final = re.compile(r'(?:xlink:href="#|url\(#)([^")]+)')
_TAG: Final = re.compile(r"<[^>]+>")
_FONTS: Final = re.compile(r"font-family: [^;\"]+")
_NUMBER: Final = re.compile(r"(\d+\.\d{2})\d+")


def inline_svg(figure: Figure, key: str, alt: str) -> str:
    """Draw a figure as an SVG element of a page.

    Text stays text, so that it can be searched, and has the page's size on a wide screen.

    Args:
        figure: The figure.
        key: What its identifiers begin with; no other picture of the page may have the same.
        alt: What it shows, in a sentence, for those who do not see it.
    """
    buffer = io.StringIO()
    settings: Any = mpl
    drawn: Any = figure
    with (
        settings.rc_context({"svg.hashsalt": "animalcat", "svg.fonttype": "none"}),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the reader's fonts draw it
        drawn.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->|<style.*?</style>", "", text, flags=re.DOTALL)
    used = set(_USED.findall(text))
    text = _ID.sub(lambda m: f' id="{key}-{m[1]}"' if m[1] in used else "", text)
    text = _USED.sub(lambda m: m[0].replace("#", f"#{key}-", 1), text)
    text = text.replace("xlink:href", "href")
    text = _TAG.sub(_adapted, text)
    box = re.search(r'viewBox="([^"]+)"', text)
    assert box is not None, "matplotlib writes it"
    wide = float(box[1].split()[2])
    body = text[text.index(">") + 1 : text.rindex("</svg>")]
    return (
        f'<svg viewBox="{box[1]}" style="max-width:{wide / 12:.1f}rem" role="img" '
        f'aria-label="{escape(alt, quote=True)}">{"".join(body.splitlines())}</svg>'
    )


def _adapted(tag: re.Match[str]) -> str:
    """A tag with the page's colours and font, and no more digits than are seen."""
    text = _COLOUR.sub(lambda m: COLOURS[m[0]], tag[0])
    text = _FONTS.sub("font-family: 'DejaVu Sans', Verdana, sans-serif", text)
    return _NUMBER.sub(r"\1", text)
