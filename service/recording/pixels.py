"""Arithmetic on the pictures of a video, compiled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Image = npt.NDArray[np.uint8]


@njit(cache=True)
def to_yuv420(rgb: Image, out: Image) -> None:
    """Convert a picture for a video codec: ITU-R BT.601, limited range, 4:2:0.

    Chroma is the mean of two pixels that meet at a corner. FFmpeg's own conversion is general, and
    takes twice as long.

    Args:
        rgb: (height, width, 3); both sides even.
        out: (height * width * 3 / 2): the planes Y, U and V, one after another.
    """
    height, width = rgb.shape[:2]
    area = height * width
    luma = out[:area].reshape(height, width)
    blue = out[area : area + area // 4].reshape(height // 2, width // 2)
    red = out[area + area // 4 :].reshape(height // 2, width // 2)
    for y in range(height):
        for x in range(width):
            r, g, b = np.int32(rgb[y, x, 0]), np.int32(rgb[y, x, 1]), np.int32(rgb[y, x, 2])
            luma[y, x] = (66 * r + 129 * g + 25 * b + 4224) >> 8
    for y in range(height // 2):
        for x in range(width // 2):
            r = np.int32(rgb[2 * y, 2 * x, 0]) + np.int32(rgb[2 * y + 1, 2 * x + 1, 0])
            g = np.int32(rgb[2 * y, 2 * x, 1]) + np.int32(rgb[2 * y + 1, 2 * x + 1, 1])
            b = np.int32(rgb[2 * y, 2 * x, 2]) + np.int32(rgb[2 * y + 1, 2 * x + 1, 2])
            blue[y, x] = (112 * b - 38 * r - 74 * g + 65792) >> 9
            red[y, x] = (112 * r - 94 * g - 18 * b + 65792) >> 9
