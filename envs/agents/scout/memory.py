"""What the agent remembers of goals: where it sensed them, and where they may be now."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import degrees, hypot, inf, radians, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from animalcat.envs.agents.scout.eyes import ODD, RED
from animalcat.envs.agents.scout.pose import angle_between
from animalcat.portable import arrays as portable
from animalcat.portable.products import product
from animalcat.portable.scalars import asin, atan2, cos, sin, tan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from animalcat.envs.agents.scout.eyes import Patch
    from animalcat.envs.agents.scout.pose import Pose

_BODY: Final = 0.5
"""Metres: the agent's radius."""
_USUAL: Final = 0.5
"""Metres: the radius that a goal has until it is seen to have another."""
_SAME: Final = 1.2
"""Metres within which two sightings are of the same goal, beside its size."""
_FASTEST: Final = 12.0
"""m/s: speed of the fastest goals."""
_ENDS: Final = 8
"""Ends of rays that are kept of a goal."""
_RESTING: Final = 0.5
"""Seconds after which something that does not move has come to rest."""
_THICK: Final = 0.6
"""Metres from the front of what hides a goal to the goal: its thickness and a gap."""
_LARGEST: Final = 2.6
"""Metres: the largest radius that a goal has."""
_MISSES: Final = 4
"""How often a goal is not where it should be seen until it is taken to be elsewhere."""


@dataclass(slots=True)
class Goal:
    """A goal that was sensed.

    Attributes:
        kind: Its kind, as in `eyes`.
        x, z: Its middle, in metres.
        radius: In metres.
        seen: When it was last sensed, in seconds.
        first: When it was first sensed.
        by_ray: When a ray last met it; -inf for never.
        vx, vz: Its velocity in m/s.
        moved: When it last moved; -inf for never.
        raised: Metres by which it seems to be above where it would lie on the floor.
        widest: Largest angular radius that the camera showed of it, in degrees.
        widest_at: Where the agent was then, x and z in metres.
        whole: Whether its size is known from when all of it was in sight.
        eye: Where the agent was when it last sensed it, x and z.
        misses: How often it was not where it should have been seen.
        gone: Whether it is no longer where it was last sensed.
        barred: Until when there is no use in trying to get to it.
        rise: Degrees by which the camera last showed it above the horizon.
        bearing: Degrees from +z, as the camera last showed it.
        shown: When the camera last showed it; -inf for never.
        ends: Where rays that met it ended.
        trail: When and where it was sensed lately.
    """

    kind: int
    x: float
    z: float
    radius: float
    seen: float
    first: float
    by_ray: float = -inf
    vx: float = 0.0
    vz: float = 0.0
    moved: float = -inf
    raised: float = 0.0
    widest: float = 0.0
    widest_at: tuple[float, float] = (0.0, 0.0)
    whole: bool = False
    eye: tuple[float, float] = (0.0, 0.0)
    misses: int = 0
    gone: bool = False
    barred: float = -inf
    rise: float = 0.0
    bearing: float = 0.0
    shown: float = -inf
    ends: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    trail: list[tuple[float, float, float]] = field(
        default_factory=list[tuple[float, float, float]]
    )

    def away(self, x: float, z: float) -> float:
        """Metres from a position to its middle."""
        return hypot(self.x - x, self.z - z)

    def guess(self, now: float) -> tuple[float, float]:
        """Where it may be by now, if nothing stopped it: it slows down as it rolls."""
        since = now - self.seen
        if now - self.moved - since > 0.5 or hypot(self.vx, self.vz) < 0.3:
            return self.x, self.z
        run = 2.5 * (1.0 - 2.718 ** (-since / 2.5))
        return (
            min(max(self.x + self.vx * run, 0.5), 39.5),
            min(max(self.z + self.vz * run, 0.5), 39.5),
        )


