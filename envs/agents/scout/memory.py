"""What the agent remembers of goals: where it sensed them, and where they may be now."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import degrees, hypot, inf, radians, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from animalcat.arena_configs.model import ARENA_SIDE
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
_SMALLEST: Final = 0.25
"""Metres: the smallest radius that a goal has."""
_WIDEST_SEEN: Final = 2.5
"""Metres: the largest radius that the camera is believed to show."""
_WIDEST_SIZE: Final = 3.0
"""Metres: what a goal that seems so large is nearer than, over the sine of its angle."""
_BLIND_MISSES: Final = 2
"""The same as `_MISSES`, without an image."""
_STANDS: Final = 0.3
"""m/s below which a goal is taken to stand where it was."""
_SLOW: Final = 0.5
"""m/s below which a goal, or the agent, hardly moves."""
_MOVES: Final = 1.0
"""m/s above which a goal has moved."""
_SLOWS: Final = 2.5
"""Seconds in which a rolling goal loses all but 1/e of its speed."""
_EULER: Final = 2.718
"""The base of that decay."""
_TURN_EDGE: Final = 0.3
"""Metres from the fence within which no goal is put when everything is turned."""
_EDGE: Final = 0.4
"""Metres from the fence within which no goal is put that was just seen."""
_MOST_ROLLED: Final = 3.0
"""Metres that a goal may be from where it was, since it may have rolled."""
_GONE_ROOM: Final = 4.0
"""Metres more than that for a goal that is no longer where it was."""
_SAME_STEP: Final = 1.0
"""Metres within which two rays of one step meet the same goal, beside its radius."""
_GRAZES: Final = 0.7
"""Radii behind the end of a ray at which the middle of a goal lies on average."""
_ELSEWHERE: Final = 4.0
"""Metres from the last end of a ray above which earlier ends are of elsewhere."""
_ON_FLOOR: Final = 0.6
"""Metres: height of the agent's middle below which it stands on the floor."""
_BLEND: Final = 0.4
"""Share by which a ray moves the middle of a known goal."""
_LEARNS: Final = 0.3
"""Share by which an image changes the radius of a goal."""
_LEAST_DEGREES: Final = 0.4
"""Degrees: the smallest angular radius of which a distance is told."""
_ABOVE: Final = 0.6
"""Degrees above the horizon from which the lower edge of a goal is not on the floor."""
_LEAST_DIP: Final = 0.012
"""Sine of the dip below the horizon from which the lower edge tells a distance."""
_NEAREST: Final = 0.6
"""Metres: the nearest that a goal may be without being touched."""
_FARTHEST: Final = 45.0
"""Metres: the farthest that a goal may seem."""
_LEAST_AWAY: Final = 0.3
"""Metres below which two positions of the agent, or of it and a goal, are one."""
_BEARING_ROOM: Final = 4.0
"""Degrees within which two patches are of the same goal, beside its size."""
_DRIFTS: Final = 0.3
"""Share of its greatest speed at which a goal may have gone aside unseen."""
_LARGEST_SINE: Final = 0.9
"""Largest sine of the angle that a goal and its way may take up."""
_ASIDE: Final = 60.0
"""Degrees from where a goal was sensed beyond which nothing tells of it."""
_RAY_KEPT: Final = 1.0
"""Seconds for which a distance by a ray goes before that by an image."""
_SETTLED: Final = 0.3
"""Metres above the floor up to which a goal is not taken to be raised."""
_ROSE: Final = 1.2
"""Degrees by which a goal that rises or sinks in the image has moved."""
_WENT: Final = 1.5
"""Degrees by which a goal that goes aside in the image has moved."""
_ROUNDS: Final = 4
"""Rounds in which distance and radius of a half-hidden goal are found from one another."""
_LEAST_HIGH: Final = 0.6
"""Least width of a goal behind a thing, as a share of the height of its top."""
_MOST_HIGH: Final = 1.5
"""Largest width of it, likewise."""
_HIDES: Final = 1.3
"""How much larger than what shows of it a goal must be to be hidden in part."""
_TRAIL: Final = 12
"""Most sightings in the trail of a goal."""
_SHORT_TRAIL: Final = 6
"""Sightings that stay of a trail that has become long."""
_LEAST_SPAN: Final = 0.3
"""Seconds of trail from which a velocity is told."""
_LONG_SPAN: Final = 1.5
"""Seconds from which a trail is long."""
_RAISED: Final = 0.5
"""Metres above the floor from which a goal is out of reach of rays."""
_BELOW: Final = 1.5
"""Metres from a raised goal at which it would have been touched."""
_RAISED_KEPT: Final = 3.0
"""Seconds after which a raised goal that nothing showed is taken to be elsewhere."""
_PAST: Final = 1.0
"""Metres past a goal to which a ray must go to have missed it."""
_ACROSS: Final = 0.4
"""Metres beside the middle of a goal within which a ray must have met it."""
_IN_SIGHT: Final = 42.0
"""Degrees to either side within which the camera would show a goal."""
_TOO_NEAR: Final = 0.8
"""Metres within which a goal may be below the image."""
_TOUCHED: Final = 3.0
"""Metres within which what was touched may be, beside its radius."""
_PARALLEL: Final = 1e-6
"""Component of a direction up to which a fence is never met."""
_LEAST_ENDS: Final = 3
"""Ends of rays that tell a circle."""
_LEAST_SPREAD: Final = 0.3
"""Metres over which they must be spread."""
_FLAT: Final = 1e-4
"""Determinant up to which they lie on a line."""
_LEAST_TOUCH: Final = 0.65
"""Metres: the least distance of middles at which a body touches a goal."""
_MOST_TOUCH: Final = 2.4
"""Metres: the largest such distance that is believed."""
_OFF: Final = 0.05
"""Metres by which an end may be off the circle."""


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
        if now - self.moved - since > _RESTING or hypot(self.vx, self.vz) < _STANDS:
            return self.x, self.z
        run = _SLOWS * (1.0 - _EULER ** (-since / _SLOWS))
        return (
            min(max(self.x + self.vx * run, _USUAL), ARENA_SIDE - _USUAL),
            min(max(self.z + self.vz * run, _USUAL), ARENA_SIDE - _USUAL),
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
            goal.x = min(max(goal.x, _TURN_EDGE), ARENA_SIDE - _TURN_EDGE)
            goal.z = min(max(goal.z, _TURN_EDGE), ARENA_SIDE - _TURN_EDGE)

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
            room = _SAME + goal.radius + min(_MOST_ROLLED, _FASTEST * (now - goal.seen))
            if goal.gone:
                room += _GONE_ROOM
            if goal.seen == now:
                room = goal.radius + _SAME_STEP
            if off < min(room, least):
                best, least = goal, off
        radius = best.radius if best is not None else _USUAL
        reach = distance + _BODY + _GRAZES * radius
        x, z = pose.x + reach * dx, pose.z + reach * dz
        if best is None:
            best = Goal(kind, x, z, radius, now, now)
            self.goals.append(best)
        ends = best.ends
        if best.gone or (ends and hypot(ends[-1][0] - x, ends[-1][1] - z) > _ELSEWHERE):
            ends.clear()
        ends.append((pose.x + distance * dx, pose.z + distance * dz))
        del ends[:-_ENDS]
        fitted = _circle(ends) if hypot(best.vx, best.vz) < _SLOW else None
        if fitted is not None:
            best.x, best.z, touch = fitted
            # Both lie on the floor, so their middles differ in height.
            best.radius = touch**2 / 2.0 if pose.y < _ON_FLOOR else max(_SMALLEST, touch - _BODY)
        elif best.seen == now and best.by_ray == now:
            best.x, best.z = 0.5 * (best.x + x), 0.5 * (best.z + z)
        elif best.by_ray == -inf or best.gone or least > _SAME_STEP + best.radius:
            best.x, best.z = x, z
        else:
            best.x, best.z = best.x + _BLEND * (x - best.x), best.z + _BLEND * (z - best.z)
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
        size = sin(radians(max(patch.radius, _LEAST_DEGREES)))
        lies = sin(radians(patch.radius - patch.rise))
        raised = patch.bottom > _ABOVE
        distance = _USUAL / size if raised or lies <= _LEAST_DIP else eye / lies
        distance = min(max(distance, _NEAREST), _FARTHEST, _WIDEST_SIZE / size)
        best: Goal | None = None
        least = inf
        for goal in self.goals:
            if goal.kind != patch.kind and goal.kind != ODD:
                continue
            gx, gz = goal.x - pose.x, goal.z - pose.z
            if goal.gone:
                gx, gz = (w - v for v, w in zip((pose.x, pose.z), goal.guess(now), strict=True))
            away = max(hypot(gx, gz), _LEAST_AWAY)
            bearing = degrees(atan2(gx, gz))
            off = abs(angle_between(bearing - pose.heading - patch.bearing))
            room = _BEARING_ROOM + degrees(
                asin(
                    min(
                        _LARGEST_SINE, (goal.radius + _FASTEST * (now - goal.seen) * _DRIFTS) / away
                    )
                )
            )
            if goal.seen == now and goal.by_ray < now:
                continue
            if off < min(room, _ASIDE) and off < least:
                best, least = goal, off
        if best is None:
            x, z = _inside(pose, dx, dz, distance)
            best = Goal(patch.kind, x, z, min(_WIDEST_SEEN, distance * size), now, now)
            self.goals.append(best)
        else:
            best.kind = patch.kind
            here = hypot(best.eye[0] - pose.x, best.eye[1] - pose.z) < _LEAST_AWAY
            kept = now - best.by_ray < _RAY_KEPT or (
                best.by_ray > -inf and not raised and not best.gone
            )
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
                best.radius += _LEARNS * (
                    min(_WIDEST_SEEN, max(_SMALLEST, distance * size)) - best.radius
                )
        if patch.radius >= best.widest:
            best.widest, best.widest_at = patch.radius, (pose.x, pose.z)
        best.raised = (
            max(0.0, distance * tan(radians(patch.rise)) + eye - best.radius - _SETTLED)
            if raised
            else 0.0
        )
        turned = abs(angle_between(degrees(a) - best.bearing))
        if best.first == now or abs(patch.rise - best.rise) > _ROSE or turned > _WENT:
            if best.first < now and hypot(pose.vx, pose.vz) < _SLOW and not patch.cut:
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
        for _ in range(_ROUNDS):
            distance = near + radius
            x, z = pose.x + distance * sin(a), pose.z + distance * cos(a)
            before = hypot(x - goal.widest_at[0], z - goal.widest_at[1])
            shows = distance * sin(radians(patch.radius))
            radius = min(max(shows, before * sin(radians(goal.widest))), _LARGEST)
        if patch.bottom > _ABOVE:
            # Its top is as high above the floor as it is wide, unless it lies on something.
            top = eye + (near + radius) * tan(radians(patch.rise + patch.radius))
            if not _LEAST_HIGH * top < 2.0 * radius < _MOST_HIGH * top:
                return None
        elif radius < _HIDES * shows:
            return None  # all of it shows
        return near + radius, radius

    def _sense(self, goal: Goal, pose: Pose, now: float, *, tracks: bool) -> None:
        goal.seen, goal.misses, goal.gone = now, 0, False
        goal.eye = pose.x, pose.z
        if not tracks or (goal.trail and goal.trail[-1][0] == now):
            return
        goal.trail.append((now, goal.x, goal.z))
        if len(goal.trail) > _TRAIL:
            del goal.trail[0]
        before, x, z = goal.trail[0]
        span = now - before
        if span > _LEAST_SPAN:
            goal.vx, goal.vz = (goal.x - x) / span, (goal.z - z) / span
            if hypot(goal.vx, goal.vz) > _MOVES:
                goal.moved = now
        if span > _LONG_SPAN:
            goal.trail = goal.trail[-_SHORT_TRAIL:]

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
            if away < _NEAREST or (
                goal.raised > _RAISED and (away < _BELOW or now - goal.seen > _RAISED_KEPT)
            ):
                goal.gone = True
                continue
            missed = False
            if goal.raised < _RAISED:
                for angle, length, tells in zip(angles, lengths, free, strict=True):
                    if tells and length > away + _PAST:
                        across = away * abs(sin(radians(angle_between(angle - bearing))))
                        if abs(angle_between(angle - bearing)) < _ASIDE and across < _ACROSS:
                            missed = True
            if looks and abs(bearing) < _IN_SIGHT and away > _TOO_NEAR and not missed:
                assert callable(open_to)
                missed = goal.raised < _RAISED and bool(open_to(goal.x, goal.z))
            if missed:
                goal.misses += 1
                if goal.misses >= _MISSES or (not looks and goal.misses >= _BLIND_MISSES):
                    goal.gone = True

    def collect(self, pose: Pose) -> None:
        """Something good was touched: the goal nearest to the agent is no longer there."""
        near = [goal for goal in self.goals if goal.kind != RED]
        if near:
            nearest = min(near, key=lambda goal: goal.away(pose.x, pose.z))
            if nearest.away(pose.x, pose.z) < _TOUCHED + nearest.radius:
                self.goals.remove(nearest)

    def forget(self, before: float) -> None:
        """Forget goals that were last sensed before a time."""
        self.goals = [goal for goal in self.goals if goal.seen >= before]


def _inside(pose: Pose, dx: float, dz: float, distance: float) -> tuple[float, float]:
    """A position in some direction, as far as the arena reaches; anywhere, if that is not known."""
    if pose.known:
        for v, d in ((pose.x, dx), (pose.z, dz)):
            if d > _PARALLEL:
                distance = min(distance, max(_NEAREST, (ARENA_SIDE - _EDGE - v) / d))
            elif d < -_PARALLEL:
                distance = min(distance, max(_NEAREST, (_EDGE - v) / d))
    return pose.x + distance * dx, pose.z + distance * dz


def _circle(points: Sequence[tuple[float, float]]) -> tuple[float, float, float] | None:
    """Middle and radius of the circle on which points lie; None if they do not tell."""
    if len(points) < _LEAST_ENDS:
        return None
    ends = np.array(points)
    middle = ends.mean(axis=0)
    u, v = (ends - middle).T
    if max(np.ptp(u), np.ptp(v)) < _LEAST_SPREAD:
        return None
    table = np.array([[product(u, u), product(u, v)], [product(u, v), product(v, v)]])
    if abs(table[0, 0] * table[1, 1] - table[0, 1] * table[1, 0]) < _FLAT:
        return None
    square = u * u + v * v
    a, b = portable.solve(table, 0.5 * np.array([product(u, square), product(v, square)]))
    radius = sqrt(a * a + b * b + square.mean())
    off = np.abs(np.hypot(u - a, v - b) - radius).max()
    if not _LEAST_TOUCH < radius < _MOST_TOUCH or off > _OFF:
        return None
    return float(middle[0] + a), float(middle[1] + b), radius
