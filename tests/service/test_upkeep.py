"""Stores are looked through, backed up, restored and pruned."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from animalcat import data as stores
from animalcat.cli.main import build
from animalcat.data import DataError
from animalcat.layouts.library import load_layout
from animalcat.machine.marks import MARK
from animalcat.service.access.callers import Role
from animalcat.service.access.tickets import Tickets
from animalcat.service.access.tokens import Tokens
from animalcat.service.batteries.battery import BATTERIES, ArenaFile, import_files
from animalcat.service.host import listeners
from animalcat.service.library.layouts import record_of
from animalcat.service.measuring.kept_fits import kept_fit_key
from animalcat.service.model import BatteryRecord, StoredCampaign
from animalcat.service.storage import schema
from animalcat.service.storage.artefacts import Artefacts, recording_key
from animalcat.service.storage.rows import PlainRow
from animalcat.service.storage.sql import SqlStore
from animalcat.service.upkeep import backup, restore
from animalcat.values import AuditLine, CampaignSpec, SessionSpec, SessionState
from tests import postgres
from tests.disk import full_disk
from tests.service.conftest import FILES
from tests.service.test_restart import (
    Server,
    battery,
    counted_episodes,
    create,
    finish,
    hold_episode,
)
from tests.suites.storage import STATUS, attempt, finish_attempt

FIELDS = {"certify": False, "action_timeout_seconds": 3600.0}
"""Of a session whose agent is held while commands run beside it."""
FORMS = ("b.tar", "b.tar.gz")
KEYS = ("secret.key", "ticket.key", "server.key", "tokens.json")
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
OWN = ("meta", "alembic_version")
"""Tables that each database has of its own."""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with finished and waiting sessions on two batteries, and a campaign."""
    folder = tmp_path_factory.mktemp("upkeep") / "original"
    with closing(SqlStore.in_directory(folder)) as opened:
        files = Artefacts(folder)
        files.set_mark(opened.id())
        layout = load_layout("aaio")
        opened.put_layout(record_of(layout))
        for name, size in (("first", 16), ("second", 12)):
            made = [ArenaFile(path, content.decode()) for path, content in FILES[:size]]
            digest = import_files(made, 0, folder / BATTERIES).digest
            opened.put_battery(BatteryRecord(name, digest, size))
            spec = SessionSpec("somebody", name, digest, layout_digest=layout.identity)
            for episodes in (5, 5, 3):
                store_session(opened, files, spec, episodes)
        entrants = [store_session(opened, files, spec, 4, over=True) for _ in range(2)]
        whole = CampaignSpec(("one", "other"), spec, 8)
        opened.create_campaign(StoredCampaign("c", whole, tuple(entrants), BEGUN))
        for session in opened.sessions():
            opened.owners.hand_over([f"sessions/{session.id}"], "ann")
        opened.owners.hand_over(["batteries/first"], "bob")
        told = ("", "ann", "token", "researcher", "CreateSession", "sessions/é")
        lines = [AuditLine(datetime(2026, 11, k + 1, 7, 8, 9, k, UTC), *told) for k in range(3)]
        opened.audit.write(lines)
    Tokens(folder).create(Role.OPERATOR)
    Tickets(folder)
    for name in ("secret.key", "server.key"):
        (folder / "access" / name).write_bytes(f"the bytes of {name}".encode())
    study = folder / "studies" / "one"
    study.mkdir(parents=True)
    (study / "visits.key").write_bytes(b"the key of a study")
    person = folder / "recordings" / "play-me"
    person.mkdir()
    (person / "0-0.mcap").write_bytes(b"played by a person")
    return folder


def store_session(
    store: SqlStore, files: Artefacts, spec: SessionSpec, episodes: int, *, over: bool = False
) -> str:
    """Store a session as playing would leave it; one of five episodes is over."""
    session = store.create_session("s", spec, BEGUN).id
    for number in range(episodes):
        recording = files.folder / recording_key(session, number, 0)
        recording.parent.mkdir(parents=True, exist_ok=True)
        recording.write_bytes(f"steps of {session} {number} ".encode() * 400)
        store.open_episode(attempt(session, number))
        store.finish_episode(finish_attempt(attempt(session, number)), files)
    if over or episodes == 5:
        fit = files.folder / kept_fit_key(session)
        fit.parent.mkdir(parents=True)
        fit.write_bytes(f"draws of {session} ".encode() * 400)
        digest = files.digest(kept_fit_key(session))
        store.finish_session(session, SessionState.FINISHED, "enough", {}, STATUS, fit=digest)
    return session


