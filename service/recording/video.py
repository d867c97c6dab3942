"""Writes pictures as a video: MP4 by PyAV, which the extra `video` brings, or GIF by Pillow."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import GifImagePlugin, Image

from animalcat.extending.installing import install
from animalcat.machine.files import whole_file
from animalcat.service.recording.pixels import to_yuv420

Pixels: TypeAlias = npt.NDArray[np.uint8]

FORMATS: Final = (".mp4", ".gif")
"""Endings of the files that can be written."""
_GIF_RATE: Final = 20.0
"""Most pictures a second of a GIF; viewers slow down what has more."""
_COLOURS: Final = 128
"""Colours of each picture of a GIF."""
_UNCHANGED: Final = _COLOURS
"""Place in the palette that stands for what the picture before shows there."""
_ENDLESS: Final = b"!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
"""Lets a GIF begin again when it is over."""


class VideoError(ValueError):
    """A video cannot be written here; the message says what to do."""


def check_video(path: Path) -> None:
    """Refuse a video that cannot be written, before anything is drawn.

    Raises:
        VideoError: The ending is unknown, or a package is missing.
    """
    if path.suffix.lower() not in FORMATS:
        raise VideoError(f"{path}: call it .mp4 or .gif, which says the form")
    if path.suffix.lower() == ".mp4":
        try:
            import av  # noqa: F401  # pyright: ignore[reportUnusedImport]
        except ImportError:
            raise VideoError(
                f"{path}: MP4 needs the package av. Install the extra: "
                f"{install('video')}; or write a .gif, which needs nothing more"
            ) from None


def write_video(path: Path, frames: Iterable[Pixels], rate: float) -> None:
    """Write a video, either completely or not at all; few pictures are held at a time.

    Args:
        path: Where to; its ending says which form, `.mp4` (H.264) or `.gif`.
        frames: Pictures, uint8 (height, width, 3), all of one size, with even sides.
        rate: Pictures a second. A GIF leaves out pictures where there are more than 20.

    Raises:
        VideoError: See `check_video`.
        OSError: It cannot be written.
    """
    check_video(path)
    write = _gif if path.suffix.lower() == ".gif" else _mp4
    with whole_file(path) as file:
        write(file, frames, rate)


def _mp4(sink: BinaryIO, frames: Iterable[Pixels], rate: float) -> None:
    import av

    container: Any = av.open(sink, "w", format="mp4")
    with container as file:
        stream: Any = None
        planes = np.empty(0, np.uint8)
        for pixels in frames:
            if stream is None:
                exact = Fraction(rate).limit_denominator(1000)
                # Half the time of "veryfast"; a fixed quantiser spares rate control.
                options = {"preset": "ultrafast", "qp": "23"}
                stream = file.add_stream("libx264", rate=exact, options=options)
                stream.height, stream.width = pixels.shape[:2]
                stream.pix_fmt = "yuv420p"  # the one that every player shows
                stream.codec_context.thread_count = 1
                planes = np.empty(pixels.shape[0] * pixels.shape[1] * 3 // 2, np.uint8)
            to_yuv420(pixels, planes)
            frame: Any = av.VideoFrame.from_ndarray(
                planes.reshape(-1, pixels.shape[1]), format="yuv420p"
            )
            file.mux(stream.encode(frame))
        if stream is not None:
            file.mux(stream.encode())


def _gif(sink: BinaryIO, frames: Iterable[Pixels], rate: float) -> None:
    """Write a GIF picture by picture: Pillow's own writer holds all of them until the end.

    Each picture is what changed since the one before, in a palette of its own.
    """
    every = max(1, round(rate / _GIF_RATE))
    duration = round(1000 * every / rate)
    before: npt.NDArray[np.uint32] | None = None
    held: _Patch | None = None
    for pixels in islice(frames, 0, None, every):
        picture = Image.fromarray(pixels).quantize(_COLOURS, Image.Quantize.FASTOCTREE)
        shown = np.asarray(picture.convert("RGBA")).view(np.uint32)[..., 0]
        if before is None:
            height, width = shown.shape
            sink.write(b"GIF89a" + struct.pack("<HHBBB", width, height, 0, 0, 0) + _ENDLESS)
            changed = np.ones((height, width), np.bool_)
        else:
            changed = shown != before
        before = shown
        if held is not None and not changed.any():  # it is shown for longer
            held = held._replace(duration=held.duration + duration)
            continue
        if held is not None:
            _write_patch(sink, held)
        rows, columns = (np.flatnonzero(changed.any(axis=axis)) for axis in (1, 0))
        at = (slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1))
        index = np.where(changed[at], np.asarray(picture)[at], _UNCHANGED)
        patch = Image.fromarray(index.astype(np.uint8), "P")
        palette = (picture.getpalette() or [])[: 3 * _COLOURS]
        patch.putpalette([*palette, *[0] * (3 * (_UNCHANGED + 1) - len(palette))])
        held = _Patch(patch, (int(columns[0]), int(rows[0])), duration)
    if held is not None:
        _write_patch(sink, held)
        sink.write(b";")


class _Patch(NamedTuple):
    """The part of a picture that differs from the one before.

    Attributes:
        image: The part.
        corner: Where its left upper corner is.
        duration: How long it is shown, in milliseconds.
    """

    image: Image.Image
    corner: tuple[int, int]
    duration: int


def _write_patch(sink: BinaryIO, patch: _Patch) -> None:
    for block in GifImagePlugin.getdata(
        patch.image,
        patch.corner,
        duration=patch.duration,
        disposal=1,
        transparency=_UNCHANGED,
        include_color_table=True,
    ):
        sink.write(block)
