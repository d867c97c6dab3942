"""A session that is being ended is closed: what is played and what its profile says agree."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from animalcat.layouts.inference.fit import FitData, FitRequest, FitResult
from animalcat.layouts.inference.fitter import Fitter
from animalcat.layouts.library import load_layout
from animalcat.service.session import final_fits
from animalcat.v1 import gateway_pb2, results_pb2, sessions_pb2
from animalcat.values import Session, SessionSpec, SessionState

from .conftest import NOW, Service, walk
from .test_odd_sessions import AHEAD, near, play_constantly

pytestmark = pytest.mark.asyncio(loop_scope="session")

Start = Callable[..., Any]
SESSION = Session("s", SessionSpec("a", "b"), SessionState.WAITING, "", NOW)


class Slow(Fitter):
    """Begins no fit before it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.may = asyncio.Event(), asyncio.Event()

    async def fit(self, request: FitRequest) -> FitResult:
        self.asked.set()
        await self.may.wait()
        return await super().fit(request)


class Doubting:
    """Finds every node less well known than it is, so many times; others fit for it."""

    def __init__(self, fitter: Fitter, times: int) -> None:
        self.left, self.given = times, list[int]()
        self._fitter = fitter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fitter, name)

    async def fit(self, request: FitRequest) -> FitResult:
        self.given.append(np.size(request.outcomes))
        fitted = await self._fitter.fit(request)
        if not self.left:
            return fitted
        self.left -= 1
        return replace(fitted, nodes=[replace(node, sd=9.0 * node.sd) for node in fitted.nodes])


