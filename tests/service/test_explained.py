"""A session's verdict, and the explanation of its episodes, over the wire."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import grpc
import jsonschema
import pytest

from animalcat.client.converters import verdict_from_profile
from animalcat.v1 import results_pb2

pytestmark = pytest.mark.asyncio(loop_scope="session")


def schema(name: str) -> Any:
    return json.loads((files("animalcat") / "schemas" / f"{name}.schema.json").read_text("utf-8"))


async def test_a_session_ends_with_a_verdict_and_explains_its_episodes(service: Any) -> None:
    session = await service.create(4)
    await service.play(session)
    request = results_pb2.GetProfileRequest(name=f"{session}/profile")
    profile = json.loads((await service.profiles.GetProfile(request)).profile_json)
    jsonschema.validate(profile, schema("profile"))
    verdict = verdict_from_profile(profile)
    assert verdict is not None
    assert verdict.kind == "unclear"
    assert "4 outcomes are too few" in verdict.text
    assert profile["layout"]["variant"] == "metres-15"  # of new sessions

    name = f"{session}/episodes/2"
    answer = await service.episodes.ExplainEpisode(results_pb2.ExplainEpisodeRequest(name=name))
    found = json.loads(answer.explanation_json)
    jsonschema.validate(found, schema("episode_explain"))
    assert found["episode"].startswith(name)
    assert {need["node"] for need in found["needs"]} == set(profile["nodes"])
    assert sum(need["decided"] for need in found["needs"]) + found["chance"] == pytest.approx(1.0)

    missing = results_pb2.ExplainEpisodeRequest(name=f"{session}/episodes/9")
    with pytest.raises(grpc.aio.AioRpcError, match="it has 0 to 3"):
        await service.episodes.ExplainEpisode(missing)


async def test_an_old_session_names_its_layout_variant(service: Any) -> None:
    session = await service.create(2, seed=6, layout_variant="scaled")
    await service.play(session)
    request = results_pb2.GetProfileRequest(name=f"{session}/profile")
    profile = json.loads((await service.profiles.GetProfile(request)).profile_json)
    assert profile["layout"]["variant"] == "scaled"
