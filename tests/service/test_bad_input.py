"""Whatever comes in, the answer is a clear status, and everything acknowledged is kept."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from animalcat.envs.patience import Patience
from animalcat.envs.starting import Spawn
from animalcat.envs.types import ObservationSpec
from animalcat.envs.worker_client import WorkerClient
from animalcat.v1 import gateway_pb2, results_pb2, sessions_pb2, types_pb2
from animalcat.wire.steps import spec_to_proto
from benchmarks.kill import workers_of

from .conftest import OperationError

pytestmark = pytest.mark.asyncio(loop_scope="session")

FAR = [
    (
        f"navigation-{k}.yaml",
        f"""!ArenaConfig
arenas:
  0: !Arena
    pass_mark: 0
    t: 60
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {{x: 20, y: 0, z: 1}}]
      rotations: [0]
    - !Item
      name: GoodGoal
      positions: [!Vector3 {{x: 20, y: 0, z: {37 - k}}}]
      sizes: [!Vector3 {{x: 1, y: 1, z: 1}}]
""".encode(),
    )
    for k in range(3)
]
"""Arenas that nobody finishes by chance in a few steps."""


async def far(service: Any, **changes: Any) -> str:
    await service.import_files(FAR, "far")
    stop = sessions_pb2.StoppingRule(max_episodes=3, target_sd=0, futility=0)
    return await service.create(battery="batteries/far", stop=stop, certify=False, **changes)


NEWER: Any = 99
"""A number of an enum that only a newer version knows."""
WITHDRAW = gateway_pb2.EvaluateRequest(withdraw=gateway_pb2.Withdraw())


def act(step: int, *actions: int, repeat: int = 0, slot: int = 0) -> gateway_pb2.EvaluateRequest:
    return gateway_pb2.EvaluateRequest(
        action=gateway_pb2.Action(
            slot=slot,
            step=step,
            list=gateway_pb2.ActionList(actions=bytes(actions), repeat=repeat),
        )
    )


def note(text: str) -> gateway_pb2.EvaluateRequest:
    return gateway_pb2.EvaluateRequest(note=types_pb2.Note(text=text))


async def status_of(call: Any) -> tuple[grpc.StatusCode, str, str]:
    """Status, code and text of a call that fails."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    error = caught.value
    code = dict(error.trailing_metadata() or ()).get("animalcat-code", "")
    return error.code(), str(code), str(error.details())


