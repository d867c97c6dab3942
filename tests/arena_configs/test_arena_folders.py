"""Folders as people have them: endings in any case, what editors and archives leave, bad files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from animalcat.arena_configs.model import ArenaError
from animalcat.arenas.arena_files import find_arena_files, is_yaml
from animalcat.service.batteries.battery import ArenaFile, import_files, read_files
from animalcat.service.batteries.feature_table import read_table
from animalcat.service.batteries.spool import Spool
from tests.command_line import call

GOOD = """!ArenaConfig
arenas:
  0: !Arena
    timeLimit: 250
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {x: 20, y: 0, z: 5}]
      rotations: [0]
    - !Item
      name: GoodGoal
      positions: [!Vector3 {x: 20, y: 0, z: 25}]
      sizes: [!Vector3 {x: 1, y: 1, z: 1}]
"""
GLUED = GOOD.replace("{x: 1, y: 1, z: 1}", "{x:1, y:1, z:1}")
FAR = GOOD.replace("z: 5}", "z: 1e10}")
MAC = b"\0\5\x16\7"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "a.YML": GOOD.encode(),
        "sub/b.Yaml": GOOD.encode(),
        "c.yml": GOOD.encode(),
        "._c.yml": MAC,
        "__MACOSX/d.yml": MAC,
        "sub/.ipynb_checkpoints/b-checkpoint.yml": GOOD.encode(),
        "notes.txt": b"",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


def run(*words: object) -> tuple[int, str, str]:
    result = call("arena", *words)
    return result.exit_code, result.stdout, result.stderr


def test_endings_in_any_case_and_nothing_hidden(folder: Path) -> None:
    found = find_arena_files(folder)
    names = [name for name, _ in found.files]
    assert names == ["a.YML", "c.yml", "sub/b.Yaml"]
    left = "left out, since they are hidden: ._c.yml, .ipynb_checkpoints, __MACOSX"
    assert found.notes == (left,)
    assert [file.path for file in read_files(folder)] == names
    code, text, told = run("check", folder)
    assert code == 0
    assert text.endswith("3 files: 2 clean, 0 errors, 1 warning (same-arena 1)\n")
    assert left in told.replace("\n", " ")
    # A folder may be hidden itself, or be within one that is.
    assert len(find_arena_files(folder / "sub/.ipynb_checkpoints").files) == 1


def test_a_file_whose_name_is_no_unicode_is_refused_by_every_door(tmp_path: Path) -> None:  # I11
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/gr\xfcn.yaml"))
    path.write_text(GOOD)
    for words in (("check", tmp_path), ("check", path), ("show", path), ("features", tmp_path)):
        code, _, told = run(*words)
        assert (code, r"gr\udcfcn.yaml: the name of this file is no UTF-8" in told) == (2, True)


def test_a_name_may_be_given_with_an_ending_in_any_case() -> None:
    assert is_yaml("x.YAML")
    assert not is_yaml("yml")
    table = read_table("instance,noise [dB]\na.YML,40\n").resolved(["a"])
    assert set(table.rows) == {"a"}


def test_an_import_names_every_bad_file(tmp_path: Path) -> None:
    texts = {"a.yml": GLUED, "b.yml": GOOD, "c.yml": "[", "d.yml": FAR, "e.yml": "# caf\udce9\n"}
    with pytest.raises(ArenaError) as caught:
        import_files([ArenaFile(*pair) for pair in texts.items()], 0, tmp_path)
    first, *lines = str(caught.value).splitlines()
    assert first == "4 of 5 files cannot be used:"
    heads = ("a.yml:13: ", "c.yml:1: ", "e.yml:1: ", "d: items[0].positions[0].z: ")
    assert len(lines) == 4
    assert all(line.startswith(head) for line, head in zip(lines, heads, strict=True)), lines
    with pytest.raises(ArenaError, match=r"^2 of 3 arenas cannot be used:\nd: .*\nf: "):
        import_files(
            [ArenaFile("d.yml", FAR), ArenaFile("f.yml", FAR), ArenaFile("g.yml", GOOD)],
            0,
            tmp_path,
        )


def test_features_say_what_could_not_be_measured(tmp_path: Path) -> None:
    for name, text in {"a": GOOD, "b": GLUED, "c": FAR, "d": "["}.items():
        (tmp_path / f"{name}.yml").write_text(text)
    for words in (["--json"], ["-o", tmp_path / "x.csv"], []):
        code, text, told = run("features", tmp_path, *words)
        assert code == 1
        assert "error: 3 of 4 could not be measured:" in told
        assert "b.yml:13: " in told
        assert "c.yml: items[0].positions[0].z: " in told
        assert "d.yml:1: " in told
    assert "4 rows, 1 of them measured" in run("features", tmp_path, "-o", tmp_path / "x.csv")[2]
    assert text


def test_bytes_that_are_no_text_outlast_the_spool(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    try:
        spool.add(ArenaFile("a.yml", "# caf\udce9\n"))
        with pytest.raises(ArenaError, match=r"a\.yml:1: column 6: the byte 0xe9"):
            import_files(spool, 0, tmp_path, in_order=True)
    finally:
        spool.close()