@pytest.fixture
def store(original: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(original, tmp_path / "store")


def rows(folder: Path, url: str = "") -> dict[str, list[PlainRow]]:
    """All that a database holds for good."""
    opened = SqlStore(url) if url else SqlStore.in_directory(folder)
    with closing(opened), opened.snapshot() as snapshot:
        tables = [one for one in schema.metadata.sorted_tables if one.name not in OWN]
        return {table.name: list(snapshot.rows(table)) for table in tables}


def files(folder: Path) -> dict[str, bytes]:
    """All files that belong to a store, without its locks and its id."""
    kept = ("recordings", "certificates", "batteries")
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


def command(*words: str, url: str = "") -> Any:
    return CliRunner(env={"ANIMALCAT_STORE": url}).invoke(build(["data"]), ["data", *words])


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
    done = command("verify", "--data", str(tmp_path / "none"))
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
        (
            one,
            "the recording of attempt 0 at episode 1 was changed",
            "take the file out of a backup",
        ),
        (two, "the fit of the profile is gone", "out of a backup"),
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
        "the recording of attempt 0 at episode 1 was changed\n  to do: take the file" in done.stdout
    )
    assert "note: recordings/stranger: the database knows no such session" in done.stdout


def in_backup(path: Path) -> dict[str, bytes]:
    """Contents of a backup, by their names."""
    with tarfile.open(path) as archive:
        found = {member: archive.extractfile(member) for member in archive}
        return {member.name: file.read() for member, file in found.items() if file is not None}