class TestAgents:
    @pytest.mark.parametrize(
        ("frame", "code"),
        [
            (act(0, 9), "ACTION_OUT_OF_RANGE"),
            (act(0), "ACTION_OUT_OF_RANGE"),
            (act(0, *[0] * 101), "ACTION_OUT_OF_RANGE"),
            (act(0, 3, repeat=1001), "ACTION_OUT_OF_RANGE"),
            (act(0, 3, slot=1), "ACTION_OUT_OF_RANGE"),
            (act(7, 3), "ACTION_STALE"),
            (note("x" * 4097), "NOTE_TOO_LONG"),
            (gateway_pb2.EvaluateRequest(), "BAD_FRAME"),
            (gateway_pb2.EvaluateRequest(hello=gateway_pb2.Hello()), "BAD_FRAME"),
        ],
    )
    async def test_a_bad_frame_is_refused_and_the_question_stands(
        self, service: Any, frame: gateway_pb2.EvaluateRequest, code: str
    ) -> None:
        session = await far(service)
        async with service.agent(session) as stream:
            await stream.receive("welcome")
            await stream.receive("episode_start")
            for _ in range(2):
                await stream.send(frame)
                error = await stream.receive("error")
                assert (error.code, error.fatal) == (code, False)
            await stream.send(act(0, 0))
            assert (await stream.receive("ask")).step == 1

    async def test_lists_and_repetitions_are_taken_and_notes_recorded(self, service: Any) -> None:
        session = await far(service)
        async with service.agent(session) as stream:
            await stream.receive("welcome")
            await stream.receive("episode_start")
            await stream.send(note("looking around"))
            await stream.send(act(0, 1, 2, repeat=3))
            assert (await stream.receive("ask")).step == 6
        await service.settled(session, "WAITING", asyncio.sleep)
        request = results_pb2.StreamEpisodeRequest(name=f"{session}/episodes/0")
        frames = [frame async for frame in service.episodes.StreamEpisode(request)]
        assert [f.step.action for f in frames[2:-1]] == [1, 2] * 3
        assert [note.text for note in frames[2].step.notes] == ["looking around"]
        assert frames[-1].footer.outcome == types_pb2.OUTCOME_VOID

    async def test_an_agent_that_leaves_voids_its_episode_and_the_second_time_fails_it(
        self, service: Any
    ) -> None:
        session = await far(service)
        for process in ("1", "2", "3"):
            async with service.agent(session, instance=process) as stream:
                await stream.receive("welcome")
                await stream.receive("episode_start")
                await stream.send(act(0, 0))
                await stream.receive("ask")
            await service.settled(session, "WAITING", asyncio.sleep)
        first, second, third = await service.list_episodes(session)
        assert (first.episode, first.attempt) == (0, 0)
        assert (second.episode, second.attempt) == (0, 1)
        assert (third.episode, third.attempt) == (1, 0)
        assert first.instance == second.instance != third.instance
        assert first.outcome == types_pb2.OUTCOME_VOID
        assert first.cause == "the agent left"
        assert second.outcome == types_pb2.OUTCOME_FAILURE
        assert "second time" in second.cause
        found = await service.get(session)
        assert (found.episodes, found.successes) == (1, 0)

    async def test_who_withdraws_twice_from_an_arena_that_it_was_shown_has_failed_it(
        self, service: Any
    ) -> None:
        session = await far(service)
        for process in ("1", "2"):
            async with service.agent(session, instance=process) as stream:
                await stream.receive("welcome")
                await stream.receive("episode_start")
                await stream.send(WITHDRAW)
                assert await stream.call.read() is grpc.aio.EOF
            await service.settled(session, "WAITING", asyncio.sleep)
        attempts = await service.list_episodes(session)
        assert [(e.episode, e.attempt) for e in attempts] == [(0, 0), (0, 1)]
        assert len({e.instance for e in attempts}) == 1, "it cannot be dodged"
        assert [e.outcome for e in attempts] == [types_pb2.OUTCOME_VOID, types_pb2.OUTCOME_FAILURE]
        assert [e.seen for e in attempts] == [False, True]
        assert {(e.cause_kind, e.steps) for e in attempts} == {(types_pb2.CAUSE_LOOKED, 0)}

    async def test_an_agent_that_never_answers_is_let_go(self, service: Any) -> None:
        session = await far(service, action_timeout_seconds=0.3)
        async with service.agent(session) as stream:
            await stream.receive("welcome")
            await stream.receive("episode_start")
            await stream.send(act(0, 0))
            await stream.receive("ask")
            error = await stream.refused("ACTION_TIMEOUT")
            assert "repeated" in error.message
        found = await service.settled(session, "WAITING", asyncio.sleep)
        assert found.episodes == 0
        (episode,) = await service.list_episodes(session)
        assert (episode.outcome, episode.steps) == (types_pb2.OUTCOME_VOID, 1)

    @pytest.mark.parametrize(
        ("changes", "code"),
        [
            ({"session": "sessions/nobody"}, "UNKNOWN_SESSION"),
            ({"session": "nobody"}, "INVALID_NAME"),
            ({"agent": "somebody else"}, "AGENT_MISMATCH"),
            ({"agent": ""}, "INVALID_REQUEST"),
            ({"instance": ""}, "INVALID_REQUEST"),
            (
                {"observation_spec": types_pb2.ObservationSpec(decision_period=5)},
                "OBSERVATION_MISMATCH",
            ),
            (
                {"observation_spec": types_pb2.ObservationSpec(decision_period=50)},
                "INVALID_REQUEST",
            ),
        ],
    )
    async def test_hellos_that_are_refused(
        self, service: Any, changes: dict[str, Any], code: str
    ) -> None:
        session = await far(service)
        async with service.agent(changes.pop("session", session), **changes) as stream:
            await stream.refused(code)

    async def test_the_first_frame_must_be_a_hello(self, service: Any) -> None:
        async with service.agent("", agent="") as stream:
            await stream.refused("INVALID_REQUEST")

    async def test_a_session_that_is_over_takes_no_agent(self, service: Any) -> None:
        session = await far(service)
        request = sessions_pb2.CancelSessionRequest(name=session)
        ended = (await service.sessions.CancelSession(request)).session
        assert ended.state == sessions_pb2.SESSION_STATE_CANCELLED
        async with service.agent(session) as stream:
            error = await stream.refused("SESSION_OVER")
        assert "cancelled" in error.message

    async def test_cancelling_ends_the_agents_stream_and_keeps_what_was_learnt(
        self, service: Any
    ) -> None:
        session = await far(service)
        async with service.agent(session) as stream:
            await stream.receive("welcome")
            await stream.receive("episode_start")
            request = sessions_pb2.CancelSessionRequest(name=session)
            ended = (await service.sessions.CancelSession(request)).session
            assert (
                await stream.receive("session_end")
            ).state == sessions_pb2.SESSION_STATE_CANCELLED
        assert {c.status for c in ended.capabilities} == {sessions_pb2.MEASURING_STATUS_CANCELLED}
        (episode,) = await service.list_episodes(session)
        assert episode.outcome == types_pb2.OUTCOME_VOID
        profile = results_pb2.GetProfileRequest(name=f"{session}/profile")
        assert "smc" in (await service.profiles.GetProfile(profile)).profile_json