class Held:
    """A function that waits in its thread until it may go on."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.begun, self.may = threading.Event(), threading.Event()

    def __call__(self, *args: Any) -> Any:
        self.begun.set()
        assert self.may.wait(120)
        return self._function(*args)


async def profile_of(service: Service, session: str) -> dict[str, Any]:
    request = results_pb2.GetProfileRequest(name=f"{session}/profile")
    return json.loads((await service.profiles.GetProfile(request)).profile_json)


async def comes_in_vain(
    service: Service, session: str, go_on: Callable[[], None], **who: Any
) -> Any:
    """Let an agent come; what it is told first, where an episode would come at once."""
    async with service.agent(session, **who) as stream:
        await stream.receive("welcome")
        told = asyncio.ensure_future(stream.receive())
        await asyncio.wait([told], timeout=3.0)
        go_on()
        return await told


async def test_who_comes_while_a_session_is_cancelled_plays_nothing(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start(tmp_path) as service:
        session = await service.create(6)
        async with service.agent(session) as stream:
            await stream.receive("welcome")
            await stream.episode(walk)
        await service.settled(session, "WAITING", asyncio.sleep)
    async with start(tmp_path) as service:
        store = service.running.engines.parts.store
        ends = Held(store.finish_session)
        monkeypatch.setattr(store, "finish_session", ends)
        request = sessions_pb2.CancelSessionRequest(name=session)
        cancelling = asyncio.ensure_future(service.sessions.CancelSession(request))
        await asyncio.to_thread(ends.begun.wait)
        told = await comes_in_vain(service, session, ends.may.set)
        assert isinstance(told, gateway_pb2.SessionEnd)
        assert told.state == sessions_pb2.SESSION_STATE_CANCELLED
        assert (await cancelling).session.episodes == 1
        assert (await service.get(session)).state == sessions_pb2.SESSION_STATE_CANCELLED
        assert (await profile_of(service, session))["provenance"]["episodes"] == 1
        counted = [e for e in await service.list_episodes(session) if e.outcome <= 2]
        assert len(counted) == 1


@pytest.mark.slow
async def test_nothing_changes_while_a_session_is_ended(start: Start, tmp_path: Path) -> None:
    """Neither is an outcome declared invalid, nor is the session deleted."""
    slow = Slow()
    try:
        async with start(tmp_path, slow) as service:
            session = await service.create(1)
            ending = asyncio.ensure_future(service.play(session))
            await slow.asked.wait()
            invalid = sessions_pb2.InvalidateEpisodeRequest(
                name=f"{session}/episodes/0", reason="no"
            )
            with pytest.raises(Exception, match="is being played or ended"):
                await service.sessions.InvalidateEpisode(invalid)
            with pytest.raises(Exception, match="is being played"):
                await service.sessions.DeleteSession(
                    sessions_pb2.DeleteSessionRequest(name=session)
                )
            slow.may.set()
            assert (await ending).state == sessions_pb2.SESSION_STATE_FINISHED
    finally:
        slow.may.set()
        await slow.close()


async def until_bounded(service: Service, most: int, **changes: Any) -> str:
    """A session of an agent that passes everything, for which nothing is left to learn soon."""
    await service.import_files(near(34), "straight")
    stop = sessions_pb2.StoppingRule(max_episodes=most, target_sd=0.25, futility=0.0)
    return await service.create(battery="batteries/straight", stop=stop, **changes)


@pytest.mark.parametrize("slots", [1, pytest.param(2, marks=pytest.mark.slow)])
async def test_play_goes_on_until_the_fit_confirms_that_nothing_is_left_to_learn(
    start: Start, tmp_path: Path, fitter: Fitter, slots: int
) -> None:
    doubting = Doubting(fitter, 2)
    async with start(tmp_path, doubting) as service:
        session = await until_bounded(service, 34, slots=slots)
        await asyncio.gather(*(play_constantly(service, session, AHEAD) for _ in range(slots)))
        found = await service.get(session)
        told = await profile_of(service, session)
        counted = [e for e in await service.list_episodes(session) if e.outcome <= 2]
        first, second, last = doubting.given
        doubting.left = 100
        vain = await until_bounded(service, 28)
        await play_constantly(service, vain, AHEAD)
        spent = await service.get(vain)
        why = (await profile_of(service, vain))["provenance"]
    assert first < second < last == found.episodes == len(counted) < 34
    assert {one.status for one in found.capabilities} == {sessions_pb2.MEASURING_STATUS_BOUNDED}
    assert found.reason == told["provenance"]["reason"]
    assert "every capability is only bounded" in found.reason
    assert told["provenance"]["ended"] == "nothing left to learn"
    assert told["diagnostics"]["outcomes"] == last
    assert (spent.episodes, why["ended"]) == (28, "budget")
    assert spent.reason == why["reason"] == "the budget of 28 episodes is used up"
    assert {one.status for one in spent.capabilities} == {sessions_pb2.MEASURING_STATUS_BUDGET}
    assert len(doubting.given) > 4


@pytest.mark.slow
async def test_who_cancels_while_a_fit_lets_the_session_go_on_has_it_cancelled(
    start: Start, tmp_path: Path
) -> None:
    class SlowAndDoubting(Slow):
        async def fit(self, request: FitRequest) -> FitResult:
            fitted = await super().fit(request)
            return replace(fitted, nodes=[replace(node, sd=9.0 * node.sd) for node in fitted.nodes])

    slow = SlowAndDoubting()
    try:
        async with start(tmp_path, slow) as service:
            session = await until_bounded(service, 34)
            playing = asyncio.ensure_future(play_constantly(service, session, AHEAD))
            await slow.asked.wait()
            request = sessions_pb2.CancelSessionRequest(name=session)
            cancelling = asyncio.ensure_future(service.sessions.CancelSession(request))
            await asyncio.sleep(0.1)
            slow.may.set()
            assert (await cancelling).session.state == sessions_pb2.SESSION_STATE_CANCELLED
            assert (await playing).state == sessions_pb2.SESSION_STATE_CANCELLED
            assert (await profile_of(service, session))["provenance"]["ended"] == "cancelled"
    finally:
        slow.may.set()
        await slow.close()


def _keep_nothing(*_: Any) -> None:
    pass


async def test_a_fit_says_which_episodes_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where another one was told while it was made."""
    monkeypatch.setattr(final_fits, "keep_fit", _keep_nothing)
    layout = load_layout("aaio")
    tells = [SimpleNamespace(episode=4), SimpleNamespace(episode=5)]
    data = SimpleNamespace(features=np.zeros((2, 3)), outcomes=np.zeros(2), weights=None)
    learner: Any = SimpleNamespace(
        layout=layout, data=lambda: data, posterior=SimpleNamespace(tells=tells)
    )

    async def fit(request: FitRequest) -> FitResult:
        tells.append(SimpleNamespace(episode=6))
        given = FitData(data.features, data.outcomes)
        return FitResult(layout, np.zeros((1, 1, 1)), [], {}, given)

    parts: Any = SimpleNamespace(fitter=SimpleNamespace(fit=fit), files=None, memory=None)
    fitted = await final_fits.FinalFits(SESSION, parts).profile(learner)
    assert fitted.data is not None
    assert fitted.data.episodes == (4, 5)
