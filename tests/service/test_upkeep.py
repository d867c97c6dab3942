"""Stores are added up, looked through, backed up, restored, pruned, and sessions moved."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from animalcat import data as stores
from animalcat.cli.main import build
from animalcat.data import DataError, Part
from animalcat.service.access.callers import Role
from animalcat.service.access.outbox import Outbox
from animalcat.service.access.tokens import Tokens
from animalcat.service.host import listeners
from animalcat.service.model import NewLine
from animalcat.service.storage.artefacts import Artefacts
from animalcat.service.storage.belonging import check_belonging
from animalcat.service.storage.rows import TABLES, PlainRow
from animalcat.service.storage.sql import SqlStore
from animalcat.service.upkeep import backup, moving, restore
from animalcat.service.upkeep.bundle import MANIFEST
from animalcat.service.upkeep.verifying import JOURNAL
from animalcat.values import AuditLine, SessionState
from tests import postgres
from tests.disk import full_disk
from tests.service.stores import StoreMaker
from tests.service.test_restart import Server, battery, counted, create, finish, held

FIELDS = {"certify": False, "action_timeout_seconds": 3600.0}
"""Of a session whose agent is held while commands run beside it."""
FORMS = ("bundle", "b.tar.zst", "b.tar.gz", "b.zip")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with finished and waiting sessions on two batteries, and a campaign."""
    folder = tmp_path_factory.mktemp("upkeep") / "original"
    with StoreMaker(folder) as maker:
        for name, size in (("first", 16), ("second", 12)):
            played = maker.battery(name, size)
            maker.sessions(played, 2, 5, recordings=5, fits=True)
            maker.sessions(played, 1, 3, over=False, recordings=3)
        maker.campaign(played, 2, 4, over=True)
    with closing(SqlStore.in_directory(folder)) as opened:
        for session in opened.sessions():
            opened.owners.hand_over([f"sessions/{session.id}"], "ann")
        opened.owners.hand_over(["batteries/first"], "bob")
        told = ("", "ann", "token", "researcher", "CreateSession", "sessions/é")
        lines = [AuditLine(datetime(2026, 11, k + 1, 7, 8, 9, k, UTC), *told) for k in range(3)]
        opened.audit.add([NewLine(f"line-{k}", line) for k, line in enumerate(lines)])
    (folder / "access").mkdir(mode=0o700)
    (folder / "access" / "secret.key").write_bytes(b"k" * 32)
    person = folder / "recordings" / "play-me"
    person.mkdir()
    (person / "0-0.mcap").write_bytes(b"played by a person")
    return folder


