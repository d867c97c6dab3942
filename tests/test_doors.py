"""The core without its doors, and what each door has."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOORS = tuple(sorted(path.parent.name for path in (ROOT / "doors").glob("*/door.toml")))


@pytest.mark.parametrize("door", DOORS)
def test_a_door_has_its_tests_its_page_and_its_extra(door: str) -> None:
    declared = tomllib.loads((ROOT / "doors" / door / "door.toml").read_text())
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert list((ROOT / "tests" / "doors" / door).glob("test_*.py"))
    assert (ROOT / "docs" / declared["docs"]).is_file()
    assert declared.get("extra") in (None, *extras["optional-dependencies"])


def without(folder: Path, *gone: str) -> dict[str, str]:
    """An environment in which animalcat lacks doors; the rest of it is as it is here."""
    package, doors = folder / "animalcat", folder / "animalcat" / "doors"
    doors.mkdir(parents=True)
    for made, there in ((package, ROOT / "animalcat"), (doors, ROOT / "doors")):
        for path in there.iterdir():
            if path.name not in ("doors", "__pycache__", *(gone if made == doors else ())):
                (made / path.name).symlink_to(path)
    return {**os.environ, "PYTHONPATH": str(folder)}


@pytest.mark.parametrize("door", DOORS)
def test_the_core_starts_without_a_door(door: str, tmp_path: Path) -> None:
    code = (
        "import runpy, sys, animalcat.cli.main\n"
        "from animalcat.extending.doorways import doors\n"
        "assert DOOR not in doors(), doors()\n"
        "sys.argv = ['animalcat', '--help']\n"
        "try: animalcat.cli.main.main()\n"
        "except SystemExit as ended: assert not ended.code\n"
        "assert not [name for name in sys.modules if name.startswith('animalcat.doors.')]\n"
        "import animalcat.service.rpc.server, animalcat.lab.lab\n"
        "import animalcat.service.web.parts, animalcat.service.upkeep.verifying\n"
        "animalcat.service.web.parts.all_parts()\n"
        "sys.argv = ['animalcat', 'agent', 'list']\n"
        "animalcat.cli.main.main()\n"
    ).replace("DOOR", repr(door))
    command = [sys.executable, "-P", "-c", code]
    environment = without(tmp_path, door)
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert "builtin:scout" in done.stdout


def test_a_session_is_measured_without_any_door(tmp_path: Path) -> None:
    code = (
        "import animalcat\n"
        "from animalcat.extending.doorways import doors\n"
        "assert not doors(), doors()\n"
        "class Forward:\n"
        "    def reset(self, info): pass\n"
        "    def act(self, observation): return 3\n"
        "with animalcat.local('home') as lab:\n"
        "    arenas = {f'{d} m': animalcat.Arena.goal(distance=d) for d in (3, 9)}\n"
        "    few = lab.battery(arenas, name='few')\n"
        "    result = lab.measure(Forward(), few, max_episodes=2, certify=False)\n"
        "print(result.session.state, result.session.episodes)\n"
    )
    command = [sys.executable, "-P", "-c", code]
    environment = without(tmp_path, *DOORS)
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["finished", "2"]