class Memory:
    """The goals that were sensed in an episode.

    Attributes:
        goals: Those that were not collected.
    """

    def __init__(self) -> None:
        self.goals: list[Goal] = []

    def turn(self, degrees_: float, x: float, z: float) -> None:
        """Turn everything about a position, since the heading became known."""
        s, c = sin(radians(degrees_)), cos(radians(degrees_))
        for goal in self.goals:
            dx, dz = goal.x - x, goal.z - z
            goal.x, goal.z = x + dx * c + dz * s, z + dz * c - dx * s
            goal.vx, goal.vz = goal.vx * c + goal.vz * s, goal.vz * c - goal.vx * s
            goal.trail.clear()
            goal.x, goal.z = min(max(goal.x, 0.3), 39.7), min(max(goal.z, 0.3), 39.7)

    def meet(self, kind: int, angle: float, distance: float, pose: Pose, now: float) -> Goal:
        """A ray met a goal.

        Args:
            kind: Its kind.
            angle: Of the ray, degrees to the right.
            distance: Metres that the ray travelled.
            pose: The agent's pose.
            now: Seconds.
        """
        a = radians(pose.heading + angle)
        dx, dz = sin(a), cos(a)
        best: Goal | None = None
        least = inf
        for goal in self.goals:
            if goal.kind != kind and ODD not in (goal.kind, kind):
                continue
            reach = distance + _BODY + goal.radius
            off = goal.away(pose.x + reach * dx, pose.z + reach * dz)
            if goal.by_ray == -inf:
                # Known from the camera alone: its bearing is right, its distance may not be.
                across = (goal.x - pose.x) * dz - (goal.z - pose.z) * dx
                along = (goal.x - pose.x) * dx + (goal.z - pose.z) * dz
                if along > 0.0 and abs(across) < _SAME + goal.radius:
                    off = min(off, abs(across))
            room = _SAME + goal.radius + min(3.0, _FASTEST * (now - goal.seen))
            if goal.gone:
                room += 4.0
            if goal.seen == now:
                room = goal.radius + 1.0
            if off < min(room, least):
                best, least = goal, off
        radius = best.radius if best is not None else _USUAL
        reach = distance + _BODY + 0.7 * radius
        x, z = pose.x + reach * dx, pose.z + reach * dz
        if best is None:
            best = Goal(kind, x, z, radius, now, now)
            self.goals.append(best)
        ends = best.ends
        if best.gone or (ends and hypot(ends[-1][0] - x, ends[-1][1] - z) > 4.0):
            ends.clear()
        ends.append((pose.x + distance * dx, pose.z + distance * dz))
        del ends[:-_ENDS]
        fitted = _circle(ends) if hypot(best.vx, best.vz) < 0.5 else None
        if fitted is not None:
            best.x, best.z, touch = fitted
            # Both lie on the floor, so their middles differ in height.
            best.radius = touch**2 / 2.0 if pose.y < 0.6 else max(0.25, touch - _BODY)
        elif best.seen == now and best.by_ray == now:
            best.x, best.z = 0.5 * (best.x + x), 0.5 * (best.z + z)
        elif best.by_ray == -inf or best.gone or least > 1.0 + best.radius:
            best.x, best.z = x, z
        else:
            best.x, best.z = best.x + 0.4 * (x - best.x), best.z + 0.4 * (z - best.z)
        if kind != ODD:
            best.kind = kind
        best.raised = 0.0
        best.by_ray = now
        self._sense(best, pose, now, tracks=True)
        return best

    def spot(self, patch: Patch, eye: float, pose: Pose, now: float, ray: float) -> None:
        """The camera showed a goal.

        Args:
            patch: Its patch in the image.
            eye: Height of the camera above the floor, in metres.
            pose: The agent's pose.
            now: Seconds.
            ray: Metres that it is clear below it, as rays told; infinite where none did.
        """
        a = radians(pose.heading + patch.bearing)
        dx, dz = sin(a), cos(a)
        size = sin(radians(max(patch.radius, 0.4)))
        lies = sin(radians(patch.radius - patch.rise))
        raised = patch.bottom > 0.6
        distance = _USUAL / size if raised or lies <= 0.012 else eye / lies
        distance = min(max(distance, 0.6), 45.0, 3.0 / size)
        best: Goal | None = None
        least = inf
        for goal in self.goals:
            if goal.kind != patch.kind and goal.kind != ODD:
                continue
            gx, gz = goal.x - pose.x, goal.z - pose.z
            if goal.gone:
                gx, gz = (w - v for v, w in zip((pose.x, pose.z), goal.guess(now), strict=True))
            away = max(hypot(gx, gz), 0.3)
            bearing = degrees(atan2(gx, gz))
            off = abs(angle_between(bearing - pose.heading - patch.bearing))
            room = 4.0 + degrees(
                asin(min(0.9, (goal.radius + _FASTEST * (now - goal.seen) * 0.3) / away))
            )
            if goal.seen == now and goal.by_ray < now:
                continue
            if off < min(room, 60.0) and off < least:
                best, least = goal, off
        if best is None:
            x, z = _inside(pose, dx, dz, distance)
            best = Goal(patch.kind, x, z, min(2.5, distance * size), now, now)
            self.goals.append(best)
        else:
            best.kind = patch.kind
            here = hypot(best.eye[0] - pose.x, best.eye[1] - pose.z) < 0.3
            kept = now - best.by_ray < 1.0 or (best.by_ray > -inf and not raised and not best.gone)
            behind = None if kept else self._behind(best, patch, pose, eye, ray, now)
            if best.whole and not best.gone:
                distance, raised = best.away(pose.x, pose.z), False
            elif behind is not None:
                distance, best.radius = behind
                best.whole, raised = True, False
            elif kept:
                distance = best.away(pose.x, pose.z)
            elif raised and here:
                # What hides a part of it makes it look farther away, and nothing makes it nearer.
                distance = min(distance, best.away(pose.x, pose.z))
            x, z = _inside(pose, dx, dz, distance)
            if best.by_ray < now and not (best.whole and behind is None):
                best.x, best.z = x, z
            if not patch.cut and not best.whole:
                best.radius += 0.3 * (min(2.5, max(0.25, distance * size)) - best.radius)
        if patch.radius >= best.widest:
            best.widest, best.widest_at = patch.radius, (pose.x, pose.z)
        best.raised = (
            max(0.0, distance * tan(radians(patch.rise)) + eye - best.radius - 0.3)
            if raised
            else 0.0
        )
        turned = abs(angle_between(degrees(a) - best.bearing))
        if best.first == now or abs(patch.rise - best.rise) > 1.2 or turned > 1.5:
            if best.first < now and hypot(pose.vx, pose.vz) < 0.5 and not patch.cut:
                best.moved = now
            best.rise, best.bearing = patch.rise, degrees(a)
        best.shown = now
        self._sense(best, pose, now, tracks=best.moved == now and not raised)

    @staticmethod
    def _behind(
        goal: Goal, patch: Patch, pose: Pose, eye: float, ray: float, now: float
    ) -> tuple[float, float] | None:
        """Distance and radius of a goal that came to rest behind something that hides a part of it.

        Nothing floats. So what shows above a thing, or through a hole in it, lies behind it. Its
        size is that which it had when more of it was in sight.

        Args:
            goal: The goal, before this sighting.
            patch: What shows of it.
            pose: The agent's pose.
            eye: Height of the camera above the floor, in metres.
            ray: Metres that it is clear below it; infinite where that is not known.
            now: Seconds.
        """
        still = now - goal.moved > _RESTING and now - goal.first > _RESTING
        if ray == inf or not still or goal.whole:
            return None
        a = radians(pose.heading + patch.bearing)
        near = ray + _BODY + _THICK
        radius = shows = _USUAL
        for _ in range(4):
            distance = near + radius
            x, z = pose.x + distance * sin(a), pose.z + distance * cos(a)
            before = hypot(x - goal.widest_at[0], z - goal.widest_at[1])
            shows = distance * sin(radians(patch.radius))
            radius = min(max(shows, before * sin(radians(goal.widest))), _LARGEST)
        if patch.bottom > 0.6:
            # Its top is as high above the floor as it is wide, unless it lies on something.
            top = eye + (near + radius) * tan(radians(patch.rise + patch.radius))
            if not 0.6 * top < 2.0 * radius < 1.5 * top:
                return None
        elif radius < 1.3 * shows:
            return None  # all of it shows
        return near + radius, radius

    def _sense(self, goal: Goal, pose: Pose, now: float, *, tracks: bool) -> None:
        goal.seen, goal.misses, goal.gone = now, 0, False
        goal.eye = pose.x, pose.z
        if not tracks or (goal.trail and goal.trail[-1][0] == now):
            return
        goal.trail.append((now, goal.x, goal.z))
        if len(goal.trail) > 12:
            del goal.trail[0]
        before, x, z = goal.trail[0]
        span = now - before
        if span > 0.3:
            goal.vx, goal.vz = (goal.x - x) / span, (goal.z - z) / span
            if hypot(goal.vx, goal.vz) > 1.0:
                goal.moved = now
        if span > 1.5:
            goal.trail = goal.trail[-6:]

    def check(
        self,
        pose: Pose,
        now: float,
        angles: Sequence[float],
        lengths: Sequence[float],
        free: Sequence[bool],
        looks: bool,
        open_to: object,
    ) -> None:
        """Notice goals that are not where they were.

        Args:
            pose: The agent's pose.
            now: Seconds.
            angles: Of the rays, degrees to the right.
            lengths: Metres that they travelled.
            free: Whether each of them tells something.
            looks: Whether there is an image.
            open_to: A function that says whether nothing stands before a position.
        """
        for goal in self.goals:
            if goal.seen == now or goal.gone:
                continue
            gx, gz = goal.x - pose.x, goal.z - pose.z
            away = hypot(gx, gz)
            bearing = angle_between(degrees(atan2(gx, gz)) - pose.heading)
            if away < 0.6 or (goal.raised > 0.5 and (away < 1.5 or now - goal.seen > 3.0)):
                goal.gone = True
                continue
            missed = False
            if goal.raised < 0.5:
                for angle, length, tells in zip(angles, lengths, free, strict=True):
                    if tells and length > away + 1.0:
                        across = away * abs(sin(radians(angle_between(angle - bearing))))
                        if abs(angle_between(angle - bearing)) < 60.0 and across < 0.4:
                            missed = True
            if looks and abs(bearing) < 42.0 and away > 0.8 and not missed:
                assert callable(open_to)
                missed = goal.raised < 0.5 and bool(open_to(goal.x, goal.z))
            if missed:
                goal.misses += 1
                if goal.misses >= _MISSES or (not looks and goal.misses >= 2):
                    goal.gone = True

    def collect(self, pose: Pose) -> None:
        """Something good was touched: the goal nearest to the agent is no longer there."""
        near = [goal for goal in self.goals if goal.kind != RED]
        if near:
            nearest = min(near, key=lambda goal: goal.away(pose.x, pose.z))
            if nearest.away(pose.x, pose.z) < 3.0 + nearest.radius:
                self.goals.remove(nearest)

    def forget(self, before: float) -> None:
        """Forget goals that were last sensed before a time."""
        self.goals = [goal for goal in self.goals if goal.seen >= before]


