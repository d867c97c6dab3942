"""Writes pictures as a video: MP4 by PyAV, which the extra `video` brings, or GIF by Pillow."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from PIL import Image

from animalcat.files import write_whole
from animalcat.installing import install
from animalcat.service.recording.pixels import to_yuv420

FORMATS: Final = (".mp4", ".gif")
"""Endings of the files that can be written."""
_GIF_RATE: Final = 20.0
"""Most pictures a second of a GIF; viewers slow down what has more."""


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


def write_video(path: Path, frames: Iterable[npt.NDArray[np.uint8]], rate: float) -> None:
    """Write a video, either completely or not at all.

    Args:
        path: Where to; its ending says which form, `.mp4` (H.264) or `.gif`.
        frames: Pictures, uint8 (height, width, 3), all of one size, with even sides.
        rate: Pictures a second. A GIF leaves out pictures where there are more than 20.

    Raises:
        VideoError: See `check_video`.
        OSError: It cannot be written.
    """
    check_video(path)
    is_gif = path.suffix.lower() == ".gif"
    write_whole(path, _gif(frames, rate) if is_gif else _mp4(frames, rate))


def _mp4(frames: Iterable[npt.NDArray[np.uint8]], rate: float) -> bytes:
    import av

    buffer = io.BytesIO()
    container: Any = av.open(buffer, "w", format="mp4")
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
    return buffer.getvalue()


def _gif(frames: Iterable[npt.NDArray[np.uint8]], rate: float) -> bytes:
    every = max(1, round(rate / _GIF_RATE))
    kept: Iterator[Image.Image] = (
        Image.fromarray(pixels).quantize(128, Image.Quantize.FASTOCTREE)
        for pixels in islice(frames, 0, None, every)
    )
    first = next(kept, None)
    if first is None:
        return b""
    buffer = io.BytesIO()
    first.save(
        buffer,
        "GIF",
        save_all=True,
        append_images=kept,
        duration=round(1000 * every / rate),
        loop=0,
    )
    return buffer.getvalue()
