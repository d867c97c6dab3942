"""The page about Python runs and has every public name; what other pages show of it exists."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import animalcat as ac
from animalcat.lab import CampaignResult, LabBattery, LabEpisode
from animalcat.service.host.lock import running_server
from animalcat.service.reporting.comparison import Comparison
from animalcat.values.options import CampaignOptions, SessionOptions

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text("utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
KINDS: dict[str, Any] = {
    "ac": ac,
    "animalcat": ac,
    "arena": ac.Arena,
    "battery": LabBattery,
    "campaign": CampaignResult,
    "client": ac.Client,
    "comparison": Comparison,
    "episode": LabEpisode,
    "lab": ac.Lab,
    "result": ac.Result,
}
"""What a name means on the pages."""
QUICK = {
    "max_episodes=20": "max_episodes=4, certify=False, progress=False",
    "budget=40": "budget=4, common=2, certify=False, progress=False",
    '"scout": "builtin:scout"': '"scout": Forward()',
    '"builtin:scout"': '"builtin:braitenberg"',
}
"""What the page says, and what takes less time."""


def test_what_the_page_shows_runs(
    lab: ac.Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In the folder of the lab's data, whose server it shares."""
    study = Path(str(lab).removeprefix("<Lab: ").removesuffix(">"))
    monkeypatch.chdir(study.parent)
    (study.parent / "docs").symlink_to(ROOT / "docs")
    page: dict[str, Any] = {"__name__": "page"}
    for text in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        for long, quick in QUICK.items():
            text = text.replace(long, quick)
        exec(compile(text.replace("localhost:50051", lab.address), "python.md", "exec"), page)
    page["plt"].close(page["figure"])
    assert running_server(study) is not None
    assert [record for record in caplog.records if record.name == "asyncio"] == []
    assert page["result"].session.episodes == 4
    found = lab.results(battery="mine")
    assert found.to_frame().loc[page["result"].id, "agent"] == "Forward"
    assert page["result"].id in repr(found)
    assert set(page["campaign"]) == {"forward", "scout"}
    assert page["policy"].session.episodes == 4
    assert page["strict"].id != page["result"].id
    assert (study.parent / "posterior.nc").stat().st_size > 1000


def tables() -> dict[str, set[str]]:
    """The names in each of the page's tables, by the package in its head."""
    found = dict[str, set[str]]()
    package = ""
    for left in re.findall(r"^\| (.*?) \|", PAGE, flags=re.MULTILINE):
        names = set(re.findall(r"`([\w.]+)`", left))
        head = next((name for name in names if name.startswith("animalcat")), "")
        package = head or package
        if not head:
            found.setdefault(package, set()).update(names)
    return found


@pytest.mark.parametrize("package", ["animalcat", "animalcat.layouts", "animalcat.plots"])
def test_every_public_name_is_on_the_page(package: str) -> None:
    public = {name for name in dir(importlib.import_module(package)) if not name.startswith("_")}
    assert tables()[package] == public


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_calls_that_pages_show_exist(page: Path) -> None:
    """Of what a lab gives and of animalcat itself: their names, and the names of arguments."""
    wrong = list[str]()
    for text in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute) and not knowledge_of(node):
                wrong.append(ast.unparse(node))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                takes = arguments(node.func)
                wrong += [
                    f"{ast.unparse(node.func)}({word.arg}=)"
                    for word in node.keywords
                    if takes is not None and word.arg is not None and word.arg not in takes
                ]
    assert not wrong


def home_of(node: ast.Attribute) -> Any:
    """What has an attribute, where its name on the pages says so."""
    return KINDS.get(node.value.id) if isinstance(node.value, ast.Name) else None


def knowledge_of(node: ast.Attribute) -> bool:
    home = home_of(node)
    told = f"{home.__doc__}" if home is not None else ""
    fields = getattr(home, "__dataclass_fields__", ())
    return (
        home is None or hasattr(home, node.attr) or node.attr in fields or f"{node.attr}:" in told
    )


def arguments(function: ast.Attribute) -> set[str] | None:
    """What a function takes by name; None where that is not known."""
    home = home_of(function)
    called = getattr(home, function.attr, None)
    if home is None or not callable(called):
        return None
    takes = inspect.signature(called).parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in takes.values()):
        measure = inspect.signature(ac.Lab.measure).parameters
        return {*takes, *measure, *SessionOptions.__annotations__, *CampaignOptions.__annotations__}
    return set(takes)