class TestBackend:
    async def test_a_killed_worker_is_a_fault_and_the_instance_is_played_again(
        self, service: Any
    ) -> None:
        session = await far(service)
        async with service.agent(session) as stream:
            await stream.receive("welcome")
            await stream.receive("episode_start")
            await stream.send(act(0, 0))
            await stream.receive("ask")
            for worker in workers_of(os.getpid()):
                os.kill(worker, signal.SIGKILL)
            await stream.send(act(1, 0))
            assert (await stream.receive("episode_end")).fault
            assert (await stream.receive("episode_start")).episode == 0
        await service.settled(session, "WAITING", asyncio.sleep)
        first, second = await service.list_episodes(session)
        assert first.outcome == types_pb2.OUTCOME_FAULT
        assert first.cause.startswith("backend: ")
        assert (second.instance, second.attempt) == (first.instance, 1)

    @pytest.mark.slow
    async def test_an_instance_that_cannot_be_played_is_set_aside(
        self, start: Callable[[Path], Any], tmp_path: Path
    ) -> None:
        async with start(tmp_path) as service:
            session = await far(service)
            broken = "navigation-1"
            for path in (tmp_path / "batteries").rglob("*.yaml"):
                if "z: 36" in path.read_text():
                    path.write_text("!ArenaConfig\narenas: {}\n")
            end = await service.play(session)
            episodes = await service.list_episodes(session)
            asked = results_pb2.GetProfileRequest(name=f"{session}/profile")
            profile = json.loads((await service.profiles.GetProfile(asked)).profile_json)
            reason = (await service.get(session)).reason
        provenance = profile["provenance"]
        assert (end.state, end.episodes) == (sessions_pb2.SESSION_STATE_FINISHED, 2)
        assert "exhausted" not in reason
        assert (
            f"1 arena ({broken!r}) could not be played, since the backend failed 3 times at each"
        ) in reason
        assert list(provenance["unplayable"]) == [broken]
        assert (provenance["episodes"], provenance["faults"]) == (2, 3)
        faults = [e for e in episodes if e.outcome == types_pb2.OUTCOME_FAULT]
        assert [e.instance for e in faults] == [broken] * 3
        assert len({e.episode for e in faults}) == 1

    async def test_a_battery_of_which_nothing_can_be_played(
        self, start: Callable[[Path], Any], tmp_path: Path
    ) -> None:
        async with start(tmp_path) as service:
            await service.import_files(FAR[:1], "far")
            session = await service.create(battery="batteries/far", certify=False)
            for path in (tmp_path / "batteries").rglob("*.yaml"):
                path.write_text("!ArenaConfig\narenas: {}\n")
            async with service.agent(session) as stream:
                await stream.receive("welcome")
                failed = await stream.refused("SESSION_FAILED")
            found = await service.settled(session, "FAILED", asyncio.sleep)
            async with service.agent(session) as stream:
                over = await stream.refused("SESSION_OVER")
        assert found.episodes == 0
        assert "no instance can be played" in found.reason
        assert "backend: " in found.reason
        assert failed.message.startswith("the session cannot go on")
        for told in (failed.message, over.message):  # agents learn nothing of what they play
            assert "instance" not in told
            assert "backend" not in told