@pytest.fixture
def store(original: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(original, tmp_path / "store")


def rows(folder: Path, url: str = "") -> dict[str, list[PlainRow]]:
    """All that a database holds for good."""
    opened = SqlStore(url) if url else SqlStore.in_directory(folder)
    with closing(opened), opened.snapshot() as snapshot:
        return {table.name: list(snapshot.rows(table)) for table in TABLES}


def files(folder: Path) -> dict[str, bytes]:
    """All files that belong to a store, without its locks and its id."""
    kept = ("recordings", "certificates", "batteries", "access")
    paths = [path for name in kept for path in (folder / name).rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def of_state(folder: Path, state: str, *, campaign: bool = False) -> list[str]:
    """Ids of sessions in a state, those of campaigns or the others."""
    with closing(SqlStore.in_directory(folder)) as opened:
        its_own = {session for found in opened.campaigns() for session in found.sessions}
        return [
            s.id for s in opened.sessions() if s.state == state and (s.id in its_own) == campaign
        ]


def change(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "animalcat.sqlite")) as db, db:
        assert db.execute(statement).rowcount > 0, statement


def command(*words: str) -> Any:
    return CliRunner().invoke(build(["data"]), ["data", *words])


def test_every_byte_is_counted_once(store: Path) -> None:
    used = stores.show(store)
    wal = (store / "animalcat.sqlite-wal").exists()
    assert not wal, "so that what follows is all of the database"
    whole = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
    assert used.total == whole
    assert used.kinds["recordings of people"] == 18
    assert sum(s.recordings for s in used.sessions) == used.kinds["recordings"]
    assert sum(s.fits for s in used.sessions) == used.kinds["fits"]
    assert sum(b.arenas for b in used.batteries) == used.kinds["batteries"]
    assert sum(s.total for s in used.sessions) == sum(b.of_sessions for b in used.batteries)
    rows = sum(s.rows for s in used.sessions)
    assert 0.3 * used.kinds["database"] < rows < used.kinds["database"]
    assert [s.total for s in used.sessions] == sorted(
        (s.total for s in used.sessions), reverse=True
    )
    done = command("show", "--data", str(store), "--json")
    told = json.loads(done.stdout)
    assert told["total"] == used.total
    assert len(told["sessions"]) == 8
    assert {b["names"][0]: b["episodes"] for b in told["batteries"]} == {"first": 13, "second": 21}
    few = command("show", "--data", str(store), "--limit", "1").stdout
    assert "sessions: the 1 largest of 8" in few


def test_a_look_at_descriptors_gives_up_no_lock(store: Path) -> None:
    """Else who opens and closes the database removes its log under the server that writes it."""
    with closing(SqlStore.in_directory(store)) as opened:
        opened.count_sessions()
        log = (store / "animalcat.sqlite-wal").stat().st_ino
        for _ in listeners._sockets(socket.AF_INET):  # pyright: ignore[reportPrivateUsage]
            pass
        look = (
            "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM meta')"
        )
        subprocess.run([sys.executable, "-c", look, store / "animalcat.sqlite"], check=True)
        assert (store / "animalcat.sqlite-wal").stat().st_ino == log


def test_no_store_is_made_by_a_look(tmp_path: Path) -> None:
    done = command("show", "--data", str(tmp_path / "none"))
    assert done.exit_code == 2
    assert "there is no store in" in done.stderr
    assert not (tmp_path / "none").exists()


def test_every_damage_is_named_with_what_to_do(store: Path) -> None:
    whole = stores.verify(store)
    assert (whole.damage, whole.sessions, whole.batteries) == ((), 8, 2)
    one, two, three = of_state(store, "finished")[:3]
    change(store, f"DELETE FROM chain WHERE session = '{three}'")
    recording = store / "recordings" / one / "1-0.mcap"
    content = recording.read_bytes()
    recording.write_bytes(content[:-1] + b"x")
    (store / "certificates" / two / "profile.fit").unlink()
    arena = next((store / "batteries").glob("*/arenas/*"))
    arena.write_text(arena.read_text() + "\n")
    change(store, f"UPDATE episodes SET steps = steps + 1 WHERE session = '{two}' AND number = 0")
    change(store, "UPDATE layouts SET text = replace(text, '0.1', '0.2')")
    change(store, "UPDATE campaigns SET sessions = json_insert(sessions, '$[#]', 'lost')")
    (store / "recordings" / "stranger").mkdir()
    found = {(one.where, one.what): one.remedy for one in stores.verify(store).damage}
    said = {what for _, what in found}
    for where, words, remedy in (
        (one, "the recording of attempt 0 at episode 1 was changed", "restore BACKUP --repair"),
        (two, "the fit of the profile is gone", "restore BACKUP --repair"),
        (three, "the chain is gone", "do not rely on this session"),
        (two, "the record of attempt 0 at episode 0 was changed", "do not rely on this session"),
        ("layout aaio", "its text is another than its digest says", "past animalcat"),
    ):
        assert remedy in found[where, words]
    assert any(where == "battery first" or where == "battery second" for where, _ in found)
    assert "its session lost is gone" in said
    done = command("verify", "--data", str(store))
    assert done.exit_code == 1
    assert (
        "the recording of attempt 0 at episode 1 was changed\n  to do: put it back" in done.stdout
    )
    assert "note: recordings/stranger: the database knows no such session" in done.stdout


def test_an_interrupted_look_goes_on_and_reads_again_what_was_written(store: Path) -> None:
    whole = stores.verify(store)

    def stop(words: str, done: int = 0, total: int | None = None) -> None:
        if words == "looking through sessions" and done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stores.verify(store, tell=stop)
    lines = (store / JOURNAL).read_text().splitlines()
    read = {line.split("\t")[0] for line in lines}
    assert 0 < len(read) < whole.files
    with (store / JOURNAL).open("a") as journal:
        journal.write("recordings/cut off")
    victim = store / next(iter(sorted(read)))
    content, told = victim.read_bytes(), victim.stat()
    victim.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    os.utime(victim, ns=(told.st_atime_ns, told.st_mtime_ns))  # as somebody who hides it
    again = stores.verify(store)
    assert again.known == len(read) - 1
    assert again.files == whole.files - again.known
    assert [one.where for one in again.damage] == [victim.parent.name]
    assert not (store / JOURNAL).exists()
    assert stores.verify(store).known == 0


@pytest.mark.parametrize("form", FORMS)
def test_what_is_restored_is_the_same(original: Path, tmp_path: Path, form: str) -> None:
    made = stores.backup(original, tmp_path / form)
    assert (made.sessions, made.episodes, made.damaged) == (8, 34, ())
    assert not list(tmp_path.rglob(".*")), "nothing half done is left"
    target = tmp_path / "restored"
    stores.restore(tmp_path / form, target)
    assert rows(target) == rows(original)
    assert files(target) == files(original)
    assert stat_of(target) == stat_of(original)
    assert stores.verify(target).heads == stores.verify(original).heads
    with closing(SqlStore.in_directory(target)) as a, closing(SqlStore.in_directory(original)) as b:
        assert a.id() != b.id()
        assert a.audit.verify() == b.audit.verify()
        assert (a.audit.verify().problems, len(a.audit.lines())) == ((), 3)
        assert [s.owner for s in a.sessions()] == [s.owner for s in b.sessions()]
        assert {s.owner for s in a.sessions()} == {"ann"}
        assert (target / "animalcat.id").read_text().strip() == a.id()
    before = files(target)
    with pytest.raises(DataError, match="is not empty: it has 8 sessions"):
        stores.restore(tmp_path / form, target)
    assert files(target) == before


def stat_of(folder: Path) -> dict[str, float]:
    """When recordings were written, by which their age is told."""
    return {path.name: path.stat().st_mtime for path in (folder / "recordings").rglob("*.mcap")}


def test_a_second_backup_copies_what_is_new(store: Path, tmp_path: Path) -> None:
    first = stores.backup(store, tmp_path / "b")
    objects = {path: path.stat().st_ino for path in (tmp_path / "b" / "objects").rglob("*")}
    assert stores.backup(store, tmp_path / "b").fresh == 0
    gone = of_state(store, "finished")[0]
    rotten = max(objects, key=lambda path: path.stat().st_size if path.is_file() else 0)
    rotten.write_bytes(b"rotten")
    stores.prune(store, stores.plan(store, sessions=[gone]))
    second = stores.backup(store, tmp_path / "b")
    assert second.sessions == first.sessions - 1
    assert second.fresh > 0, "what had rotted was copied again"
    stores.restore(tmp_path / "b", tmp_path / "r")
    assert rows(tmp_path / "r") == rows(store)
    kept = [path for path in objects if path.exists() and path.is_file() and path != rotten]
    assert kept
    assert all(path.stat().st_ino == objects[path] for path in kept)
    left = [path for path in objects if not path.exists()]
    assert left, "what only the first needed is gone"


def test_a_backup_keeps_what_is_right_and_names_what_is_not(store: Path, tmp_path: Path) -> None:
    stores.backup(store, tmp_path / "b")
    one = of_state(store, "finished")[0]
    for name, content in (("0-0", b"x"), ("1-0", None)):
        path = store / "recordings" / one / f"{name}.mcap"
        path.unlink()
        if content is not None:
            path.write_bytes(content)
    shutil.rmtree(next((store / "batteries").iterdir()))
    assert len(stores.verify(store).damage) >= 4
    fresh = command("backup", str(tmp_path / "c.zip"), "--data", str(store))
    assert fresh.exit_code == 1
    assert f"recordings/{one}/1-0.mcap is gone" in fresh.stdout
    assert f"recordings/{one}/0-0.mcap is not as it was stored" in fresh.stdout
    repaired = stores.repair(tmp_path / "b", store)
    assert len(repaired.files) == 3
    assert repaired.missing == ()
    assert stores.verify(store).damage == ()


@pytest.mark.parametrize("form", ["bundle", "b.tar.zst"])
def test_a_damaged_backup_is_refused(original: Path, tmp_path: Path, form: str) -> None:
    stores.backup(original, tmp_path / form)
    path = tmp_path / form
    targets = sorted(path.rglob("*")) if path.is_dir() else [path]
    targets = [found for found in targets if found.is_file()]
    for victim in targets[:: max(1, len(targets) // 8)]:
        content = victim.read_bytes()
        for torn in (
            content[: len(content) // 2],
            bytes([*content[:9], content[9] ^ 1]) + content[10:],
        ):
            victim.write_bytes(torn)
            with pytest.raises(DataError, match=r"damaged|no whole backup"):
                stores.restore(path, tmp_path / "r")
            assert not (tmp_path / "r").exists()
        victim.write_bytes(content)
    if path.is_dir():
        (path / MANIFEST).unlink()
        with pytest.raises(DataError, match="no whole backup"):
            stores.restore(path, tmp_path / "r")


def test_a_backup_may_name_no_place_outside(original: Path, tmp_path: Path) -> None:
    for key in ("../x", "recordings/../../x", "animalcat.sqlite", "recordings/a/.b", "access/../x"):
        with pytest.raises(DataError, match="which no store has"):
            restore._insist_on_key(key)  # pyright: ignore[reportPrivateUsage]
    for path in (original / "b", original):
        with pytest.raises(DataError, match="within the store itself"):
            stores.backup(original, path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    with pytest.raises(DataError, match="something else in it"):
        stores.backup(original, tmp_path / "full")


def no_check(*_: object) -> None:
    """Room is believed to be there, and is not."""


def no_room(_: Path) -> int:
    """Bytes that are free."""
    return 1000


@pytest.mark.parametrize("form", FORMS)
def test_a_disk_that_fills_up_harms_nothing(
    original: Path, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores.backup(original, tmp_path / "good")
    before, own = tree(tmp_path / "good"), files(original)
    with monkeypatch.context() as patch:
        patch.setattr(backup, "insist_on_room", no_check)
        patch.setattr(restore, "insist_on_room", no_check)
        with full_disk(40_000), pytest.raises(DataError, match="is full, so nothing was changed"):
            stores.backup(original, tmp_path / form)
        assert not (tmp_path / form).exists()
        assert {path.name for path in tmp_path.iterdir()} == {"good"}
        for size in (40_000, 200_000):  # for files, and for the database
            with full_disk(size), pytest.raises(DataError, match=r"is full|disk I/O error"):
                stores.restore(tmp_path / "good", tmp_path / "new")
            assert not (tmp_path / "new").exists()
    assert tree(tmp_path / "good") == before
    assert files(original) == own
    monkeypatch.setattr("animalcat.service.upkeep.place.free_bytes", no_room)
    with pytest.raises(DataError, match=r"takes about .* MiB left"):
        stores.backup(original, tmp_path / form)


def tree(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


KILL = """
import os, sys
from animalcat import data
count = int(sys.argv[1])
def tell(*_):
    global count
    count -= 1
    if not count:
        os._exit(9)
eval(sys.argv[2])
"""


def killed(at: int, call: str) -> bool:
    """Whether a call was killed when it told how far it is for a certain time."""
    done = subprocess.run([sys.executable, "-c", KILL, str(at), call], check=False)
    assert done.returncode in (0, 9)
    return done.returncode == 9


@pytest.mark.slow
@pytest.mark.parametrize("form", ["bundle", "b.tar.zst"])
def test_what_is_killed_is_done_again(original: Path, tmp_path: Path, form: str) -> None:
    path, at = tmp_path / form, 1
    call = f"data.backup({str(original)!r}, {str(path)!r}, tell=tell)"
    while killed(at, call):
        with pytest.raises(DataError, match=r"no whole backup|there is no"):
            stores.restore(path, tmp_path / "r")
        at = 2 * at + 1
    assert at > 7
    at, call = 1, f"data.restore({str(path)!r}, {str(tmp_path / 'r')!r}, tell=tell)"
    while killed(at, call):
        at = 2 * at + 1
    assert at > 7
    assert rows(tmp_path / "r") == rows(original)
    assert files(tmp_path / "r") == files(original)
    assert not list((tmp_path / "r").glob(".restoring-*"))


def test_a_restore_killed_while_names_change_is_finished(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores.backup(original, tmp_path / "b")
    rename = Path.rename

    def fails(path: Path, target: Path) -> Path:
        if path.name == "recordings":
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fails)
        with pytest.raises(KeyboardInterrupt):
            stores.restore(tmp_path / "b", tmp_path / "r")
    assert (tmp_path / "r" / "batteries").is_dir()
    assert not (tmp_path / "r" / "animalcat.sqlite").exists()
    assert stores.restore(tmp_path / "b", tmp_path / "r").sessions == 8
    assert rows(tmp_path / "r") == rows(original)
    assert files(tmp_path / "r") == files(original)
    assert not list((tmp_path / "r").glob(".restoring-*"))


def test_nothing_goes_unasked_and_nothing_that_is_needed(store: Path) -> None:
    before = rows(store)
    said = command("prune", "--state", "finished", "--data", str(store))
    assert "sessions of 4 sessions go" in said.stdout
    assert "nothing was removed; the same command with --yes" in said.stdout
    assert "stays: campaign" in said.stdout
    assert command("prune", "--data", str(store)).stdout.startswith("nothing is meant")
    assert rows(store) == before
    bad = command("prune", "--older-than", "soon", "--data", str(store))
    assert (bad.exit_code, "is no age" in bad.stderr) == (2, True)
    with pytest.raises(DataError, match="has no session nobody"):
        stores.plan(store, sessions=["nobody"])
    assert stores.plan(store, older_than=timedelta(days=1)).losses == ()
    assert len(stores.plan(store, battery="first").losses) == 3
    done = command("prune", "--state", "finished", "--yes", "--data", str(store))
    assert done.exit_code == 0, done.output
    assert of_state(store, "finished") == []
    assert len(of_state(store, "finished", campaign=True)) == 2
    assert stores.verify(store).damage == ()
    plan = stores.plan(store, states=[SessionState.FINISHED], with_campaigns=True)
    assert len(plan.campaigns) == 1
    stores.prune(store, plan)
    with closing(SqlStore.in_directory(store)) as opened:
        assert opened.campaigns() == []
        assert {s.state for s in opened.sessions()} == {SessionState.WAITING}
        Outbox(store / "access").take(opened.audit.add)
        noted = [(line.action, line.role) for line in opened.audit.lines()[:-3]]
        assert noted.count(("DeleteSession", "administrator")) == 6
        assert noted.count(("DeleteCampaign", "administrator")) == 1
        assert opened.audit.verify().problems == ()
    assert {path.name for path in (store / "recordings").iterdir()} == {
        "play-me",
        *of_state(store, "waiting"),
    }


def test_what_is_kept_is_said_by_owner_and_size(store: Path) -> None:
    used = stores.show(store)
    assert {use.owner for use in used.sessions} == {"ann"}
    assert stores.plan(store, owner="bob").losses == ()
    assert len(stores.plan(store, owner="ann", states=[SessionState.FINISHED]).losses) == 4
    middle = sorted(use.total for use in used.sessions)[4]
    plan = stores.plan(store, larger_than=middle)
    large = {use.session for use in used.sessions if use.total >= middle}
    assert {loss.use.session for loss in plan.losses} | {*plan.kept} == large
    plan = stores.plan(store, owner="ann", down_to=used.total - 1)
    assert [loss.use.changed for loss in plan.losses] == [
        min(loss.use.changed for loss in stores.plan(store, owner="ann").losses)
    ]
    everything = stores.plan(store, owner="ann", down_to=0).losses
    assert {loss.use.session for loss in everything} == {
        loss.use.session for loss in stores.plan(store, owner="ann").losses
    }
    assert stores.plan(store, owner="ann", down_to=used.total).losses == ()
    bad = command("prune", "--down-to", "much", "--data", str(store))
    assert (bad.exit_code, "is no size" in bad.stderr) == (2, True)
    with pytest.raises(DataError, match="campaigns go as a whole"):
        stores.plan(store, down_to=0, with_campaigns=True)
    done = command("prune", "--down-to", "1.5GiB", "--owner", "ann", "--data", str(store))
    assert "nothing is meant that could go" in done.stdout


def test_a_person_is_forgotten_with_all_that_nobody_else_needs(store: Path) -> None:
    with closing(SqlStore.in_directory(store)) as opened:
        opened.owners.hand_over(["batteries/first", "batteries/second"], "ann")
        (campaign,) = opened.campaigns()
        opened.owners.hand_over([f"campaigns/{campaign.id}"], "ann")
        waiting = of_state(store, "waiting")
        theirs = next(s.id for s in opened.sessions() if s.id in waiting)
        opened.owners.hand_over([f"sessions/{theirs}"], "bob")
        (layout,) = {s.spec.layout_digest for s in opened.sessions()}
        opened.owners.hand_over([f"layouts/{layout}"], "ann")
        needed = opened.session(theirs)
        assert needed is not None
    tokens = Tokens(store)
    hers = tokens.create(Role.RESEARCHER, subject="ann")[0]
    tokens.create(Role.RESEARCHER, subject="bob")
    other = {"first": "second", "second": "first"}[needed.spec.battery]
    before = rows(store)
    said = command("prune", "--person", "ann", "--data", str(store))
    assert f"tokens/{hers.id} is revoked" in said.stdout
    assert f"batteries/{other} goes" in said.stdout
    assert f"batteries/{needed.spec.battery} stays: session {theirs} was made" in said.stdout
    assert "the audit log and backups keep what they say of them" in said.stdout
    assert rows(store) == before
    with pytest.raises(DataError, match="goes as a whole"):
        stores.plan(store, person="ann", states=[SessionState.FINISHED])
    done = command("prune", "--person", "ann", "--yes", "--data", str(store), "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["done"] == 7
    with closing(SqlStore.in_directory(store)) as opened:
        assert [s.id for s in opened.sessions()] == [theirs]
        assert opened.campaigns() == []
        assert [battery.id for battery in opened.batteries()] == [needed.spec.battery]
        left = {item for item, owner in opened.owners.every().items() if owner == "ann"}
        assert left == {f"batteries/{needed.spec.battery}", f"layouts/{layout}"}
        assert opened.owners.of(f"sessions/{theirs}") == "bob"
        Outbox(store / "access").take(opened.audit.add)
        noted = [line.action for line in opened.audit.lines()]
        assert {"DeleteCampaign", "DeleteBattery", "RevokeToken", "ForgetPerson"} <= {*noted}
        opened.delete_session(theirs)
    assert [t.subject for t in Tokens(store).all() if not t.revoked] == ["bob"]
    assert stores.verify(store).damage == ()
    done = command("prune", "--person", "ann", "--yes", "--data", str(store), "--json")
    assert json.loads(done.stdout)["things"] == [
        f"batteries/{needed.spec.battery}",
        f"layouts/{layout}",
    ]
    assert rows(store)["layouts"] == rows(store)["owners"] == []


@pytest.mark.parametrize("part", [Part.RECORDINGS, Part.UNCOUNTED, Part.FITS])
def test_files_that_go_are_given_up_in_the_chain(store: Path, part: Part) -> None:
    one, other = of_state(store, "finished")[:2]
    with closing(SqlStore.in_directory(store)) as opened:
        opened.invalidate_episode(one, 2, 0, "a bad day")
    waiting = of_state(store, "waiting")
    before = files(store)
    plan = stores.plan(store, sessions=[one, *waiting], part=part)
    assert set(plan.kept) == set(waiting)
    done = stores.prune(store, plan)
    gone = before.keys() - files(store).keys()
    expected = {
        Part.RECORDINGS: {f"recordings/{one}/{k}-0.mcap" for k in range(5)},
        Part.UNCOUNTED: {f"recordings/{one}/2-0.mcap"},
        Part.FITS: {f"certificates/{one}/profile.fit"},
    }[part]
    assert gone == expected
    assert done.bytes == sum(len(before[key]) for key in gone)
    found = stores.verify(store)
    assert found.damage == ()
    assert any(where == one and "removed on purpose" in note for where, note in found.notes)
    assert stores.plan(store, sessions=[one], part=part).losses == ()
    # What was changed before is not hidden by that.
    change(store, f"UPDATE episodes SET steps = 99 WHERE session = '{other}' AND number = 2")
    change(store, f"UPDATE profiles SET profile = '{{}}' WHERE session = '{other}'")
    stores.prune(store, stores.plan(store, sessions=[other], part=part))
    assert {found.where for found in stores.verify(store).damage} == {other}


def test_what_belongs_to_nothing_goes_when_it_is_old(store: Path) -> None:
    stray = store / "recordings" / "stranger" / "0-0.mcap"
    stray.parent.mkdir()
    stray.write_bytes(b"x" * 100)
    unused = shutil.copytree(
        next((store / "batteries").iterdir()), store / "batteries" / ("0" * 64)
    )
    assert stores.plan(store, leftovers=True).strays == {}
    for path in (stray, *unused.rglob("*")):
        os.utime(path, (0, 0))
    plan = stores.plan(store, leftovers=True)
    assert set(plan.strays) == {"recordings/stranger", f"batteries/{'0' * 64}"}
    before = rows(store)
    stores.prune(store, plan)
    assert not stray.parent.exists()
    assert not unused.exists()
    assert rows(store) == before
    assert stores.verify(store).damage == ()


def assert_moved(session: str, source: Path, target: Path, before: dict[str, bytes]) -> None:
    """Everything of a session is there, and nothing here."""
    its_own = {key: content for key, content in before.items() if f"/{session}/" in key}
    assert its_own
    assert {key: c for key, c in files(target).items() if f"/{session}/" in key} == its_own
    assert not [key for key in files(source) if f"/{session}/" in key]
    assert stores.verify(target).damage == ()
    assert stores.verify(source).damage == ()


def test_a_session_moves_with_all_that_it_needs(store: Path, tmp_path: Path) -> None:
    before, head = files(store), stores.verify(store).heads
    one, two = of_state(store, "finished")[:2]
    (waiting, *_) = of_state(store, "waiting")
    with closing(SqlStore.in_directory(store)) as opened:
        whose = {s.id: s.owner for s in opened.sessions()}
    target = tmp_path / "target"
    for session in (one, waiting):
        moved = stores.move(session, store, target)
        assert (moved.head, moved.removed) == (head[session], True)
        assert_moved(session, store, target, before)
    again = stores.move(one, store, target)
    assert "was in" in again.notes[0]
    copied = stores.move(two, store, target, keep=True)
    assert not copied.removed
    assert stores.verify(store).heads[two] == stores.verify(target).heads[two] == head[two]
    with closing(SqlStore.in_directory(target)) as opened:
        assert [s.id for s in opened.sessions()] == [two, waiting, one]
        assert {s.id: s.owner for s in opened.sessions()} == {
            session: whose[session] for session in (one, two, waiting)
        }
        opened.set_state(waiting, SessionState.CANCELLED)
    campaign = of_state(store, "finished", campaign=True)[0]
    with pytest.raises(DataError, match="belongs to campaign"):
        stores.move(campaign, store, target)
    with pytest.raises(DataError, match="has no session nobody"):
        stores.move("nobody", store, target)
    with closing(SqlStore.in_directory(target)) as opened:
        opened.invalidate_episode(two, 0, 0, "another one now")
    with pytest.raises(DataError, match="has another session of the id"):
        stores.move(two, store, target)
    done = command("move", one, "--to", str(store), "--data", str(target), "--json")
    assert json.loads(done.stdout)[0]["head"] == head[one]


def test_a_session_that_is_damaged_does_not_move(store: Path, tmp_path: Path) -> None:
    one = of_state(store, "finished")[0]
    (store / "recordings" / one / "0-0.mcap").write_bytes(b"x")
    with pytest.raises(DataError, match="is not as it was stored: the recording of attempt 0"):
        stores.move(one, store, tmp_path / "target")
    assert (store / "recordings" / one / "0-0.mcap").read_bytes() == b"x"


def steps_of_a_move() -> Iterator[tuple[Any, str]]:
    yield moving, "copy"
    yield SqlStore, "put_layout"
    yield SqlStore, "adopt"
    yield SqlStore, "delete_session"
    yield shutil, "rmtree"


@pytest.mark.parametrize(("owner", "name"), [*steps_of_a_move()])
@pytest.mark.parametrize("after", [False, True])
def test_a_move_that_is_cut_short_is_finished(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, after: bool
) -> None:
    before = files(store)
    one, target = of_state(store, "finished")[0], tmp_path / "target"
    function, calls = getattr(owner, name), 0

    def cut(*args: Any, **given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 1 and owner is moving:
            if after:
                function(*args, **given)
            raise KeyboardInterrupt
        if owner is not moving:
            if after:
                function(*args, **given)
            raise KeyboardInterrupt
        return function(*args, **given)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, cut)
        with pytest.raises(KeyboardInterrupt):
            stores.move(one, store, target)
    everything = {key.rpartition("/")[2] for key in {**files(store), **files(target)} if one in key}
    assert everything >= {key.rpartition("/")[2] for key in before if one in key}
    stores.move(one, store, target)
    assert_moved(one, store, target, before)


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_either_database_restores_into_the_other(store: Path, tmp_path: Path) -> None:
    before, own = files(store), rows(store)
    with (
        postgres.running() as server,
        postgres.schema(server) as url,
        postgres.schema(server) as other,
    ):
        shared, back = tmp_path / "shared", tmp_path / "back"
        stores.backup(store, tmp_path / "b.tar.zst")
        stores.restore(tmp_path / "b.tar.zst", shared, store=url)
        assert (rows(shared, url), files(shared)) == (own, before)
        with pytest.raises(DataError, match="is not empty"):
            stores.restore(tmp_path / "b.tar.zst", tmp_path / "new", store=url)
        assert not (tmp_path / "new").exists()
        assert stores.verify(shared, store=url).damage == ()
        used, here = stores.show(shared, store=url), stores.show(store)
        assert {s.session: s for s in used.sessions} == {s.session: s for s in here.sessions}
        stores.backup(shared, tmp_path / "b", store=url)
        stores.restore(tmp_path / "b", back, store="")
        assert (rows(back), files(back)) == (own, before)

        one, two = of_state(store, "finished")[:2]
        apart = tmp_path / "apart"
        moved = stores.move(one, shared, apart, store=url, to_store=other)
        assert stores.move(one, apart, store, store=other, keep=True).head == moved.head
        assert stores.verify(apart, store=other).heads == {one: moved.head}
        plan = stores.plan(shared, sessions=[two], part=Part.RECORDINGS, store=url)
        stores.prune(shared, plan, store=url)
        claims = SqlStore(url, "another server").claims(60.0)
        claims.listen_at("elsewhere:1")
        assert claims.claim(two) is None
        plan = stores.plan(shared, sessions=[two], store=url)
        assert "the server at elsewhere:1 has" in stores.prune(shared, plan, store=url).kept[two]
        claims.release(two)
        assert stores.prune(shared, plan, store=url).done == 1
        with closing(SqlStore(url)) as opened:
            newest = opened.sessions()[0]
            fresh = opened.create_session("new", newest.spec, newest.created)
            assert opened.sessions()[0] == fresh, "it is numbered higher than what was restored"
        assert stores.verify(shared, store=url).damage == ()


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_a_whole_store_moves_into_postgresql(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, own = files(store), rows(store)
    with (
        postgres.running() as server,
        postgres.schema(server) as url,
        postgres.schema(server) as other,
    ):
        with closing(SqlStore.in_directory(store)) as opened:
            mark = opened.id()
        words = ("move", "--all", "--data", str(store), "--to")
        bad = command(*words, str(tmp_path))
        assert (bad.exit_code, "goes with --to postgresql" in bad.stderr) == (2, True)
        stores.restore(str(_backed_up(store, tmp_path)), tmp_path / "r", store=other)
        change_in(other, "DELETE FROM owners")
        bad = command(*words, other)
        assert (bad.exit_code, "holds something else" in bad.stderr) == (2, True)
        assert rows(store) == own
        with monkeypatch.context() as patch:  # killed when all is there and before it is put aside
            patch.setattr(moving, "sync_folder", _dies)
            patch.setattr(Path, "rename", _dies)
            with pytest.raises(RuntimeError):
                stores.move_database(store, url)
        assert rows(store) == own
        done = command(*words, url, "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["sessions"] == 8
        assert (rows(store, url), files(store)) == (own, before)
        with closing(SqlStore(url)) as opened:
            assert opened.id() == mark
            check_belonging(opened, Artefacts(store))
        assert stores.verify(store, store=url).damage == ()
        assert not (store / "animalcat.sqlite").exists()
        bad = command(*words, url)
        assert (bad.exit_code, "there is no store" in bad.stderr) == (2, True)


def _dies(*_: Any) -> None:
    raise RuntimeError("killed")


def _backed_up(store: Path, folder: Path) -> Path:
    return stores.backup(store, folder / "b.tar.zst").path


def change_in(url: str, statement: str) -> None:
    with closing(SqlStore(url)) as opened, opened._changing() as db:  # pyright: ignore[reportPrivateUsage]
        assert db.execute(text(statement)).rowcount > 0


@pytest.mark.slow
@pytest.mark.timeout(1200)  # it starts nine processes, one after another
@pytest.mark.asyncio(loop_scope="session")
async def test_a_session_that_is_restored_goes_on_to_the_bit(
    start: Callable[[Path], Any], tmp_path: Path
) -> None:
    """Another process backs up, verifies and prunes while the server plays."""
    arenas = battery(9)
    async with start(tmp_path / "whole") as service:
        name = await create(service, arenas, 5, 1, **FIELDS)
        whole, profile = await finish(service, name, 1)
    played, session = tmp_path / "played", name.split("/")[1]
    async with start(played) as service:
        assert await create(service, arenas, 5, 1, **FIELDS) == name
        other = await service.create(1, seed=9, certify=False)
        await service.play(other)
    server = Server(played)
    with held(server.address, name, 2, tmp_path / "held"):
        beside("backup", tmp_path / "b.zip", "--data", played)
        told = beside("verify", "--data", played)
        assert "all is as it was stored: 2 sessions" in told
        told = beside("prune", session, other.split("/")[1], "--yes", "--data", played)
        assert f"{session} stays: it is being played" in told
        assert "of 1 sessions" in told
        assert stores.show(played).sessions[0].session == session
        with pytest.raises(DataError, match="is being played"):
            stores.move(session, played, tmp_path / "target")
        server.stop(signal.SIGKILL)
    assert stores.verify(played).damage == ()
    stores.restore(tmp_path / "b.zip", tmp_path / "again")
    async with start(tmp_path / "again") as service:
        before = counted(await service.list_episodes(name))
        assert before == counted(whole)[:2]
        assert len(await service.list_episodes(other)) == 1
        again, resumed = await finish(service, name, 1)
    assert counted(again) == counted(whole)
    assert resumed["nodes"] == profile["nodes"]
    words = [sys.executable, "-m", "animalcat", "session", "verify", session, "--data"]
    done = subprocess.run([*words, tmp_path / "again"], capture_output=True, check=True)
    assert b"is as it was stored" in done.stdout
    change(tmp_path / "again", "DELETE FROM chain")
    done = subprocess.run([*words, tmp_path / "again"], capture_output=True, check=False)
    assert done.returncode == 1
    assert b"the chain is gone" in done.stdout


def beside(*words: Any) -> str:
    """What a command prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "animalcat", "data", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
