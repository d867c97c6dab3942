"""What objects show in notebooks: escaped, scoped to itself, and the same each time."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from animalcat.text.showing import figure_html, stacked_html, table_html

COLUMNS = ("node", "estimate", "episodes")
ROWS = [("<b>navigation</b>", "3.2 m", 3), ("vision & more", None, 12)]


class Reader(HTMLParser):
    """The texts of cells, and which elements were left open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th", "caption"):
            self.texts.append(data)


def test_text_is_escaped_and_every_element_is_closed() -> None:
    page = Reader(stacked_html(table_html(COLUMNS, ROWS, "a < b", "c & d")))
    assert not page.open
    cells = [str(cell) for row in ROWS for cell in row if cell is not None]
    assert page.texts == ["a < b", *COLUMNS, *cells, "c & d"]


def test_styles_do_not_leak_and_are_the_same_each_time() -> None:
    shown = table_html(COLUMNS, ROWS)
    assert shown == table_html(COLUMNS, ROWS) != table_html(COLUMNS, ROWS[:1])
    for page in (shown, figure_html("<svg></svg>")):
        (name,) = re.findall(r"^<\w+ class=([\w-]+)>", page)
        (style,) = re.findall(r"<style>(.*?)</style>", page)
        selectors = re.findall(r"([^{}]+)\{", style)
        assert selectors
        assert all(name in part for selector in selectors for part in selector.split(","))
