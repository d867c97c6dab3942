"""A participant's pages have nothing that keeps people out, as axe-core sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from animalcat.doors.study.file import Study
from tests.doors.study.test_study import (
    begin,
    click,
    go_on,
    home,
    personal_link,
    running,
    where,
)
from tests.web.axe import findings
from tests.web.chromium import PROGRAM, Page, browser

__all__ = ["home"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM, reason="there is no Chromium"),
    pytest.mark.timeout(900),
]
Write = Callable[..., Study]
CHANGES = (
    ("finding-things", "open-to-all"),
    ("practice: {passes: 1, of: 2, most: 3}", "practice: {passes: 1, of: 1, most: 1}"),
    ("blocks: {trials: 2", "blocks: {trials: 1"),
    ("break_seconds: 0", "break_seconds: 30"),
    ("max_episodes: 4", "max_episodes: 2"),
    ("conditions: [{name: plain}, ", "conditions: ["),
    ("weight: 2, shown: {", "weight: 2, shown: {reward: true, stars: true, outcome: true, "),
    ("debrief:", "who: {by: codes, codes: [seven]}\ndebrief:"),
)
"""What makes the study have every page."""


def pages(page: Page, link: str, monitor: str) -> Iterator[str]:
    """Take part; yields the name of each page while it is open."""
    page.open(link)
    yield "code"
    page.js("document.querySelector('[name=code]').value = 'eight'")
    click(page, ".go")
    yield "another code"
    page.js("document.querySelector('[name=code]').value = 'seven'")
    click(page, ".go")
    yield "consent"
    click(page, "[name=agree]")
    yield "consent, unticked"
    go_on(page)
    page.wait("document.getElementById('state').textContent.includes('arrow')")
    yield "device"
    seen, personal = set[str](), ""
    while (now := where(page)) != "end":
        text = page.js("document.querySelector('.tag.on') ? ', practice' : ''")
        name = f"{now}{text}"
        if name not in seen:
            seen.add(name)
            if now == "questions":
                yield name
                page.js("document.querySelector('[value=\"2\"]').click()")
                click(page, ".go")
                assert "At least one answer is wrong" in page.text()
                yield "questions, again"
            if now == "play":
                ready = "!document.getElementById('go').hidden"
                page.wait(ready)
                yield f"{name}, before a round"
                begin(page)
                page.js("document.getElementById('pad').hidden = false")
                yield f"{name}, in a round"
                page.wait("!document.getElementById('over')?.hidden")
                continue
            yield name
        personal = personal or personal_link(page)
        go_on(page)
    yield "end"
    page.open(monitor)
    page.wait("document.querySelector('table')")
    yield "monitor"
    page.open(f"{link.partition('?')[0]}/withdraw")
    yield "withdraw"
    page.js(f"document.querySelector('[name=personal]').value = '{personal}'")
    click(page, ".grave")
    yield "withdrawn"


def test_a_participants_pages_keep_nobody_out(written: Write, tmp_path: Path, home: Path) -> None:
    written(*CHANGES)
    found = list[str]()
    with running(tmp_path / "study.yaml", home) as study, browser() as new:
        page = new()
        for name in pages(page, study.link, study.monitor):
            found += findings(page, name)
        (problem,) = page.problems
        assert "403" in problem, "the code that is not known is refused, and nothing else is"
    assert not found, "\n".join(found)
