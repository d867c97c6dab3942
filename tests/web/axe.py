"""What axe-core finds on a page that would keep people out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Final

from tests.web.chromium import Page

SCRIPT: Final = gzip.decompress((Path(__file__).parent / "axe.min.js.gz").read_bytes()).decode()
"""axe-core 4.14.1, as its package has it; see THIRD_PARTY.md."""
GRAVE: Final = frozenset({"serious", "critical"})
"""What must not be found."""
RUN: Final = """axe.run(document, {resultTypes: ["violations"]}).then((all) => JSON.stringify(
  all.violations.map((one) => ({impact: one.impact, id: one.id, help: one.help,
    at: one.nodes.map((node) => `${node.target.join(" ")} ${node.any[0]?.message ?? ""}`)}))))"""


def look(page: Page) -> list[dict[str, Any]]:
    """Return what is found: its impact, the rule's id and help, and at which elements."""
    if not page.js("'axe' in window"):
        page.js(f"{SCRIPT}\n;0")
    return json.loads(page.js(RUN))


def findings(page: Page, name: str) -> list[str]:
    """Return what is serious or critical, by day, by night and on a phone, in words."""
    found = list[str]()
    for shown, width in (("day", 1280), ("night", 1280), ("phone", 390)):
        page.dark(shown == "night")
        page.size(width, 844, phone=shown == "phone")
        found += [
            f"{name}, {shown}: {one['impact']} {one['id']}, {one['help']}: {one['at'][:4]}"
            for one in look(page)
            if one["impact"] in GRAVE
        ]
    page.dark(False)
    page.size(1280, 844)
    return found
