"""The camera against a brute-force walk along each pixel's ray, and against real frames."""

from __future__ import annotations

from math import cos, radians, sin, tan
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from animalcat.arena_configs.geometry import SHELL_INNER
from animalcat.arena_configs.model import RGB, Arena
from animalcat.arena_configs.tags import RAY_TAGS
from animalcat.envs.sim.camera import FIELD_OF_VIEW, render
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.sim.scene import Primitive, Scene, Shape, Style
from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec
from tests.envs.frames import WANTED, CameraRow, compare, simulate_frame
from tests.small import start, thing

pytestmark = pytest.mark.xdist_group("camera")  # one worker makes what they share

# Colours that no light changes, to the digit.
UNLIT = {
    "GoodGoal": (188, 224, 138),
    "GoodGoalMulti": (245, 221, 104),
    "ShrinkGoal": (245, 221, 104),
}

Frame = npt.NDArray[np.uint8]
EMPTY = Scene.of([])
EYE = (20.0, 0.49, 20.0)


def rotation(yaw: float) -> tuple[tuple[float, float, float], ...]:
    c, s = cos(radians(yaw)), sin(radians(yaw))
    return ((c, 0, s), (0, 1, 0), (-s, 0, c))


def look(scene: Scene, yaw: float = 0.0, resolution: int = 84, **more: bool) -> Frame:
    spec = CameraSpec(resolution, grayscale=more.get("grayscale", False))
    return render(scene, EYE, yaw, spec, more.get("dark", False))


def box(x: float, y: float, z: float, half: float = 0.5, **more: object) -> Primitive:
    return Primitive(Shape.BOX, (x, y, z), (half, half, half), **more)  # type: ignore[arg-type]


# --- what covers which pixel -------------------------------------------------------------------


def inside(scene: Scene, k: int, world: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    p = (world - scene.center[k]) @ scene.rotation[k].astype(float)
    h = scene.half[k].astype(float)
    boxed = np.all(np.abs(p) <= h, axis=-1)
    match Shape(int(scene.kind[k])):
        case Shape.SPHERE:
            return np.linalg.norm(p, axis=-1) <= h[0]
        case Shape.BOX:
            return boxed
        case Shape.WEDGE:
            return boxed & (h[2] * p[..., 1] + h[1] * p[..., 2] <= 0)
        case Shape.SHELL:
            out2 = (p[..., 0] / h[0]) ** 2 + (p[..., 1] / h[1]) ** 2
            return (np.abs(p[..., 2]) <= h[2]) & (out2 <= 1) & (out2 >= SHELL_INNER**2)


def walk_along(scene: Scene, yaw: float, n: int, step: float = 0.04) -> npt.NDArray[np.int64]:
    """The primitive that each pixel's ray enters first, by small steps; -1 for none."""
    focal = n / 2 / tan(radians(FIELD_OF_VIEW / 2))
    across = (np.arange(n) + 0.5 - n / 2) / focal
    u, v = np.meshgrid(across, -across)
    s, c = sin(radians(yaw)), cos(radians(yaw))
    way = np.stack([s + u * c, v, c - u * s], axis=-1)
    first = np.full((n, n), -1)
    for t in np.arange(0.5, 18, step):  # what is drawn is 1 to 16 m away
        at = np.array(EYE) + t * way
        for k in range(len(scene)):
            first[(first == -1) & inside(scene, k, at) & (at[..., 1] > -0.01)] = k
    return first


@st.composite
def solids(draw: st.DrawFn) -> Primitive:
    bearing, away = draw(st.floats(0, 6.28)), draw(st.floats(4, 12))
    shape = draw(st.sampled_from(list(Shape)))
    half = tuple(draw(st.floats(0.5, 2)) for _ in range(3))
    return Primitive(
        shape,
        (20 + away * sin(bearing), draw(st.floats(0, 2)), 20 + away * cos(bearing)),
        half,  # type: ignore[arg-type]
        rotation=rotation(draw(st.floats(0, 360))),
        style=Style.EMISSIVE,
    )


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.lists(solids(), min_size=1, max_size=5), st.floats(0, 360))
def test_every_pixel_shows_what_its_ray_meets_first(items: list[Primitive], yaw: float) -> None:
    scene = Scene.of(items)
    # Pure hues that neither sky nor fence nor floor has.
    hues = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1)]
    for k in range(len(scene)):
        scene.color[k] = (*hues[k], 1)
    n = 16
    image = look(scene, yaw, n).astype(int)
    shown = np.full((n, n), -1)
    for k in range(len(scene)):
        shown[np.all(image == 255 * np.array(hues[k]), axis=-1)] = k
    # Rays that graze an edge may be decided otherwise by steps of 4 cm.
    assert np.mean(shown != walk_along(scene, yaw, n)) < 0.03


