"""Plausible mistakes with batteries: each is refused, said in the result, or changes nothing."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import animalcat
from animalcat.arena_configs.checks import OF_MARKS
from animalcat.cli.shared.arena_outcomes import mark_battery
from animalcat.cli.shared.outcome_table import or_fail
from animalcat.envs.agents.load import load_agent
from animalcat.service.batteries.battery import ArenaFile, import_files
from tests.command_line import call

from .conftest import Server

ARENA = """!ArenaConfig
arenas:
  0: !Arena
    timeLimit: 250
    passMark: {mark}
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {{x: 20, y: 0, z: 5}}]
    - !Item
      name: GoodGoal
      positions: [!Vector3 {{x: 20, y: 0, z: {z}}}]
      sizes: [!Vector3 {{x: 1, y: 1, z: 1}}]
"""
Run = Callable[..., Result]


@pytest.fixture
def run(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `animalcat battery`, in a folder with a folder of two arenas."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "pair")

    def command(*words: str) -> Result:
        return call("battery", *words, "--server", server.address)

    return command


def write(folder: Path, *marks: float, same: bool = False) -> None:
    folder.mkdir(exist_ok=True)
    for k, mark in enumerate(marks or (0, 0)):
        text = ARENA.format(mark=mark, z=20 if same else 20 + k)
        (folder / f"a{k}.yaml").write_text(text)


def twice(here: Path) -> None:
    write(here / "pair", 0, 0, 0, same=True)


def two_endings(here: Path) -> None:
    shutil.copy(here / "pair" / "a0.yaml", here / "pair" / "a0.yml")


def ship_name(here: Path) -> None:
    (here / "pair").rename(here / "navigation")


def unpassable(here: Path) -> None:
    write(here / "pair", 1, 0)


def goalless(here: Path) -> None:
    write(here / "pair")
    bad = (here / "pair" / "a1.yaml").read_text().replace("GoodGoal", "Wall")
    (here / "pair" / "a1.yaml").write_text(bad)


def sure(here: Path) -> None:
    write(here / "pair", -5, 0)


def percent(here: Path) -> None:
    write(here / "pair", 50, 0)


def edit_first_arena(here: Path, what: str, by: str) -> None:
    """The first of two arenas, changed."""
    file = here / "pair" / "a0.yaml"
    assert what in file.read_text()
    file.write_text(file.read_text().replace(what, by))


def endless(here: Path) -> None:
    edit_first_arena(here, "timeLimit: 250", "timeLimit: 0")


def shuffle_it(here: Path) -> None:
    file = here / "pair" / "a0.yaml"
    head, arena = file.read_text().split("arenas:\n")
    second = arena.replace("0: !Arena", "1: !Arena").replace("z: 20", "z: 30")
    file.write_text(f"{head}randomizeArenas: true\narenas:\n{arena}{second}")


def misspelt(here: Path) -> None:
    edit_first_arena(here, "GoodGoal", "GoodGaol")


def no_arena(here: Path) -> None:
    (here / "pair" / "notes.yaml").write_text("title: notes\n")


def hide_one(here: Path) -> None:
    (here / "pair" / ".ipynb_checkpoints").mkdir()
    shutil.copy(here / "pair" / "a0.yaml", here / "pair" / ".ipynb_checkpoints" / "a9.yaml")


def empty(here: Path) -> None:
    shutil.rmtree(here / "pair")
    (here / "pair").mkdir()


def pack_it(here: Path) -> None:
    with zipfile.ZipFile(here / "pair.zip", "w") as archive:
        archive.write(here / "pair" / "a0.yaml", "a0.yaml")


def nothing(here: Path) -> None:
    """The folder as it is."""


@pytest.mark.parametrize(
    ("row", "make", "given", "refused", "words"),
    [
        ("B1", twice, "pair", False, "3 arenas are one arena under several names (a0, a1, a2)"),
        ("B2", two_endings, "pair", True, "a0.yaml and a0.yml both give an arena named a0"),
        ("B4", ship_name, "navigation", True, "name of a battery that comes with animalcat"),
        ("B4", nothing, "pair --name navigation", True, "comes with animalcat"),
        ("B4", nothing, "pair --name basics --replace", True, "comes with animalcat"),
        ("B6", unpassable, "pair", False, "no play can pass 1 arena (a0)"),
        ("B9", endless, "pair", False, "no time limit ends an episode in 1 arena (a0)"),
        ("B10", shuffle_it, "pair", False, "3 instances, digest"),
        ("B16", misspelt, "pair", False, "no object `GoodGaol`; it is skipped, as in Unity. Did "),
        ("B16", misspelt, "pair", False, "no play can pass 1 arena (a0)"),
        ("B19", percent, "pair", False, "no play can pass 1 arena (a0)"),
        ("B15", goalless, "pair", False, "in 1 arena (a1) of these nothing gives reward"),
        ("B7", sure, "pair", False, "every play passes 1 arena (a0)"),
        ("B11", no_arena, "pair", True, "notes.yaml"),
        ("B12", hide_one, "pair", False, "2 instances, digest"),
        ("B12", hide_one, "pair", False, "are hidden: .ipynb_checkpoints"),
        ("B13", empty, "pair", True, "it is empty"),
        ("B14", pack_it, "pair.zip", True, "unpack it and give the folder"),
        ("B17", nothing, "pair --name a/b", True, "battery 'a/b' is not 1 to 100 of letters"),
        ("B-", nothing, "none", True, "no such file or folder"),
    ],
)
def test_an_import_refuses_a_mistake_or_says_it(
    run: Run, tmp_path: Path, row: str, make: Callable[[Path], None], given: str, refused: bool,
    words: str,
) -> None:  # fmt: skip
    make(tmp_path)
    what = given.split()
    name = [] if refused else ["--name", f"{row}-{make.__name__}".replace("_", "-")]
    done = run("import", *what, *name)
    assert words in " ".join(done.output.split()), (row, done.output)
    assert done.exit_code == (2 if refused else 0)


def test_files_that_are_too_large_are_named_with_their_sizes(run: Run, tmp_path: Path) -> None:
    for name in ("a0", "big"):
        (tmp_path / "pair" / f"{name}.yaml").write_text(f"# {'x' * 4_500_000}\n")
    done = run("import", "pair")
    assert done.exit_code == 2
    assert done.stderr == (
        "error: at most 1,048,576 bytes of a file are read: pair/a0.yaml has 4,500,003, "
        "pair/big.yaml has 4,500,003; split what is larger\n"
    )
    write(tmp_path / "good")
    (tmp_path / "t.csv").write_text("instance\n" * 500_000)
    assert "t.csv has 4,500,000" in run("import", "good", "--table", "t.csv").stderr


def test_a_message_that_is_too_large_says_by_how_much(server: Server) -> None:
    with animalcat.connect(server.address) as client:
        with pytest.raises(animalcat.AnimalcatError, match=r"has 5,000,.* most 4,194,304") as told:
            client.create_session(agent="x" * 5_000_000, battery="navigation", layout="aaio")
        assert told.value.code == "TOO_LARGE"


def test_an_edited_folder_takes_its_name_only_where_it_is_named(
    run: Run, client: animalcat.Client, server: Server, tmp_path: Path
) -> None:
    """B3 and B5: the folder, a link to it, its edit, and each way to name them."""
    folder = tmp_path / "edited"
    write(folder)
    first = client.import_battery(folder)
    session = client.create_session(agent="edits", battery="edited")
    assert client.import_battery(f"{folder}/").digest == first.digest  # the same again is nothing
    (tmp_path / "link").symlink_to(folder)
    assert client.import_battery(tmp_path / "link").digest == first.digest
    assert "which is as it was stored" in run("show", "edited").output
    write(folder, 0, 0.5)
    with pytest.raises(animalcat.AnimalcatError, match="replace=True") as error:
        client.import_battery(folder)
    assert error.value.code == "NAME_TAKEN"
    refused = run("show", "edited")
    assert refused.exit_code == 2
    assert "./edited for the folder, or batteries/edited" in refused.output
    assert first.digest[:12] in run("show", "batteries/edited").output
    again = run("show", "./edited")
    assert "as it is now; before, the name stood for other content" in again.output
    new = client.get_battery("edited")
    assert new.digest != first.digest
    assert client.get_session(session).spec.battery_digest == first.digest
    looked = client.verify_session(session)
    assert looked.problems == ()
    assert [first.digest[:12] in note and new.digest[:12] in note for note in looked.notes] == [
        True
    ]
    told = call("session", "show", "--verify", session.id, "--server", server.address)
    assert "note: it was played on an older version of battery edited" in told.output
    write(folder)
    assert client.import_battery(folder, replace=True).digest == first.digest
    assert client.verify_session(session).notes == ()
    with pytest.raises(animalcat.AnimalcatError, match="import_battery"):
        client.create_session(agent="edits", battery="./edited")
    with pytest.raises(animalcat.AnimalcatError, match="other content"):
        client.build_battery("navigation", 13, seed=1, name="edited")


def test_a_local_folder_does_not_take_a_shipped_name(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pair").rename(tmp_path / "navigation")
    refused = run("show", "--check", "navigation")
    assert refused.exit_code == 2
    assert "./navigation for the folder, or batteries/navigation" in " ".join(
        refused.output.split()
    )
    taken = run("show", "--check", "./navigation")
    assert "battery navigation-files: 2 instances" in taken.output
    assert taken.exit_code == 0
    assert "12 instances" in run("show", "--check", "batteries/navigation").output


def test_a_session_with_arenas_that_cannot_be_played_says_so_and_fails(
    client: animalcat.Client, server: Server, tmp_path: Path
) -> None:
    for name, x in (("good", 20), ("gone", 24)):
        (tmp_path / f"{name}.yaml").write_text(
            ARENA.format(mark=0, z=20).replace("x: 20", f"x: {x}")
        )
    made = client.import_battery(tmp_path, "partly")
    (broken,) = [one for one in client.instances("partly") if one.name == "gone"]
    for path in (server.home / "batteries" / made.digest / "arenas").iterdir():
        if "x: 24" in path.read_text():
            path.write_text("!ArenaConfig\narenas: {}\n")
    session = client.create_session(agent="any", battery="partly", certify=False, futility=0)
    client.evaluate(load_agent("builtin:forward"), session, name="any")
    found = client.get_session(session)
    assert (found.state, found.episodes) == ("finished", 1)
    assert "exhausted" not in found.reason
    assert found.reason.startswith(
        "what could be played was played; 1 arena ('gone') could not be played, since the backend "
        "failed 3 times at each, most recently with: backend:"
    )
    assert list(client.profile(session)["provenance"]["unplayable"]) == [broken.name]
    for command in (("resume",), ("show", "--follow")):
        told = call("session", *command, session.id, "--server", server.address)
        assert told.exit_code == 1, told.output
        assert "could not be played" in " ".join(told.output.split())


def test_every_command_finds_the_same_in_a_folder(
    run: Run, client: animalcat.Client, server: Server, tmp_path: Path
) -> None:
    good = ARENA.format(mark=0, z=20).replace(
        "x: 20, y: 0, z: 5}]", "x: 20, y: 0, z: 5}]\n      rotations: [0]"
    )
    kinds = {
        "good": good,
        "clamped": good.replace("x: 1, y: 1, z: 1", "x: 99, y: 1, z: 1"),
        "misspelt": good.replace("GoodGoal", "GodGoal"),
        "drawn": good.replace("z: 20}]", "z: -1}]"),
        "twin": good,
        "unpassable": good.replace("passMark: 0", "passMark: 3"),
        "sure": good.replace("passMark: 0", "passMark: -5"),
        "endless": good.replace("timeLimit: 250", "timeLimit: 0"),
    }
    folder = tmp_path / "kinds"
    folder.mkdir()
    for name, text in kinds.items():
        (folder / f"{name}.yaml").write_text(text)

    def flat(done: Result) -> str:
        return " ".join(done.output.split())

    checked = call("arena", "check", "kinds", "--json")
    found = {
        (Path(row["file"]).stem, problem["code"]): problem["message"]
        for row in json.loads(checked.stdout)
        for problem in row["problems"]
    }
    assert set(found) == {
        ("clamped", "clamped-size"),
        ("misspelt", "unknown-object"),
        ("misspelt", "unreachable-pass-mark"),
        ("misspelt", "no-reward"),
        ("drawn", "left-to-chance"),
        ("twin", "same-arena"),
        ("unpassable", "unreachable-pass-mark"),
        ("sure", "sure-pass"),
        ("endless", "no-time-limit"),
    }
    outputs = {
        "import": run("import", "kinds", "--name", "of-kinds"),
        "folder": run("show", "--check", "./kinds"),
        "stored": run("show", "--check", "batteries/of-kinds"),
        "session": call(
            "session",
            "run",
            "--elsewhere",
            "--agent",
            "any",
            "--battery",
            "./kinds",
            "--server",
            server.address,
        ),
    }
    for what, done in outputs.items():
        for (name, code), message in found.items():
            of_marks = code in (*OF_MARKS, "no-time-limit")
            if not of_marks:
                assert message in flat(done), (what, code)
                assert f"[{code}]" in done.output
            elif code in ("unreachable-pass-mark", "sure-pass"):
                assert (
                    client.get_battery("of-kinds").manifest[
                        "set_aside" if code.startswith("un") else "cannot_fail"
                    ][name]
                    == message
                )
                assert name in done.output
            else:
                assert message.partition(": ")[2] in flat(done), (what, code)
        assert [done.exit_code for done in (checked, outputs["folder"], outputs["stored"])] == [
            1
        ] * 3
    for name, text in kinds.items():  # each file alone, too
        alone = call("arena", "check", f"kinds/{name}.yaml", "--json")
        (row,) = json.loads(alone.stdout)
        codes = {problem["code"] for problem in row["problems"]}
        assert codes == {code for one, code in found if one == name} - {"same-arena"}
        told = run("show", "--check", f"kinds/{name}.yaml")
        assert told.exit_code == alone.exit_code
        assert all(
            f"[{code}]" in told.output for code in codes if code not in (*OF_MARKS, "no-time-limit")
        ), text


def test_two_files_of_one_name_are_found_before_an_import(run: Run, tmp_path: Path) -> None:
    two_endings(tmp_path)
    refused = run("import", "pair")
    checked = call("arena", "check", "pair", "--json")
    (message,) = [
        problem["message"]
        for row in json.loads(checked.stdout)
        for problem in row["problems"]
        if problem["code"] == "same-name"
    ]
    assert checked.exit_code == 1
    assert message in " ".join(refused.output.split())


def test_a_battery_of_another_size_or_seed_has_a_name_of_its_own(client: animalcat.Client) -> None:
    usual = client.get_battery("navigation").digest
    made = {
        client.build_battery("navigation", 3).id: 3,
        client.build_battery("navigation", 3, seed=2).id: 3,
        client.build_battery("navigation", 2, name="two").id: 2,
    }
    assert made == {"navigation-3": 3, "navigation-3-seed2": 3, "two": 2}
    assert client.get_battery("navigation-3").instances == 3
    with pytest.raises(animalcat.AnimalcatError, match=r"nothing else.*--name navigation-3"):
        client.build_battery("navigation", 3, name="navigation")
    with pytest.raises(animalcat.AnimalcatError, match="other content"):
        client.build_battery("navigation", 3, name="two")
    assert client.build_battery("navigation", 3, name="two", replace=True).instances == 3
    assert client.get_battery("navigation").digest == usual


def test_a_battery_is_measured_by_the_layout_that_it_names(
    run: Run, client: animalcat.Client, server: Server, tmp_path: Path
) -> None:
    told = run("import", "pair", "--name", "meant", "--layout", "object-permanence")
    assert told.exit_code == 0, told.output
    meant, other = client.get_battery("meant"), client.import_battery(tmp_path / "pair", "unmeant")
    assert (meant.layout, other.layout) == ("object-permanence", "")
    assert meant.digest != other.digest

    def layout_of(battery: str, **options: Any) -> tuple[str, str]:
        spec = client.create_session(agent="any", battery=battery, **options).spec
        return spec.layout, spec.layout_variant

    usual = layout_of("unmeant", layout="object-permanence")
    assert layout_of("meant") == usual
    assert usual == ("object-permanence", "measured")  # of equals the first to choose from
    assert layout_of("meant", layout_variant="sharp") == ("object-permanence", "sharp")
    assert layout_of("meant", layout="aaio") == ("aaio", "metres-15")
    assert layout_of("unmeant") == ("aaio", "metres-15")
    campaign = client.create_campaign(agents=["a", "b"], battery="meant", budget=8, common=2)
    assert campaign.spec.session.layout == "object-permanence"
    assert (
        "layout object-permanence, variant measured: covers 2 of 2" in run("show", "meant").output
    )
    shown = run("show", "unmeant").output
    assert "layout aaio, variant metres-15 (the battery names none): covers 2 of 2" in shown
    report = json.loads(run("report", "meant", "--json").stdout)
    assert report["precision"]["layout"] == "object-permanence"
    create = ("run", "--elsewhere", "--agent", "any", "--server", server.address, "--battery")
    said = call("session", *create, "meant").output
    assert "layout object-permanence (measured): the battery names it" in said
    said = call("session", *create, "batteries/unmeant").output
    assert "layout aaio (metres-15): the battery names none; --layout takes another" in said
    said = call("session", *create, "meant", "--layout", "aaio").output
    assert "the battery names" not in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--layout", "object-permanenc"), "no layout is named 'object-permanenc'"),
        (("--layout", "aaio", "--variant", "meters"), "meters"),
        (("--variant", "measured"), "a layout's variant goes with its name"),
        (("--layout", "mine.yaml"), "a layout of your own is named when a session is created"),
    ],
)
def test_a_battery_cannot_name_a_layout_that_is_not_there(
    run: Run, options: tuple[str, ...], message: str
) -> None:
    refused = run("import", "pair", "--name", "nowhere", *options)
    assert refused.exit_code != 0
    assert message in f"{refused.output} {refused.exception}"


def test_what_no_play_can_pass_is_played_only_where_it_is_asked_for(
    run: Run, client: animalcat.Client, server: Server, tmp_path: Path
) -> None:
    """B6 and B7: in a session, its list, its profile, and the battery's pages."""
    write(tmp_path / "marks", 1, 0, -5, 0)
    made = client.import_battery(tmp_path / "marks")
    assert list(made.set_aside) == ["a0"]
    for words in (("show", "batteries/marks"), ("show", "--check", "batteries/marks")):
        assert "a0" in run(*words).output
    assert run("show", "--check", "batteries/marks").exit_code == 1
    for keep, covered in ((None, 3), (True, 4)):
        session = client.create_session(
            agent="marks", battery="marks", keep_unpassable=keep, max_episodes=2
        )
        shown = ["show", session.id, "--json", "--server", server.address]
        told = json.loads(call("session", *shown).stdout)
        profile = client.profile(session)
        about = profile["provenance"]
        assert told["coverage"] == about["coverage"]
        assert (told["keep_unpassable"], about["keep_unpassable"]) == (bool(keep),) * 2
        assert about["coverage"]["covered"] == covered
        assert about["coverage"]["unpassable"] == covered - 3
        assert about["coverage"]["cannot_fail"] == 1
        assert sum(about["coverage"]["left_out"].values()) == 4 - covered
        labels = " ".join(profile["labels"])
        assert ("cannot be passed" in labels) == bool(keep)
    with pytest.raises(animalcat.AnimalcatError, match="left out: no play can pass"):
        client.create_session(agent="marks", battery="marks", policy="listed", first=["a0"])
    both = ["a", "b"]
    fair = client.create_campaign(agents=both, battery="marks", budget=4, common=1)
    assert not fair.spec.session.keep_unpassable
    kept = client.create_campaign(
        agents=both, battery="marks", budget=4, common=1, keep_unpassable=True
    )
    assert kept.spec.session.keep_unpassable
    assert kept.id != fair.id


