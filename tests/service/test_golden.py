"""The service's golden sessions: decided, played, recorded and measured as before.

`tests/golden.py` says how they are recorded anew, and how strictly they are compared.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from animalcat.client.async_client import aconnect
from animalcat.service.recording.reader import read_episode
from animalcat.v1 import results_pb2, sessions_pb2, types_pb2
from animalcat.values import SessionSpec
from tests.golden import DIGEST, FILES, FITTED, hold, hold_titles
from tests.service.conftest import Service, walk
from tests.service.test_campaign import POLICIES
from tests.service.test_direct import Walker

pytestmark = pytest.mark.asyncio(loop_scope="session")

GOLDEN: Final = FILES[1]
EPISODES: Final = 8


def policy(**changes: Any) -> dict[str, Any]:
    return {"policy": sessions_pb2.SelectionPolicy(**changes)}


LOOKING: Final = {
    "observation_spec": types_pb2.ObservationSpec(
        camera=types_pb2.CameraSpec(resolution=16), rays=types_pb2.RaySpec(per_side=1)
    )
}
SESSIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "two slots": {"slots": 2},
    "practice": {"practice": 2},
    "twins": {"fresh": True},
    "repeats": policy(exposures=0, probes=0.3),
    "made on demand": policy(generate=True, random_share=0.1),
    "information per second": policy(
        name=sessions_pb2.POLICY_NAME_INFORMATION, per_second=True, about=["navigationAbility"]
    ),
    "threshold, some first": policy(
        name=sessions_pb2.POLICY_NAME_THRESHOLD,
        order=["navigation-07", "navigation-03"],
        cool_down=2,
    ),
}
"""By title, what is asked for. An agent plays the first episodes of each and leaves it."""


@pytest.fixture(autouse=True)
def same_ids(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions are named by their tests: twins follow from the name, which follows from all else.

    Else a new meta-feature of arenas would change the battery's digest, and so the arenas.
    """
    numbers = count()
    name = request.node.name.translate({ord(c): "-" for c in "[], _"})

    def name_next(spec: SessionSpec) -> str:
        return f"golden-{name}{next(numbers)}"

    monkeypatch.setattr("animalcat.service.rpc.sessions.session_id", name_next)


async def tell_all(service: Service, session: str) -> dict[str, Any]:
    """What a session decided, what came of it, and what it found."""
    found = await service.get(session)
    request = results_pb2.GetProfileRequest(name=f"{session}/profile")
    profile = json.loads((await service.profiles.GetProfile(request)).profile_json)
    nodes = [
        [name, node["mean"], node["sd"], *node["hdi"]] for name, node in profile["nodes"].items()
    ]
    rate = profile["battery_rate"]
    return {
        "episodes": [
            _episode(service, session, one)
            for one in await service.list_episodes(session)
            if one.outcome in (types_pb2.OUTCOME_SUCCESS, types_pb2.OUTCOME_FAILURE)
        ],
        "reason": found.reason,
        FITTED if found.reason else "nodes": nodes,
        "statuses": [node.get("status", "") for node in profile["nodes"].values()],
        "battery rate": [rate[key] for key in ("value", "low", "high")],
    }


def _episode(service: Service, session: str, one: sessions_pb2.EpisodeSummary) -> dict[str, Any]:
    decision = one.decision
    file = service.data / "recordings" / session.partition("/")[2] / f"{one.episode}-0.mcap"
    return {
        "chosen": [one.episode, one.instance, sessions_pb2.Reason.Name(decision.reason)],
        "numbers": [decision.score, decision.propensity, decision.predicted],
        "knew": [decision.pending, decision.made.offer],
        "came": [types_pb2.Outcome.Name(one.outcome), one.episode_return, one.steps],
        "observed": dict(sorted(one.outcomes.items())),
        DIGEST: _play_digest(file),
    }


def _play_digest(file: Path) -> str:
    """The arena, every step and the end of a recording, in a digest."""
    recording = read_episode(file)
    assert recording.complete
    assert recording.footer is not None
    digest = hashlib.sha256(recording.header.arena_yaml.encode())
    for message in (*recording.steps, recording.footer):
        digest.update(message.SerializeToString(deterministic=True))
    return digest.hexdigest()


@pytest.mark.parametrize("title", SESSIONS)
async def test_a_session_goes_as_it_went(service: Service, title: str) -> None:
    session = await service.create(24, **SESSIONS[title])
    async with service.agent(session) as stream:
        await stream.receive("welcome")
        for _ in range(EPISODES):
            await stream.episode(walk)
    await service.settled(session, "WAITING", asyncio.sleep)
    hold(GOLDEN, title, await tell_all(service, session))


async def test_a_session_goes_to_its_end_relayed_and_directly(service: Service) -> None:
    relayed = await service.create(EPISODES, **LOOKING)
    await service.play(relayed)
    made = await tell_all(service, relayed)
    hold(GOLDEN, "to its end", made)
    directly = await service.create(EPISODES, **LOOKING)
    assert directly != relayed
    async with aconnect(service.running.address) as client:
        await client.evaluate(Walker(), directly)
    assert await tell_all(service, directly) == made


async def test_a_comparison_goes_as_it_went(service: Service) -> None:
    at_random = policy(name=sessions_pb2.POLICY_NAME_RANDOM)
    first = await service.create(EPISODES, agent="first", **at_random)
    await service.play(first, POLICIES["stands"], agent="first")
    second = await service.create(against=sessions_pb2.Opponent(session=first))
    await service.play(second)
    hold(GOLDEN, "against", await tell_all(service, second))


async def test_every_record_is_of_a_session() -> None:
    hold_titles(GOLDEN, {*SESSIONS, "to its end", "against"})
