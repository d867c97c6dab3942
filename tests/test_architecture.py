"""The arrows between the folders, and what a light import may pull in."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("service", "envs", "layouts", "arena_configs")
ALLOWED = {
    "arena_configs": set[str](),
    "layouts": set[str](),
    "envs": {"arena_configs"},
    "service": {"arena_configs", "envs", "layouts"},
}
MAY_SEE_PROTOBUF = {"animalcat", "service"}


def imports(path: Path) -> set[str]:
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


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
