"""Fits that the machine does not let be made: they change no decision and fail no session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from animalcat.layouts.inference.fit import FitRequest, FitResult
from animalcat.layouts.inference.fitter import Fitter
from animalcat.v1 import results_pb2, sessions_pb2
from tests.service.conftest import arena

pytestmark = pytest.mark.asyncio(loop_scope="session")

Start = Callable[..., Any]
ARENAS = [(f"navigation-{k:02}.yaml", arena(k).encode()) for k in range(28)]


class Machine:
    """Ends the fitting process at every request, until it is well."""

    def __init__(self) -> None:
        self.well = asyncio.Event()
        self.fitter = Fitter(self._watch)

    async def _watch(self, pid: int) -> str:
        if self.well.is_set():
            await asyncio.Event().wait()
        return "overloaded"


@pytest_asyncio.fixture(loop_scope="session")
async def machine() -> AsyncIterator[Machine]:
    made = Machine()
    yield made
    await made.fitter.close()


class Slow(Fitter):
    """Begins no fit before it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.may = asyncio.Event()

    async def fit(self, request: FitRequest) -> FitResult:
        await self.may.wait()
        return await super().fit(request)


async def profile_of(service: Any, session: str) -> dict[str, Any]:
    request = results_pb2.GetProfileRequest(name=f"{session}/profile")
    return json.loads((await service.profiles.GetProfile(request)).profile_json)


async def test_a_session_whose_last_fit_cannot_be_had_ends_uncertified(
    start: Start, tmp_path: Path, machine: Machine
) -> None:
    async with start(tmp_path, machine.fitter) as service:
        session = await service.create(3, certify=False)
        end = await service.play(session)
        assert (end.state, end.episodes) == (sessions_pb2.SESSION_STATE_FINISHED, 3)
        diagnostics = (await profile_of(service, session))["diagnostics"]
    assert (diagnostics["engine"], diagnostics["converged"]) == ("smc", False)
    assert diagnostics["outcomes"] == 3
    assert "the last fit could not be had" in diagnostics["reasons"][-1]
    assert "overloaded" in diagnostics["reasons"][-1]


@pytest.mark.slow
async def test_a_session_says_that_it_waits_for_a_fit(start: Start, tmp_path: Path) -> None:
    slow = Slow()

    async def until_waits(service: Any, session: str, what: str) -> None:
        while (await service.get(session)).waits_for != what:
            await asyncio.sleep(0.05)

    try:
        async with start(tmp_path, slow) as service:
            await service.import_files(ARENAS, "longer")
            session = await service.create(25, battery="batteries/longer", certify=True)
            playing = asyncio.create_task(service.play(session))
            await until_waits(service, session, "the fit that certifies its first 16 episodes")
            assert len(await service.list_episodes(session)) == 24
            slow.may.set()
            await until_waits(service, session, "")
            slow.may.clear()
            await until_waits(service, session, "the last fit, for its profile")
            slow.may.set()
            assert (await playing).state == sessions_pb2.SESSION_STATE_FINISHED
            assert (await service.get(session)).waits_for == ""
    finally:
        await slow.close()


@pytest.mark.slow
async def test_a_certificate_that_cannot_be_had_is_waited_for(
    start: Start,
    tmp_path: Path,
    machine: Machine,
    service: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    how = {"battery": "batteries/longer", "certify": True}
    await service.import_files(ARENAS, "longer")
    usual = await service.create(27, **how)
    await service.play(usual)

    async with start(tmp_path, machine.fitter) as other:
        await other.import_files(ARENAS, "longer")
        session = await other.create(27, **how)
        with pytest.raises(AssertionError, match="SESSION_FAILED"):
            await other.play(session)
        assert "certifies the first 16 episodes" in caplog.text
        await other.settled(session, "WAITING", asyncio.sleep)
        assert len(await other.list_episodes(session)) == 24  # the next decision hangs on it
        caplog.clear()
        with pytest.raises(AssertionError, match="SESSION_FAILED"):
            await other.play(session)
        assert "ANIMALCAT_FIT_QUIET_SECONDS" in caplog.text
    async with start(tmp_path, machine.fitter) as other:  # also where it was not there from 16 on
        assert (await other.get(session)).episodes == 24
        machine.well.set()
        await other.play(session)
        late, soon = [
            [(e.episode, e.instance, e.decision) for e in await where.list_episodes(session)]
            for where in (other, service)
        ]
        assert len(soon) == 27
        assert late == soon
        certificates = [
            (await profile_of(where, session))["provenance"]["certificates"]
            for where in (other, service)
        ]
    assert certificates[0] == certificates[1]
    assert [(c["n"], c["counted_at"]) for c in certificates[0]] == [(16, 24)]
