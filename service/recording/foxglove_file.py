"""Recorded episodes for Foxglove: an mcap file with Foxglove's own message types.

Images, the scene, the agent's frame, rays as a laser scan and events have Foxglove's schemas
(protobuf). Numbers to plot, the decision and the posterior are JSON with a schema.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import numpy as np
from mcap.writer import CompressionType, Writer

from animalcat.arena_configs.model import ARENA_SIDE
from animalcat.arena_configs.tags import LOGGED_TAGS
from animalcat.installing import install
from animalcat.service.recording.about import (
    AGENT_COLOUR,
    action_words,
    asked_for,
    colour_of,
    labels,
    outcome_words,
    who,
)
from animalcat.service.recording.channels import schema_of
from animalcat.service.recording.reader import Recording
from animalcat.service.recording.scene import (
    BODY,
    UPRIGHT,
    Moment,
    Point,
    Quaternion,
    Thing,
    course,
    happened,
    mesh_of,
    moments,
    png,
    ray_ends,
    turned,
)
from animalcat.service.recording.verify import other_motion, stage

SUFFIX: Final = ".foxglove.mcap"
"""Ending of a file; recordings end in `.mcap` too, and are not to be overwritten."""
ARENA: Final = "arena"
AGENT: Final = "agent"
"""Frames of reference: the arena's, and the agent's within it."""
_MESSAGES: Final = {
    "/camera": "CompressedImage",
    "/scene": "SceneUpdate",
    "/tf": "FrameTransform",
    "/rays": "LaserScan",
    "/log": "Log",
}
_NUMBER: Final = {"type": "number"}
_STEP: Final = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("step", "reward", "return", "health", "speed"), _NUMBER),
        "action": {"type": ["integer", "null"], "description": "3 x move + turn"},
        "words": {"type": "string"},
    },
}
_ABOUT: Final = {"type": "object", "additionalProperties": True}
_POSTERIOR: Final = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "properties": {
            **dict.fromkeys(("mean", "sd", "low", "high"), _NUMBER),
            "unit": {"type": "string"},
        },
    },
}
_JSON: Final[Mapping[str, Mapping[str, Any]]] = {
    "/step": _STEP,
    "/about": _ABOUT,
    "/posterior": _POSTERIOR,
}


def foxglove_bytes(
    recording: Recording,
    resolution: int = 84,
    backend: str = "",
    nodes: Mapping[str, Mapping[str, Any]] | None = None,
) -> bytes:
    """Return an episode as an mcap file that Foxglove shows; its time is simulation time.

    Args:
        recording: The episode; a cut one goes as far as it was recorded.
        resolution: Side of the camera's square images in pixels, where they are not recorded.
        backend: What plays it again; empty for the default of `verify.stage`.
        nodes: Nodes of the session's profile, if it is known.

    Raises:
        ImportError: Foxglove's schemas are not installed; the message names the extra.
        ArenaError: The recorded arena cannot be built.
        ValueError: See `moments`.
    """
    file = _File()
    header = recording.header
    anew = other_motion(header, stage(header, backend)) is not None
    about = {
        "who": who(header),
        "outcome": outcome_words(recording),
        "asked for": asked_for(recording),
        "labels": labels(recording, anew),
        "versions": dict(sorted(header.versions.items())),
    }
    file.add_json("/about", 0, about)
    if nodes is not None:
        file.add_json(
            "/posterior",
            0,
            {
                name: {
                    "mean": node["mean"],
                    "sd": node["sd"],
                    "low": node["hdi"][0],
                    "high": node["hdi"][1],
                    "unit": node.get("unit", ""),
                }
                for name, node in nodes.items()
            },
        )
    file.add("/scene", 0, _ground(file, course(recording)))
    for moment in moments(recording, resolution, backend):
        _add_moment(file, moment, header.observation_spec.rays.max_degrees)
    return file.end()


class _File:
    """An mcap file whose channels are Foxglove's messages and JSON."""

    def __init__(self) -> None:
        self._types: dict[str, Any] = {}
        self._channels: dict[str, int] = {}
        try:
            for name in (*_MESSAGES.values(), "SceneEntity"):
                module: Any = import_module(f"foxglove_schemas_protobuf.{name}_pb2")
                self._types[name] = getattr(module, name)
        except ImportError:
            raise ImportError(
                "this needs the package foxglove-schemas-protobuf. Install the extra: "
                + install("foxglove")
            ) from None
        self._buffer = io.BytesIO()
        self._writer = Writer(self._buffer, compression=CompressionType.ZSTD)
        self._writer.start(profile="", library="animalcat")
        for topic, name in _MESSAGES.items():
            full = f"foxglove.{name}"
            schema = self._writer.register_schema(full, "protobuf", schema_of(full))
            self._channels[topic] = self._writer.register_channel(topic, "protobuf", schema)
        for topic, document in _JSON.items():
            data = json.dumps(document).encode()
            schema = self._writer.register_schema(f"animalcat{topic}", "jsonschema", data)
            self._channels[topic] = self._writer.register_channel(topic, "json", schema)

    def make(self, name: str) -> Any:
        """An empty message of a type of Foxglove's."""
        return self._types[name]()

    def add(self, topic: str, nanoseconds: int, message: Any) -> None:
        """Add a message; its own time is set here, where it has one."""
        if "timestamp" in message.DESCRIPTOR.fields_by_name:
            message.timestamp.FromNanoseconds(nanoseconds)
        self._put(topic, nanoseconds, message.SerializeToString(deterministic=True))

    def add_json(self, topic: str, nanoseconds: int, value: Mapping[str, Any]) -> None:
        """Add a message of JSON."""
        self._put(topic, nanoseconds, json.dumps(value).encode())

    def end(self) -> bytes:
        """Return the file."""
        self._writer.finish()
        return self._buffer.getvalue()

    def _put(self, topic: str, nanoseconds: int, data: bytes) -> None:
        self._writer.add_message(self._channels[topic], nanoseconds, data, nanoseconds)


