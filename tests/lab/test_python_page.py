"""The page about Python: what it shows runs, and every public name is on it."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

import animalcat as ac
from animalcat.service.host.lock import running_server

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text("utf-8")
QUICK = {
    "max_episodes=20": "max_episodes=4, certify=False, progress=False",
    "budget=20": "budget=4, common=2, certify=False, progress=False",
    '"scout": "builtin:scout"': '"scout": Forward()',
    "seed=1)\noak": "seed=1, chains=2, draws=200, tune=200)\noak",
}
"""What the page says, and what takes less time."""


def test_what_the_page_shows_runs(
    lab: ac.Lab, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
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
    assert page["result"].session.episodes == 4
    assert page["result"].id in {found.id for found in lab.results(battery="mine")}
    assert set(page["campaign"]) == {"forward", "scout"}
    assert page["strict"].id != page["result"].id
    assert (study.parent / "posterior.nc").stat().st_size > 1000
    assert page["learner"].verdict().stop
    assert page["oak"].to_frame().loc["span", "unit"] == "kiloword"


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


def test_the_other_packages_have_what_the_page_says() -> None:
    rows = re.findall(r"^\| `(animalcat\.\w[\w.]*)` \| (.*) \|$", PAGE, flags=re.MULTILINE)
    assert len(rows) > 5
    for package, told in rows:
        home = importlib.import_module(package)
        for name in re.findall(r"`(\w+)`", told):
            assert hasattr(home, name) or name == "evaluate", name
