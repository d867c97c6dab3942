"""A session that is changed behind the server's back is found out, whatever was changed."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from animalcat.client.async_client import aconnect
from animalcat.errors import AnimalcatError
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.service.batteries.columns import ColumnsWriter, InstanceColumns, read_head
from animalcat.service.batteries.writing import TABLE
from animalcat.service.measuring.certificates import draws_key
from animalcat.service.measuring.kept_fits import kept_fit_key
from animalcat.service.model import StoredCertificate
from animalcat.service.session.intact import IntegrityReport, look
from animalcat.service.storage.artefacts import Artefacts
from animalcat.service.storage.sql import SqlStore
from animalcat.values import SessionSpec, SessionState
from tests.service.conftest import walk

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHANGES = {
    "UPDATE episodes SET decision = replace(decision, '0.', '0.1') WHERE number = 0": "episode 0",
    "UPDATE episodes SET cause = cause || '!' WHERE number = 1 AND attempt = 0": "episode 1",
    "UPDATE episodes SET steps = steps + 1 WHERE number = 0": "episode 0",
    "UPDATE episodes SET versions = '{}' WHERE number = 0": "episode 0",
    "UPDATE episodes SET spent = '{}' WHERE number = 0": "episode 0",
    "DELETE FROM episodes WHERE number = 1": "episode 1",
    "UPDATE sessions SET spec = replace(spec, '\"seed\": 5', '\"seed\": 6')": "the specification",
    "UPDATE sessions SET reason = 'enough is known'": "how it stands",
    "UPDATE sessions SET state = 'FINISHED'": "how it stands",
    "UPDATE sessions SET misfit = 'far'": "how it stands",
    "UPDATE sessions SET agent = 'another'": "how it stands",
    "UPDATE sessions SET identity = '{}'": "how it stands",
    "UPDATE sessions SET capabilities = replace(capabilities, '0.', '0.1')": "how it stands",
    "UPDATE sessions SET spec = '{'": "its record cannot be read",
    "UPDATE layouts SET text = replace(text, '0.1', '0.2')": "its layout aaio",
    "DELETE FROM layouts": "its layout aaio",
    "UPDATE chain SET recording = '' WHERE recording != ''": ") of the chain was changed",
    "UPDATE chain SET recording = 'x' WHERE seq = 0": "link 0",
    "UPDATE chain SET what = what || '-x' WHERE recording != ''": ") of the chain was changed",
    "DELETE FROM chain WHERE seq = 1": "link 1",
    "DELETE FROM chain WHERE seq = 0": "link 0",
    "INSERT INTO episodes SELECT session, 7, attempt, decision, agent_instance, outcome, counts,"
    " episode_return, steps, ended_by, cause, seconds, outcomes, versions, invalid, spent,"
    " ruling, seen FROM episodes WHERE number = 0": "episode 7",
}


def verify_it(data: Path, session: str) -> IntegrityReport:
    store = SqlStore.in_directory(data)
    try:
        return look(store, Artefacts(data), session)
    finally:
        store.close()


async def test_every_change_is_found(start: Callable[[Path], Any], tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with start(data) as service:
        name = await service.create(5)
        session = name.split("/")[1]
        async with service.agent(name) as stream:
            await stream.receive("welcome")
            for _ in range(2):
                await stream.episode(walk)
        async with aconnect(service.running.address) as client:
            found = await client.verify_session(name)
        assert found.problems == ()
        assert found.links >= 3
    whole = verify_it(data, session)
    assert whole.problems == ()

    for number, (change, named) in enumerate(CHANGES.items()):
        copy = tmp_path / str(number)
        copy.mkdir()
        shutil.copy(data / "animalcat.sqlite", copy)
        for folder in ("recordings", "batteries"):
            (copy / folder).symlink_to(data / folder)
        with closing(sqlite3.connect(copy / "animalcat.sqlite")) as db, db:
            assert db.execute(change).rowcount > 0, change
        changed = verify_it(copy, session)
        assert any(named in problem for problem in changed.problems), (change, changed)

    path = data / "recordings" / session / "0-0.mcap"
    content = path.read_bytes()
    for place in range(0, len(content), max(1, len(content) // 25)):
        torn = bytearray(content)
        torn[place] ^= 1
        path.write_bytes(torn)
        (problem,) = verify_it(data, session).problems
        assert problem == "the recording of attempt 0 at episode 0 was changed"
    path.unlink()
    assert verify_it(data, session).problems == ("the recording of attempt 0 at episode 0 is gone",)
    path.write_bytes(content)
    assert verify_it(data, session) == whole


async def test_all_that_was_changed_is_told_at_once(
    start: Callable[[Path], Any], tmp_path: Path
) -> None:
    """Arenas, their demands, recordings, records, and pages of the database that are damaged."""
    data = tmp_path / "data"
    async with start(data) as service:
        name = await service.create(3)
        session = name.split("/")[1]
        async with service.agent(name) as stream:
            await stream.receive("welcome")
            for _ in range(2):
                await stream.episode(walk)
    assert verify_it(data, session).problems == ()
    (battery,) = (data / "batteries").glob("*")
    table, arenas = battery / TABLE, sorted((battery / "arenas").iterdir())
    whole, arena = table.read_bytes(), arenas[0].read_text()
    head, rows = read_head(table), InstanceColumns(table)
    with ColumnsWriter(table, [*head["units"]]) as writer:
        for row in map(rows.row, range(len(rows))):
            writer.add({**row, "features": {**row["features"], "rewardDistance": 1.0}})
        writer.finish(head)
    other = table.read_bytes()
    table.write_bytes(whole)

    def battery_problems() -> list[str]:
        return [problem for problem in verify_it(data, session).problems if "battery" in problem]

    arenas[0].write_text(arena.replace("timeLimit: ", "timeLimit: 1"))
    assert "was changed: its arenas or their demands are others" in " ".join(battery_problems())
    arenas[0].unlink()
    assert f"is gone, or a part of it: there is no {arenas[0].name}" in " ".join(battery_problems())
    arenas[0].write_text(arena)
    for changed in (other, whole[: len(whole) // 2], b"", b"PAR1"):
        table.write_bytes(changed)
        assert len(battery_problems()) == 1, changed
    table.write_bytes(whole)
    assert battery_problems() == []

    battery.rename(tmp_path / "elsewhere")
    async with start(data) as service, aconnect(service.running.address) as client:
        told = "gone from the folder batteries .* Restore them from a backup, or import or build"
        with pytest.raises(AnimalcatError, match=told) as gone:
            await client.get_battery((await client.get_session(name)).spec.battery)
        assert gone.value.code == "BATTERY_GONE"
        several = "\n".join((await client.verify_session(name)).problems)
        assert "is gone, or a part of it" in several
    (data / "recordings" / session / "0-0.mcap").unlink()
    (data / "recordings" / session / "1-0.mcap").write_bytes(b"")
    file = data / "animalcat.sqlite"
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE sessions SET reason = 'enough'")
        db.execute("UPDATE episodes SET steps = 1 WHERE number = 0")
    several = "\n".join(verify_it(data, session).problems)
    for words in ("how it stands", "episode 0 was", "0 is gone", "1 was changed", "is gone, or a"):
        assert words in several
    with closing(sqlite3.connect(file)) as db:
        pages = "SELECT rootpage FROM sqlite_master WHERE name = 'episodes'"
        (page,) = db.execute(pages).fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(file.read_bytes())
    content[(page - 1) * size : page * size] = b"\x55" * size
    file.write_bytes(content)
    several = "\n".join(verify_it(data, session).problems)
    for words in ("the database cannot be read: ", "attempts cannot be read: database disk image"):
        assert words in several
    assert "the recording of attempt 0 at episode 0 is gone" in several


async def test_the_files_of_fits_are_part_of_the_chain(tmp_path: Path) -> None:
    store = SqlStore.in_directory(tmp_path)
    spec = SessionSpec("a", "b", "", "", "", Policy(), StoppingRule())
    store.create_session("s", spec, datetime(2026, 1, 1, tzinfo=UTC))
    fits = tmp_path / "certificates" / "s"
    fits.mkdir(parents=True)
    files = {draws_key("s", 16): b"draws", kept_fit_key("s"): b"fit"}
    digests: list[str] = []
    for key, content in files.items():
        (tmp_path / key).write_bytes(content)
        digests.append(Artefacts(tmp_path).digest(key))
    certificate = StoredCertificate(16, False, {"passed": False}, draws_key("s", 16))
    store.put_certificate("s", certificate, digests[0])
    store.finish_session("s", SessionState.FINISHED, "enough", {"nodes": {}}, (), "", digests[1])
    try:
        assert look(store, Artefacts(tmp_path), "s").problems == ()
        for key in files:
            (tmp_path / key).write_bytes(b"others")
        assert look(store, Artefacts(tmp_path), "s").problems == (
            "the draws of the certificate 16 were changed",
            "the fit of the profile was changed",
        )
        for key in files:
            (tmp_path / key).unlink()
        assert look(store, Artefacts(tmp_path), "s").problems == (
            "the draws of the certificate 16 are gone",
            "the fit of the profile is gone",
        )
    finally:
        store.close()
