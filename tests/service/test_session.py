"""Sessions from end to end: the real server, the real simulator, agents that behave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import arviz
import jsonschema
import numpy as np
import pandas as pd
import pytest

from animalcat.layouts.inference.fit import FitRequest, FitResult
from animalcat.layouts.inference.fitter import Fitter
from animalcat.outcomes import read_outcomes
from animalcat.plots import read_results
from animalcat.service.recording.reader import read_episode
from animalcat.service.rpc import profiles
from animalcat.v1 import results_pb2, sessions_pb2, types_pb2

from .conftest import walk

pytestmark = pytest.mark.asyncio(loop_scope="session")

Start = Callable[[Path], Any]


async def test_a_session_is_played_measured_and_kept(service: Any) -> None:
    session = await service.create(6, seed=7, certify=False)
    events: list[sessions_pb2.WatchSessionResponse] = []

    async def watch() -> None:
        request = sessions_pb2.WatchSessionRequest(name=session)
        events.extend([event async for event in service.sessions.WatchSession(request)])

    watching = asyncio.create_task(watch())
    end = await service.play(session)
    await watching
    assert (end.state, end.episodes) == (sessions_pb2.SESSION_STATE_FINISHED, 6)

    found = await service.get(session)
    assert found.state == sessions_pb2.SESSION_STATE_FINISHED
    assert found.reason == "the budget of 6 episodes is used up"
    assert {c.name for c in found.capabilities} == {"navigationAbility", "visualAbility"}

    episodes = await service.list_episodes(session)
    assert [e.episode for e in episodes] == list(range(6))
    assert len({e.instance for e in episodes}) == 6
    assert all(0.0 < e.decision.propensity <= 1.0 for e in episodes)
    assert all((e.outcome == types_pb2.OUTCOME_SUCCESS) == (e.episode_return > 0) for e in episodes)
    assert 0 < found.successes < 6
    assert [e.episode.episode for e in events if e.HasField("episode")] == list(range(6))
    assert events[-1].session == found

    request = results_pb2.GetProfileRequest(name=f"{session}/profile")
    profile = json.loads((await service.profiles.GetProfile(request)).profile_json)
    schema = json.loads((files("animalcat") / "schemas" / "profile.schema.json").read_text())
    jsonschema.validate(profile, schema)
    assert profile["diagnostics"]["engine"] == "nuts"
    assert profile["provenance"]["episodes"] == 6
    (played_with,) = profile["provenance"]["played_with"]
    assert played_with["attempts"] == 6
    assert played_with["versions"] == dict(episodes[0].versions)
    assert played_with["versions"]["sapien"]
    assert profile["nodes"]["navigationAbility"]["status"] == "budget"


async def test_who_watches_from_the_start_hears_that_an_outcome_is_invalid(service: Any) -> None:
    session = await service.create(3, certify=False, seed=41)
    async with service.agent(session) as stream:
        await stream.receive("welcome")
        await stream.episode(walk)
    await service.settled(session, "WAITING", asyncio.sleep)
    request = sessions_pb2.WatchSessionRequest(name=session, from_start=True)
    watching = aiter(service.sessions.WatchSession(request))
    told = [await anext(watching)]
    while told[-1].HasField("episode"):
        told.append(await anext(watching))
    assert (told[0].episode.episode, told[0].episode.invalid) == (0, "")
    await service.sessions.InvalidateEpisode(
        sessions_pb2.InvalidateEpisodeRequest(name=f"{session}/episodes/0", reason="a power cut")
    )
    await service.sessions.CancelSession(sessions_pb2.CancelSessionRequest(name=session))
    heard = [event.episode async for event in watching if event.HasField("episode")]
    assert [(episode.episode, episode.invalid) for episode in heard] == [(0, "a power cut")]


async def test_profile_and_outcomes_are_exported(
    service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles, "PIECE", 999)  # each comes in many pieces
    session = await service.create(3, certify=False)
    live = results_pb2.GetProfileRequest(name=f"{session}/profile")
    profile = json.loads((await service.profiles.GetProfile(live)).profile_json)
    assert profile["diagnostics"]["engine"] == "smc"
    await service.play(session)

    async def export(form: results_pb2.ProfileFormat.ValueType) -> bytes:
        return await service.exported(session, form)

    page = (await export(results_pb2.PROFILE_FORMAT_HTML)).decode()
    assert "navigationAbility" in page
    lines = (await export(results_pb2.PROFILE_FORMAT_OUTCOMES_CSV)).decode().splitlines()
    assert len(lines) == 4
    assert "rewardDistance [m]" in lines[0]
    exported = await export(results_pb2.PROFILE_FORMAT_JSON)
    assert json.loads(exported)["diagnostics"]["engine"] == "nuts"
    assert json.loads(exported)["labels"] == []
    table = read_outcomes(await export(results_pb2.PROFILE_FORMAT_OUTCOMES_PARQUET))
    text = read_outcomes(await export(results_pb2.PROFILE_FORMAT_OUTCOMES_CSV))
    pd.testing.assert_frame_equal(table, text)
    assert list(table["state"].unique()) == ["finished"]
    assert table["build"].str.startswith("motion ").all()
    assert not table["version"].isna().any()


async def test_the_posterior_is_exported_with_its_draws(service: Any, tmp_path: Path) -> None:
    session = await service.create(3, certify=False, seed=11)

    async def posterior(name: str) -> Any:
        path = tmp_path / f"{name}.nc"
        content = await service.exported(session, results_pb2.PROFILE_FORMAT_NETCDF)
        path.write_bytes(content)
        return arviz.from_netcdf(path)

    live = await posterior("live")
    assert "unfinished: 0 episodes so far" in live.attrs["labels"]
    assert live["posterior"].sizes["chain"] == 1
    await service.play(session)
    kept = await posterior("kept")
    assert kept.attrs["inference"] == "nuts"
    assert "unfinished" not in kept.attrs["labels"]
    assert kept["posterior"].sizes["chain"] == 4
    assert "energy" in kept["sample_stats"]
    draws = read_results(await service.exported(session, results_pb2.PROFILE_FORMAT_DRAWS))
    whole = read_results(tmp_path / "kept.nc")
    np.testing.assert_array_equal(draws.fitted.draws, whole.fitted.draws)
    pd.testing.assert_frame_equal(draws.table, whole.table)
    played = [e.instance for e in await service.list_episodes(session)]
    assert list(kept["constant_data"]["instance"].values) == played
    assert set(kept["constant_data"]["backend"].values) == {"sim"}
    (fit,) = (service.data / "certificates").glob(f"{session.split('/')[1]}/profile.fit")
    fit.unlink()  # where draws are lost the fit is made again
    again = await posterior("again")
    assert again["posterior"].equals(kept["posterior"])


async def test_same_seed_same_session(start: Start, tmp_path: Path) -> None:
    """Same decisions, same outcomes, same recording bytes, in another data directory."""
    played: list[list[sessions_pb2.EpisodeSummary]] = []
    for name in ("a", "b"):
        async with start(tmp_path / name) as service:
            session = await service.create(6, certify=False)
            await service.play(session)
            played.append(await service.list_episodes(session))
    for episode in (*played[0], *played[1]):
        assert episode.seconds > 0.0
        episode.seconds = 0.0  # how long it took is the machine's affair
        episode.spent.ClearField("thinking_seconds")
    assert played[0] == played[1]
    recorded = [sorted((tmp_path / name).rglob("*.mcap")) for name in ("a", "b")]
    assert [f.name for f in recorded[0]] == [f"{k}-0.mcap" for k in range(6)]
    assert [f.read_bytes() for f in recorded[0]] == [f.read_bytes() for f in recorded[1]]


async def test_a_restart_between_episodes_changes_nothing(start: Start, tmp_path: Path) -> None:
    async with start(tmp_path / "whole") as service:
        session = await service.create(6, certify=False)
        await service.play(session)
        whole = await service.list_episodes(session)
        request = results_pb2.GetProfileRequest(name=f"{session}/profile")
        profile = (await service.profiles.GetProfile(request)).profile_json

    async with start(tmp_path / "parts") as service:
        session = await service.create(6, certify=False)
        async with service.agent(session) as stream:
            await stream.receive("welcome")
            for _ in range(3):
                await stream.episode(_walk)
    async with start(tmp_path / "parts") as service:
        assert (await service.get(session)).episodes == 3
        await service.play(session)
        again = await service.list_episodes(session)
        parts = (await service.profiles.GetProfile(request)).profile_json
    counted = [e for e in again if e.outcome <= types_pb2.OUTCOME_FAILURE]
    assert [(e.instance, e.decision, e.episode_return) for e in counted] == [
        (e.instance, e.decision, e.episode_return) for e in whole
    ]
    assert json.loads(parts)["nodes"] == json.loads(profile)["nodes"]


async def test_certificates_count_at_their_episode(start: Start, tmp_path: Path) -> None:
    async with start(tmp_path) as service:
        session = await service.create(24, certify=True)
        await service.play(session)
        request = results_pb2.GetProfileRequest(name=f"{session}/profile")
        profile = json.loads((await service.profiles.GetProfile(request)).profile_json)
    (certificate,) = profile["provenance"]["certificates"]
    assert (certificate["n"], certificate["counted_at"]) == (16, 24)
    assert certificate["rhat"] < 1.01


async def test_camera_sessions_show_images_and_record_digests(service: Any) -> None:
    spec = types_pb2.ObservationSpec(
        decision_period=5,
        camera=types_pb2.CameraSpec(resolution=16, grayscale=False),
        privileged=False,
    )
    session = await service.create(1, certify=False, observation_spec=spec)
    async with service.agent(session, observation_spec=spec) as stream:
        assert (await stream.receive("welcome")).observation_spec == spec
        first = await stream.receive("episode_start")
        assert len(first.observation.camera) == 16 * 16 * 3
        assert first.observation.rays == b""
    await service.settled(session, "WAITING", asyncio.sleep)
    recording = read_episode(service.data / "recordings" / session.split("/")[1] / "0-0.mcap")
    assert len(recording.steps[0].camera_digest) == 16
    assert recording.steps[0].observation.camera == b""


def _walk(rng: Any) -> int:
    return int(rng.choice([3, 3, 3, 4, 5]))


async def test_stopping_does_not_wait_for_the_last_fit(
    start: Start, tmp_path: Path, fitter: Fitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fit is dropped, and done when the session is resumed."""
    fitting = asyncio.Event()

    async def endless(request: FitRequest) -> FitResult:
        fitting.set()
        return await asyncio.Future[FitResult]()

    with monkeypatch.context() as patch:
        async with start(tmp_path) as service:
            session = await service.create(2, certify=False)
            patch.setattr(fitter, "fit", endless)
            playing = asyncio.create_task(service.play(session))
            await fitting.wait()
        await asyncio.wait([playing])
    async with start(tmp_path) as service:
        found = await service.get(session)
        assert (found.state, found.episodes) == (sessions_pb2.SESSION_STATE_WAITING, 2)
        assert (await service.play(session)).state == sessions_pb2.SESSION_STATE_FINISHED
        assert len(await service.list_episodes(session)) == 2
