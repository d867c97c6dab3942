"""An observation as words and as a picture: all that a speaker may know, and nothing beside it."""

from __future__ import annotations

import io
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from animalcat.envs.rays import OTHER, Rays
from animalcat.envs.types import RAY_LENGTH, Observation, ObservationSpec, RaySpec

KINDS: Final[Mapping[str, str]] = {
    "arena": "the outer wall",
    "Immovable": "a wall or tunnel",
    "Movable": "a block that can be pushed",
    "goodGoal": "a green ball",
    "goodGoalMulti": "a yellow ball",
    "badGoal": "a red ball",
    "GoalSpawner": "a dispenser of balls",
    "DeathZone": "a red zone",
    "HotZone": "an orange zone",
    "Ramp": "a ramp",
    "PillarButton": "a button",
    "SignPoster": "a sign",
    "DecoyGoal": "a ball of another colour",
    "DecoyGoalBounce": "a moving ball of another colour",
    "HollowObj": "a hollow box",
    "badGoalMulti": "a red ball",
    "DataZone": "a marked zone",
    "agent": "another agent",
    OTHER: "something else",
}
"""What a ray meets, by its tag, in words that do not presuppose the tags."""
_TOUCHED: Final = " What touches you is not felt."
"""Said where a ray meets nothing: it begins within what the body touches, and passes through."""


def words(observation: Observation, spec: ObservationSpec) -> str:
    """Say an observation in words.

    Args:
        observation: The observation.
        spec: What observations hold.

    Returns:
        Health, speed, place and what each ray meets, from the left to the right. A true state,
        which privileged agents are shown, is never told.
    """
    right, up, forward = (float(v) for v in observation.velocity)
    x, _, z = (float(v) for v in observation.position)
    parts = [
        health(observation),
        _motion(right, up, forward),
        f"You are at x {x:.1f} m, z {z:.1f} m.",
    ]
    if observation.rays is not None and spec.rays is not None:
        parts.append(_rays(Rays(observation.rays, spec.rays), spec.rays))
    return " ".join(parts)


def health(observation: Observation) -> str:
    """Say the health, which every speaker is told."""
    return f"Your health is {observation.health:.0f} of 100."


def picture(observation: Observation, side: int) -> bytes | None:
    """Draw what the camera sees.

    Args:
        observation: The observation.
        side: Pixels of the picture's side. A camera of another resolution is scaled to it.

    Returns:
        A PNG; None without a camera or with a side of 0.

    Raises:
        ImportError: Pillow is not installed; the message says how to get it.
    """
    if observation.camera is None or not side:
        return None
    try:
        image: Any = import_module("PIL.Image")
    except ImportError:
        raise ImportError("pictures need the package pillow: pip install pillow") from None
    pixels = observation.camera
    drawn = image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    if drawn.size != (side, side):
        # Pixels stay pixels where it grows, so that a larger picture invents nothing.
        larger = side > drawn.size[0]
        how = image.Resampling.NEAREST if larger else image.Resampling.BOX
        drawn = drawn.resize((side, side), how)
    stored = io.BytesIO()
    drawn.save(stored, "PNG", compress_level=1)
    return stored.getvalue()


def _motion(right: float, up: float, forward: float) -> str:
    ways = ((forward, ("forward", "backward")), (right, ("right", "left")), (up, ("up", "down")))
    parts = [f"{abs(speed):.1f} m/s {way[speed < 0]}" for speed, way in ways if abs(speed) >= 0.05]
    if not parts:
        return "You stand still."
    *first, last = parts
    return f"You move {' and '.join(filter(None, [', '.join(first), last]))}."


def _rays(rays: Rays, spec: RaySpec) -> str:
    met = sorted(rays, key=lambda ray: ray.angle)
    told = "; ".join(
        f"{_direction(ray.angle)} {'nothing' if ray.kind is None else _hit(ray.kind, ray.distance)}"
        for ray in met
    )
    whole = f"to {spec.max_degrees:.0f}° on either side" if spec.per_side else "straight ahead"
    touched = _TOUCHED * any(ray.kind is None for ray in met)
    return f"What you feel {whole}, from left to right: {told}.{touched}"


def _hit(kind: str, metres: float) -> str:
    return f"{KINDS[kind]} at {min(metres, RAY_LENGTH):.1f} m"


def _direction(angle: float) -> str:
    if angle == 0.0:
        return "ahead"
    return f"{abs(angle):.0f}° {'right' if angle > 0.0 else 'left'}"
