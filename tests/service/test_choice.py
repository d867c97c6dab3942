"""A choice is the same by every way to play, at every decision period, and in a replay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from animalcat.client.async_client import aconnect
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.types import Observation
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.nodes import OutcomeNode
from animalcat.service.errors import ServiceError
from animalcat.service.measuring.measurement import Measurement
from animalcat.service.recording.reader import read_episode
from animalcat.service.recording.verify import verify
from animalcat.text import names
from animalcat.v1 import types_pb2
from tests.service.conftest import FILES, Service, open_floor
from tests.service.test_measurement import SPEC

NAME, ARENA = FILES[18]
TABLE = f"instance,choices\n{NAME.removesuffix('.yaml')},right 20 19 2; wrong 20 10 0.3\n"


class Forward:
    """An agent that runs through the wrong place, and on into the right one."""

    def reset(self, info: EpisodeInfo) -> None:
        """Nothing is kept."""

    def act(self, observation: Observation) -> int:
        return 3


@pytest.mark.asyncio(loop_scope="session")
async def test_a_choice_is_what_it_is_by_every_way_to_play(service: Service) -> None:
    await service.import_files([(NAME, ARENA)], "places", TABLE.encode())
    for period in (3, 20):
        for direct in (False, True):
            agent = f"choice:{period}{direct}"
            session = await service.create(
                1,
                agent=agent,
                battery="batteries/places",
                observation_spec=types_pb2.ObservationSpec(
                    rays=types_pb2.RaySpec(per_side=1, max_degrees=60, tags=12),
                    decision_period=period,
                ),
            )
            if direct:
                async with aconnect(service.running.address) as client:
                    await client.evaluate(Forward(), session)
            else:
                await service.play(session, lambda _: 3, agent=agent)
            (episode,) = await service.list_episodes(session)
            assert episode.outcomes["choice"] == 0.0
            folder = service.data / "recordings" / names.parse_session(session)
            recording = read_episode(folder / "0-0.mcap")
            assert verify(recording).difference is None
            assert recording.footer is not None
            recording.footer.outcomes["choice"] = 1.0
            found = verify(recording).difference
            assert found is not None
            assert (found.field, found.recorded) == ("footer.outcomes[choice]", "1.0")


def test_choices_are_refused_where_a_backend_shows_decisions_only(tmp_path: Path) -> None:
    layout = load_layout("one-capability")
    choice = OutcomeNode("choice", "choice", "choice", layout.outcomes[0].likelihood)
    spec = replace(SPEC, backend="unity:/a/build")
    battery = open_floor(2, tmp_path)
    with pytest.raises(ServiceError, match="use a decision period of 1, or the backend sim"):
        Measurement(spec, battery, replace(layout, outcomes=(choice,)))
