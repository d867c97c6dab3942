"""What is installed on an agent's machine: the client, without the server extra."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from animalcat.extending.installing import install

from .conftest import MakeSession, Server

ROOT = Path(__file__).resolve().parents[2]
MODULES = {"pyyaml": "yaml", "pillow": "PIL", "mlagents-envs-aai": "mlagents_envs"}
# Typer needs pydantic itself, so the client has it as well.
ALSO_BASE = {"pydantic"}
BLOCK = """
import importlib.metadata, sys
EXTRA, PACKAGES = {extra!r}, {packages!r}
found = importlib.metadata.version
def version(name):
    if name in PACKAGES:
        raise importlib.metadata.PackageNotFoundError(name)
    return found(name)
importlib.metadata.version = version
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in EXTRA:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Block())
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the packages of the server extra cannot be imported."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [one for name in ("live", "learner", "server") for one in extras[name]]
    names = {one.split(";")[0].split(">")[0].strip() for one in wanted if "animalcat[" not in one}
    extra = {MODULES.get(name, name.replace("-", "_")) for name in names - ALSO_BASE}
    assert {"scipy", "sqlalchemy", "pydantic_settings", "yaml", "numba"} <= extra
    folder = tmp_path_factory.mktemp("base")
    (folder / "sitecustomize.py").write_text(BLOCK.format(extra=extra, packages=names))
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


def run(base: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "animalcat", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=base)


def test_it_talks_to_any_server(
    base: dict[str, str], server: Server, make_session: MakeSession
) -> None:
    session = make_session(agent="builtin:forward+lapses=0.5", max_episodes=1)
    id_ = session.name.removeprefix("sessions/")
    played = run(
        base,
        *("agent", "run", "--connect", server.address, "--session", id_),
        *("--agent", "builtin:forward+lapses=0.5"),
    )
    assert played.returncode == 0, played.stderr
    shown = f"profile: animalcat profile show {id_} --server {server.address}\n"
    assert played.stdout.endswith(shown)
    for about in ((), ("builtin:scout",)):
        listed = run(base, "agent", "list", *about, "--json")
        assert listed.returncode == 0, listed.stderr
    for words in (
        ["session", "list"],
        ["session", "show", id_],
        ["episode", "list", id_],
        ["profile", "show", id_],
        ["battery", "show"],
        ["battery", "show", "navigation"],
        ["campaign", "show"],
    ):
        done = run(base, *words, "--server", server.address, "--json")
        assert done.returncode == 0, (words, done.stderr)
        assert json.loads(done.stdout) is not None, words


@pytest.mark.parametrize(
    "words",
    [
        ["serve"],
        ["demo"],
        ["battery", "show"],
        ["profile", "show", "one"],
        ["arena", "check", "."],
        ["layout", "show"],
        ["episode", "replay", "one.mcap"],
    ],
)
def test_what_needs_the_extra_names_it(base: dict[str, str], words: list[str]) -> None:
    done = run(base, *words)
    assert done.returncode == 3, done.stderr
    extra = "learner" if words[0] == "layout" else "server"
    assert install(extra) in done.stderr
    assert done.stderr.count("\n") == 1


def test_doctor_says_what_it_is(base: dict[str, str]) -> None:
    done = run(base, "doctor")
    assert done.returncode == 0, done.stdout
    assert "Nothing is missing for a client" in done.stdout
    assert install("server") in done.stdout.splitlines()[-1]


def test_gymnasium_names_it_too(base: dict[str, str]) -> None:
    code = "import animalcat, gymnasium; gymnasium.make('animalcat/Arena-v0')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=base
    )
    assert "animalcat/Arena-v0 needs the package" in done.stderr
    assert install("server") in done.stderr


NAMES = """
import json
import animalcat as ac
from animalcat import layouts

said = {}
def look(what, use):
    try:
        use()
    except Exception as error:
        known = isinstance(error, ac.AnimalcatError) and isinstance(error, ModuleNotFoundError)
        said[what] = [known, f"{type(error).__name__}: {error}"]
for name in dir(ac):
    look(f"animalcat.{name}", lambda: getattr(ac, name))
for name in dir(layouts):
    look(f"animalcat.layouts.{name}", lambda: getattr(layouts, name))
look("animalcat.local", lambda: ac.local("study"))
look("animalcat.measure", lambda: ac.measure(lambda seen: 3, "navigation"))
print(json.dumps(said))
"""
NEEDED = {
    *("animalcat.local", "animalcat.measure", "animalcat.Arena", "animalcat.data"),
    *("animalcat.plots", "animalcat.layouts.fit", "animalcat.layouts.Learner"),
}


def test_python_says_in_one_way_what_needs_an_extra(base: dict[str, str], tmp_path: Path) -> None:
    """One type and one sentence, whatever is named and whichever package is missing."""
    command = [sys.executable, "-c", NAMES]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=base, cwd=tmp_path
    )
    said = json.loads(done.stdout)
    assert said.keys() >= NEEDED
    assert "animalcat.connect" not in said
    for what, (known, words) in said.items():
        extra = "learner" if what.startswith(("animalcat.layouts", "animalcat.plots")) else "server"
        how = re.escape(install(extra))
        sentence = rf"MissingExtraError: {what} needs the extra `{extra}` \(\S+ is missing\): {how}"
        assert known, words
        assert re.fullmatch(sentence, words), words