# --- the frame as a whole ----------------------------------------------------------------------


def test_sky_above_floor_below_fence_between() -> None:
    for yaw in range(0, 360, 30):
        image = look(EMPTY, yaw).astype(int)
        sky, fence, floor = image[:20], image[38:41], image[50:]
        assert np.all(sky[..., 2] > sky[..., 0] + 20)
        assert fence.mean() > 150
        assert np.all(floor[..., 0] > floor[..., 2])


def test_dark_is_black_and_grey_is_the_mean_of_the_channels() -> None:
    scene = Scene.of([box(20, 0.5, 25, color=(0.9, 0.2, 0.1, 1))])
    assert not look(scene, dark=True).any()
    mean = look(scene).astype(int).sum(axis=-1) / 3
    assert np.abs(look(scene, grayscale=True)[..., 0] - mean).max() <= 0.5


def test_what_can_be_seen_through_is_mixed_from_far_to_near() -> None:
    near = box(20, 0.5, 24, color=(1, 0, 0, 0.5), style=Style.TRANSPARENT)
    far = box(20, 0.5, 30, 1.5, color=(0, 0, 1, 0.5), style=Style.TRANSPARENT)
    one, two = look(Scene.of([near, far])), look(Scene.of([far, near]))
    assert np.array_equal(one, two)
    only_far, empty = look(Scene.of([far])), look(EMPTY)
    middle = one[42, 42].astype(int)
    assert middle[0] > only_far[42, 42, 0] > 0
    assert middle[2] < only_far[42, 42, 2]
    assert np.any(only_far[42, 42] != empty[42, 42])
    solid = box(20, 0.5, 22, color=(0, 1, 0, 1))
    assert np.array_equal(look(Scene.of([solid, near]))[42, 42], look(Scene.of([solid]))[42, 42])


def test_the_inside_of_a_zone_is_clear_and_its_outside_is_fog() -> None:
    zone = Primitive(
        Shape.BOX, (20, 0.5, 20), (3, 2, 3), color=(0.6, 0.1, 0.1, 0.9), style=Style.ZONE, zone=True
    )
    assert np.array_equal(look(Scene.of([zone])), look(EMPTY))
    away = Primitive(
        Shape.BOX, (20, 0, 28), (3, 1, 3), color=(0.6, 0.1, 0.1, 0.9), style=Style.ZONE, zone=True
    )
    pixel = look(Scene.of([away]))[45, 42].astype(int)
    assert pixel[0] > 2 * pixel[1]


# --- what is drawn in place of colliders ---------------------------------------------------------


def test_a_look_hides_its_colliders_and_leaves_the_rays_alone() -> None:
    environment = SimEnvironment(ObservationSpec(CameraSpec(84), RaySpec()))
    arena = Arena(time_limit=250, items=(start(), thing("SpawnerTree", 20, 0, 12)))
    environment.load(arena, 0)
    step = environment.step(0)
    camera_frame, rays = step.observation.camera, step.observation.rays
    assert camera_frame is not None
    assert rays is not None
    environment.scene.active[:] = False
    empty = render(environment.scene, (20, 0.49, 5), 0, CameraSpec(84), False)
    widths = np.any(camera_frame != empty, axis=-1).sum(axis=1)
    assert widths[20:28].min() > 16, "the crown"
    assert 0 < widths[42] < 6, "the trunk, and nothing of the colliders beside it"
    assert rays[RAY_TAGS.index("GoalSpawner")] == 1.0


