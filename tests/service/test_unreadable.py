"""What cannot be read harms what it is about, and nothing else."""

from __future__ import annotations

import copy
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, cast

import grpc
import pytest

from animalcat.arena_configs.instance import Instance
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.envs.types import CameraSpec, ObservationSpec
from animalcat.layouts.adaptive.battery_rate import Wager
from animalcat.layouts.adaptive.peers import Peers
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.service.model import StoredCampaign
from animalcat.service.storage import records
from animalcat.service.storage.errors import InUseError, UnreadableError, readable
from animalcat.service.storage.sql import SqlStore
from animalcat.v1 import campaigns_pb2, results_pb2, sessions_pb2
from animalcat.values import CampaignSpec, Decision, MadeInstance, SessionState
from tests.suites.storage import NOW, SPEC, attempt


def text(**changes: Any) -> str:
    """The record of a spec, changed; None takes a field away."""
    record = {**records.SPEC.write(SPEC), **changes}
    kept = {k: v for k, v in record.items() if v is not None or k in ("against", "prior")}
    return json.dumps(kept)


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        (text(policy={**asdict(SPEC.policy), "name": "magic"}), "policy.name: "),
        (text(policy={**asdict(SPEC.policy), "random_share": 7}), "random_share 7"),
        (text(seed=None, sead=3), "seed: field required; sead: extra field"),
        (text(certify="yes"), "certify: "),
        (text(seed=-1), "seed -1 is out of range"),
        (text(battery="../b"), "'../b'"),
        (text(rules=4), "this began under decision rules of version 4, and"),
        (text(version=2), "version: it is 2, and this animalcat reads version 1; update"),
        (text(version="two"), "version: it is 'two'"),
        (text(version=None), "version: it is missing"),
        ("[]", "not a record"),
        ("7", "not a record"),
        (text()[:-20], "damaged"),
    ],
)
def test_a_record_says_why_it_cannot_be_read(stored: str, why: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        records.SPEC.read(stored)
    assert str(caught.value).startswith("spec: ")
    assert why in str(caught.value)


def objects(record: Any) -> Iterator[dict[str, Any]]:
    """The JSON objects of a record: itself and all that are in it."""
    if isinstance(record, dict):
        found = cast("dict[str, Any]", record)
        yield found
        for part in found.values():
            yield from objects(part)


def test_no_field_may_be_missing_and_none_left_over() -> None:
    """At any depth, and whether the value has a default for it or not."""
    shown = ObservationSpec(CameraSpec())
    whole = records.SPEC.write(replace(SPEC, stop=StoppingRule(), observation_spec=shown))
    seen = 0
    for k, there in enumerate(objects(whole)):
        for name in there:
            record = copy.deepcopy(whole)
            del list(objects(record))[k][name]
            with pytest.raises(UnreadableError, match=rf"{name}: (field required|it is missing)"):
                records.SPEC.read(json.dumps(record))
            seen += 1
    assert seen > len(fields(SPEC)) + len(fields(SPEC.policy)) + len(fields(SPEC.stop))
    for k, _ in enumerate(objects(whole)):
        record = copy.deepcopy(whole)
        list(objects(record))[k]["sead"] = "x"
        with pytest.raises(UnreadableError, match=r"sead: (extra field|input should be)"):
            records.SPEC.read(json.dumps(record))


def test_a_decision_is_read_with_the_arena_that_was_made_for_it() -> None:
    places = (MarkedPlace(True, 1.0, 2.0, 0.5),)
    instance = Instance("i", "p", {"size": 0.5}, 0.0, 250, 7, "", {"a": "b"}, places)
    decision = Decision(
        *("i", 0.1, 0.2, 0.3),
        margins={},
        reason="made",
        made=MadeInstance("offer", instance, "arena"),
        peers=Peers(3, 0.1, 0.2, True),
        wager=Wager(2, (-0.25, 0.5), (0.125, -50.0)),
    )
    stored = records.DECISION.write(decision)
    assert records.DECISION.read(json.dumps(stored)) == decision
    del stored["made"]["instance"]["places"]
    with pytest.raises(UnreadableError, match=r"made\.instance\.places: field required"):
        records.DECISION.read(json.dumps(stored))


def damage(data: Path, table: str, column: str, value: str, where: str) -> None:
    with closing(sqlite3.connect(data / "animalcat.sqlite")) as db, db:
        db.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (value,))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("spec", text(rules="one")),
        ("spec", "{"),
        ("capabilities", '{"version": 9}'),
        ("state", "ASLEEP"),
    ],
)
def test_one_bad_session_breaks_no_list(tmp_path: Path, column: str, value: str) -> None:
    store = SqlStore.in_directory(tmp_path)
    for name in ("a", "b", "c"):
        store.create_session(name, SPEC, NOW)
    damage(tmp_path, "sessions", column, value, "id = 'b'")
    unreadable = [s.id for s in store.sessions() if s.state is SessionState.UNREADABLE]
    assert unreadable == ["b"]
    found = store.session("b")
    assert found is not None
    assert found.reason.startswith(f"unreadable: {column}: ")
    store.set_state("a", SessionState.RUNNING)
    store.delete_session("b")
    assert [s.id for s in store.sessions()] == ["c", "a"]
    store.close()


