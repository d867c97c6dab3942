"""A session that is changed behind the server's back is found out, whatever was changed."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from animalcat.client.async_client import aconnect
from animalcat.service.session.intact import Intact, look
from animalcat.service.storage.artefacts import Artefacts
from animalcat.service.storage.sql import SqlStore
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
    "UPDATE chain SET recording = '' WHERE seq = 1": "link 1",
    "DELETE FROM chain WHERE seq = 1": "link 1",
    "DELETE FROM chain WHERE seq = 0": "link 0",
    "INSERT INTO episodes SELECT session, 7, attempt, decision, agent_instance, outcome, counts,"
    " episode_return, steps, ended_by, cause, seconds, outcomes, versions, invalid, spent,"
    " ruling, seen FROM episodes WHERE number = 0": "episode 7",
}


def verified(data: Path, session: str) -> Intact:
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
        assert (found.problems, found.uncovered) == ((), 0)
        assert found.links >= 3
    whole = verified(data, session)
    assert whole.problems == ()

    for number, (change, named) in enumerate(CHANGES.items()):
        copy = tmp_path / str(number)
        copy.mkdir()
        shutil.copy(data / "animalcat.sqlite", copy)
        (copy / "recordings").symlink_to(data / "recordings")
        with closing(sqlite3.connect(copy / "animalcat.sqlite")) as db, db:
            assert db.execute(change).rowcount > 0, change
        changed = verified(copy, session)
        assert any(named in problem for problem in changed.problems), (change, changed)

    path = data / "recordings" / session / "0-0.mcap"
    content = path.read_bytes()
    for place in range(0, len(content), max(1, len(content) // 25)):
        torn = bytearray(content)
        torn[place] ^= 1
        path.write_bytes(torn)
        (problem,) = verified(data, session).problems
        assert problem == "the recording of attempt 0 at episode 0 was changed"
    path.unlink()
    assert verified(data, session).problems == ("the recording of attempt 0 at episode 0 is gone",)
    path.write_bytes(content)
    assert verified(data, session) == whole


@pytest.mark.slow
async def test_a_backup_that_is_restored_is_the_same(
    start: Callable[[Path], Any], tmp_path: Path
) -> None:
    """As docs/operations.md says: the database while the server runs, then the files."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    async with start(data) as service:
        name = await service.create(4)
        async with service.agent(name) as stream:
            await stream.receive("welcome")
            await stream.episode(walk)
            copy.mkdir()
            with (
                closing(sqlite3.connect(data / "animalcat.sqlite")) as db,
                closing(sqlite3.connect(copy / "animalcat.sqlite")) as backup,
            ):
                db.backup(backup)
            for folder in ("batteries", "recordings"):
                shutil.copytree(data / folder, copy / folder)
    command = [sys.executable, "-m", "animalcat", "session", "verify", name.split("/")[1], "--json"]
    done = subprocess.run([*command, "--data", copy], capture_output=True, check=True)
    assert json.loads(done.stdout)["problems"] == []
    async with start(copy) as service, service.agent(name) as stream:
        await stream.receive("welcome")
        assert (await stream.receive("episode_start")).episode == 1
    with closing(sqlite3.connect(copy / "animalcat.sqlite")) as db, db:
        db.execute("DELETE FROM chain")
    text = subprocess.run([*command[:-1], "--data", copy], capture_output=True, text=True)
    assert text.returncode == 1
    assert "cannot be looked at" in text.stdout