def board(
    symbol: str | None, x: float = 16.5, yaw: float = 90, colors: tuple[RGB, ...] = ()
) -> Frame:
    """The camera's frame of a board at (20, 20) that looks along -x."""
    names = () if symbol is None else (symbol,)
    sign = thing("SignBoard", 20, 0, 20).model_copy(
        update={"symbol_names": names, "colors": colors}
    )
    environment = SimEnvironment(ObservationSpec(CameraSpec(128), None))
    environment.load(Arena(time_limit=250, items=(start(x, 20, yaw), sign)), 0)
    frame = environment.step(0).observation.camera
    assert frame is not None
    return frame


def test_a_sign_shows_its_symbol_upright_to_who_reads_it() -> None:
    drawn = np.any(board("letter-c") != board("default"), axis=-1)
    rows, columns = np.nonzero(drawn)
    assert 40 < rows.min() < rows.max() < 72
    middle = (columns.min() + columns.max()) // 2
    assert drawn[:, : middle + 1].sum() > 1.3 * drawn[:, middle + 1 :].sum(), "a C is open right"
    behind = board("letter-c", 23.5, 270)
    assert np.array_equal(behind, board("default", 23.5, 270)), "the back is plain"


def test_a_code_shows_its_squares_white_black_or_in_the_item_s_colour() -> None:
    green = (RGB(r=0, g=255, b=0),)
    plain, tinted = board("011/100"), board("011/100", colors=green)
    empty = board("default")
    rows, columns = np.nonzero(np.any(plain != empty, axis=-1))
    width, height = np.ptp(columns) + 1, np.ptp(rows) + 1
    for row, line in enumerate(("011", "100")):
        for column, square in enumerate(line):
            at = (
                rows.min() + int((row + 0.5) * height / 2),
                columns.min() + int((column + 0.5) * width / 3),
            )
            if square == "0":
                assert plain[at].max() == tinted[at].max() == 0
            else:
                assert plain[at].min() > empty[at].min(), "whiter than the board"
                assert tinted[at][1] > tinted[at][[0, 2]].max() == 0


# --- against the real build --------------------------------------------------------------------


@pytest.fixture(scope="module")
def camera_rows(data_dir: Path) -> list[CameraRow]:
    return compare(data_dir)


@pytest.mark.data
def test_silhouettes_agree_with_the_real_build(camera_rows: list[CameraRow]) -> None:
    assert {row.name for row in camera_rows if row.iou < WANTED} == set()


@pytest.mark.data
def test_colours_agree_with_the_real_build(camera_rows: list[CameraRow]) -> None:
    for row in camera_rows:
        assert max(row.sky, row.fence, row.floor) < 2, row
        assert row.object is None or row.object < 9, row


@pytest.mark.data
@pytest.mark.parametrize("name", UNLIT)
def test_unlit_colours_are_those_of_the_real_build_to_the_digit(name: str, data_dir: Path) -> None:
    with Image.open(data_dir / "unity-camera" / f"{name}.png") as image:
        real = np.asarray(image.convert("RGB"))
    for frame in (real, simulate_frame(name)):
        assert np.all(frame == UNLIT[name], axis=-1).sum() > 300


def test_light_is_encoded_as_by_the_driver_of_the_real_frames() -> None:
    # The whole scale against the formula; sRGB's own code of the red is 189.
    light = np.arange(1, 20000, dtype=np.float64) / 20000
    curve = 255 * (1.0622 * (0.675 * light**0.375 + 0.325 * light**0.5) - 0.062)
    wanted = np.where(light <= 0.0031308, 255 * 12.92 * light, curve)
    for k in range(0, len(light), 7):
        ball = box(20, 0.5, 22, color=(light[k], 0, 0, 1), style=Style.EMISSIVE)
        code = look(Scene.of([ball]), resolution=4)[2, 2, 0]
        assert abs(float(code) - wanted[k]) < 0.53  # half a code, and half a step of the table


@pytest.mark.data
def test_frames_differ_little_from_the_real_ones(camera_rows: list[CameraRow]) -> None:
    assert np.mean([row.mean for row in camera_rows]) < 1.9
    assert max(row.mean for row in camera_rows) < 2.3


@pytest.mark.data
def test_the_horizon_stands_where_it_does_in_the_real_build(camera_rows: list[CameraRow]) -> None:
    assert max(row.horizon for row in camera_rows) <= 1
