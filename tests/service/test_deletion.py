"""What is deleted is gone, on disk as well; what is needed stays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from animalcat.service.errors import Code, public
from animalcat.service.library.batteries import BatteryLibrary
from animalcat.text import names
from animalcat.v1 import sessions_pb2

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def refusal_of(code: Code, call: Any) -> None:
    with pytest.raises(Exception) as caught:
        await call
    assert public(caught.value).code is code


async def test_a_deleted_session_leaves_no_files(
    start: Callable[[Path], Any], tmp_path: Path
) -> None:
    async with start(tmp_path) as service:
        engines = service.running.engines
        library = BatteryLibrary(engines.parts.store, engines.parts.files)
        session = await service.create(4, certify=False)
        name = names.parse_session(session)
        async with service.agent(session) as stream:
            await stream.receive("welcome")
            await stream.episode(lambda rng: 3)
            await refusal_of(Code.IN_USE, engines.delete(name))
        await service.settled(session, "WAITING", asyncio.sleep)
        draws = tmp_path / "certificates" / name / "16.npz"
        draws.parent.mkdir(parents=True)
        draws.write_bytes(b"as after a failed certificate")
        await refusal_of(Code.IN_USE, library.delete("small"))

        watching = service.sessions.WatchSession(sessions_pb2.WatchSessionRequest(name=session))
        assert (await watching.read()).session.name == session
        while (await engines.get(name)).playing:
            await asyncio.sleep(0.02)
        await engines.delete(name)
        while (event := await watching.read()).session.state == sessions_pb2.SESSION_STATE_WAITING:
            pass
        assert event.session.reason == "the session was deleted"

        assert await engines.sessions() == []
        assert not (tmp_path / "recordings" / name).exists()
        assert not draws.parent.exists()
        await refusal_of(Code.UNKNOWN_SESSION, engines.delete(name))

        await library.delete("small")
        assert list((tmp_path / "batteries").iterdir()) == []
        await refusal_of(Code.UNKNOWN_BATTERY, library.delete("small"))
        again = await service.create(1, certify=False)
        assert (await service.play(again)).episodes == 1