class TestRequests:
    @pytest.mark.parametrize(
        ("changes", "status", "code", "words"),
        [
            ({"battery": "batteries/none"}, "NOT_FOUND", "UNKNOWN_BATTERY", "navigation"),
            ({"battery": "none"}, "INVALID_ARGUMENT", "INVALID_NAME", "batteries/{battery}"),
            ({"layout": "none"}, "NOT_FOUND", "UNKNOWN_LAYOUT", "aaio"),
            ({"layout_variant": "none"}, "NOT_FOUND", "UNKNOWN_LAYOUT", "as-printed"),
            (
                {"layout_variant": "as-printed"},
                "INVALID_ARGUMENT",
                "INVALID_REQUEST",
                "average of all outcomes of an agent, which a session does not know",
            ),
            ({"backend": "none"}, "NOT_FOUND", "UNKNOWN_BACKEND", "sim"),
            ({"agent": ""}, "INVALID_ARGUMENT", "INVALID_NAME", "agent"),
            ({"agent": "=1+1"}, "INVALID_ARGUMENT", "INVALID_NAME", "formula"),
            ({"agent": "a\x1b[2J"}, "INVALID_ARGUMENT", "INVALID_REQUEST", "leave it out"),
            (
                {"policy": sessions_pb2.SelectionPolicy(name=NEWER)},
                "INVALID_ARGUMENT",
                "INVALID_REQUEST",
                "policy.name: 99 is unknown to this server; it knows variance, information",
            ),
            (
                {"stop": sessions_pb2.StoppingRule(max_episodes=0)},
                "INVALID_ARGUMENT",
                "INVALID_REQUEST",
                "max_episodes",
            ),
            (
                {"stop": sessions_pb2.StoppingRule(max_episodes=1, target_sd=float("nan"))},
                "INVALID_ARGUMENT",
                "INVALID_REQUEST",
                "target_sd",
            ),
            (
                {"observation_spec": types_pb2.ObservationSpec(decision_period=3)},
                "INVALID_ARGUMENT",
                "INVALID_REQUEST",
                "a camera, rays or both",
            ),
            (
                {"action_timeout_seconds": -1.0},
                "INVALID_ARGUMENT",
                "INVALID_REQUEST",
                "action_timeout_seconds",
            ),
        ],
    )
    async def test_sessions_that_cannot_be(
        self, service: Any, changes: dict[str, Any], status: str, code: str, words: str
    ) -> None:
        found = await status_of(service.create(**changes))
        assert found[:2] == (grpc.StatusCode[status], code)
        assert words in found[2]

    async def test_a_request_id_is_applied_once(self, service: Any) -> None:
        await service.import_files()
        spec = sessions_pb2.SessionSpec(
            agent="a",
            battery="batteries/small",
            layout="aaio",
            stop=sessions_pb2.StoppingRule(max_episodes=1),
        )
        request = sessions_pb2.CreateSessionRequest(spec=spec, request_id="once")
        first = (await service.sessions.CreateSession(request)).session
        assert (await service.sessions.CreateSession(request)).session == first
        request.spec.seed = 1
        found = await status_of(service.sessions.CreateSession(request))
        assert found[:2] == (grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")

    @pytest.mark.parametrize(
        ("files", "code", "words"),
        [
            ([("bad.yaml", b"arenas:\n  0: !Arena\n    t: [1\n")], "INVALID_ARENA", "bad.yaml:4"),
            ([("bin.yaml", b"a: 1\n\xff\xfe")], "INVALID_ARENA", "bin.yaml:2"),
            ([("../up.yaml", FAR[0][1])], "INVALID_REQUEST", "up.yaml"),
            ([("/etc/x.yaml", FAR[0][1])], "INVALID_REQUEST", "x.yaml"),
            ([], "INVALID_REQUEST", "at least one arena"),
            ([FAR[0], ("navigation-0.yml", FAR[1][1])], "INVALID_REQUEST", "navigation-0"),
            ([("big.yaml", b"#" * (1024 * 1024 + 1))], "TOO_LARGE", "big.yaml"),
        ],
    )  # fmt: skip
    async def test_batteries_that_cannot_be(
        self, service: Any, files: list[tuple[str, bytes]], code: str, words: str
    ) -> None:
        with pytest.raises((grpc.aio.AioRpcError, OperationError)) as caught:
            await service.import_files(files, "bad")
        error = caught.value
        if isinstance(error, grpc.aio.AioRpcError):
            assert dict(error.trailing_metadata() or ())["animalcat-code"] == code
            assert words in str(error.details())
        else:
            assert error.code == code
            assert words in str(error)

    async def test_a_battery_needs_its_header_first(self, service: Any) -> None:
        async def frames() -> AsyncIterator[sessions_pb2.ImportBatteryRequest]:
            yield sessions_pb2.ImportBatteryRequest(file=sessions_pb2.ArenaFile(path="a.yaml"))

        found = await status_of(service.batteries.ImportBattery(frames()))
        assert found[:2] == (grpc.StatusCode.INVALID_ARGUMENT, "BAD_FRAME")

    async def test_unknown_sessions_profiles_and_episodes(self, service: Any) -> None:
        calls = [
            service.sessions.GetSession(sessions_pb2.GetSessionRequest(name="sessions/x")),
            service.sessions.CancelSession(sessions_pb2.CancelSessionRequest(name="sessions/x")),
            service.profiles.GetProfile(results_pb2.GetProfileRequest(name="sessions/x/profile")),
            service.episodes.ListEpisodes(results_pb2.ListEpisodesRequest(parent="sessions/x")),
        ]
        for call in calls:
            assert (await status_of(call))[:2] == (grpc.StatusCode.NOT_FOUND, "UNKNOWN_SESSION")
        request = results_pb2.StreamEpisodeRequest(name="sessions/../../etc/passwd")
        stream = service.episodes.StreamEpisode(request)
        found = await status_of(stream.read())
        assert found[:2] == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_NAME")

    @pytest.mark.parametrize(
        ("torn", "status", "code", "logged"),
        [
            (True, grpc.StatusCode.INTERNAL, "INTERNAL", "ArrowInvalid"),
            (False, grpc.StatusCode.DATA_LOSS, "BATTERY_GONE", "battery.parquet"),
        ],
    )
    async def test_internal_detail_never_travels(
        self,
        start: Callable[[Path], Any],
        tmp_path: Path,
        caplog: pytest.LogCaptureFixture,
        torn: bool,
        status: grpc.StatusCode,
        code: str,
        logged: str,
    ) -> None:
        async with start(tmp_path) as service:
            session = await far(service)
            for path in (tmp_path / "batteries").rglob("battery.parquet"):
                path.unlink()
                if torn:
                    path.write_text("{")
        async with start(tmp_path) as service:
            request = results_pb2.GetProfileRequest(name=f"{session}/profile")
            found = await status_of(service.profiles.GetProfile(request))
        assert found[:2] == (status, code)
        assert str(tmp_path) not in found[2]
        assert logged in caplog.text


async def test_a_cancel_does_not_wait_for_a_worker_that_starts(
    service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program sleeps, so a cancel that waited for it would not return."""
    never = Spawn((sys.executable, "-c", "import time; time.sleep(600)"))
    made: list[WorkerClient] = []

    def make(backend: str, spec: ObservationSpec) -> WorkerClient:
        made.append(WorkerClient(backend, spec, starter=never, patience=Patience(600.0)))
        return made[-1]

    monkeypatch.setattr(service.running.engines.parts.workers, "make", make)
    shown = spec_to_proto(ObservationSpec(decision_period=7))  # no idle worker shows that
    session = await service.create(1, agent="waits", observation_spec=shown)
    async with service.agent(session, agent="waits"):
        while not (made and made[0].running):
            await asyncio.sleep(0.05)
        request = sessions_pb2.CancelSessionRequest(name=session)
        ended = (await service.sessions.CancelSession(request)).session
    assert ended.state == sessions_pb2.SESSION_STATE_CANCELLED
    assert not made[0].running