def _add_moment(file: _File, moment: Moment, max_degrees: float) -> None:
    now = round(moment.seconds * 1e9)
    if moment.image is not None:
        image = file.make("CompressedImage")
        image.frame_id, image.format, image.data = AGENT, "png", png(moment.image)
        file.add("/camera", now, image)
    frame = file.make("FrameTransform")
    frame.parent_frame_id, frame.child_frame_id = ARENA, AGENT
    _set_point(frame.translation, moment.place)
    _set_turn(frame.rotation, turned(moment.heading or 0.0))
    file.add("/tf", now, frame)
    if scene := _changes(file, moment, now):
        file.add("/scene", now, scene)
    if moment.rays:
        scan = file.make("LaserScan")
        scan.frame_id = AGENT
        _set_turn(scan.pose.orientation, UPRIGHT)
        # Angles are counted to the left: the first ray is the rightmost one.
        angle = float(np.radians(max_degrees))
        scan.start_angle, scan.end_angle = -angle, angle
        scan.ranges.extend(ray.metres for ray in reversed(moment.rays))
        scan.intensities.extend(
            LOGGED_TAGS.index(ray.tag) if ray.tag else -1 for ray in reversed(moment.rays)
        )
        file.add("/rays", now, scan)
    for words in happened(moment):
        log = file.make("Log")
        log.level, log.name, log.message = 2, "episode", words  # 2: information
        file.add("/log", now, log)
    file.add_json(
        "/step",
        now,
        {
            "step": moment.number,
            "action": moment.action,
            "words": "" if moment.action is None else action_words(moment.action),
            "reward": moment.reward,
            "return": moment.total,
            "health": moment.health,
            "speed": moment.speed,
        },
    )


