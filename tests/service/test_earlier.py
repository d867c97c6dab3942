"""A session goes on from an earlier one of its agent, as if both were one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import grpc
import numpy as np
import pandas as pd
import pytest

from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.layouts.fitting.exports import of_export
from animalcat.layouts.inference.evidence import evidence_of_agent
from animalcat.layouts.library import load_layout
from animalcat.outcomes import read_outcomes
from animalcat.plots import read_results
from animalcat.service.errors import ServiceError
from animalcat.service.measuring.earlier import insist_goes_on
from animalcat.v1 import results_pb2, sessions_pb2, types_pb2
from animalcat.values import Identity, Session, SessionSpec, SessionState
from animalcat.wire.codec import encode

from .conftest import AGENT

KNOWN: Final = AgentFingerprint("declared", "agent", "1")
OTHER: Final = replace(KNOWN, version="2")
RANDOM: Final = sessions_pb2.SelectionPolicy(name=sessions_pb2.POLICY_NAME_RANDOM)
LISTED: Final = sessions_pb2.POLICY_NAME_LISTED
ENDS: Final = (types_pb2.OUTCOME_SUCCESS, types_pb2.OUTCOME_FAILURE)
ENOUGH: Final = sessions_pb2.StoppingRule(max_episodes=3, target_sd=0.5, futility=0.9)
SPEC: Final = SessionSpec("a", "small", "digest", layout="aaio", layout_digest="1")
ENDED: Final = Session(
    "first", SPEC, SessionState.FINISHED, "", datetime(2026, 1, 1, tzinfo=UTC), 8
)


def forward(rng: np.random.Generator) -> int:
    return 3


async def play(service: Any, session: str, fingerprint: AgentFingerprint = KNOWN) -> None:
    await service.play(session, forward, fingerprint=encode(fingerprint), same_agent=False)


async def profile_of(service: Any, session: str) -> dict[str, Any]:
    request = results_pb2.GetProfileRequest(name=f"{session}/profile")
    return json.loads((await service.profiles.GetProfile(request)).profile_json)


def estimates(profile: dict[str, Any]) -> dict[str, list[Any]]:
    keys = ("mean", "sd", "hdi", "at_ends", "contraction", "wider")
    return {name: [node.get(key) for key in keys] for name, node in profile["nodes"].items()}


@pytest.mark.asyncio(loop_scope="session")
async def test_stages_give_the_profile_of_one_session_on_all_that_was_played(
    start: Callable[[Path], Any], tmp_path: Path
) -> None:
    same: Any = {"secret": ""}  # so that the seed alone decides, of the fits too
    async with start(tmp_path) as service:
        first = await service.create(8, policy=RANDOM, **same)
        await play(service, first)
        second = await service.create(6, prior={"session": first}, **same)
        assert await service.create(6, prior={"session": first}, **same) != first
        async with service.agent(second, fingerprint=encode(OTHER), same_agent=False) as stream:
            refusal = await stream.refused("AGENT_CHANGED")
        assert "goes on from one of another agent: the version is 2 and was 1" in refusal.message
        async with service.agent(second, fingerprint=encode(KNOWN), same_agent=False) as stream:
            await stream.receive("welcome")
            for _ in range(2):
                await stream.episode(forward)
    async with start(tmp_path) as service:
        await play(service, second)
        third = await service.create(4, prior={"session": second}, **same)
        await play(service, third)
        parts = [await service.list_episodes(session) for session in (first, second, third)]
        order = [episode.instance for part in parts for episode in part if episode.outcome in ENDS]
        assert len(set(order)) == len(order) == 8 + 6 + 4
        whole = await service.create(
            18, policy=sessions_pb2.SelectionPolicy(name=LISTED, order=order), **same
        )
        await play(service, whole)
        found, one = await profile_of(service, third), await profile_of(service, whole)
        assert estimates(found) == estimates(one)  # of NUTS, bit by bit
        # What is about the battery is about what was played here.
        assert found["provenance"]["episodes"] == found["battery_rate"]["played"] == 4
        assert found["battery_rate"]["instances"] == 24 - 8 - 6
        ids = [name.removeprefix("sessions/") for name in (first, second, third)]
        words = f"goes on from session {ids[1]}: 14 episodes (8 of {ids[0]}, 6 of {ids[1]})"
        assert words in found["labels"]
        assert found["provenance"]["prior"]["episodes"] == {ids[0]: 8, ids[1]: 6}
        # Tables of all three tell no episode twice, and together are the evidence of the last.
        csv = results_pb2.PROFILE_FORMAT_OUTCOMES_CSV
        files = [await service.exported(session, csv) for session in (first, second, third)]
        rows = pd.concat([read_outcomes(file) for file in files], ignore_index=True)
        layout = load_layout("aaio", found["layout"]["variant"])
        table = of_export(rows, [])[0].covered([layout]).table
        evidence = evidence_of_agent(layout, table, AGENT)
        assert found["diagnostics"]["evidence"] == one["diagnostics"]["evidence"] == evidence
        assert found["diagnostics"]["outcomes"] == 18
        kept = await service.exported(third, results_pb2.PROFILE_FORMAT_NETCDF)
        assert read_results(kept).fitted.data.digest == evidence
        for session in (second, third):
            asked = sessions_pb2.VerifySessionRequest(name=session)
            assert not (await service.sessions.VerifySession(asked)).problems
        for changes, why in (
            ({"agent": "another", "prior": {"session": first}}, "its agent is tests:agent"),
            ({"layout": "testbed", "prior": {"session": first}}, "the layout is"),
            ({"prior": {"session": "sessions/none"}}, "none"),
            ({"prior": {"session": await service.create(3, seed=9)}}, "let it end first"),
            ({"prior": {"session": first}, "against": {"session": first}}, "leave out one"),
            ({"prior": {"session": first}, "stop": ENOUGH}, "give a finer target"),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await service.create(**changes)
            assert why in (refused.value.details() or "")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"state": SessionState.CANCELLED}, "it is cancelled"),
        ({"episodes": 0}, "with 0 episodes"),
        ({"misfit": "since episode 7: it fails"}, "does not describe its agent since episode 7"),
        ({"identity": Identity()}, "nobody can tell whether this is the same"),
        ({"identity": Identity(AgentFingerprint(name="x"))}, "nobody can tell"),
        ({"identity": Identity(KNOWN, (OTHER,))}, "its agent changed while it played"),
        ({"spec": replace(SPEC, layout_digest="2")}, "the layout is"),
        ({"spec": replace(SPEC, backend="unity:auto")}, "the backend is 'sim'"),
        ({"spec": replace(SPEC, battery="other", battery_digest="3")}, ""),
    ],
)
def test_what_cannot_be_one_with_the_session_is_refused(
    changes: dict[str, Any], words: str
) -> None:
    other = replace(ENDED, **{"identity": Identity(KNOWN), **changes})
    if not words:
        return insist_goes_on(SPEC, other)
    with pytest.raises(ServiceError, match=words):
        insist_goes_on(SPEC, other)
    return None
