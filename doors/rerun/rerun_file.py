"""Recorded episodes for Rerun's viewer: image, 3-D arena, numbers, rays and posterior."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import numpy as np

from animalcat.arena_configs.model import ARENA_SIDE
from animalcat.doors.rerun.scene import (
    BODY,
    Moment,
    Thing,
    course,
    mesh_of,
    moment_lines,
    moments,
    ray_ends,
    turn_left,
)
from animalcat.extending.installing import install
from animalcat.service.recording.about import (
    AGENT_COLOUR,
    colour_of,
    labels,
    outcome_words,
    png,
    who,
    words_of_demands,
)
from animalcat.service.recording.reader import Recording
from animalcat.service.recording.verify import other_motion, stage

SUFFIX: Final = ".rrd"
_NUMBERS: Final = ("reward", "return", "health", "speed")


def rerun_bytes(
    recording: Recording,
    resolution: int = 84,
    backend: str = "",
    nodes: Mapping[str, Mapping[str, Any]] | None = None,
) -> bytes:
    """Return an episode as a file of Rerun (.rrd), with a layout of its views.

    The timelines are `step` (decisions) and `time` (simulation time).

    Args:
        recording: The episode; a cut one goes as far as it was recorded.
        resolution: Side of the camera's square images in pixels, where they are not recorded.
        backend: What plays it again; empty for the default of `verify.stage`.
        nodes: Nodes of the session's profile, if it is known.

    Raises:
        ImportError: Rerun is not installed; the message names the extra.
        ArenaError: The recorded arena cannot be built.
        ValueError: See `moments`.
    """
    try:
        rr: Any = import_module("rerun")
    except ImportError:
        raise ImportError(
            f"this needs the package rerun-sdk. Install the extra: {install('rerun')}"
        ) from None
    header = recording.header
    stream: Any = rr.RecordingStream("animalcat", recording_id=f"{header.name}-{header.attempt}")
    rr.set_log_time_enabled(False, recording=stream)
    rr.set_log_tick_enabled(False, recording=stream)
    kept = stream.binary_stream()
    stream.send_recording_name(header.name)
    stream.send_blueprint(_blueprint(nodes is not None), make_active=True)
    _log_static(rr, stream, recording, backend, nodes)
    times: list[float] = []
    numbers: list[tuple[float, ...]] = []
    rays: list[list[float]] = []
    degrees: list[float] = []
    for moment in moments(recording, resolution, backend):
        times.append(moment.seconds)
        numbers.append((moment.reward, moment.total, moment.health, moment.speed))
        rays.append([ray.metres for ray in moment.rays])
        degrees = [ray.degrees for ray in moment.rays]
        stream.set_time("step", sequence=moment.number)
        stream.set_time("time", duration=moment.seconds)
        _log_moment(rr, stream, moment)
    indexes = [
        rr.TimeColumn("step", sequence=range(len(times))),
        rr.TimeColumn("time", duration=times),
    ]
    for name, column in zip(_NUMBERS, zip(*numbers, strict=True), strict=True):
        stream.send_columns(
            f"numbers/{name}", indexes=indexes, columns=rr.Scalars.columns(scalars=column)
        )
    if degrees:
        names = [f"{abs(angle):g}° {'left' if angle < 0 else 'right'}" for angle in degrees]
        names[len(names) // 2] = "ahead"
        stream.log("rays/metres", rr.SeriesLines(names=names), static=True)
        columns = rr.Scalars.columns(scalars=np.ravel(rays)).partition([len(row) for row in rays])
        stream.send_columns("rays/metres", indexes=indexes, columns=columns)
    content: bytes = kept.read(flush=True)
    return content


def _blueprint(posterior: bool) -> Any:
    """Which views there are, and where: what the agent saw, the arena, and numbers over time."""
    views: Any = import_module("rerun.blueprint")
    texts = [views.TextDocumentView(origin="about", name="episode")]
    if posterior:
        texts.append(views.TextDocumentView(origin="posterior/table", name="posterior"))
    return views.Blueprint(
        views.Horizontal(
            views.Vertical(
                views.Spatial2DView(origin="camera", name="what the agent saw"),
                views.Tabs(*texts),
                row_shares=[3, 2],
            ),
            views.Spatial3DView(origin="arena", name="arena"),
            views.Vertical(
                views.TimeSeriesView(name="reward", contents=["numbers/reward", "numbers/return"]),
                views.TimeSeriesView(origin="numbers/health", name="health"),
                views.TimeSeriesView(origin="rays/metres", name="rays, metres"),
                views.TextLogView(origin="log", name="what happened"),
            ),
            column_shares=[2, 4, 2],
        ),
        views.TimePanel(state="collapsed", timeline="time"),
        collapse_panels=True,
    )


def _log_static(
    rr: Any,
    stream: Any,
    recording: Recording,
    backend: str,
    nodes: Mapping[str, Mapping[str, Any]] | None,
) -> None:
    """Log what does not change: words, the floor, the agent's path and the posterior."""
    header = recording.header
    anew = other_motion(header, stage(header, backend)) is not None
    lines = [who(header), outcome_words(recording), words_of_demands(recording)]
    lines += [f"**{label}**" for label in labels(recording, anew)]
    lines += [f"{name} {version}" for name, version in sorted(header.versions.items())]
    about = "\n\n".join(" ".join(line.split()) for line in lines if line)
    stream.log("about", rr.TextDocument(about, media_type="text/markdown"), static=True)
    stream.log("arena", rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
    half = ARENA_SIDE / 2
    floor = rr.Boxes3D(
        centers=[[half, half, -0.05]],
        half_sizes=[[half, half, 0.05]],
        colors=[[243, 234, 217]],
        fill_mode="solid",
    )
    stream.log("arena/floor", floor, static=True)
    path = rr.LineStrips3D([course(recording)], colors=[[*AGENT_COLOUR, 120]], radii=0.05)
    stream.log("arena/course", path, static=True)
    body = rr.Ellipsoids3D(
        half_sizes=[[BODY, BODY, BODY]], colors=[AGENT_COLOUR], fill_mode="solid"
    )
    stream.log("arena/agent/body", body, static=True)
    ahead = rr.Arrows3D(vectors=[[1.5, 0, 0]], colors=[AGENT_COLOUR], radii=0.12)
    stream.log("arena/agent/heading", ahead, static=True)
    for name in _NUMBERS:
        stream.log(f"numbers/{name}", rr.SeriesLines(names=name), static=True)
    if nodes is None:
        return
    rows = [
        ("node", "mean", "sd", "90 % interval", "unit"),
        ("---",) * 5,
        *posterior_table(nodes),
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    stream.log("posterior/table", rr.TextDocument(table, media_type="text/markdown"), static=True)
    values = {
        "node": list(nodes),
        "mean": [float(node["mean"]) for node in nodes.values()],
        "sd": [float(node["sd"]) for node in nodes.values()],
        "low": [float(node["hdi"][0]) for node in nodes.values()],
        "high": [float(node["hdi"][1]) for node in nodes.values()],
    }
    stream.log("posterior/values", rr.AnyValues(**values), static=True)


def _log_moment(rr: Any, stream: Any, moment: Moment) -> None:
    """Log what changes from step to step, except for the numbers."""
    if moment.image is not None:
        image = rr.EncodedImage(contents=png(moment.image), media_type="image/png")
        stream.log("camera", image)
    for thing in moment.changed:
        stream.log(f"arena/things/{thing.number}", _draw_thing(rr, thing))
        place = rr.Transform3D(translation=thing.centre, quaternion=thing.turn)
        stream.log(f"arena/things/{thing.number}", place)
    for number in moment.gone:
        stream.log(f"arena/things/{number}", rr.Clear(recursive=False))
    turn = turn_left(moment.heading or 0.0)
    stream.log("arena/agent", rr.Transform3D(translation=moment.place, quaternion=turn))
    if ends := ray_ends(moment):
        strips = [[moment.place, end] for end in ends]
        colours = [colour_of(ray.tag) for ray in moment.rays]
        stream.log("arena/rays", rr.LineStrips3D(strips, colors=colours, radii=0.03))
    for words in moment_lines(moment):
        stream.log("log", rr.TextLog(words))


def _draw_thing(rr: Any, thing: Thing) -> Any:
    match thing.shape:
        case "box":
            return rr.Boxes3D(
                half_sizes=[thing.half],
                colors=[thing.colour],
                fill_mode="solid",
                labels=[thing.tag],
                show_labels=False,
            )
        case "ball":
            return rr.Ellipsoids3D(
                half_sizes=[thing.half],
                colors=[thing.colour],
                fill_mode="solid",
                labels=[thing.tag],
                show_labels=False,
            )
        case _:
            corners, triangles = mesh_of(thing)
            return rr.Mesh3D(
                vertex_positions=corners, triangle_indices=triangles, albedo_factor=thing.colour
            )


def posterior_table(nodes: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Rows of name, mean, standard deviation, interval and unit of a profile's nodes."""
    rows: list[tuple[str, ...]] = []
    for name, node in nodes.items():
        low, high = node["hdi"]
        numbers = (f"{node['mean']:.3g}", f"{node['sd']:.2g}", f"{low:.3g} to {high:.3g}")
        rows.append((name, *numbers, str(node.get("unit", ""))))
    return rows
