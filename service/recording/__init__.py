"""Recordings of episodes: one mcap file each, written while it plays, read, and verified."""

from animalcat.service.recording.reader import Recording, RecordingError, read_episode
from animalcat.service.recording.writer import EpisodeRecorder, camera_digest, recorded_step

__all__ = [
    "EpisodeRecorder",
    "Recording",
    "RecordingError",
    "camera_digest",
    "read_episode",
    "recorded_step",
]
