"""Code of the unmodified animalai package plays episodes of a session."""

from __future__ import annotations

from pathlib import Path

import pytest

import animalcat
from animalcat.envs.agents.load import load_agent
from animalcat.service.recording.reader import read_episode
from animalcat.service.recording.verify import verify

from .conftest import MakeSession, Server

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "animalai_agent.py"


@pytest.mark.slow
def test_animalais_own_agent_plays_and_its_episodes_come_out_again(
    client: animalcat.Client, server: Server, make_session: MakeSession
) -> None:
    session = make_session()
    summary = client.evaluate(load_agent(f"{EXAMPLE}:AnimalAIBraitenberg"), session)
    assert (summary.state, summary.counted) == ("finished", 2)
    folder = server.home / "recordings" / session.name.removeprefix("sessions/")
    recordings = [read_episode(path) for path in sorted(folder.glob("*.mcap"))]
    assert len(recordings) == 2
    assert all(verify(recording).difference is None for recording in recordings)
    # It turns until it sees a goal, and then goes there: no constant action.
    assert len({step.action for r in recordings for step in r.steps[1:]}) > 1
