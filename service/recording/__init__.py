"""Recordings of episodes: one mcap file per attempt, written during play, read and verified.

`writer` and `reader` share the form of the file (`channels`) and its check sums (`sums`). `verify`
plays a recorded episode again.
"""

from animalcat.service.recording.reader import Recording, RecordingError, read_episode
from animalcat.service.recording.verify import (
    Comparison,
    FirstDifference,
    Verification,
    camera_images,
    other_motion,
    stage,
    verify,
)
from animalcat.service.recording.writer import EpisodeRecorder, compact

__all__ = [
    "Comparison",
    "EpisodeRecorder",
    "FirstDifference",
    "Recording",
    "RecordingError",
    "Verification",
    "camera_images",
    "compact",
    "other_motion",
    "read_episode",
    "stage",
    "verify",
]