@pytest.mark.parametrize(("column", "value"), [("spec", "{"), ("state", "ASLEEP")])
def test_a_campaign_with_a_bad_session_can_be_deleted(
    tmp_path: Path, column: str, value: str
) -> None:
    store = SqlStore.in_directory(tmp_path)
    for name in ("a", "b"):
        store.create_session(name, SPEC, NOW)
    spec = CampaignSpec(("a", "b"), SPEC, 200)
    store.create_campaign(StoredCampaign("c", spec, ("a", "b"), NOW))
    damage(tmp_path, "sessions", column, value, "id = 'b'")
    with pytest.raises(InUseError, match="session a of campaign c is not over"):
        store.delete_campaign("c")
    store.finish_session("a", SessionState.CANCELLED, "", {}, ())
    store.delete_campaign("c")
    for name in ("a", "b"):
        store.delete_session(name)
    assert not store.sessions()
    store.close()


def test_one_bad_attempt_breaks_no_list(tmp_path: Path) -> None:
    store = SqlStore.in_directory(tmp_path)
    session = store.create_session("s", SPEC, NOW).id
    for number in (0, 1):
        store.open_episode(attempt(session, number))
    damage(tmp_path, "episodes", "decision", '{"version": 1, "instance": "i"}', "number = 1")
    good, bad = store.episodes(session)
    assert good == attempt(session, 0)
    assert bad.unreadable.startswith("unreadable: decision: score: field required")
    with pytest.raises(UnreadableError, match=r"episode 1 of s is unreadable.*delete the session"):
        readable([good, bad])
    store.close()


async def refusal_of(call: Any) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    assert dict(caught.value.trailing_metadata() or ())["animalcat-code"] == "UNREADABLE"
    return caught.value.details() or ""


@pytest.mark.asyncio(loop_scope="session")
async def test_a_server_serves_what_can_be_read(
    start: Callable[[Path], Any], tmp_path: Path
) -> None:
    """One session with an unknown policy, and a campaign: told in lists, refused by name."""
    store = SqlStore.in_directory(tmp_path)
    store.create_session("bad", SPEC, NOW)
    store.open_episode(attempt("bad", 0))
    spec = CampaignSpec(("a", "b"), SPEC, 200)
    store.create_campaign(StoredCampaign("c", spec, ("bad",), NOW))
    store.close()
    policy = {**asdict(SPEC.policy), "name": "magic"}
    damage(tmp_path, "sessions", "spec", text(policy=policy), "id = 'bad'")
    damage(tmp_path, "campaigns", "spec", "{}", "id = 'c'")
    async with start(tmp_path) as service:
        good = await service.create(1, certify=False)
        answer = await service.sessions.ListSessions(sessions_pb2.ListSessionsRequest())
        assert [s.name for s in answer.sessions] == [good, "sessions/bad"]
        shown = await service.get("sessions/bad")
        assert shown.state == sessions_pb2.SESSION_STATE_UNREADABLE
        assert "policy.name" in shown.reason
        assert (shown.spec.agent, shown.spec.battery) == (SPEC.agent, "batteries/navigation")
        assert [e.instance for e in await service.list_episodes("sessions/-")] == ["01-01-01"]

        cancel = sessions_pb2.CancelSessionRequest(name="sessions/bad")
        why = await refusal_of(service.sessions.CancelSession(cancel))
        assert "policy.name" in why
        assert "delete the session" in why
        async with service.agent("sessions/bad", agent=SPEC.agent) as stream:
            told = await stream.refused("UNREADABLE")
        assert "policy" not in told.message  # agents learn nothing of how they are measured
        profile = results_pb2.GetProfileRequest(name="sessions/bad/profile")
        await refusal_of(service.profiles.GetProfile(profile))
        campaigns = await service.campaigns.ListCampaigns(campaigns_pb2.ListCampaignsRequest())
        why = campaigns.campaigns[0].unreadable
        assert why.startswith("unreadable: spec: version: it is missing")

        assert (await service.play(good)).episodes == 1