@pytest.mark.parametrize(
    ("row", "marks", "refused", "words"),
    [
        ("B8", "x,0\ny,0\n", True, "is in the battery"),
        ("B8", "a,0\n", True, "b has no pass mark"),
        ("B18", "a,0\nb,1\nc,0\n", False, "1 pass marks are not used"),
        ("right", "a,0\nb,1\n", False, ""),
    ],
)
def test_pass_marks_are_those_of_the_arenas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], row: str, marks: str, refused: bool,
    words: str,
) -> None:  # fmt: skip
    table = tmp_path / "marks.csv"
    table.write_text(f"instance,pass_mark\n{marks}")
    files = [ArenaFile(f"{name}.yaml", ARENA.format(mark=0, z=20)) for name in "ab"]
    battery = import_files(files, 0, tmp_path / "store")
    rewards = "instance,agent\na,1\nb,0.5\n"
    if refused:
        with pytest.raises(BaseException) as error:  # typer's way to end a command
            or_fail(table, lambda: mark_battery(battery, table, rewards))
        assert getattr(error.value, "exit_code", 0) == 2
    else:
        assert mark_battery(battery, table, rewards).instances[1].pass_mark == 1.0
    said = " ".join(capsys.readouterr().err.split())
    assert words in said
    assert bool(said) == bool(words)
