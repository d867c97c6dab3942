"""A session takes the agent that began it: another one is refused, or said to be the same."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import pytest

from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.service.errors import Code, ServiceError
from animalcat.service.session.identity import Arrival, identify_player
from animalcat.v1 import gateway_pb2, sessions_pb2, types_pb2
from animalcat.values import NOBODY, Identity
from animalcat.wire.codec import encode
from tests.service.conftest import Service, Stream, action, walk

KNOWN = AgentFingerprint("computed", "agent.py:A", files={"agent.py": "1", "w.npy": "2"})
OTHER = replace(KNOWN, files={"agent.py": "9", "w.npy": "2"})
EARLY = replace(KNOWN, files={"agent.py": "1"})


def come(
    known: Identity,
    fingerprint: AgentFingerprint,
    simulator: Mapping[str, str] | None = None,
    *,
    whole: bool = True,
    same: bool = False,
    episodes: int = 4,
    company: bool = False,
) -> Identity:
    arrival = Arrival(fingerprint, whole, same)
    return identify_player(
        known, arrival, simulator or {}, begun=episodes > 0, company=company, episode=episodes
    )


def refusal_of(code: Code, *arguments: Any, **named: Any) -> str:
    with pytest.raises(ServiceError) as error:
        come(*arguments, **named)
    assert error.value.code is code
    return error.value.message


def test_until_an_episode_is_over_the_session_is_for_whoever_comes() -> None:
    first = come(NOBODY, KNOWN, episodes=0)
    assert first == Identity(KNOWN)
    assert come(first, OTHER, {"NUMBA_OPT": "0"}, episodes=0) == Identity(
        OTHER, simulator={"NUMBA_OPT": "0"}
    )


def test_another_agent_is_refused_by_what_differs() -> None:
    known = Identity(KNOWN)
    assert come(known, KNOWN) == known
    assert come(known, EARLY, whole=False) == known
    assert "w.npy is not there or not read" in refusal_of(Code.AGENT_CHANGED, known, EARLY)
    words = refusal_of(Code.AGENT_CHANGED, known, OTHER)
    assert "agent.py has other content" in words
    for way in ("new session", "--take", "--same-agent", "same_agent=True"):
        assert way in words
    assert refusal_of(Code.AGENT_CHANGED, known, AgentFingerprint(process="p"))


def test_what_is_said_to_be_the_same_is_stated_once_and_known_from_then_on() -> None:
    said = come(Identity(KNOWN), OTHER, same=True)
    assert said.fingerprint == KNOWN
    assert said.others == (OTHER,)
    (words,) = said.changes
    assert words.startswith("from episode 4 on: agent.py has other content")
    assert come(said, OTHER) == said
    assert come(said, KNOWN, episodes=6) == said
    third = replace(KNOWN, files={"agent.py": "8"})
    assert refusal_of(Code.AGENT_CHANGED, said, third)
    assert len(come(said, third, same=True).changes) == 2


def test_who_was_once_played_by_a_process_that_sees_the_evaluator_was_not_confined() -> None:
    apart, seeing = Arrival(KNOWN), Arrival(KNOWN, unconfined=True)

    def after(known: Identity, arrival: Arrival, episode: int) -> Identity:
        return identify_player(
            known, arrival, {}, begun=episode > 0, company=False, episode=episode
        )

    assert not after(NOBODY, apart, 0).unconfined
    open_then = after(NOBODY, seeing, 0)
    assert open_then.unconfined
    assert after(open_then, apart, 3).unconfined
    assert not after(open_then, apart, 0).unconfined  # nothing of the other was measured
    assert after(Identity(KNOWN), seeing, 3) == Identity(KNOWN, unconfined=True)


def test_processes_that_play_beside_each_other_are_one_agent() -> None:
    first = Identity(EARLY)  # its first reset is not over yet
    both = come(first, KNOWN, episodes=0, company=True)
    assert both.fingerprint == KNOWN
    assert refusal_of(Code.AGENT_CHANGED, both, OTHER, episodes=0, company=True)
    one, other = AgentFingerprint(process="p"), AgentFingerprint(process="q")
    beside = come(Identity(one), other, episodes=0, company=True)
    assert "beside" in beside.changes[0]
    assert come(beside, other) == beside
    assert refusal_of(Code.AGENT_CHANGED, Identity(one), other)


def test_the_environment_of_an_agent_is_said_and_that_of_a_simulator_refused() -> None:
    known = Identity(KNOWN, simulator={"NUMBA_OPT": "3"})
    hashed = replace(KNOWN, environment={"PYTHONHASHSEED": "1"})
    said = come(known, hashed, {"NUMBA_OPT": "3"})
    assert said.changes == (
        "from episode 4 on: the environment variable PYTHONHASHSEED is 1 and was not set",
    )
    assert come(said, hashed, {"NUMBA_OPT": "3"}, episodes=5) == said
    words = refusal_of(Code.SIMULATOR_CHANGED, known, KNOWN, same=True)
    assert "NUMBA_OPT is not set and was 3" in words


def agent(service: Service, session: str, **changes: Any) -> AbstractAsyncContextManager[Stream]:
    return service.agent(session, **{"same_agent": False, **changes})


async def some(service: Service, session: str, episodes: int, **changes: Any) -> None:
    """Play so many episodes and leave between two."""
    async with agent(service, session, **changes) as stream:
        await stream.receive("welcome")
        for _ in range(episodes):
            await stream.episode(walk)
        await stream.receive("episode_start")
        await stream.send(gateway_pb2.EvaluateRequest(withdraw=gateway_pb2.Withdraw()))
        await stream.call.read()


@pytest.mark.asyncio(loop_scope="session")
async def test_a_second_connection_by_another_agent_is_refused(service: Service) -> None:
    session = await service.create(episodes=3)
    one, other = map(encode, (KNOWN, OTHER))
    await some(service, session, 1, fingerprint=one)
    for changes in (
        {"fingerprint": other, "instance": "process 2"},
        {"fingerprint": other},
        {"instance": "process 1"},
    ):
        async with agent(service, session, **changes) as stream:
            await stream.refused("AGENT_CHANGED")
    found = await service.get(session)
    assert dict(found.agent_fingerprint.files) == dict(KNOWN.files)
    assert not found.agent_changes
    await some(service, session, 1, fingerprint=one, instance="process 3")
    await service.play(session, fingerprint=other, same_agent=True)
    found = await service.get(session)
    assert found.state == sessions_pb2.SESSION_STATE_FINISHED
    assert "agent.py has other content" in found.agent_changes[0]
    assert [dict(one.files) for one in found.other_fingerprints] == [dict(OTHER.files)]


@pytest.mark.asyncio(loop_scope="session")
async def test_another_agent_that_is_refused_disturbs_nobody(service: Service) -> None:
    session = await service.create(episodes=4, slots=2, seed=12)
    one, other = map(encode, (KNOWN, OTHER))
    async with agent(service, session, fingerprint=one, instance="a") as stream:
        await stream.receive("welcome")
        await stream.episode(lambda rng: 3)
        await stream.receive("episode_start")
        await stream.send(action(0, 3))
        for _ in range(2):
            async with agent(service, session, fingerprint=other, instance="b") as stranger:
                await stranger.refused("AGENT_CHANGED")
        assert (await stream.receive("ask")).step == 1
        await stream.send(action(1, *[3] * 10))
        assert isinstance(await stream.receive(), (gateway_pb2.EpisodeEnd, gateway_pb2.Ask))
    assert len(await service.list_episodes(session)) == 2


@pytest.mark.asyncio(loop_scope="session")
async def test_what_the_first_reset_reads_is_told_before_the_first_action(service: Service) -> None:
    session = await service.create(episodes=3, seed=6)
    early = {"fingerprint": encode(EARLY), "fingerprint_follows": True}

    async def ready(fingerprint: AgentFingerprint, code: str = "") -> None:
        told = gateway_pb2.EvaluateRequest(fingerprint=encode(fingerprint))
        async with agent(service, session, **early) as stream:
            await stream.receive("welcome")
            start = await stream.receive("episode_start")
            await stream.send(told)
            if code:
                await stream.refused(code)
                return
            await stream.send(action(0, 3))
            step = 0
            while (frame := await stream.receive()) and not isinstance(
                frame, gateway_pb2.EpisodeEnd
            ):
                if isinstance(frame, gateway_pb2.Ask):
                    step = frame.step
                await stream.send(action(step, 3))
            assert frame.episode == start.episode
            await stream.receive("episode_start")
            await stream.send(told)  # as an agent does that came back
            told.fingerprint.version = "2"  # later it would undo an episode
            await stream.send(told)
            error = await stream.receive("error")
            assert error.code == "BAD_FRAME"
            await stream.send(gateway_pb2.EvaluateRequest(withdraw=gateway_pb2.Withdraw()))
            await stream.call.read()

    await ready(KNOWN)
    await ready(replace(KNOWN, files={"agent.py": "1", "w.npy": "7"}), "AGENT_CHANGED")
    assert dict((await service.get(session)).agent_fingerprint.files) == dict(KNOWN.files)
    episodes = await service.list_episodes(session)
    assert [one.cause_kind for one in episodes if one.outcome == types_pb2.OUTCOME_VOID] == [
        types_pb2.CAUSE_LOOKED,
        types_pb2.CAUSE_WITHDREW,  # of a process of an operator it is a mistake
    ]
    await ready(KNOWN)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_client_that_declares_nothing_is_known_by_its_process(service: Service) -> None:
    session = await service.create(episodes=2, seed=7)
    await some(service, session, 1, instance="a")
    async with agent(service, session, instance="b") as stream:
        await stream.refused("AGENT_CHANGED")
    await service.play(session, instance="a", same_agent=False)
    found = await service.get(session)
    assert found.agent_fingerprint.source == types_pb2.FINGERPRINT_SOURCE_UNSPECIFIED
    for bad in (
        types_pb2.AgentFingerprint(source=types_pb2.FINGERPRINT_SOURCE_DECLARED, name="only"),
        types_pb2.AgentFingerprint(name="x" * 300, version="1"),
    ):
        other = await service.create(episodes=2, seed=8)
        async with agent(service, other, fingerprint=bad) as stream:
            await stream.refused("INVALID_REQUEST")
