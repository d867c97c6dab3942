"""A session that shows the arena's true state says so, and no other session shows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import animalcat
from animalcat.cli.shared.remote import session_row
from animalcat.client.remote_episodes import RemoteEpisodes
from animalcat.envs.agents.load import load_agent
from animalcat.envs.answers import read_answer
from animalcat.envs.types import ObservationSpec

from .conftest import MakeSession, Server

PRIVILEGED = replace(ObservationSpec(), privileged=True)


@pytest.mark.slow
def test_the_planner_plays_a_privileged_session(
    server: Server, client: animalcat.Client, make_session: MakeSession
) -> None:
    planner = load_agent("builtin:planner")
    session = make_session(agent="builtin:planner", observation_spec=PRIVILEGED)
    assert session_row(session)["privileged"] is True
    assert client.get_session(session).spec.observation_spec == PRIVILEGED
    episodes = RemoteEpisodes(server.address, session)
    try:
        opening = episodes.begin()
        planner.reset(opening.info)
        answer = episodes.act(read_answer(planner.act(opening.observation)).actions)
        total = answer.reward
        while not answer.ended:
            answer = episodes.act(read_answer(planner.act(answer.observation)).actions)
            total += answer.reward
    finally:
        episodes.close()
    assert total > 0.2
    assert client.profile(session)["provenance"]["privileged"] is True


def test_a_planner_in_another_session_says_what_to_do(
    client: animalcat.Client, make_session: MakeSession
) -> None:
    session = make_session()
    assert session_row(session)["privileged"] is False
    with pytest.raises(ValueError, match="make the session privileged"):
        client.evaluate(load_agent("builtin:planner"), session)
    with pytest.raises(animalcat.AnimalcatError, match=r"no state.*needs.*true state"):
        client.evaluate(load_agent("builtin:forward"), session, observation_spec=PRIVILEGED)


def test_a_build_cannot_be_privileged(make_session: MakeSession) -> None:
    with pytest.raises(animalcat.AnimalcatError, match="does not tell the state"):
        make_session(observation_spec=PRIVILEGED, backend="unity:auto")
