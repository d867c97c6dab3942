"""How like the real build's camera ours is: frames of one object each, side by side."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from PIL import Image

from animalcat.arena_configs.catalogue import KINDS
from animalcat.arena_configs.model import RGB, Arena, Item
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import CameraSpec, ObservationSpec
from tests.small import start, thing

if TYPE_CHECKING:
    from pathlib import Path

Frame = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

RESOLUTION: Final = 512
COLORS: Final = {"Wall_colors": RGB(r=137, g=207, b=240)}
"""Colours that the frames' arenas give; what they leave open was drawn by the real build."""
WANTED: Final = 0.9
"""Least intersection over union of silhouettes that is asked for."""

_VISIBLE: Final = 6
"""Codes by which a channel must differ from the empty arena's where the object is."""
_SEEN: Final = 4
"""Frames, at least, in which the background of a pixel must be seen for their median to show it."""
_MARGIN: Final = 3
"""Pixels round our object in which the real one may be."""
_HORIZON: Final = (10, 150, 350, 500)
_REGIONS: Final = {
    "sky": (slice(0, 160), slice(None)),
    "fence": (slice(225, 258), slice(None)),
    "floor": (slice(263, None), slice(None)),
}


@dataclass(frozen=True, slots=True)
class CameraRow:
    """One frame compared.

    Attributes:
        name: The frame's.
        iou: Intersection over union of the object's silhouettes.
        horizon: Rows by which the foot of the fence is off, at worst.
        sky, fence, floor: Greatest difference of a channel's mean, in codes of 255.
        object: The same where both frames show the object; None if the real build drew its
            colour at random.
        mean: Mean difference of the whole frames, in codes of 255.
    """

    name: str
    iou: float
    horizon: int
    sky: float
    fence: float
    floor: float
    object: float | None
    mean: float


def compare(data_dir: Path) -> list[CameraRow]:
    """Compare every frame of `unity-camera` with ours.

    Args:
        data_dir: The folder of data, see `ANIMALCAT_DATA`.
    """
    files = sorted((data_dir / "unity-camera").glob("*.png"))
    names = [path.stem for path in files]
    real, ours = (
        np.stack([_read(path) for path in files]),
        np.stack([simulate_frame(n) for n in names]),
    )
    empty = _see(())
    drawn = _differs(ours, empty)
    shown = _differs(real, _empty_arena(real, drawn, empty))
    return [_row(*row) for row in zip(names, real, ours, shown, drawn, strict=True)]


def simulate_frame(name: str) -> Frame:
    """Our frame of the object that a real frame is named after."""
    item = thing(name.split("_", maxsplit=1)[0], 20, 0, 20, yaw=0, size=(1, 1, 1))
    color = COLORS.get(name)
    return _see((item if color is None else item.model_copy(update={"colors": (color,)}),))


def _see(items: tuple[Item, ...]) -> Frame:
    environment = SimEnvironment(ObservationSpec(CameraSpec(RESOLUTION), rays=None))
    environment.load(Arena(time_limit=5, items=(start(30, 20, yaw=270), *items)), 0)
    camera = environment.step(0).observation.camera
    assert camera is not None
    return camera.astype(np.int64)


def _read(path: Path) -> Frame:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"), np.int64)


def _empty_arena(frames: Frame, drawn: Mask, ours: Frame) -> Frame:
    """What the real frames show behind their objects.

    No frame shows the empty arena, but few pixels are covered in nearly all of them: the median of
    those where our own object is not near. The few others are as the pixel in their row or column
    that is most like them in our own empty arena.
    """
    near = drawn.copy()
    for axis in (1, 2):
        for shift in range(-_MARGIN, _MARGIN + 1):
            near |= np.roll(drawn, shift, axis=axis)
    seen = np.where(near[..., None], np.nan, frames)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a pixel that is covered in all
        empty = np.nanmedian(seen, axis=0)
    free = (~near).sum(axis=0) >= _SEEN
    known = empty.copy()
    for row, column in zip(*np.nonzero(~free), strict=True):
        rows, columns = np.flatnonzero(free[:, column]), np.flatnonzero(free[row])
        others = np.concatenate([ours[rows, column], ours[row, columns]])
        away = np.concatenate([np.abs(rows - row), np.abs(columns - column)])
        best = (np.abs(others - ours[row, column]).max(axis=-1) + away / RESOLUTION).argmin()
        values = np.concatenate([known[rows, column], known[row, columns]])
        empty[row, column] = values[best]
    return empty.astype(np.int64)


def _differs(frames: Frame, empty: Frame) -> Mask:
    return np.abs(frames - empty).max(axis=-1) > _VISIBLE


def _row(name: str, theirs: Frame, ours: Frame, a: Mask, b: Mask) -> CameraRow:
    kind = KINDS[name.split("_", maxsplit=1)[0]]
    known = kind.color_rule != "random" or name in COLORS
    return CameraRow(
        name,
        float(np.sum(a & b) / max(np.sum(a | b), 1)),
        max(abs(x - y) for x, y in zip(_foot(theirs), _foot(ours), strict=True)),
        *(_off(theirs, ours, _only(part) & ~(a | b)) for part in _REGIONS.values()),
        object=_off(theirs, ours, a & b) if known else None,
        mean=float(np.abs(theirs - ours).mean()),
    )


def _only(part: tuple[slice, slice]) -> Mask:
    mask = np.zeros((RESOLUTION, RESOLUTION), np.bool_)
    mask[part] = True
    return mask


def _off(theirs: Frame, ours: Frame, mask: Mask) -> float:
    if not mask.any():
        return float("inf")
    return float(np.abs(theirs[mask].mean(axis=0) - ours[mask].mean(axis=0)).max())


def _foot(frame: Frame) -> list[int]:
    """Rows where the floor begins: brown, where sky and fence are blue."""
    return [int(np.argmax(frame[240:, column, 0] > frame[240:, column, 2])) for column in _HORIZON]
