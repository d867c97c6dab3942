"""A file whose arenas merge is one instance, and one episode, from the import to the replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import ArenaConfig, ArenaError
from animalcat.arena_configs.outcome import EpisodeMonitor
from animalcat.arena_configs.writer import to_yaml
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import ObservationSpec, Phase
from animalcat.layouts.library import load_layout
from animalcat.maps.small import arena_map
from animalcat.service.batteries.battery import ArenaFile, import_files
from animalcat.service.measuring.twins import Twins
from animalcat.service.recording.reader import read_episode
from animalcat.service.recording.verify import load_arena, verify
from animalcat.service.recording.writer import EpisodeRecorder
from animalcat.service.versions import versions
from animalcat.v1 import results_pb2, types_pb2
from animalcat.wire.steps import spec_to_proto
from tests.service.conftest import arena


def chain(*numbers: int, mark: float = 0.0, last: bool = False) -> str:
    """Arenas in which the goal is straight ahead, each merged with the next."""
    found = [load_text(arena(3 * n), "one").config.first for n in numbers]
    parts = {
        k: one.model_copy(
            update={
                "merge_next_arena": last or k + 1 < len(found),
                "pass_mark": mark,
                "time_limit": 40,
            }
        )
        for k, one in enumerate(found)
    }
    return to_yaml(ArenaConfig(arenas=parts))


def test_a_chain_is_one_instance_by_its_name_and_marks_of_places_are_refused(
    tmp_path: Path,
) -> None:
    several = load_text(chain(1, 2), "both").config.arenas
    several = {**several, 2: several[1], 3: several[0], 4: several[1]}
    files = [
        ArenaFile("whole.yaml", chain(1, 2, 3, mark=1.5)),
        ArenaFile("several.yaml", to_yaml(ArenaConfig(arenas=several))),
    ]
    made = import_files(files, 0, tmp_path)
    assert [one.name for one in made.instances] == ["several.0", "several.2", "several.3", "whole"]
    whole = made.instances[-1]
    assert (whole.pass_mark, whole.time_limit_steps) == (1.5, 200)
    assert whole.features["rewards"] == 3.0
    assert whole.features["greatestReturn"] > 3.0
    text = made.arena_yaml(whole)
    assert len(load_text(text, "whole").config.arenas) == 3
    assert arena_map(text, "whole").count("fill='#f3ead9'") == 3
    twin = Twins(made, load_layout("one-capability")).twin("whole", "a")
    again = load_text(twin.arena_yaml, "twin").config.arenas
    assert [one.merge_next_arena for one in again.values()] == [True, True, False]
    assert twin.instance.features["rewards"] == 3.0
    with pytest.raises(ValueError, match="choices: whole is 3 arenas that merge"):
        import_files(files[:1], 0, tmp_path, "instance,choices\nwhole,right 20 10 2\n")
    with pytest.raises(
        ArenaError, match=r"x.yaml: arenas\[1\].mergeNextArena: there is no arena 2"
    ):
        import_files([ArenaFile("x.yaml", chain(1, 2, last=True))], 0, tmp_path)


def test_a_chain_is_played_in_one_episode_and_replays(tmp_path: Path) -> None:
    files = [ArenaFile("chain.yaml", chain(1, 2, mark=1.5))]
    made = import_files(files, 0, tmp_path)
    (instance,) = made.instances
    spec = ObservationSpec(rays=None)
    header = results_pb2.EpisodeHeader(
        arena_yaml=made.arena_yaml(instance),
        seed=instance.seed,
        observation_spec=spec_to_proto(spec),
        backend="sim",
        versions=versions(),
    )
    recorder, environment = EpisodeRecorder(tmp_path / "0-0.mcap", header), SimEnvironment(spec)
    step = environment.load(load_arena(header), instance.seed)
    recorder.step(step, None)
    seen = EpisodeMonitor(instance.task)
    while step.phase is not Phase.LAST:
        step = environment.step(3)
        recorder.step(step, 3)
        seen.see(step.reward)
    outcomes = seen.outcomes(environment.episode_return, environment.physics_steps)
    recorder.finish(types_pb2.OUTCOME_SUCCESS, outcomes)
    assert (outcomes["success"], outcomes["rewards"]) == (1.0, 2.0)
    assert 1.5 < environment.episode_return <= instance.features["greatestReturn"]
    assert verify(read_episode(recorder.path)).difference is None