def test_a_backup_holds_no_key_unless_asked(original: Path, tmp_path: Path) -> None:
    done = command("backup", str(tmp_path / "without.tar"), "--data", str(original))
    assert "No token and no key of the server is in it" in done.stdout
    done = command("backup", str(tmp_path / "with.tar"), "--with-keys", "--data", str(original))
    assert "whoever has it can do all that the server can" in done.stdout.replace("\n", " ")
    without, with_keys = in_backup(tmp_path / "without.tar"), in_backup(tmp_path / "with.tar")
    assert {f"access/{name}" for name in KEYS} <= with_keys.keys()
    assert not [name for name in without if name.startswith("access")]
    secrets = [(original / "access" / name).read_bytes() for name in KEYS]
    secrets += [(original / "studies" / "one" / "visits.key").read_bytes()]
    for content in without.values():
        assert not [secret for secret in secrets if secret in content]
    for name in ("without.tar", "with.tar"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600

    stores.restore(tmp_path / "with.tar", tmp_path / "whole")
    for name, secret in zip(KEYS, secrets, strict=False):
        path = tmp_path / "whole" / "access" / name
        assert (path.read_bytes(), path.stat().st_mode & 0o777) == (secret, 0o600)
    own = Tokens(tmp_path / "own").create(Role.OPERATOR)[0]
    stores.restore(tmp_path / "with.tar", tmp_path / "own")
    assert Tokens(tmp_path / "own").all() == [own], "what a directory has of its own stays"
    done = command("restore", str(tmp_path / "without.tar"), "--data", str(tmp_path / "bare"))
    assert "no token is in the backup" in done.stdout
    assert not (tmp_path / "bare" / "access").exists()


@pytest.mark.parametrize("form", FORMS)
def test_what_is_restored_is_the_same(original: Path, tmp_path: Path, form: str) -> None:
    made = stores.backup(original, tmp_path / form)
    assert (made.sessions, made.damaged) == (8, ())
    assert {one.name for one in tmp_path.glob(".*")} <= {MARK}, "nothing half done is left"
    target = tmp_path / "restored"
    stores.restore(tmp_path / form, target)
    assert rows(target) == rows(original)
    assert files(target) == files(original)
    assert stat_of(target) == stat_of(original)
    assert stores.verify(target) == stores.verify(original)
    with closing(SqlStore.in_directory(target)) as a, closing(SqlStore.in_directory(original)) as b:
        assert a.id() != b.id()
        assert len(a.audit.lines()) == 3
        assert (target / "animalcat.id").read_text().strip() == a.id()
    before = files(target)
    with pytest.raises(DataError, match="is not empty: it has 8 rows of sessions"):
        stores.restore(tmp_path / form, target)
    assert files(target) == before


def stat_of(folder: Path) -> dict[str, float]:
    """When recordings were written, by which their age is told, in whole seconds."""
    return {path.name: int(path.stat().st_mtime) for path in folder.rglob("*.mcap")}


def test_a_backup_names_what_is_not_right(store: Path, tmp_path: Path) -> None:
    one = of_state(store, "finished")[0]
    for name, content in (("0-0", b"x"), ("1-0", None)):
        path = store / "recordings" / one / f"{name}.mcap"
        path.unlink()
        if content is not None:
            path.write_bytes(content)
    shutil.rmtree(next((store / "batteries").iterdir()))
    assert len(stores.verify(store).damage) >= 4
    fresh = command("backup", str(tmp_path / "c.tar"), "--data", str(store))
    assert fresh.exit_code == 1
    assert f"recordings/{one}/1-0.mcap is gone" in fresh.stdout
    assert f"recordings/{one}/0-0.mcap is not as it was stored" in fresh.stdout


@pytest.mark.parametrize("form", FORMS)
def test_a_damaged_backup_is_refused(original: Path, tmp_path: Path, form: str) -> None:
    path = tmp_path / form
    stores.backup(original, path)
    content = path.read_bytes()
    damaged = [content[:at] for at in (0, 200, len(content) // 2, len(content) - 11_000)]
    if form == "b.tar":
        damaged += [content.replace(b"played by a person", b"played by nobody  "), b"x" + content]
    for torn in damaged:
        path.write_bytes(torn)
        with pytest.raises(DataError, match=r"damaged|no whole backup"):
            stores.restore(path, tmp_path / "r")
        assert not (tmp_path / "r").exists()


def test_a_backup_may_name_no_place_outside(original: Path, tmp_path: Path) -> None:
    for key in ("../x", "recordings/../../x", "recordings/a/.b", "access/../x", "/etc/passwd"):
        assert not restore._NAMES.fullmatch(key)  # pyright: ignore[reportPrivateUsage]
    for path, words in (
        (original / "b.tar", "within the store itself"),
        (tmp_path / "b.zip", r"ends in .tar or .tar.gz"),
    ):
        with pytest.raises(DataError, match=words):
            stores.backup(original, path)
    (tmp_path / "thesis.tar").touch()
    with pytest.raises(DataError, match="exists already"):
        stores.backup(original, tmp_path / "thesis.tar")


def no_check(*_: object) -> None:
    """Room is believed to be there, and is not."""


def no_room(_: Path) -> int:
    """Bytes that are free."""
    return 1000


@pytest.mark.parametrize("form", FORMS)
def test_a_disk_that_fills_up_harms_nothing(
    original: Path, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores.backup(original, tmp_path / "good.tar")
    before, own = (tmp_path / "good.tar").read_bytes(), files(original)
    with monkeypatch.context() as patch:
        patch.setattr(backup, "insist_on_room", no_check)
        patch.setattr(restore, "insist_on_room", no_check)
        with full_disk(40_000), pytest.raises(DataError, match=r"is full|disk I/O error"):
            stores.backup(original, tmp_path / form)
        assert {path.name for path in tmp_path.glob("[!.]*")} == {"good.tar"}
        with full_disk(40_000), pytest.raises(DataError, match=r"is full|disk I/O error"):
            stores.restore(tmp_path / "good.tar", tmp_path / "new")
        assert not (tmp_path / "new").exists()
    assert (tmp_path / "good.tar").read_bytes() == before
    assert files(original) == own
    monkeypatch.setattr("animalcat.service.upkeep.place.free_bytes", no_room)
    with pytest.raises(DataError, match=r"takes about .* MiB left"):
        stores.backup(original, tmp_path / form)


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


def was_killed(at: int, call: str) -> bool:
    """Whether a call was killed when it told how far it is for a certain time."""
    done = subprocess.run([sys.executable, "-c", KILL, str(at), call], check=False)
    assert done.returncode in (0, 9)
    return done.returncode == 9


@pytest.mark.slow
def test_what_is_killed_is_done_again(original: Path, tmp_path: Path) -> None:
    path, at = tmp_path / "b.tar", 1
    call = f"data.backup({str(original)!r}, {str(path)!r}, tell=tell)"
    while was_killed(at, call):
        with pytest.raises(DataError, match="there is no file"):
            stores.restore(path, tmp_path / "r")
        at = 2 * at + 1
    assert at > 7
    at, call = 1, f"data.restore({str(path)!r}, {str(tmp_path / 'r')!r}, tell=tell)"
    while was_killed(at, call):
        at = 2 * at + 1
    assert at > 7
    assert rows(tmp_path / "r") == rows(original)
    assert files(tmp_path / "r") == files(original)
    assert not list((tmp_path / "r").glob(".restoring-*"))


def test_a_restore_killed_while_names_change_is_finished(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores.backup(original, tmp_path / "b.tar")
    rename = Path.rename

    def fails(path: Path, target: Path) -> Path:
        if path.name == "recordings":
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fails)
        with pytest.raises(KeyboardInterrupt):
            stores.restore(tmp_path / "b.tar", tmp_path / "r")
    assert (tmp_path / "r" / "batteries").is_dir()
    assert not (tmp_path / "r" / "animalcat.sqlite").exists()
    assert stores.restore(tmp_path / "b.tar", tmp_path / "r").sessions == 8
    assert rows(tmp_path / "r") == rows(original)
    assert files(tmp_path / "r") == files(original)
    assert not list((tmp_path / "r").glob(".restoring-*"))


def test_nothing_goes_unasked_and_nothing_that_is_needed(store: Path) -> None:
    before = rows(store)
    said = command("prune", "--owner", "ann", "--data", str(store))
    assert "to be removed: 8 sessions" in said.stdout
    assert "nothing was removed; the same command with --yes" in said.stdout
    assert command("prune", "--data", str(store)).stdout.startswith("nothing is chosen")
    assert rows(store) == before
    bad = command("prune", "--older-than", "soon", "--data", str(store))
    assert (bad.exit_code, "is not an age" in bad.stderr) == (2, True)
    assert stores.plan(store, older_than=timedelta(days=9999)).losses == ()
    assert stores.plan(store, owner="bob").losses == ()
    (campaign,) = of_campaigns(store)
    one, *others = of_state(store, "finished", campaign=True)
    (theirs, *_) = of_state(store, "waiting")
    with closing(SqlStore.in_directory(store)) as opened:
        opened.owners.hand_over([f"sessions/{one}", f"sessions/{theirs}"], "bob")
    plan = stores.plan(store, owner="ann")
    assert (plan.campaigns, set(plan.kept)) == ((), {*others})
    assert f"campaign {campaign}, which stays" in plan.kept[others[0]]
    done = command("prune", "--owner", "ann", "--yes", "--data", str(store))
    assert done.exit_code == 0, done.output
    with closing(SqlStore.in_directory(store)) as opened:
        assert {s.id for s in opened.sessions()} == {one, theirs, *others}
        opened.owners.hand_over([f"sessions/{name}" for name in others], "bob")
        opened.owners.hand_over([f"sessions/{theirs}"], "eve")
    plan = stores.plan(store, owner="bob")
    assert plan.campaigns == (campaign,)
    assert stores.prune(store, plan).done == len(plan.losses) == 1 + len(others)
    with closing(SqlStore.in_directory(store)) as opened:
        assert (opened.campaigns(), [s.id for s in opened.sessions()]) == ([], [theirs])
        noted = [(line.action, line.role, line.result) for line in opened.audit.lines()[:-3]]
        assert noted.count(("DeleteSession", "administrator", "done")) == 7
        assert noted.count(("DeleteCampaign", "administrator", "done")) == 1
    assert {path.name for path in (store / "recordings").iterdir()} == {"play-me", theirs}
    assert stores.verify(store).damage == ()


def of_campaigns(folder: Path) -> list[str]:
    with closing(SqlStore.in_directory(folder)) as opened:
        return [campaign.id for campaign in opened.campaigns()]


def test_old_lines_of_the_audit_log_go_by_their_age(store: Path) -> None:
    refused = command("prune", "--audit", "--data", str(store))
    assert (refused.exit_code, "by --older-than" in refused.stderr) == (2, True)
    with closing(SqlStore.in_directory(store)) as opened:
        told = ("", "ann", "token", "researcher", "CreateSession")
        opened.audit.write([AuditLine(datetime(2020, 1, 1, tzinfo=UTC), *told)])
    words = ("prune", "--audit", "--older-than", "4y", "--data", str(store))
    assert command(*words).stdout.startswith("to be removed: 1 line of the audit log, before ")
    assert json.loads(command(*words, "--yes", "--json").stdout)["lines"] == 1
    with closing(SqlStore.in_directory(store)) as opened:
        assert [one.action for one in opened.audit.lines()][:2] == ["CutAudit", "CreateSession"]
        assert len(opened.audit.lines()) == 4


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_a_postgresql_is_backed_up_and_restored(store: Path, tmp_path: Path) -> None:
    with postgres.running() as server:
        root = server.url.rpartition("/")[0]
        with psycopg.connect(server.url, autocommit=True) as db:
            for name in ("one", "other"):
                db.execute(f"CREATE DATABASE {name}".encode())
        url, other = f"{root}/one", f"{root}/other"
        with closing(SqlStore.in_directory(store)) as opened:
            found = opened.sessions()[0]
        with closing(SqlStore(url)) as opened:
            for k in range(3):
                opened.create_session(f"s{k}", found.spec, found.created, owner="ann")
        home = tmp_path / "home"
        archive, target = tmp_path / "b.tar", tmp_path / "r"
        made = command("backup", str(archive), "--data", str(home), url=url)
        assert "battery" not in made.stdout
        assert f"batteries/{found.spec.battery_digest} is gone" in made.stdout
        stores.restore(archive, target, store=other)
        assert rows(home, url) == rows(home, other)
        with closing(SqlStore(other)) as opened:
            assert opened.create_session("new", found.spec, found.created) == opened.sessions()[0]
            opened.hold("a server elsewhere")
            plan = stores.plan(target, owner="ann", store=other)
            with pytest.raises(DataError, match="in use by another server, a server elsewhere"):
                stores.prune(target, plan, store=other)
        assert stores.prune(target, plan, store=other).done == 3
        with pytest.raises(DataError, match="is not empty"):
            stores.restore(archive, tmp_path / "new", store=other)
        with pytest.raises(DataError, match="is of a PostgreSQL"):
            stores.restore(archive, tmp_path / "new", store="")
        assert not (tmp_path / "new").exists()


@pytest.mark.slow
@pytest.mark.timeout(1200)  # it starts nine processes, one after another
@pytest.mark.asyncio(loop_scope="session")
async def test_a_session_that_is_restored_goes_on_to_the_bit(
    start: Callable[[Path], Any], tmp_path: Path
) -> None:
    """Another process backs up and verifies while the server plays; no key is in the backup."""
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
    with hold_episode(server.address, name, 2, tmp_path / "held"):
        beside("backup", tmp_path / "b.tar", "--data", played)
        told = beside("verify", "--data", played)
        assert "everything as it was stored: 2 sessions" in told
        server.stop(signal.SIGKILL)
    assert stores.verify(played).damage == ()
    stores.restore(tmp_path / "b.tar", tmp_path / "again")
    async with start(tmp_path / "again") as service:
        before = counted_episodes(await service.list_episodes(name))
        assert before == counted_episodes(whole)[:2]
        assert len(await service.list_episodes(other)) == 1
        again, resumed = await finish(service, name, 1)
    assert counted_episodes(again) == counted_episodes(whole)
    assert resumed["nodes"] == profile["nodes"]
    words = [sys.executable, "-m", "animalcat", "session", "show", "--verify", session, "--data"]
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
