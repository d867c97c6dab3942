"""Data directories as each animalcat left them: opened, listed, replayed, gone on with."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from animalcat import names
from animalcat.service.recording import read_episode, verify
from animalcat.service.storage import schema
from animalcat.service.storage.sql import SqlStore
from animalcat.v1 import (
    campaigns_pb2,
    operations_pb2,
    results_pb2,
    sessions_pb2,
    types_pb2,
)

from .conftest import Service

HOMES = Path(__file__).parent / "fixtures" / "homes"
SCHEMAS = [6, 8, 10, 12]
"""Schemas of which there is a data directory; `fixtures/homes/README.md` says what each holds."""

SESSIONS = {
    "over": (sessions_pb2.SESSION_STATE_FINISHED, 24, "the battery is exhausted"),
    "waits": (sessions_pb2.SESSION_STATE_WAITING, 2, ""),
    "one": (sessions_pb2.SESSION_STATE_FINISHED, 2, "the campaign was ended"),
    "other": (sessions_pb2.SESSION_STATE_CANCELLED, 0, "the session was cancelled"),
}


@pytest.fixture
def home(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    with tarfile.open(HOMES / f"schema-{request.param}.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path


def test_the_schema_of_today_has_a_home() -> None:
    assert int(schema.REVISION) in SCHEMAS, "make one: tests/service/fixtures/homes/README.md"


@pytest.mark.parametrize("home", SCHEMAS, indirect=True)
def test_certificates_are_kept(home: Path) -> None:
    store = SqlStore.in_directory(home)
    certified = {
        session.spec.agent: {n: c.passed for n, c in store.certificates(session.id).items()}
        for session in store.sessions()
    }
    store.close()
    assert certified == {"over": {16: True}, "waits": {}, "one": {}, "other": {}}


@pytest.mark.parametrize("home", SCHEMAS, indirect=True)
def test_every_recording_replays(home: Path) -> None:
    """Positions, rewards and endings came out as they were; none was of a Unity build."""
    paths = sorted((home / "recordings").glob("*/*.mcap"))
    assert len(paths) == 24 + 4 + 3
    broken_off = 0
    for path in paths:
        recording = read_episode(path)
        assert (recording.damage, verify(recording).difference) == ("", None), path.name
        broken_off += recording.footer is None or recording.footer.outcome == (
            types_pb2.OUTCOME_VOID
        )
    assert broken_off == 2  # those that the agents left


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("home", SCHEMAS, indirect=True)
async def test_a_server_lists_it_and_goes_on(start: Callable[[Path], Any], home: Path) -> None:
    service: Service
    async with start(home) as service:
        listed = (await service.sessions.ListSessions(sessions_pb2.ListSessionsRequest())).sessions
        found = {s.spec.agent: s for s in listed}
        assert {a: (s.state, s.episodes, s.reason) for a, s in found.items()} == SESSIONS

        (campaign,) = (
            await service.campaigns.ListCampaigns(campaigns_pb2.ListCampaignsRequest())
        ).campaigns
        assert [s.name for s in campaign.sessions] == [found["one"].name, found["other"].name]
        assert (campaign.spec.budget, campaign.reason) == (20, "the campaign was ended")

        operations = (
            await service.operations.ListOperations(operations_pb2.ListOperationsRequest())
        ).operations
        assert [(o.resource, o.error.code) for o in operations] == [
            (campaign.name, ""),
            ("", "INVALID_ARENA"),
            ("batteries/small", ""),
        ]

        waits = found["waits"].name
        played = await service.list_episodes(waits)
        assert [(e.episode, e.attempt, e.invalid) for e in played] == [
            (0, 0, ""),
            (1, 0, "a cat on the keyboard"),
            (2, 0, ""),
            (3, 0, ""),
        ]
        request = results_pb2.StreamEpisodeRequest(name=f"{waits}/episodes/1")
        frames = [frame async for frame in service.episodes.StreamEpisode(request)]
        assert frames[0].header.instance == played[1].instance
        assert len(frames) == 1 + 1 + played[1].steps + 1  # header, steps from 0 on, footer

        name = names.profile_name(names.parse_session(found["over"].name))
        profile = json.loads(
            (
                await service.profiles.GetProfile(results_pb2.GetProfileRequest(name=name))
            ).profile_json
        )
        assert profile["provenance"]["episodes"] == 24
        assert profile["diagnostics"]["engine"] == "nuts"

        end = await service.play(waits, agent="waits")
        assert (end.state, end.episodes) == (sessions_pb2.SESSION_STATE_FINISHED, 5)
