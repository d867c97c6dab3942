"""The page about the client: what it shows runs, in this order, as the cells of a notebook."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

import animalcat
import animalcat.client

from .conftest import Server
from .test_async_client import cell

PAGE = Path(__file__).resolve().parents[2] / "docs" / "client.md"


def test_what_the_page_shows_runs(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    names: dict[str, Any] = {}

    async def run() -> None:
        for block in blocks:
            await cell(block.replace("localhost:50051", server.address), names)

    asyncio.run(run())
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "finished 2"
    assert printed[-1] == "UNAVAILABLE"
    assert any(line.startswith("navigationAbility: ") for line in printed)


def test_the_page_names_what_there_is() -> None:
    table = re.findall(r"^\| (`.*?) \|(.*)\|$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    calls = [name for left, _ in table for name in re.findall(r"`(\w+)`", left)]
    kinds = [name for _, right in table for name in re.findall(r"`([A-Z]\w+)`", right)]
    assert len(calls) > 10
    assert [name for name in calls if not hasattr(animalcat.Client, name)] == []
    known = {*animalcat.values.__all__, *animalcat.client.__all__}
    assert [name for name in kinds if name not in known] == []
