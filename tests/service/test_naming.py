"""What kind of task an instance is: by its name or a table; and which are variants."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from animalcat.service.batteries.battery import ArenaFile, Battery, import_files, load
from animalcat.service.batteries.feature_table import TableError
from animalcat.service.batteries.naming import (
    MOST,
    ControlLink,
    NamesError,
    TaskKind,
    groups_of,
    kinds_of,
    link_of,
    links_of,
    paradigm_of,
)

from .conftest import arena


def test_a_table_goes_before_the_rule() -> None:
    names = ["01-13-02", "odd"]
    assert kinds_of(names, {}) == {n: TaskKind(paradigm=paradigm_of(n)) for n in names}
    told = {"01-13-02": TaskKind(suite="S"), "odd": TaskKind(paradigm="P")}
    assert kinds_of(names, told) == {"01-13-02": TaskKind("S", "01-13"), "odd": told["odd"]}


def wall_arena(k: int, red: int, blue: int) -> str:
    """An arena with a wall of some colour at its side."""
    return f"""{arena(k)}
    - !Item
      name: Wall
      positions: [!Vector3 {{x: 35, y: 0, z: 30}}]
      sizes: [!Vector3 {{x: 1, y: 1, z: 1}}]
      colors: [!RGB {{r: {red}, g: 0, b: {blue}}}]
"""


FILES = [
    ArenaFile("s/run-far-red.yaml", wall_arena(0, 255, 0)),
    ArenaFile("s/run-far-blue.yaml", wall_arena(0, 0, 255)),
    ArenaFile("s/run-far-large.yaml", wall_arena(1, 0, 255)),
    ArenaFile("s/run-near-red.yaml", wall_arena(0, 255, 0)),
]


@pytest.fixture(scope="module")
def imported_battery(tmp_path_factory: pytest.TempPathFactory) -> Battery:
    """Four arenas of two tasks, of which one has three variants."""
    rows = (f"{file.path},s,run,{file.path.split('-')[1]}" for file in FILES)
    table = "\n".join(["instance,suite,paradigm,task", *rows])
    return import_files(FILES, 0, tmp_path_factory.mktemp("store"), table)


def test_variants_of_one_demand_vector_are_a_group(imported_battery: Battery) -> None:
    features = [one.features for one in imported_battery.instances]
    assert features[0]["wallBlue"] == 255.0  # what differs is seen, and is no demand
    assert dict(imported_battery.groups) == {
        "s/run-far-blue": "s/run-far-blue",
        "s/run-far-red": "s/run-far-blue",
        "s/run-far-large": "s/run-far-large",
        "s/run-near-red": "s/run-near-red",
    }
    close = replace(
        imported_battery.instances[0], name="close", features={**features[0], "detour": 1.0 + 1e-9}
    )
    assert groups_of([imported_battery.instances[0], close])["close"] == "s/run-far-blue"


def test_a_table_says_kinds_and_may_call_instances_by_their_files(tmp_path: Path) -> None:
    table = """instance,suite,paradigm,task,variant,noise [dB]
run-far-red.yaml,S,,far,red,3
s/run-far-blue,,Q,,,
s/run-far-large.yaml,,,,,4
run-near-red,,,,,4
"""
    made = import_files(FILES, 0, tmp_path, table)
    said = {
        one.name: TaskKind(one.suite, one.paradigm, one.task_name, one.variant)
        for one in made.instances
    }
    assert said == {
        "s/run-far-red": TaskKind("S", "run-far", "far", "red"),
        "s/run-far-blue": TaskKind("", "Q", "", ""),
        "s/run-far-large": TaskKind("", "run-far", "", ""),
        "s/run-near-red": TaskKind("", "run-near", "", ""),
    }
    assert (made.units["noise"], "suite" in made.units) == ("dB", False)
    assert import_files(FILES, 0, tmp_path).digest != made.digest


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("instance,paradigm\nc,p\n", r"line 2: the battery has no instance 'c'; it has 'a'"),
        ("instance,paradigm\na,p\na.yaml,q\n", r"line 3: instance 'a.yaml' was on line 2"),
        ("instance,paradigm\nx/b,p\n", r"no row for 'a', 'y/b'; give every instance a row"),
        ("instance,paradigm\na,p\nb.yaml,p\n", r"line 3: 'b.yaml' is 'x/b', 'y/b'; give the fol"),
        ("instance,paradigm\n,p\n", r"line 2, column instance: it is empty"),
        ("instance,paradigm [m]\na,p\n", r"column `paradigm \[m\]`: paradigm is text and has no"),
        (
            "instance,colour\na,red\n",
            r"line 2, column colour: 'red' is not a .* Text stands in",
        ),
        (f"instance,task\na,{'x' * (MOST + 1)}\n", r"line 2, column task: 'x+': give at most 200"),
        ("instance,task,task\na,p,q\n", r"column task is there 2 times"),
    ],
)
def test_what_does_not_fit_names_the_place(tmp_path: Path, table: str, words: str) -> None:
    files = [ArenaFile(f"{name}.yaml", arena(0)) for name in ("a", "x/b", "y/b")]
    with pytest.raises(TableError, match=words):
        import_files(files, 0, tmp_path, table)
    assert not list(tmp_path.iterdir())


def test_names_say_what_is_a_control_of_what() -> None:
    names = ["x/cups-1", "x/cups-1.glass", "x/cups-1.now", "y/cups-1.glass", "m.0", "m.1", "m"]
    assert links_of(names) == {
        "x/cups-1.glass": ControlLink("glass", "x/cups-1"),
        "x/cups-1.now": ControlLink("now", "x/cups-1"),
    }


@pytest.mark.parametrize(
    ("names", "table", "words"),
    [
        (["a", "a.b", "a.b.c"], None, r"'a.b.c' would be a control of 'a.b', which is a control"),
        (["a", "b"], {"a": ("", "c")}, r"'a' is to be a control of 'c', and there is no such inst"),
        (["a", "b"], {"a": ("", "a")}, r"'a' is given as a control of itself"),
        (
            ["a", "b"],
            {"a": ("", "b"), "b": ("", "a")},
            r"a control belongs to an arena that is not",
        ),
        (["x/a", "y/a", "b"], {"b": ("", "a.yml")}, r"'a.yml' is 'x/a', 'y/a'; give the folder"),
    ],
)
def test_links_that_could_mean_two_things_are_refused(
    names: list[str], table: dict[str, tuple[str, str]] | None, words: str
) -> None:
    said = None if table is None else {name: ControlLink(*link) for name, link in table.items()}
    with pytest.raises(NamesError, match=words):
        links_of(names, said)


def test_an_imported_battery_keeps_its_controls(tmp_path: Path) -> None:
    files = [ArenaFile(f"{name}.yml", arena(k)) for k, name in enumerate(("a", "a.glass", "b"))]
    table = "instance,control,control_of\na,,\na.glass,,\nb,open,a.yml\n"
    for said, links in (
        ("", {"a.glass": ("glass", "a")}),
        (table, {"b": ("open", "a")}),
        ("instance,control_of\na,\nb,a.yml\na.glass,\n", {"b": ("control", "a")}),
        ("instance,control\na,\nb,open\na.glass,\n", {"b": ("open", "")}),
    ):
        made = load(import_files(files, 0, tmp_path, said).digest, tmp_path)
        assert {one.name: link_of(one) for one in made.instances if link_of(one).control} == links
