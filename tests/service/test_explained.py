"""A session's verdict, and the explanation of its episodes, over the wire."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import grpc
import jsonschema
import pytest

from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import from_dict, to_dict
from animalcat.service.batteries.battery import BATTERIES, load
from animalcat.service.errors import ServiceError
from animalcat.service.library.layouts import layout_of
from animalcat.service.measuring import explaining
from animalcat.service.measuring.explaining import Explainer, explained_episode
from animalcat.service.measuring.measurement import Measurement
from animalcat.service.storage.artefacts import Artefacts
from animalcat.service.storage.sql import DATABASE, SqlStore
from animalcat.v1 import results_pb2
from animalcat.values import (
    Decision,
    Episode,
    Outcome,
    Session,
    SessionSpec,
    SessionState,
    verdict_of,
)

from .conftest import Service, open_floor

pytestmark = pytest.mark.asyncio(loop_scope="session")


def schema(name: str) -> Any:
    return json.loads((files("animalcat") / "schemas" / f"{name}.schema.json").read_text("utf-8"))


async def test_a_session_ends_with_a_verdict_and_explains_its_episodes(service: Any) -> None:
    session = await service.create(4)
    await service.play(session)
    request = results_pb2.GetProfileRequest(name=f"{session}/profile")
    profile = json.loads((await service.profiles.GetProfile(request)).profile_json)
    jsonschema.validate(profile, schema("profile"))
    verdict = verdict_of(profile)
    assert verdict is not None
    assert verdict.kind == "unclear"
    assert "4 episodes are too few" in verdict.text
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


async def test_what_explains_a_session_is_kept_at_its_end_and_told_again_where_it_does_not_fit(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explaining, "MANY", 3)
    session = await service.create(6, seed=8)
    await service.play(session)
    name = session.removeprefix("sessions/")
    (kept,) = (service.data / "certificates" / name).glob("explains.*")
    store = SqlStore(f"sqlite:///{service.data / DATABASE}")
    files = Artefacts(service.data)

    def explain_again(*, fresh: bool) -> tuple[dict[str, Any], int]:
        """The explanation of an episode by a new server, and how many outcomes it told."""
        found, told = store.session(name), list[Episode]()
        assert found is not None
        battery = load(found.spec.battery_digest, service.data / BATTERIES)
        layout = layout_of(found.spec, store)
        tell = Measurement.tell

        def telling(measurement: Measurement, episode: Episode) -> None:
            told.append(episode)
            tell(measurement, episode)

        with monkeypatch.context() as patch:
            patch.setattr(Measurement, "tell", telling)
            if fresh:
                every = store.episodes(name)
                explanation = explained_episode(found, layout, battery, every, 2, None)
            else:
                explanation = Explainer(store, files).explained(found, layout, battery, 2, None)
        return explanation, len(told)

    by_telling = explain_again(fresh=True)[0]
    assert explain_again(fresh=False) == (by_telling, 0)
    content = kept.read_bytes()
    for damaged in (content[:-9], content[:-9] + bytes(9), b""):
        kept.write_bytes(damaged)
        assert explain_again(fresh=False) == (by_telling, 6)
        assert kept.read_bytes() == content
    store.invalidate_episode(name, 4, 0, "a bad day")
    assert explain_again(fresh=False) == (explain_again(fresh=True)[0], 5)
    assert explain_again(fresh=False)[1] == 0


async def test_an_episode_in_which_nothing_was_observed_is_not_explained(tmp_path: Path) -> None:
    """An episode that was not passed has no time left to score; it is not said to have none."""
    data = to_dict(load_layout("one-capability", "score"))
    left = {"kind": "score", "source": "time_left", **data.pop("outcome")["beta"]}
    layout, battery = from_dict({**data, "outcomes": {"left": left}}), open_floor(2, tmp_path)
    spec = SessionSpec("tests:agent", "navigation", "", layout=layout.name)
    session = Session("s", spec, SessionState.FINISHED, "", datetime(2026, 1, 1, tzinfo=UTC))
    attempts = [
        Episode(
            "s",
            number,
            0,
            Decision(one.name, 0.0, 1.0, 0.5, {}, "random"),
            outcome=Outcome.SUCCESS if given else Outcome.FAILURE,
            outcomes=given,
        )
        for number, (one, given) in enumerate(
            zip(battery.instances, ({"time_left": 0.4}, {}), strict=True)
        )
    ]
    found = explained_episode(session, layout, battery, attempts, 0, None)
    assert found["sentences"][0].startswith(f"It did not fully pass {battery.instances[0].name}")
    with pytest.raises(ServiceError, match="nothing was observed of outcome 'left' in episode 1"):
        explained_episode(session, layout, battery, attempts, 1, None)
