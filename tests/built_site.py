"""Checks the built site: nothing from other hosts, every link leads somewhere, search and formulas.

`python -m tests.built_site build/docs/html`, as `make docs` does.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""Elements that load something when a page is shown."""
ABOUT = {"canonical", "next", "prev", "search", "index", "genindex", "license"}
"""Relations of `link` elements that load nothing."""


class Page(HTMLParser):
    """The places of a page, its links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = {name: value or "" for name, value in attrs}
        self.places |= {has[name] for name in ("id", "name") if name in has}
        if tag == "a" and "href" in has:
            self.links.append(has["href"])
        loads = tag in LOADED and not ({*has.get("rel", "").split()} & ABOUT)
        if loads and has.get(LOADED[tag]):
            self.loads.append(has[LOADED[tag]])


def wrong(site: Path) -> list[str]:
    """What is wrong with a site, a line for each fault."""
    files = (file for file in sorted(site.rglob("*.html")) if "_static" not in file.parts)
    pages = {file: Page(file.read_text("utf-8")) for file in files}
    found: list[str] = []
    for file, page in pages.items():
        name = file.relative_to(site)
        found += [f"{name} loads {url}" for url in page.loads if re.match(r"(?:https?:)?//", url)]
        for link in [*page.links, *page.loads]:
            if re.match(r"[a-z]+:|//", link):
                continue
            path, _, place = unquote(link.split("?")[0]).partition("#")
            target = (file.parent / path).resolve() if path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{name} leads to {link}, which is not there")
            elif place and target in pages and place not in pages[target].places:
                found.append(f"{name} leads to {link}, which has no such place")
    for file in site.rglob("*.css"):
        if re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", file.read_text("utf-8")):
            found.append(f"{file.relative_to(site)} loads from another host")
    how = site / "how-it-works.html"
    if "<math" not in how.read_text("utf-8"):
        found.append("how-it-works.html has no formula")
    if "navigationAbility".lower() not in (site / "searchindex.js").read_text("utf-8").lower():
        found.append("the search finds nothing")
    return found


def main() -> int:
    """Print what is wrong, and return 1 then."""
    site = Path(sys.argv[1]).resolve()
    found = wrong(site)
    print(*found, sep="\n")
    print(f"{len(list(site.rglob('*.html')))} pages, {len(found)} faults")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
