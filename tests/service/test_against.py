"""A session that compares its agent with another agent's session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc
import numpy as np
import pytest

from animalcat.layouts.adaptive.paired import common_instances
from animalcat.layouts.adaptive.statuses import LEANS
from animalcat.service.errors import ServiceError
from animalcat.service.measuring import against
from animalcat.v1 import results_pb2, sessions_pb2, types_pb2
from animalcat.values import (
    Decision,
    Episode,
    Opponent,
    Outcome,
    Session,
    SessionSpec,
    SessionState,
)

from .conftest import AGENT

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
RANDOM: Final = sessions_pb2.SelectionPolicy(name=sessions_pb2.POLICY_NAME_RANDOM)
SPEC: Final = SessionSpec("other", "navigation", "digest")


class Attempt(NamedTuple):
    number: int
    instance: str
    outcome: Outcome | None
    attempt: int = 0


def opponent_of(
    spec: SessionSpec, attempts: Sequence[Attempt], reasons: Mapping[str, str] | None = None
) -> Opponent:
    """What a session faces of another one with the same settings and these attempts."""
    session = Session("first", spec, SessionState.FINISHED, "", NOW)
    episodes = [
        Episode(
            "first",
            number,
            attempt,
            Decision(instance, 0.0, 1.0, 0.5, {}, (reasons or {}).get(instance, "random")),
            outcome=outcome,
        )
        for number, instance, outcome, attempt in attempts
    ]
    return against.facing(spec, session, episodes)


def test_arenas_come_in_the_order_in_which_the_opponent_played_them() -> None:
    attempts = [
        Attempt(2, "a", Outcome.SUCCESS),
        Attempt(0, "c", Outcome.FAILURE, 1),
        Attempt(0, "c", Outcome.VOID),
        Attempt(1, "b", Outcome.SUCCESS),
        Attempt(3, "c", Outcome.SUCCESS),
        Attempt(4, "d", None),
    ]
    opponent = opponent_of(SPEC, attempts)
    assert opponent.outcomes == {"c": 0.0, "b": 1.0, "a": 1.0}
    spec = against.specify_comparison(SPEC, opponent, ["a", "c", "e"])
    assert spec.policy.order == ("c", "a")
    assert spec.stop.max_episodes == 2
    assert spec.against is not None
    assert spec.against.outcomes == {"c": 0.0, "a": 1.0}
    with pytest.raises(ServiceError, match="let it play first"):
        against.specify_comparison(SPEC, opponent, ["e"])


def test_pairs_are_counted_once_and_by_arena() -> None:
    outcomes = {f"a{i}": float(i < 2) for i in range(12)}
    found = against.Comparison(Opponent("first", "other", outcomes))
    for i in range(10):
        found.tell(f"a{i}", 1.0)
        found.tell(f"a{i}", 0.0)  # played again
    found.tell("unknown", 0.0)
    told = found.to_dict()
    assert (told["pairs"], told["both_passed"], told["both_failed"]) == (10, ["a0", "a1"], [])
    assert (told["only_this"], told["only_other"]) == ([f"a{i}" for i in range(2, 10)], [])
    assert found.apart == told["apart"] == (told["p_value"] <= 0.05)
    assert found.apart
    assert found.words == (
        "this agent and other are told apart after 10 of 12 common arenas: the difference is +80 "
        "points (95 %, whenever one looks: +10 to +99; p 0.0078); of the 10 arenas that both "
        "played, both passed 2 and both failed 0; only this agent passed 8 (a2, a3, a4, a5, a6 "
        "and 3 more); only other passed 0"
    )


def test_arenas_that_were_chosen_by_what_was_passed_are_no_sample() -> None:
    attempts = [Attempt(k, name, Outcome.SUCCESS) for k, name in enumerate("abcd")]
    reasons = {"c": "informative"}
    assert opponent_of(SPEC, attempts, reasons).outcomes == {"a": 1.0, "b": 1.0}


@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        (
            "++-",
            "++-",
            "of the 3 arenas that both played, both passed the same 2 and failed the same 1",
        ),
        ("++", "++++", "both passed all 2 arenas that both played"),
        ("--", "--", "both failed all 2 arenas that both played"),
        ("", "++", "they played no arena in common"),
        (
            "+-+",
            "-++",
            "of the 3 arenas that both played, both passed 1 and both failed 0; only one passed 1 "
            "(0); only two passed 1 (1)",
        ),
    ],
)
def test_what_is_the_same_is_said_as_well_as_what_differs(
    mine: str, theirs: str, words: str
) -> None:
    first, second = (
        {str(k): sign == "+" for k, sign in enumerate(signs)} for signs in (mine, theirs)
    )
    assert common_instances(first, second).words("one", "two") == words


def forward(rng: np.random.Generator) -> int:
    return 3


def backward(rng: np.random.Generator) -> int:
    return 6


async def play_out(service: Any, session: str) -> dict[str, bool]:
    return {
        e.instance: e.outcome == types_pb2.OUTCOME_SUCCESS
        for e in await service.list_episodes(session)
    }


def facing(session: str) -> sessions_pb2.Opponent:
    return sessions_pb2.Opponent(session=session)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_repeated_request_makes_one_session_though_the_opponent_plays_on(
    service: Any,
) -> None:
    first = await service.create(3, agent="against:first", policy=RANDOM)

    async def play(episodes: int) -> None:
        async with service.agent(first, agent="against:first") as stream:
            await stream.receive("welcome")
            for _ in range(episodes):
                await stream.episode(forward)
        await service.settled(first, "WAITING", asyncio.sleep)

    async def create(**changes: Any) -> sessions_pb2.Session:
        fields: dict[str, Any] = {
            "agent": AGENT,
            "battery": "batteries/small",
            "layout": "aaio",
            "against": facing(first),
            "stop": sessions_pb2.StoppingRule(max_episodes=24),
            **changes,
        }
        request = sessions_pb2.CreateSessionRequest(
            spec=sessions_pb2.SessionSpec(**fields), request_id="against:again"
        )
        return (await service.sessions.CreateSession(request)).session

    await play(1)
    made = await create()
    assert len(made.spec.against.outcomes) == 1
    await play(1)
    assert await create() == made
    with pytest.raises(grpc.aio.AioRpcError, match="was used for another session"):
        await create(seed=1)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_better_agent_is_told_apart_and_an_equal_one_is_not(
    start: Callable[[Path], Any], tmp_path: Path
) -> None:
    async with start(tmp_path) as service:
        never = sessions_pb2.StoppingRule(max_episodes=24, target_sd=0.0, futility=0.0)
        at_once = sessions_pb2.StoppingRule(max_episodes=24, target_sd=0.99)
        first = await service.create(24, agent="backs off", stop=never, policy=RANDOM)
        await service.play(first, backward, agent="backs off")
        theirs = await play_out(service, first)
        assert len(theirs) == 24
        assert not any(theirs.values())

        better = await service.create(against=facing(first), seed=1, stop=never)
        await service.play(better, forward)
        mine = await play_out(service, better)
        passed = sum(mine.values())
        assert set(mine) <= set(theirs)
        assert passed == 6  # five for none are not enough
        assert len(mine) < 24
        found = await service.get(better)
        assert "this agent and backs off are told apart" in found.reason
        spec = found.spec
        assert spec.against.agent == "backs off"
        assert dict(spec.against.outcomes) == dict.fromkeys(theirs, 0.0)
        request = results_pb2.GetProfileRequest(name=f"{better}/profile")
        profile = (await service.profiles.GetProfile(request)).profile_json
        assert '"apart":true' in profile.replace(" ", "")

        # Its target is reached at once, which ends no comparison and is said all the same.
        equal = await service.create(against=facing(first), seed=2, stop=at_once)
        await service.play(equal, backward)
        assert len(await play_out(service, equal)) == 24
        reason = (await service.get(equal)).reason
        assert "neither told apart nor alike after 24 of 24 common arenas" in reason
        assert "both failed all 24 arenas" in reason
        request = results_pb2.GetProfileRequest(name=f"{equal}/profile")
        profile = json.loads((await service.profiles.GetProfile(request)).profile_json)
        assert {profile["nodes"][name]["status"] for name in ("navigationAbility",)} == {LEANS}
        # All 24 arenas were played, so the rate is known; of the better agent only a few were.
        assert profile["battery_rate"]["low"] == profile["battery_rate"]["high"] == 0.0
        request = results_pb2.GetProfileRequest(name=f"{better}/profile")
        profile = json.loads((await service.profiles.GetProfile(request)).profile_json)
        assert profile["battery_rate"]["low"] is None
        assert "none of the arenas played was drawn at random" in profile["battery_rate"]["text"]

        for changes, why in (
            ({"against": facing("sessions/none")}, "none"),
            ({"against": facing(first), "fresh": True}, "fresh"),
            ({"against": facing(first), "policy": {"generate": True}}, "generate"),
            ({"against": facing(await service.create(3, agent="idle"))}, "let it play first"),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await service.create(**{"agent": AGENT, **changes})
            assert why in (refused.value.details() or "")
