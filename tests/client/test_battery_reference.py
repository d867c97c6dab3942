"""What a reference to a battery means, and which files of a folder are its arenas."""

from __future__ import annotations

from pathlib import Path

import pytest

from animalcat.arenas.arena_files import battery_files, battery_id
from animalcat.arenas.battery_reference import battery_name, either, resolve
from animalcat.errors import AnimalcatError
from animalcat.text.names import BadNameError

STORED = {"ed", "mine", "a.yaml"}
SHIPPED = {"navigation", "basics"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with arenas called as batteries are, and some that are none."""
    for name in ("ed/a.yaml", "navigation/a.yml", "other/A.YAML", "batteries/mine/a.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "basics").mkdir()
    (tmp_path / "basics" / "code.py").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "one.yaml").touch()
    (tmp_path / "link").symlink_to("ed")
    (tmp_path / "broken").symlink_to("nowhere")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("mine", "stored", "mine"),
        ("batteries/ed", "stored", "ed"),
        ("batteries/navigation", "shipped", "navigation"),
        ("basics", "shipped", "basics"),  # a folder without arenas is no rival
        ("ed", "both", "ed"),
        ("batteries/mine", "both", "mine"),  # a folder of that path is here too
        ("./ed", "files", ""),
        ("./ed/", "files", ""),
        ("ed/", "files", ""),
        ("../{here}/ed", "files", ""),
        ("{path}/ed", "files", ""),
        ("./navigation", "files", ""),
        ("other", "files", ""),
        ("link", "files", ""),
        ("one.yaml", "files", ""),
        ("a.yaml", "missing", ""),  # a file; the battery is batteries/a.yaml
        ("batteries/a.yaml", "stored", "a.yaml"),
        ("./batteries/mine", "files", ""),
        ("empty", "files", ""),
        ("ned", "missing", ""),
        ("./ned", "missing", ""),
        ("broken", "missing", ""),
        ("Navigation", "missing", ""),
        ("navigation", "refused", ""),
    ],
)
def test_a_reference_means_one_thing(here: Path, text: str, kind: str, name: str) -> None:
    text = text.format(here=here.name, path=here)
    if kind in ("missing", "refused"):
        with pytest.raises(AnimalcatError) as error:
            resolve(text, STORED, SHIPPED)
        words = ("./navigation", "batteries/navigation") if kind == "refused" else (text,)
        assert all(word in str(error.value) for word in words)
        return
    found = resolve(text, STORED, SHIPPED)
    assert (found.kind, found.name) == (kind, name)
    assert (found.path is None) == (kind in ("stored", "shipped"))


def test_what_means_two_things_is_shown_in_both_spellings(here: Path) -> None:
    assert "./ed for the folder, or batteries/ed" in str(either("ed", "the stored battery ed"))
    found = str(either("batteries/mine", "the stored battery mine"))
    assert "./batteries/mine for the folder, or mine" in found


@pytest.mark.parametrize("text", ["./ed", "arenas/ed", "~/ed", "/tmp/ed", "batteries/a/b", "a b"])
def test_a_path_is_no_id(text: str) -> None:
    with pytest.raises((AnimalcatError, BadNameError)):
        battery_name(text)
    assert battery_name("ed") == battery_name("batteries/ed") == "batteries/ed"


@pytest.mark.parametrize(
    ("files", "given", "words"),
    [
        (["a.yaml", "b/c.yml", "b/D.YAML"], ["a.yaml", "b/D.YAML", "b/c.yml"], ""),
        (["a.yaml", ".b.yaml"], ["a.yaml"], "are hidden: .b.yaml"),
        (["a.yaml", ".ipynb_checkpoints/a-checkpoint.yaml"], ["a.yaml"], ".ipynb_checkpoints"),
        (["a.yaml", "more.zip"], ["a.yaml"], "not looked into: more.zip"),
        (["a.yaml", "notes.txt"], ["a.yaml"], ""),
        (["a.yaml", "a.yml"], None, "a.yaml and a.yml both give an arena named a"),
        (["b/a.yaml", "b/a.yml"], None, "both give"),
        ([], None, "it is empty"),
        (["a.txt", "b.zip"], None, "1 with .txt, 1 with .zip"),
        ([".a.yaml"], None, "1 hidden"),
    ],
)
def test_the_files_of_a_battery(
    tmp_path: Path, files: list[str], given: list[str] | None, words: str
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    if given is None:
        with pytest.raises(AnimalcatError) as error:
            battery_files(tmp_path)
        assert words in str(error.value)
        return
    found = battery_files(tmp_path)
    assert [name for name, _ in found.files] == given
    assert words in " ".join(found.notes)
    assert bool(words) == bool(found.notes)


def test_links_are_followed_once_and_keep_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "v1.2"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.yaml").touch()
    (folder / "sub" / "b.yaml").touch()
    (folder / "sub" / "up").symlink_to(folder)
    (folder / "elsewhere").symlink_to(folder / "sub")
    (tmp_path / "link").symlink_to(folder)
    names = [name for name, _ in battery_files(tmp_path / "link").files]
    assert names in (["a.yaml", "elsewhere/b.yaml"], ["a.yaml", "sub/b.yaml"])
    assert [battery_id(tmp_path / name) for name in ("v1.2", "link")] == ["v1.2", "link"]
    assert battery_id(tmp_path / "v1.2" / "a.yaml") == "a"
    for packed in ("arenas.zip", "arenas.tar.gz"):
        (tmp_path / packed).touch()
        with pytest.raises(AnimalcatError, match="unpack it"):
            battery_files(tmp_path / packed)
    with pytest.raises(AnimalcatError, match="no such file or folder"):
        battery_files(tmp_path / "none")