def _inside(pose: Pose, dx: float, dz: float, distance: float) -> tuple[float, float]:
    """A position in some direction, as far as the arena reaches; anywhere, if that is not known."""
    if pose.known:
        for v, d in ((pose.x, dx), (pose.z, dz)):
            if d > 1e-6:
                distance = min(distance, max(0.6, (39.6 - v) / d))
            elif d < -1e-6:
                distance = min(distance, max(0.6, (0.4 - v) / d))
    return pose.x + distance * dx, pose.z + distance * dz


def _circle(points: Sequence[tuple[float, float]]) -> tuple[float, float, float] | None:
    """Middle and radius of the circle on which points lie; None if they do not tell."""
    if len(points) < 3:
        return None
    ends = np.array(points)
    middle = ends.mean(axis=0)
    u, v = (ends - middle).T
    if max(np.ptp(u), np.ptp(v)) < 0.3:
        return None
    table = np.array([[product(u, u), product(u, v)], [product(u, v), product(v, v)]])
    if abs(table[0, 0] * table[1, 1] - table[0, 1] * table[1, 0]) < 1e-4:
        return None
    square = u * u + v * v
    a, b = portable.solve(table, 0.5 * np.array([product(u, square), product(v, square)]))
    radius = sqrt(a * a + b * b + square.mean())
    off = np.abs(np.hypot(u - a, v - b) - radius).max()
    if not 0.65 < radius < 2.4 or off > 0.05:
        return None
    return float(middle[0] + a), float(middle[1] + b), radius
