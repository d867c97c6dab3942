"""`python -m tests.service.recorded` plays the recording that tests read anew, and records it.

That is due when the wire, the recordings' form or the simulator's rules have changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from google.protobuf import json_format

from animalcat.envs.backends import make_environment
from animalcat.envs.replay import replay
from animalcat.service.recording.verify import load_arena
from animalcat.service.recording.writer import EpisodeRecorder
from animalcat.service.versions import versions
from animalcat.v1 import results_pb2, types_pb2
from animalcat.wire.steps import spec_from_proto

FOLDER: Final = Path(__file__).parent / "fixtures" / "recordings"
RECORDING: Final = FOLDER / "made-0-0.mcap"
"""An episode on an arena that was made on demand; its header stands beside it, as JSON."""
ACTIONS: Final = (4, 3, 3)


def main() -> None:
    """Play the episode and record it."""
    header = results_pb2.EpisodeHeader(versions=versions())
    json_format.Parse(RECORDING.with_suffix(".json").read_text("utf-8"), header)
    environment = make_environment(header.backend, spec_from_proto(header.observation_spec))
    RECORDING.unlink(missing_ok=True)
    recorder = EpisodeRecorder(RECORDING, header)
    steps = replay(environment, load_arena(header), header.seed, bytes(ACTIONS))
    for number, step in enumerate(steps):
        recorder.step(step, ACTIONS[number - 1] if number else None)
    environment.close()
    recorder.finish(types_pb2.OUTCOME_SUCCESS)


if __name__ == "__main__":
    main()
