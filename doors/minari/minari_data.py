"""Recorded episodes as a Minari dataset, which `minari.load_dataset` opens.

Images are kept losslessly. Those that a recording holds only as digests are drawn again.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from animalcat.envs.register import ARENA_ID
from animalcat.envs.spaces import (
    GymObservation,
    action_space,
    choose_sensors,
    observation_space,
    to_gym,
)
from animalcat.envs.types import EndedBy, Observation, ObservationSpec
from animalcat.extending.installing import install
from animalcat.machine.marks import mark
from animalcat.service.recording.reader import Recording, RecordingError
from animalcat.service.recording.verify import other_looks, replay_episode
from animalcat.v1 import types_pb2
from animalcat.wire.steps import ended_by_from_proto, observation_from_proto, spec_from_proto

_ROOT: Final = "MINARI_DATASETS_PATH"


def save_minari(recordings: Sequence[Recording], dataset: str, folder: Path) -> Path:
    """Write episodes as a Minari dataset, either completely or not at all.

    Observations are those of `animalcat/Arena-v0` with all sensors that the session had, and
    actions are flat, 3 x move + turn. The time limit truncates an episode; what else ends it
    terminates it. The environment that Minari recovers plays their arenas on the simulator.

    Args:
        recordings: Episodes that were observed by the same specification, complete or cut.
        dataset: Id of the dataset, such as "animalcat/mine-v0".
        folder: The folder of datasets; `MINARI_DATASETS_PATH` names it to Minari.

    Returns:
        The folder of the dataset.

    Raises:
        RecordingError: There is no step; specifications differ; an image could only be drawn
            otherwise than the agent saw it; or the dataset is there already.
        ImportError: Minari is not installed; the message names the extra.
        ValueError: The id of the dataset is no such id.
        OSError: It cannot be written.
    """
    try:
        minari: Any = import_module("minari")
        episode_buffer: Any = import_module("minari.data_collector.episode_buffer").EpisodeBuffer
    except ImportError:
        raise ImportError(
            f"this needs the package minari. Install the extra: {install('minari')}"
        ) from None
    kept = [recording for recording in recordings if len(recording.steps) > 1]
    if not kept:
        raise RecordingError("no step is recorded, so there is nothing to export")
    spec = spec_from_proto(kept[0].header.observation_spec)
    if any(spec_from_proto(recording.header.observation_spec) != spec for recording in kept):
        raise RecordingError("these episodes were observed in different ways; export them apart")
    if (folder / dataset).exists():
        raise RecordingError(
            f"{folder / dataset}: there is a dataset already; choose another --name"
        )
    sensors = choose_sensors(spec)
    buffers: list[Any] = []
    for number, recording in enumerate(kept):
        observed = [to_gym(observation, sensors) for observation in _observations(recording, spec)]
        steps = recording.steps[1:]
        ends = [ended_by_from_proto(step.ended_by) for step in steps]
        truncated = [end is EndedBy.TIME_LIMIT for end in ends]
        if not any(ends):
            truncated[-1] = True  # cut short, which Minari knows as truncated
        buffers.append(
            episode_buffer(
                id=number,
                seed=recording.header.seed % 2**63,
                options=_about(recording),
                observations=_stack(observed),
                actions=[np.int64(step.action) for step in steps],
                rewards=[float(step.reward) for step in steps],
                terminations=[
                    end is not None and not cut for end, cut in zip(ends, truncated, strict=True)
                ],
                truncations=truncated,
            )
        )
    folder.mkdir(parents=True, exist_ok=True)
    mark(folder)
    environment = _environment(kept, spec)
    # Of a relative folder Minari looks for its files below that folder once more.
    with tempfile.TemporaryDirectory(prefix=".animalcat-", dir=folder.resolve()) as beside:
        with _datasets_in(Path(beside)):
            minari.create_dataset_from_buffers(
                dataset,
                buffers,
                env=environment,
                eval_env=environment,
                observation_space=observation_space(spec, sensors),
                action_space=action_space(flat=True),
                algorithm_name=kept[0].header.agent or "agent",
                author="animalcat",
                author_email="animalcat@localhost",
                code_permalink="none",
                description=_description(kept),
                data_format="hdf5",
                jpeg_encoding=False,
            )
        target = folder / dataset
        target.parent.mkdir(parents=True, exist_ok=True)
        (Path(beside) / dataset).replace(target)
    return target


def minari_folder() -> Path:
    """Return the folder in which Minari looks for datasets."""
    return Path(os.environ.get(_ROOT) or Path.home() / ".minari" / "datasets")


def _environment(recordings: Sequence[Recording], spec: ObservationSpec) -> EnvSpec:
    """The environment that plays the arenas of episodes, each once in the order of the episodes.

    It is the simulator also where a Unity build played: the path of a build is of one machine.
    """
    arenas = list(dict.fromkeys(recording.header.arena_yaml for recording in recordings))
    arguments: dict[str, Any] = {"rays": False}
    if spec.camera is not None:
        arguments |= {
            "camera": True,
            "resolution": spec.camera.resolution,
            "grayscale": spec.camera.grayscale,
        }
    if spec.rays is not None:
        arguments |= {
            "rays": True,
            "rays_per_side": spec.rays.per_side,
            "ray_max_degrees": spec.rays.max_degrees,
            "ray_tags": spec.rays.tags,
        }
    arguments |= {
        "arena": arenas,
        "decision_period": spec.decision_period,
        "flat_actions": True,
        "keep_unpassable": True,
    }
    known = gymnasium.spec(ARENA_ID)
    return EnvSpec(ARENA_ID, entry_point=known.entry_point, kwargs=arguments)


def _observations(recording: Recording, spec: ObservationSpec) -> Iterator[Observation]:
    """What the agent perceived, from the first observation on."""
    if spec.camera is None or recording.header.pixels:
        for step in recording.steps:
            yield observation_from_proto(step.observation, spec)
        return
    if why := other_looks(recording.header):
        raise RecordingError(
            f"{recording.header.name}: its images are not recorded and cannot be drawn as they "
            f"were: {why}. Record with `session run --record-pixels`"
        )
    for step in replay_episode(recording):
        yield step.observation


def _stack(observed: Sequence[GymObservation]) -> Any:
    """Observations of an episode as Minari wants them: a list, or a dict of lists."""
    first = observed[0]
    if not isinstance(first, dict):
        return list(observed)
    return {
        name: [observation[name] for observation in observed if isinstance(observation, dict)]
        for name in first
    }


def _about(recording: Recording) -> dict[str, Any]:
    """What is to be known of an episode, as text, which any reader of HDF5 shows."""
    header, footer = recording.header, recording.footer
    outcome = types_pb2.Outcome.Name(footer.outcome) if footer is not None else "cut short"
    return {
        "name": header.name,
        "instance": header.instance,
        "outcome": outcome.removeprefix("OUTCOME_").lower(),
        "backend": header.backend,
        "versions": json.dumps(dict(header.versions), sort_keys=True),
        "arena": header.arena_yaml,
    }


def _description(recordings: Sequence[Recording]) -> str:
    header = recordings[0].header
    build = header.versions.get("unity-build", "")
    played = f"{header.backend}{f' ({build})' if build else ''}"
    return (
        f"{len(recordings)} Animal-AI episodes of {header.agent or 'an agent'}, played on {played} "
        f"by animalcat {header.versions.get('animalcat', '?')}. Actions are 3 x move + turn."
    )


@contextmanager
def _datasets_in(folder: Path) -> Generator[None]:
    """Let Minari write to a folder; it takes it from the environment alone."""
    before = os.environ.get(_ROOT)
    os.environ[_ROOT] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_ROOT]
        else:
            os.environ[_ROOT] = before
