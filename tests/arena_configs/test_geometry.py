from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from animalcat.arena_configs.geometry import Solid, overlaps, rotate
from animalcat.arena_configs.model import Point


def test_rotation_is_clockwise_from_z() -> None:
    assert rotate(0.0, 1.0, 90.0) == pytest.approx((1.0, 0.0))
    assert rotate(1.0, 0.0, 90.0) == pytest.approx((0.0, -1.0))


Corners = list[tuple[float, float]]
"""Corners of a convex figure, clockwise."""


def footprint(solid: Solid) -> Corners:
    corners = ((-1, -1), (-1, 1), (1, 1), (1, -1))
    turned = (rotate(i * solid.half.x, j * solid.half.z, solid.yaw) for i, j in corners)
    return [(solid.center.x + x, solid.center.z + z) for x, z in turned]


def shared_area(one: Corners, other: Corners) -> float:
    """Area that two figures share: what is left of one when it is cut along the other's sides.

    `overlaps` tells it in another way: it looks for a line that parts two figures.
    """
    left = one
    for (x, z), (next_x, next_z) in pairwise([*other, other[0]]):
        within = [(next_z - z) * (px - x) - (next_x - x) * (pz - z) for px, pz in left]
        cut: Corners = []
        for k, (px, pz) in enumerate(left):
            (qx, qz), here, there = left[k - 1], within[k], within[k - 1]
            if here * there < 0.0:
                share = here / (here - there)
                cut.append((px + share * (qx - px), pz + share * (qz - pz)))
            if here >= 0.0:
                cut.append((px, pz))
        left = cut
    doubled = sum(x * d - z * c for (x, z), (c, d) in pairwise([*left, *left[:1]]))
    return abs(doubled) / 2.0


def gap(corners: Corners, x: float, z: float) -> float:
    """Distance of a point from a figure: 0 inside, else that of the nearest point on its sides."""
    point = [(x - 1e-5, z - 1e-5), (x, z + 1e-5), (x + 1e-5, z - 1e-5)]
    if shared_area(point, corners) > 0.0:
        return 0.0
    shares = np.linspace(0.0, 1.0, 2001)[:, None]
    loop = np.array([*corners, corners[0]])
    around = np.vstack([a + shares * (b - a) for a, b in pairwise(loop)])
    return float(np.hypot(*(around - [x, z]).T).min())


BOXES = st.builds(
    Solid,
    st.just("box"),
    st.builds(Point, st.floats(-4, 4), st.just(0.0), st.floats(-4, 4)),
    st.builds(Point, st.floats(0.1, 3), st.just(1.0), st.floats(0.1, 3)),
    st.floats(0, 360),
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(BOXES, BOXES)
def test_boxes_overlap_where_their_footprints_do(a: Solid, b: Solid) -> None:
    area = shared_area(footprint(a), footprint(b))
    assume(area == 0.0 or area > 1e-6)
    assert overlaps(a, b) == overlaps(b, a) == (area > 0)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(BOXES, st.floats(-4, 4), st.floats(-4, 4), st.floats(0.1, 2))
def test_box_and_sphere(box: Solid, x: float, z: float, radius: float) -> None:
    off = gap(footprint(box), x, z)
    assume(abs(off - radius) > 1e-4)
    ball = Solid("sphere", Point(x, 0.0, z), Point(radius, radius, radius), 0.0)
    assert overlaps(box, ball) == (off < radius)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(0.1, 1), st.floats(0, 360))
def test_box_and_wedge(along: float, up: float, half: float, yaw: float) -> None:
    wedge = Solid("wedge", Point(0, 0, 0), Point(2, 1, 2), yaw)  # 0 at local z -2, 2 m at +2
    x, z = rotate(0.0, along, yaw)
    box = Solid("box", Point(x, up, z), Point(half, half, half), yaw)
    slope: Corners = [(-2.0, -1.0), (2.0, 1.0), (2.0, -1.0)]
    low, high, left, right = up - half, up + half, along - half, along + half
    area = shared_area(slope, [(left, low), (left, high), (right, high), (right, low)])
    assume(area == 0.0 or area > 1e-6)
    assert overlaps(box, wedge) == (area > 0)


@pytest.mark.parametrize(
    ("x", "y", "half", "expected"),
    [
        (0.0, 0.5, 0.4, False),  # under the arch
        (0.0, 1.8, 0.4, True),  # in its crown
        (0.0, 2.5, 0.4, False),  # above it
        (1.8, 0.5, 0.4, True),
        (3.0, 0.5, 0.4, False),
        (0.0, 0.0, 5.0, True),  # around it
    ],
)
def test_box_and_shell(x: float, y: float, half: float, expected: bool) -> None:
    shell = Solid("shell", Point(0, 0, 0), Point(2, 2, 3), 0.0)
    assert overlaps(Solid("box", Point(x, y, 0), Point(half, half, half), 0.0), shell) == expected
