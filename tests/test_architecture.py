"""The arrows between the folders, and what a light import may pull in."""

from __future__ import annotations

import ast
import graphlib
import importlib
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from animalcat.arena_configs.instance import Instance
from animalcat.service.batteries.columns import ColumnsWriter, row_of

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
ORDER = {
    "animalcat": (
        *("machine", "text", "v1", "portable", "maps", "extending", "arenas", "values"),
        *("wire", "client", "plots", "apart", "lab", "cli"),
    ),
    "layouts": (
        *("model", "library", "inference", "reporting", "watching", "adaptive"),
        *("explaining", "checking", "fitting", "calibrating"),
    ),
    "envs": ("sim", "unity", "agents", "mlagents"),
    "service": (
        *("batteries", "storage", "recording", "library", "measuring", "reporting"),
        *("session", "access", "host", "upkeep", "web", "rpc"),
    ),
    "arena_configs": ("features", "families", "batteries"),
}
"""The packages of each folder of the core: each imports only those before it."""
FACES = (
    "animalcat",
    *(f"animalcat.{name}" for name in ("apart", "client", "lab", "layouts", "plots", "values")),
    *(f"animalcat.doors.{door}" for door in ("clinic", "inspect", "sb3", "speech")),
    "benchmarks.papers",
)
"""Packages whose own page has names of its modules, for those outside alone."""
USERS = {"animalcat.references.agents"}
"""Modules that stand where a user's would."""


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


@cache
def known_modules() -> dict[str, Path]:
    """Every module by its name."""
    places = (*FOLDERS, "animalcat", "benchmarks")
    return {module_name(path): path for place in places for path in modules(place)}


def imports_of(name: str) -> set[str]:
    """What a module imports, for types as well, and the pages of packages on the way there."""
    known = known_modules()
    found = set(imports(known[name])) & known.keys()
    pages = {page for page in known if any(other.startswith(page + ".") for other in found)}
    return (found | (pages - set(FACES))) - {name}


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Imports for the type checker alone count as well, and so do the pages of packages."""
    inside = known_modules().keys() - set(FACES)
    assert circle({name: imports_of(name) & inside for name in inside}) == []


@pytest.mark.parametrize("face", FACES)
def test_no_module_imports_names_from_the_face_of_its_own_package(face: str) -> None:
    known = known_modules()
    wrong = [
        f"{name} imports {found}"
        for name, path in known.items()
        if name.startswith(face + ".") and name not in USERS
        for found in imports(path)
        if found.rpartition(".")[0] == face and found not in known
    ]
    assert wrong == []


def arrows_between_rooms(base: str) -> dict[str, set[str]]:
    """Which modules and packages just inside of a package import which others of it."""
    known = known_modules()

    def room(name: str) -> str:
        return name.removeprefix(base + ".").split(".")[0]

    arrows = dict[str, set[str]]()
    for name, path in known.items():
        if name.startswith(base + "."):
            to = {room(other) for other in imports(path) & known.keys() if base + "." in other}
            arrows.setdefault(room(name), set()).update(to - {room(name)})
    if base == "animalcat":  # the folders have arrows of their own, by `ALLOWED`
        arrows = {name: to - set(FOLDERS) for name, to in arrows.items() if name not in FOLDERS}
    return arrows


def test_arrows_inside_every_package_point_one_way() -> None:
    bases = [name for name, path in known_modules().items() if path.name == "__init__.py"]
    circles = {base: circle(arrows_between_rooms(base)) for base in bases}
    assert {base: found for base, found in circles.items() if found} == {}


@pytest.mark.parametrize("house", ORDER)
def test_packages_import_only_those_before_them(house: str) -> None:
    base = house if house == "animalcat" else f"animalcat.{house}"
    packages = {path.parent.name for path in (ROOT / house).glob("*/__init__.py")} - set(FOLDERS)
    arrows = arrows_between_rooms(base)
    wrong = [
        f"{name} imports {later}"
        for number, name in enumerate(ORDER[house])
        for later in arrows[name] & set(ORDER[house][number:])
    ]
    assert wrong == []
    assert packages == set(ORDER[house])


def test_few_modules_stand_outside_of_rooms() -> None:
    assert len(list((ROOT / "animalcat").glob("*.py"))) <= 8


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


def test_what_is_drawn_of_the_code_is_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = ROOT / "docs" / "pictures"
    monkeypatch.syspath_prepend(pictures)
    parts = importlib.import_module("parts")
    assert parts.doors().keys() == {
        path.parent.name for path in (ROOT / "doors").glob("*/door.toml")
    }
    for name, draw in parts.DRAWN.items():
        assert (pictures / f"{name}.svg").read_text() == draw(), "python docs/pictures/parts.py"


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
        ("animalcat.cli.layout.show", ["numpy", "grpc", "rich.progress", "pydantic_settings"]),
        ("animalcat.cli.agent", ["sapien", "numba", "pymc", "pydantic", "sqlalchemy", "yaml"]),
        ("animalcat.cli.unity.player", ["sapien", "numba", "pymc", "grpc", "pydantic"]),
        ("animalcat.layouts.inference.live", ["pymc", "nutpie", "grpc", "pandas"]),
        (
            "animalcat.service.rpc.server",
            ["pymc", "nutpie", "pytensor", "numba", "pandas", "scipy"],
        ),
        ("animalcat.portable.arrays as a; a.log([2.0])", ["scipy.linalg", "scipy.special"]),
    ],
)
def test_a_light_import_stays_light(module: str, unwanted: list[str]) -> None:
    code = f"import sys, {module}; print([m for m in {unwanted} if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/"
    )
    assert run.stdout.strip() == "[]"


def test_a_battery_is_read_without_pandas(tmp_path: Path) -> None:
    path = tmp_path / "instances.parquet"
    with ColumnsWriter(path, ["x"]) as writer:
        writer.add(row_of(Instance("a", "", {"x": 1.0}, 0.0, 0, 0, "")))
        writer.finish({})
    read = f"animalcat.service.batteries.columns as c; c.InstanceColumns(c.Path({str(path)!r}))"
    test_a_light_import_stays_light(read, ["pandas"])


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
