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
from animalcat.arena_configs.loader import load_text
from animalcat.envs.sim.camera import FIELD_OF_VIEW, render
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.sim.scene import Primitive, Scene, Shape, Style
from animalcat.envs.types import CameraSpec, ObservationSpec

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


def walked(scene: Scene, yaw: float, n: int, step: float = 0.02) -> npt.NDArray[np.int64]:
    """The primitive that each pixel's ray enters first, by small steps; -1 for none."""
    focal = n / 2 / tan(radians(FIELD_OF_VIEW / 2))
    across = (np.arange(n) + 0.5 - n / 2) / focal
    u, v = np.meshgrid(across, -across)
    s, c = sin(radians(yaw)), cos(radians(yaw))
    way = np.stack([s + u * c, v, c - u * s], axis=-1)
    first = np.full((n, n), -1)
    for t in np.arange(step, 30, step):
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


@settings(max_examples=12, deadline=None)
@given(st.lists(solids(), min_size=1, max_size=5), st.floats(0, 360))
def test_every_pixel_shows_what_its_ray_meets_first(items: list[Primitive], yaw: float) -> None:
    scene = Scene.of(items)
    # Pure hues that neither sky nor fence nor floor has.
    hues = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1)]
    for k in range(len(scene)):
        scene.color[k] = (*hues[k], 1)
    n = 24
    image = look(scene, yaw, n).astype(int)
    shown = np.full((n, n), -1)
    for k in range(len(scene)):
        shown[np.all(image == 255 * np.array(hues[k]), axis=-1)] = k
    # Rays that graze an edge may be decided otherwise by steps of 2 cm.
    assert np.mean(shown != walked(scene, yaw, n)) < 0.02


def test_what_is_behind_beside_or_collected_is_not_drawn() -> None:
    empty = look(EMPTY)
    assert np.array_equal(look(Scene.of([box(20, 0.5, 10), box(35, 0.5, 20.2)])), empty)
    scene = Scene.of([box(20, 0.5, 25)])
    assert not np.array_equal(look(scene), empty)
    scene.active[0] = False
    assert np.array_equal(look(scene), empty)


def test_a_wall_that_passes_the_eye_is_drawn_on_its_side() -> None:
    wall = Primitive(Shape.BOX, (22, 1.5, 20), (0.5, 1.5, 18), color=(1, 0, 0, 1))
    differs = np.any(look(Scene.of([wall])) != look(EMPTY), axis=-1)
    assert differs[30:54, 80].all()
    assert not differs[:, :42].any()


# --- the frame as a whole ----------------------------------------------------------------------


def test_shape_type_and_ownership() -> None:
    image = look(EMPTY, resolution=37)
    assert image.shape == (37, 37, 3)
    assert image.dtype == np.uint8
    again = look(EMPTY, resolution=37)
    image[:] = 0
    assert again.any()


def test_the_same_scene_gives_the_same_bytes() -> None:
    scene = Scene.of([box(20, 0.5, 25), box(18, 0.5, 24, style=Style.TRANSPARENT)])
    assert look(scene, 33.3).tobytes() == look(scene, 33.3).tobytes()


def test_dark_is_black() -> None:
    assert not look(Scene.of([box(20, 0.5, 25)]), dark=True).any()
    assert look(EMPTY, dark=True, grayscale=True).shape == (84, 84, 1)


def test_grayscale_is_the_mean_of_the_channels() -> None:
    scene = Scene.of([box(20, 0.5, 25, color=(0.9, 0.2, 0.1, 1))])
    mean = look(scene).astype(int).sum(axis=-1) / 3
    assert np.abs(look(scene, grayscale=True)[..., 0] - mean).max() <= 0.5


def test_sky_above_floor_below_fence_between() -> None:
    for yaw in range(0, 360, 30):
        image = look(EMPTY, yaw).astype(int)
        sky, fence, floor = image[:20], image[38:41], image[50:]
        assert np.all(sky[..., 2] > sky[..., 0] + 20)
        assert fence.mean() > 150
        assert np.all(floor[..., 0] > floor[..., 2])


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


# --- against the real build --------------------------------------------------------------------

