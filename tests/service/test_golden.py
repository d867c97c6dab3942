"""A whole session as an earlier version played it: decisions, certificate and profile stay.

`golden/session.json` was recorded before the learner had an object of its own. The session's name
is not compared: it follows from the battery's digest, and so from every meta-feature that there is.
Where a rule changes on purpose it gets a new version, and the session of the old one stays: this
one follows rules of version 1.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from animalcat.v1 import results_pb2, sessions_pb2

GOLDEN = Path(__file__).with_name("golden") / "session.json"
FIELDS = ("instance", "propensity", "predicted", "score")
EPISODES = 26


async def played(service: Any) -> dict[str, Any]:
    """Repeats, probes, and a certificate at 16 that counts at 24."""
    policy = sessions_pb2.SelectionPolicy(
        name=sessions_pb2.POLICY_NAME_VARIANCE, random_share=0.3, exposures=0, probes=0.2
    )
    session = await service.create(
        EPISODES, seed=11, certify=True, policy=policy, layout_variant="scaled"
    )
    await service.play(session)
    episodes = await service.list_episodes(session)
    request = results_pb2.GetProfileRequest(name=f"{session}/profile")
    profile = json.loads((await service.profiles.GetProfile(request)).profile_json)
    return {
        "episodes": [
            {
                **{name: getattr(one.decision, name) for name in FIELDS},
                "return": one.episode_return,
                "steps": one.steps,
            }
            for one in episodes
        ],
        "nodes": {
            name: [node["mean"], node["sd"], *node["hdi"]]
            for name, node in profile["nodes"].items()
        },
    }


@pytest.mark.asyncio(loop_scope="session")
async def test_a_session_goes_as_it_went(service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("animalcat.service.rpc.sessions.RULES", 1)
    made = await played(service)
    known = json.loads(GOLDEN.read_text("utf-8"))
    for ours, theirs in zip(made["episodes"], known["episodes"], strict=True):
        assert ours.pop("instance") == theirs.pop("instance")
        assert ours == pytest.approx(theirs, rel=1e-6)  # another processor may round otherwise
    assert made["nodes"].keys() == known["nodes"].keys()
    for name, node in known["nodes"].items():
        # Draws of NUTS part for good where a single bit does, as between processors. The gate wants
        # an effective size of 400: then the means of two runs part by 0.07 SD (one standard error),
        # and the ends of a 94 % interval by 0.18 SD. Three to four of these are let pass.
        mean, sd, *ends = node
        found = made["nodes"][name]
        assert found[:2] == pytest.approx([mean, sd], abs=0.25 * sd)
        assert found[2:] == pytest.approx(ends, abs=0.6 * sd)