def _ground(file: _File, path: Any) -> Any:
    """The floor, the agent's path, and its body, which its frame carries."""
    update = file.make("SceneUpdate")
    floor = update.entities.add(frame_id=ARENA, id="floor")
    cube = floor.cubes.add()
    half = ARENA_SIDE / 2
    _set_point(cube.pose.position, (half, half, -0.05))
    _set_turn(cube.pose.orientation, UPRIGHT)
    _set_point(cube.size, (ARENA_SIDE, ARENA_SIDE, 0.1))
    _set_colour(cube.color, (243, 234, 217, 255))
    _add_lines(update.entities.add(frame_id=ARENA, id="course"), path, AGENT_COLOUR, strip=True)
    body = update.entities.add(frame_id=AGENT, id="agent", frame_locked=True)
    ball = body.spheres.add()
    _set_turn(ball.pose.orientation, UPRIGHT)
    _set_point(ball.size, (2 * BODY, 2 * BODY, 2 * BODY))
    _set_colour(ball.color, (*AGENT_COLOUR, 255))
    arrow = body.arrows.add(
        shaft_length=1.1, shaft_diameter=0.2, head_length=0.4, head_diameter=0.4
    )
    _set_turn(arrow.pose.orientation, UPRIGHT)
    _set_colour(arrow.color, (*AGENT_COLOUR, 255))
    return update


def _changes(file: _File, moment: Moment, now: int) -> Any:
    """What of the scene is other than before; None if nothing is."""
    ends = ray_ends(moment)
    if not (moment.changed or moment.gone or ends):
        return None
    update = file.make("SceneUpdate")
    for thing in moment.changed:
        entity = update.entities.add(frame_id=ARENA, id=f"thing {thing.number}")
        entity.timestamp.FromNanoseconds(now)
        entity.metadata.add(key="tag", value=thing.tag or "none")
        _add_shape(entity, thing)
    for number in moment.gone:
        deletion = update.deletions.add(id=f"thing {number}")
        deletion.timestamp.FromNanoseconds(now)
    if ends:
        entity = update.entities.add(frame_id=ARENA, id="rays")
        entity.timestamp.FromNanoseconds(now)
        points = [point for end in ends for point in (moment.place, end)]
        lines = _add_lines(entity, points, AGENT_COLOUR, strip=False)
        for ray in moment.rays:
            for _ in range(2):
                _set_colour(lines.colors.add(), (*colour_of(ray.tag), 255))
    return update


def _add_shape(entity: Any, thing: Thing) -> None:
    size = (2 * thing.half[0], 2 * thing.half[1], 2 * thing.half[2])
    match thing.shape:
        case "box":
            shape = entity.cubes.add()
            _set_point(shape.size, size)
        case "ball":
            shape = entity.spheres.add()
            _set_point(shape.size, size)
        case _:
            shape = entity.triangles.add()
            corners, triangles = mesh_of(thing)
            for corner in corners.tolist():
                _set_point(shape.points.add(), corner)
            shape.indices.extend(triangles.ravel().tolist())
    _set_point(shape.pose.position, thing.centre)
    _set_turn(shape.pose.orientation, thing.turn)
    _set_colour(shape.color, thing.colour)


def _add_lines(entity: Any, points: Any, colour: tuple[int, int, int], *, strip: bool) -> Any:
    line = entity.lines.add(type=0 if strip else 2, thickness=2.0, scale_invariant=True)
    _set_turn(line.pose.orientation, UPRIGHT)
    _set_colour(line.color, (*colour, 255))
    for point in points:
        _set_point(line.points.add(), point)
    return line


def _set_point(message: Any, point: Point | Any) -> None:
    message.x, message.y, message.z = map(float, point)


def _set_turn(message: Any, turn: Quaternion) -> None:
    message.x, message.y, message.z, message.w = turn


def _set_colour(message: Any, colour: tuple[int, int, int, int]) -> None:
    message.r, message.g, message.b, message.a = (part / 255 for part in colour)
