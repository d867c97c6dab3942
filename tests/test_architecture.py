"""The arrows between the folders, and what a light import may pull in."""

from __future__ import annotations

import ast
import graphlib
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("service", "envs", "layouts", "arena_configs", "doors")
CORE = ("animalcat", "service", "envs", "layouts", "arena_configs")
ALLOWED = {
    "arena_configs": set[str](),
    "layouts": set[str](),
    "envs": {"arena_configs"},
    "service": {"arena_configs", "envs", "layouts"},
    "doors": {"arena_configs", "envs", "layouts", "service"},
}
MAY_SEE_PROTOBUF = {"animalcat", "service", "doors"}
OWN = tuple(
    str(page.parent.relative_to(ROOT))
    for page in (ROOT / "animalcat").glob("*/__init__.py")
    if page.parent.name != "v1" and not page.parent.is_symlink()
)
"""Packages beside the folders that say what lives in them."""
HOUSES = ("layouts", "service", "doors", "animalcat/cli")
"""Folders of packages that have arrows between them."""


@cache
def imports(path: Path) -> frozenset[str]:
    """What a module imports; parsed once, since most tests here ask about every module."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(found)


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_arrows_between_folders_point_one_way(folder: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(folder)
        for name in imports(path)
        for other in FOLDERS
        if other != folder
        and name.startswith(f"animalcat.{other}")
        and other not in ALLOWED[folder]
    ]
    assert not wrong


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_folder_is_imported_by_its_bare_name(folder: str) -> None:
    places = [*FOLDERS, "animalcat", "tests", "benchmarks"]
    wrong = [
        str(path.relative_to(ROOT))
        for place in places
        for path in modules(place)
        for name in imports(path)
        if name.split(".")[0] == folder
    ]
    assert not wrong


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = ("animalcat", *parts) if parts[0] in FOLDERS else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def circle(arrows: dict[str, set[str]]) -> list[str]:
    """Nodes from which one comes back to where one was, if there are any."""
    try:
        graphlib.TopologicalSorter(arrows).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Imports for the type checker alone count as well."""
    places = (*FOLDERS, "animalcat", "benchmarks")
    known = {module_name(path): path for place in places for path in modules(place)}
    arrows = {name: set(imports(path) & known.keys() - {name}) for name, path in known.items()}
    # A package's own page is imported with any of its modules; that is no arrow.
    packages = {name for name, path in known.items() if path.name == "__init__.py"}
    assert circle({name: to - packages for name, to in arrows.items()}) == []


@pytest.mark.parametrize("house", HOUSES)
def test_arrows_between_packages_point_one_way(house: str) -> None:
    base = module_name(ROOT / house / "__init__.py") + "."
    arrows = dict[str, set[str]]()
    for path in modules(house):
        name = module_name(path)
        if name + "." == base:
            continue
        room = name.removeprefix(base).split(".")[0]
        to = {other.removeprefix(base).split(".")[0] for other in imports(path) if base in other}
        arrows.setdefault(room, set()).update(to - {room})
    assert circle(arrows) == []


@pytest.mark.parametrize(
    "house",
    ["arena_configs", "doors", "envs", "layouts", "service", *OWN],
)
def test_every_package_says_what_lives_there(house: str) -> None:
    silent = list[str]()
    for page in sorted((ROOT / house).rglob("__init__.py")):
        if "migrations" in page.parts:
            continue  # steps by number
        text = ast.get_docstring(ast.parse(page.read_text())) or ""
        rooms = [p.stem for p in page.parent.glob("*.py") if p.stem != "__init__"]
        rooms += [p.parent.name for p in page.parent.glob("*/__init__.py")]
        silent += [f"{page.relative_to(ROOT)}: {room}" for room in rooms if f"`{room}`" not in text]
    assert not silent


def test_what_is_installed_knows_nothing_of_what_checks_it() -> None:
    """Benchmarks of animalcat itself and tests are in its source only."""
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for place in (*FOLDERS, "animalcat")
        for path in modules(place)
        for name in imports(path)
        if name.split(".")[0] in ("benchmarks", "tests")
    ]
    assert not wrong


def test_nothing_outside_the_doors_imports_one() -> None:
    """Not by name in a text either: `door.toml` alone leads to a door. Its tests are its own."""
    own = {*(ROOT / "tests" / "doors").rglob("*.py"), Path(__file__)}
    own |= {ROOT / "tests" / name for name in ("packages.py", "test_doors.py")}
    places = [path for place in (*CORE, "tests") for path in modules(place) if path not in own]
    door = re.compile(r"animalcat\.doors\b|from animalcat import .*\bdoors\b")
    assert [str(path.relative_to(ROOT)) for path in places if door.search(path.read_text())] == []


def test_protobuf_classes_stay_at_the_border() -> None:
    seen = {
        folder
        for folder in FOLDERS
        for path in modules(folder)
        if any(name.startswith("animalcat.v1") for name in imports(path))
    }
    assert seen <= MAY_SEE_PROTOBUF


def test_messages_of_ml_agents_are_seen_by_the_stand_in_alone() -> None:
    seen = [
        str(path.relative_to(ROOT))
        for folder in (*FOLDERS, "animalcat")
        for path in modules(folder)
        if any(name.startswith("animalcat.envs.mlagents.v1") for name in imports(path))
    ]
    assert all(path.startswith("envs/mlagents/") for path in seen)


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("animalcat", ["sapien", "numba", "pymc", "pydantic", "sqlalchemy", "yaml", "pandas"]),
        ("animalcat.cli.main", ["sapien", "numba", "pymc", "grpc", "pydantic"]),
        ("animalcat.cli.agent", ["sapien", "numba", "pymc", "pydantic", "sqlalchemy", "yaml"]),
        ("animalcat.cli.unity.player", ["sapien", "numba", "pymc", "grpc", "pydantic"]),
        ("animalcat.layouts.inference.live", ["pymc", "nutpie", "grpc", "pandas"]),
        ("animalcat.service.rpc.server", ["pymc", "nutpie", "pytensor"]),
    ],
)
def test_a_light_import_stays_light(module: str, unwanted: list[str]) -> None:
    code = f"import sys, {module}; print([m for m in {unwanted} if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/"
    )
    assert run.stdout.strip() == "[]"


def test_a_checkout_that_keeps_no_links_is_imported(tmp_path: Path) -> None:
    """As git leaves it on Windows: a link is a file that holds its target."""
    links = [path for path in (ROOT / "animalcat").iterdir() if path.is_symlink()]
    assert {path.name for path in links} >= set(FOLDERS)

    def plain(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if (Path(folder) / name).is_symlink()}

    shutil.copytree(ROOT / "animalcat", tmp_path / "animalcat", ignore=plain)
    for link in links:
        (tmp_path / "animalcat" / link.name).write_text(str(link.readlink()))
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tmp_path / folder)
    code = (
        "import animalcat.client, animalcat.layouts.library as library;"
        "print(animalcat.client.__file__, library.__file__, library.load_layout('aaio').name)"
    )
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(tmp_path)}
    )
    client, layouts, name = done.stdout.split()
    assert client == str(tmp_path / "animalcat" / "client" / "__init__.py")
    assert layouts == str(tmp_path / "layouts" / "library" / "__init__.py")
    assert name == "aaio"
