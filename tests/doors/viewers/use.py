"""Writes files by animalcat and reads them back by the libraries they are for; prints JSON.

It runs in the environment of `make env-viewers`, which has these libraries:
`python use.py RECORDING SESSION_JSON FOLDER`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import animalcat  # noqa: F401 - makes the environment known to Gymnasium
from animalcat.doors.inspect.session_log import inspect_log
from animalcat.doors.rerun.rerun_file import rerun_bytes
from animalcat.service.recording.reader import read_episode
from animalcat.v1 import sessions_pb2
from animalcat.values import Session
from animalcat.wire.codec import decode

NODES = {"sight": {"mean": 1.0, "sd": 0.5, "hdi": [0.2, 1.8], "unit": "m"}}


def rerun(recording: Path, folder: Path) -> dict[str, Any]:
    """What Rerun's reader finds in an exported episode."""
    from rerun.chunk import RrdReader

    path = folder / "episode.rrd"
    path.write_bytes(rerun_bytes(read_episode(recording), 32, nodes=NODES))
    reader = RrdReader(path)
    found: dict[str, dict[str, list[Any]]] = {}
    for chunk in reader.stream():
        columns = chunk.to_record_batch().to_pydict()
        entity = found.setdefault(chunk.entity_path, {})
        for name, values in columns.items():
            entity.setdefault(name, []).extend(values)
    things = {name: entity for name, entity in found.items() if name.startswith("/arena/things/")}
    return {
        "recordings": [one.recording_id for one in reader.recordings()],
        "blueprints": len(reader.blueprints()),
        "entities": sorted(found),
        "steps": found["/numbers/reward"]["step"],
        "seconds": [one.total_seconds() for one in found["/numbers/reward"]["time"]],
        "reward": [one[0] for one in found["/numbers/reward"]["Scalars:scalars"]],
        "health": [one[0] for one in found["/numbers/health"]["Scalars:scalars"]],
        "rays": [len(one) for one in found["/rays/metres"]["Scalars:scalars"]],
        "images": len(found["/camera"]["EncodedImage:blob"]),
        "agent": [one[0] for one in found["/arena/agent"]["Transform3D:translation"]],
        "shapes": sorted({column.split(":")[0] for one in things.values() for column in one}),
        "log": [one[0] for one in found["/log"]["TextLog:text"]],
        "table": found["/posterior/table"]["TextDocument:text"][0][0],
    }


def video(folder: Path) -> dict[str, Any]:
    """A video by Gymnasium's own wrapper, and a window, at the same environment."""
    import pygame
    from moviepy import VideoFileClip

    env = gymnasium.make("animalcat/Arena-v0", render_mode="rgb_array", decision_period=10)
    recorded = gymnasium.wrappers.RecordVideo(env, str(folder / "video"))
    recorded.reset(seed=1)
    for _ in range(6):
        recorded.step(np.array([1, 0]))
    recorded.close()
    (path,) = (folder / "video").glob("*.mp4")
    with VideoFileClip(str(path)) as clip:
        told = {"size": list(clip.size), "fps": clip.fps, "frames": clip.n_frames}
    window = gymnasium.make("animalcat/Arena-v0", render_mode="human", decision_period=1)
    window.reset(seed=1)
    window.step(np.array([1, 0]))
    screen = pygame.display.get_surface()
    assert screen is not None
    told["window"] = list(screen.get_size())
    window.close()
    return told


def inspect(session: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What inspect_ai reads in a session's log."""
    from inspect_ai.log import list_eval_logs, read_eval_log

    told: dict[str, Any] = {}
    made = decode(Session, sessions_pb2.Session.FromString(bytes.fromhex(session["proto"])))
    for form in ("eval", "json"):
        content = inspect_log(
            made,
            session["profile"],
            session["outcomes"].encode(),
            {"0-0": ["step 2: a goal!"]},
            {"0-0": 1.5},
            form,
        )
        path = folder / "logs" / f"ü session.{form}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        log = read_eval_log(str(path))
        told[form] = log.model_dump(mode="json", exclude={"eval": {"metadata"}})
        told[form]["profile"] = (log.eval.metadata or {})["animalcat_profile"]
    told["listed"] = len(list_eval_logs(str(folder / "logs")))
    return told


if __name__ == "__main__":
    target = Path(sys.argv[3])
    print(
        json.dumps(
            {
                "rerun": rerun(Path(sys.argv[1]), target),
                "video": video(target),
                "inspect": inspect(json.loads(Path(sys.argv[2]).read_text()), target),
            }
        )
    )