ARENA = """\
!ArenaConfig
arenas:
  0: !Arena
    timeLimit: 5
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {{x: 30, y: 0, z: 20}}]
      rotations: [270]
    - !Item
      name: {name}
      positions: [!Vector3 {{x: 20, y: 0, z: 20}}]
      rotations: [0]
      sizes: [!Vector3 {{x: 1, y: 1, z: 1}}]
      colors: [{color}]
"""
# Colours that the real build drew at random, read from the frames.
COLORS = {"Wall_colors": "137, 207, 240", "Wall": "54, 96, 146", "Ramp": "54, 96, 146"}
SOLID = ("BadGoal", "CylinderTunnel", "GoodGoal", "GoodGoalMulti", "LightBlock", "Ramp", "UBlock")
COLORED = (
    "BadGoal",
    "CylinderTunnel",
    "GoodGoal",
    "GoodGoalMulti",
    "LightBlock",
    "UBlock",
    "Wall",
    "Wall_colors",
)
ZONES = ("DeathZone", "HotZone")
# Lies in the middle of every frame; the tree and the growing goal reach higher.
OBJECT = (slice(240, 270), slice(225, 290))


def simulated(name: str) -> npt.NDArray[np.int64]:
    r, g, b = COLORS.get(name, "-1, -1, -1").split(", ")
    text = ARENA.format(name=name.split("_")[0], color=f"!RGB {{r: {r}, g: {g}, b: {b}}}")
    environment = SimEnvironment(ObservationSpec(CameraSpec(512), None))
    environment.load(load_text(text, name).config.arenas[0], 0)
    camera = environment.step(0).observation.camera
    assert camera is not None
    return camera.astype(np.int64)


def real(data_dir: Path, name: str) -> npt.NDArray[np.int64]:
    with Image.open(data_dir / "unity-camera" / f"{name}.png") as image:
        return np.asarray(image, np.int64)


def silhouette(frame: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Pixels of the middle that differ from the same row to the left of it."""
    middle, beside = frame[OBJECT], frame[OBJECT[0], 150:220]
    nearest = np.abs(middle[:, :, None] - beside[:, None, :]).max(axis=-1).min(axis=-1)
    return nearest > 6


def means(frame: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.float64]]:
    parts = {
        "sky": frame[:160],
        "far fence": frame[220:258, 120:240],
        "left fence": frame[215:258, 20:95],
        "right fence": frame[215:258, 415:490],
        "near floor": frame[300:],
        "far floor": frame[263:300, :220],
    }
    return {name: part.reshape(-1, 3).mean(axis=0) for name, part in parts.items()}


@pytest.mark.data
def test_surroundings_have_the_real_builds_colours(data_dir: Path) -> None:
    theirs, ours = means(real(data_dir, "HotZone")), means(simulated("HotZone"))
    for part, color in theirs.items():
        assert np.abs(ours[part] - color).max() < 5, part


@pytest.mark.data
def test_the_horizon_stands_where_it_does_in_the_real_build(data_dir: Path) -> None:
    def rows(frame: npt.NDArray[np.int64]) -> list[int]:
        return [int(np.argmax(frame[240:, c, 0] > frame[240:, c, 2])) for c in (10, 150, 350, 500)]

    theirs, ours = rows(real(data_dir, "HotZone")), rows(simulated("HotZone"))
    assert np.abs(np.array(theirs) - ours).max() <= 1


@pytest.mark.data
@pytest.mark.parametrize("name", [*SOLID, "Wall", "Wall_colors", *ZONES])
def test_silhouettes_agree_with_the_real_build(data_dir: Path, name: str) -> None:
    theirs, ours = silhouette(real(data_dir, name)), silhouette(simulated(name))
    overlap = np.sum(theirs & ours) / np.sum(theirs | ours)
    assert overlap >= 0.85, f"{name}: intersection over union {overlap:.3f}"


@pytest.mark.data
@pytest.mark.parametrize("name", [*COLORED, *ZONES, "WallTransparent"])
def test_objects_have_the_real_builds_colours(data_dir: Path, name: str) -> None:
    theirs, ours = real(data_dir, name), simulated(name)
    both = silhouette(theirs) & silhouette(ours)
    off = np.abs(theirs[OBJECT][both].mean(axis=0) - ours[OBJECT][both].mean(axis=0))
    assert off.max() < 20, f"{name}: off by {off.round(1)}"
