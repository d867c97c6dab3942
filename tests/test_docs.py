"""The documentation names only commands, options and files that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from animalcat.cli.main import build

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(page: Path) -> list[str]:
    blocks = re.findall(r"```\n(.*?)```", page.read_text(), flags=re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("animalcat ")]


COMMANDS = sorted({line for page in PAGES for line in commands(page)})


@pytest.mark.parametrize("line", COMMANDS)
def test_documented_commands_exist(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    command = typer.main.get_command(build(words))
    while words and (verbs := getattr(command, "commands", None)):
        command = verbs[words.pop(0)]
    known = {name for parameter in command.params for name in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)", page.read_text())
    lost = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not lost
