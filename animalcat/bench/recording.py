"""What recording costs, and how fast recordings are verified and drawn.

Times are CPU times of this process, so that what else the machine does matters little.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from animalcat.arena_configs.writer import to_yaml
from animalcat.bench.simulator import PERIOD, RAYS, arena
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import ACTIONS, PHYSICS_STEP
from animalcat.service.recording import EpisodeRecorder, Recording, read_episode, verify
from animalcat.service.recording.film import film
from animalcat.service.recording.verify import load_arena
from animalcat.service.recording.video import write_video
from animalcat.service.versions import versions
from animalcat.v1 import results_pb2, types_pb2
from animalcat.wire import spec_to_proto

STEPS: Final = 2000
"""Decisions of the episode."""
REPEATS: Final = 5
"""Runs of which the median is taken."""
EPISODES: Final = 25
"""Episodes with and as many without a recording; they are short, and what is sought is small."""
LIVE: Final = 60.0
"""Steps a second at which a person would watch the episode live."""
SEED: Final = 7


def run(quick: bool) -> list[Mapping[str, Any]]:
    """Measure.

    Args:
        quick: Two runs of each, for a first impression.
    """
    repeats = min(2, REPEATS) if quick else REPEATS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "0-0.mcap"
        _played(path)  # what compiles is compiled
        bare: list[float] = []
        playing: list[float] = []
        whole: list[float] = []
        for _ in range(5 if quick else EPISODES):  # in turns, so that both meet the same noise
            bare.append(_played(None)[0])
            played, finished = _played(path)
            playing.append(played)
            whole.append(played + finished)
        recording = read_episode(path)
        video = Path(folder) / "0-0.mp4"
        rate = 1.0 / (PERIOD * PHYSICS_STEP)
        return [
            _cost("simulator with rays, recorded while it plays", bare, playing),
            _cost("the same, with the file's compression", bare, whole),
            {
                "name": "a decision's bytes in the file",
                "median": path.stat().st_size / len(recording.steps),
                "unit": "bytes",
            },
            _speed("verified", ">= 20", 20.0, repeats, lambda: verify(recording)),
            _speed("drawn, 84x84 beside the map", "", 0.0, repeats, lambda: _drawn(recording)),
            _speed(
                "drawn, and written as MP4",
                ">= 5",
                5.0,
                repeats,
                lambda: write_video(video, film(recording), rate),
            ),
        ]


def _cost(name: str, bare: list[float], recorded: list[float]) -> dict[str, Any]:
    """What is left of the speed, from the seconds of each episode."""
    ratio = statistics.median(a / b for a, b in zip(bare, recorded, strict=True))
    return {
        "name": name,
        "median": STEPS / statistics.median(recorded),
        "unit": "decisions/s",
        "baseline": STEPS / statistics.median(bare),
        "ratio": ratio,
        "target": ">= 0.9",
        "met": ratio >= 0.9,
    }


def _speed(
    name: str, target: str, least: float, repeats: int, work: Callable[[], object]
) -> dict[str, Any]:
    """How many times as fast as live something is done with the whole episode."""
    work()  # what compiles is compiled
    spent: list[float] = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    ratio = STEPS / LIVE / statistics.median(spent)
    row: dict[str, Any] = {
        "name": name,
        "median": statistics.median(spent),
        "unit": "s",
        "baseline": STEPS / LIVE,
        "ratio": ratio,
    }
    return row if not target else {**row, "target": target, "met": ratio >= least}


def _drawn(recording: Recording) -> int:
    return sum(1 for _ in film(recording))


def _played(path: Path | None) -> tuple[float, float]:
    """Seconds of CPU that an episode takes, recorded or not, and those of finishing its file."""
    header = results_pb2.EpisodeHeader(
        name="sessions/bench/episodes/0-0",
        instance="ring",
        arena_yaml=to_yaml(arena()),
        seed=SEED,
        observation_spec=spec_to_proto(RAYS),
        backend="sim",
        versions=versions(),
        agent="bench",
    )
    rng = np.random.default_rng(SEED)
    actions = np.repeat(rng.integers(ACTIONS, size=STEPS // 10 + 1), 10)[:STEPS].tolist()
    environment = SimEnvironment(RAYS)
    step = environment.load(load_arena(header), SEED)
    recorder = None if path is None else EpisodeRecorder(path, header)
    if recorder is not None:
        recorder.step(step, None)
    began = time.process_time()
    for action in actions:
        step = environment.step(action)
        if recorder is not None:
            recorder.step(step, action)
    played = time.process_time()
    if recorder is not None:
        recorder.finish(types_pb2.OUTCOME_FAILURE)
    finished = time.process_time()
    environment.close()
    return played - began, finished - played
