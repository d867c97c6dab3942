"""The page about inspect_ai is followed command by command, and what inspect_ai loads is light."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from inspect_ai.log import list_eval_logs

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "inspect.md").read_text()
BIN = Path(sys.executable).parent


def command(begins: str) -> list[str]:
    """The command of the page that begins so."""
    (line,) = (line for line in PAGE.splitlines() if line.startswith(begins))
    return shlex.split(line)


def ran(words: list[str], folder: Path) -> str:
    """Run a command of the page; its output."""
    done = subprocess.run(
        [str(BIN / words[0]), *words[1:]],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200", "INSPECT_DISPLAY": "plain"},
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder that has the page's files and is written to."""
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    return tmp_path


def one_log(place: Path) -> str:
    (log,) = list_eval_logs(str(place / "logs"))
    return f"logs/{Path(log.name).name}"


def test_the_page_leads_from_three_files_to_a_profile(place: Path) -> None:
    words = command("inspect eval ")
    said = ran(words, place)
    found = {name: float(value) for name, value in re.findall(r"(accuracy\w*) +(\d\.\d+)", said)}
    assert set(found) == {"accuracy", "accuracy_low", "accuracy_high", "accuracy_of_chosen"}
    log = one_log(place)
    shown = command("animalcat profile show logs/LOG")
    show = [log if word == "logs/LOG.eval" else word for word in shown]
    whole = json.loads(ran([*show, "--json"], place))
    # It adds up to six numbers of up to two digits: 5 x 2 of 9 x 4 kinds.
    assert found["accuracy_low"] <= 10 / 36 <= found["accuracy_high"]
    tracking, carrying = (whole["nodes"][name]["hdi"] for name in ("tracking", "carrying"))
    assert tracking[0] < 7.0
    assert tracking[1] > 5.5
    assert carrying[0] < 3.0
    assert carrying[1] > 1.8


@pytest.mark.slow
def test_ten_lines_of_the_page_are_a_table_of_three_models(place: Path) -> None:
    (code,) = re.findall(r"^```python\n([^`]*read_profiles[^`]*)^```", PAGE, re.MULTILINE)
    (place / "ten.py").write_text(re.sub("PROVIDER/[A-Z]+", "mockllm/model", code))
    for file in (ROOT / "docs" / "examples" / "inspect").iterdir():
        (place / file.name).symlink_to(file)
    said = ran(["python", "ten.py"], place)
    table = said[said.rindex("agent") :].splitlines()
    assert {"tracking", "carrying", "low", "high", "episodes"} <= {*table[0].split()}
    assert [line.split()[1] for line in table[1:4]] == ["mockllm/model"] * 3


def test_what_inspect_ai_loads_of_us_is_light_and_never_fails() -> None:
    (entry,) = (one for one in entry_points(group="inspect_ai") if one.name == "animalcat")
    assert entry.value == "animalcat.doors.inspect._registry"
    script = (
        "import sys, animalcat.doors.inspect._registry\n"
        "ours = ('animalcat.layouts', 'animalcat.doors.inspect.source')\n"
        "heavy = (*ours, 'numba', 'pymc', 'scipy', 'grpc')\n"
        "print([name for name in heavy if name in sys.modules])\n"
        "from inspect_ai._util.registry import registry_lookup\n"
        "from inspect_ai.hooks._hooks import get_all_hooks\n"
        "print(registry_lookup('task', 'animalcat/adaptive') is not None, len(get_all_hooks()))\n"
        # Without tasks in inspect_ai, or without inspect_ai, it does nothing.
        "begins = ('inspect_ai', 'animalcat.doors.inspect')\n"
        "for name in [name for name in sys.modules if name.startswith(begins)]:\n"
        "    del sys.modules[name]\n"
        "sys.modules['inspect_ai'] = None\n"
        "import animalcat.doors.inspect._registry as empty\n"
        "print(hasattr(empty, 'adaptive'))\n"
        "try:\n"
        "    from animalcat.doors.inspect import adaptive\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=1200
    )
    lines = done.stdout.splitlines()
    assert lines[:3] == ["[]", "True 0", "False"]
    assert "needs the extra `inspect` (inspect_ai is missing)" in lines[3]
    assert "[inspect]" in lines[3]
