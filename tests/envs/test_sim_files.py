"""Every arena file of the two real sets builds and plays."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from animalcat.arena_configs.loader import load_config
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.testing import check_observation, play
from animalcat.envs.types import ACTIONS, ObservationSpec

pytestmark = pytest.mark.data

SETS = ("animal-ai-competition", "o-piaagets")


def play_all(files: list[Path], decisions: int) -> Counter[tuple[str, str]]:
    """Play random actions in every arena of every file; what was skipped, and how often."""
    environment = SimEnvironment(ObservationSpec())
    actions = np.random.default_rng(0).integers(ACTIONS, size=decisions).tolist()
    skipped: Counter[tuple[str, str]] = Counter()
    for file in files:
        for arena in load_config(file).config.arenas.values():
            for step in play(environment, arena, 0, actions):
                check_observation(step.observation, environment.spec)
                assert np.abs(step.observation.position).max() < 60, file.name
            skipped.update(environment.skipped)
    return skipped


def arena_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.y*ml"))


@pytest.mark.parametrize("name", SETS)
def test_a_sample_of_the_real_files_plays(data_dir: Path, name: str) -> None:
    files = arena_files(data_dir / name)
    assert len(files) > 300
    play_all(files[:: len(files) // 25], decisions=60)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_every_real_file_plays(
    data_dir: Path, name: str, record_property: pytest.RecordProperty
) -> None:
    files = arena_files(data_dir / name)
    skipped = play_all(files, decisions=30)
    record_property("files", len(files))
    record_property("objects skipped", sum(skipped.values()))
    for (thing, reason), times in skipped.most_common():
        print(f"{times:6} {thing}: {reason}")
    assert {"Agent"}.isdisjoint(thing for thing, _ in skipped)
