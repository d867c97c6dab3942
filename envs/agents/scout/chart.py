"""The map: what the agent knows of each place, ways on it, and where courses of action lead.

A ray of the sensor is a ball of the body's size that is swept along a line. So the map holds where
the body's middle can be: free along a ray, barred where the ray ended. No margins are added.

Everything here works on plain arrays and is compiled.
"""

from __future__ import annotations

from math import hypot, inf, radians, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt
from numba import njit

from animalcat.arena_configs.model import ARENA_SIDE
from animalcat.portable.compiled import cos, sin

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]

CELL: Final = 0.25
"""Metres: side of a cell of the map."""
SIDE: Final = round(ARENA_SIDE / CELL)
"""Cells along a side of the map."""

UNKNOWN: Final = 0
FREE: Final = 1
FIRM: Final = 2
MOVABLE: Final = 3
LAVA: Final = 4
HOT: Final = 5
SLOPE: Final = 6
"""States of a cell; the last is something firm that is, or may be, a slope."""

SHUT: Final = 1e6
"""Cost of a cell that is not entered."""
_DEPTH: Final = 0.5
"""Metres behind a hit that are barred as well: what is hit has some thickness."""
_BESIDE: Final = 0.7
"""Metres beside a ray in which it would have met a goal."""
_NEAR: Final = 0.6
"""Metres within which a ray clears nothing, since rays do not see what the body touches."""
VISITED: Final = 255
"""Doubt of a cell in which the body has been."""
_DOUBT: Final = 4
"""Rays through a barred cell until it counts as free."""
_GAP: Final = 1.6
"""Metres between hits of neighbouring directions that are taken for one surface."""
_LAVA_GAP: Final = 3.0
"""The same for lava, for safety's sake."""

_UNEASE: Final = 0.02
"""Seconds that a metre counts more for each unit of its cost, near lava."""

# The law of movement on the floor, for each physics step of 0.02 s (reference/animal-ai.md, 3.3).
_KEPT: Final = 0.968
_RUBBED: Final = 0.113953
_STOPPING: Final = 0.9
TICK: Final = 0.02


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def cell_of(x: float, z: float) -> int:
    """The cell of a position; positions outside the arena have the nearest."""
    i = min(max(int(x / CELL), 0), SIDE - 1)
    j = min(max(int(z / CELL), 0), SIDE - 1)
    return i * SIDE + j


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _bar(state: Bytes, doubt: Bytes, x: float, z: float, kind: int, filling: bool) -> None:
    if 0.0 <= x < ARENA_SIDE and 0.0 <= z < ARENA_SIDE:
        cell = cell_of(x, z)
        if state[cell] == SLOPE and kind == FIRM:
            return
        if doubt[cell] == VISITED:
            if kind == FIRM:
                return
        elif filling and state[cell] != UNKNOWN:
            return
        state[cell] = kind
        doubt[cell] = 0


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def trace(
    state: Bytes,
    doubt: Bytes,
    looked: Singles,
    x: float,
    z: float,
    heading: float,
    angles: Floats,
    kinds: Numbers,
    distances: Floats,
    hits: Floats,
    now: float,
) -> None:
    """Enter the rays of one observation.

    Args:
        state: State of each cell.
        doubt: Rays that contradicted each barred cell.
        looked: When each cell was last seen to hold no goal.
        x: The body's middle, in metres.
        z: The same.
        heading: Degrees clockwise from +z.
        angles: (n,) of the rays, degrees to the right of the heading.
        kinds: (n,) what each ray met: a state, or `FREE` where its end bars nothing, or `UNKNOWN`
            where it met nothing within reach, and only its beginning counts.
        distances: (n,) metres that each ray travelled.
        hits: (n, 4) the last barring hit of each ray: x, z, state, decision; changed in place. With
            them the surface between hits of neighbouring directions is filled.
        now: Seconds.
    """
    here = cell_of(x, z)
    if state[here] != SLOPE:
        state[here] = FREE
    doubt[here] = VISITED
    for n in range(len(angles)):
        a = radians(heading + angles[n])
        dx, dz = sin(a), cos(a)
        length = distances[n]
        # What the body touches its rays do not meet: they pass through, and tell nothing.
        through = False
        for k in range(1, 4):
            px, pz = x + 0.2 * k * dx, z + 0.2 * k * dz
            if 0.0 <= px < ARENA_SIDE and 0.0 <= pz < ARENA_SIDE and 0.2 * k < length:
                through = through or state[cell_of(px, pz)] == FIRM
        t = 0.0
        while t < length:
            px, pz = x + t * dx, z + t * dz
            if not (0.0 <= px < ARENA_SIDE and 0.0 <= pz < ARENA_SIDE):
                break
            cell = cell_of(px, pz)
            held = state[cell]
            if through:
                pass
            elif held <= FREE:
                state[cell] = FREE
            elif doubt[cell] == VISITED:
                pass
            elif t > _NEAR and t < length - 0.3:
                doubt[cell] += 1
                if doubt[cell] > _DOUBT:
                    state[cell], doubt[cell] = FREE, 0
            reach = min(_BESIDE, 0.3 + 0.4 * t)
            w = -reach
            while w <= reach:
                qx, qz = px + w * dz, pz - w * dx
                if 0.0 <= qx < ARENA_SIDE and 0.0 <= qz < ARENA_SIDE:
                    looked[cell_of(qx, qz)] = now
                w += 0.2
            t += 0.2
        kind = kinds[n]
        if kind <= FREE or through:
            hits[n, 2] = 0.0
            continue
        ex, ez = x + length * dx, z + length * dz
        depth = 1.0 if kind in (LAVA, HOT) else _DEPTH
        t = 0.12
        while t < depth:
            px, pz = ex + t * dx, ez + t * dz
            _bar(state, doubt, px, pz, kind, t > 1.0)
            if 0.0 <= px < ARENA_SIDE and 0.0 <= pz < ARENA_SIDE:
                looked[cell_of(px, pz)] = now
            t += 0.2
        # The same surface, seen by the same ray a decision ago.
        if hits[n, 2] == kind:
            ox, oz = hits[n, 0], hits[n, 1]
            gap = hypot(ex - ox, ez - oz)
            if 0.2 < gap < (_LAVA_GAP if kind == LAVA else _GAP):
                steps = int(gap / 0.15)
                for k in range(1, steps):
                    s = k / steps
                    px, pz = ox + s * (ex - ox), oz + s * (ez - oz)
                    _bar(state, doubt, px + 0.1 * dx, pz + 0.1 * dz, kind, True)
        hits[n, 0], hits[n, 1], hits[n, 2] = ex, ez, kind


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def look_along(
    state: Bytes, looked: Singles, x: float, z: float, heading: float, reach: Floats, now: float
) -> None:
    """Enter what a camera of 100 degrees shows to hold no goal, as far as the rays beside reach.

    Args:
        state: State of each cell.
        looked: When each cell was last seen to hold no goal.
        x: Where the camera is, in metres.
        z: The same.
        heading: Degrees clockwise from +z.
        reach: (n,) metres, for n directions from -48 to 48 degrees.
        now: Seconds.
    """
    n = len(reach)
    for k in range(n):
        a = radians(heading - 48.0 + 96.0 * k / (n - 1))
        dx, dz = sin(a), cos(a)
        t = 0.5
        while t < reach[k]:
            px, pz = x + t * dx, z + t * dz
            if not (0.0 <= px < ARENA_SIDE and 0.0 <= pz < ARENA_SIDE):
                break
            cell = cell_of(px, pz)
            if state[cell] == FIRM:
                break
            looked[cell] = now
            t += 0.25


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def costs(
    state: Bytes, discs: Floats, unknown: float, slope: float, movable: float, fears: bool
) -> Singles:
    """What a metre costs in each cell.

    Args:
        state: State of each cell.
        discs: (n, 4) circles that cost more: x, z, radius in metres, cost.
        unknown: Cost of a cell of which nothing is known.
        slope: Cost of a slope.
        movable: Cost of what can be pushed.
        fears: Whether lava is kept away from.
    """
    cost = np.empty(SIDE * SIDE, np.float32)
    base = np.array([unknown, 1.0, SHUT, movable, SHUT, 6.0, slope], np.float32)
    for cell in range(SIDE * SIDE):
        cost[cell] = base[state[cell]]
    for i in range(SIDE):
        for j in range(SIDE):
            kind = state[i * SIDE + j]
            if kind in (FIRM, MOVABLE):
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        a, b = i + di, j + dj
                        if 0 <= a < SIDE and 0 <= b < SIDE:
                            other = a * SIDE + b
                            if cost[other] < 3.0:
                                cost[other] = 3.0
            elif kind == LAVA and fears:
                for di in range(-6, 7):
                    for dj in range(-6, 7):
                        a, b = i + di, j + dj
                        if 0 <= a < SIDE and 0 <= b < SIDE:
                            away = CELL * sqrt(di * di + dj * dj)
                            if away < 1.5:
                                other = a * SIDE + b
                                dear = SHUT if away < 0.3 else 1.0 + 8.0 * (1.5 - away)
                                if cost[other] < dear:
                                    cost[other] = dear
    for k in range(len(discs)):
        x, z, radius, dear = discs[k]
        low_i, high_i = int((x - radius) / CELL), int((x + radius) / CELL)
        low_j, high_j = int((z - radius) / CELL), int((z + radius) / CELL)
        for i in range(max(low_i, 0), min(high_i, SIDE - 1) + 1):
            for j in range(max(low_j, 0), min(high_j, SIDE - 1) + 1):
                if hypot((i + 0.5) * CELL - x, (j + 0.5) * CELL - z) < radius:
                    cell = i * SIDE + j
                    if dear == 0.0:
                        if state[cell] != LAVA:
                            cost[cell] = 1.0
                    elif cost[cell] < dear:
                        cost[cell] = dear
    # The body's middle comes no nearer than half a metre to the arena's walls.
    for k in range(SIDE):
        for line in range(2):
            dear = SHUT if line == 0 else 4.0
            other = SIDE - 1 - line
            for cell in (line * SIDE + k, other * SIDE + k, k * SIDE + line, k * SIDE + other):
                if cost[cell] < dear:
                    cost[cell] = dear
    return cost


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def spread(cost: Singles, sources: Numbers, until: int, margin: float, outward: bool) -> Singles:
    """Least cost from each cell to one of some cells, by buckets of a quarter of a metre.

    Args:
        cost: What a metre costs in each cell.
        sources: Cells that cost nothing.
        until: Stop a while after this cell has its cost; -1 for never.
        margin: How much farther it then goes on.
        outward: Whether ways lead from those cells to each, instead of the reverse.
    """
    total = SIDE * SIDE
    field = np.full(total, np.float32(inf), np.float32)
    buckets = 512
    width = 0.2
    # Linked lists of entries, one for each bucket of a ring; no step costs more than the ring.
    head = np.full(buckets, -1, np.int32)
    follow = np.empty(9 * total, np.int32)
    item = np.empty(9 * total, np.int32)
    key = np.empty(9 * total, np.float32)
    used = 0
    waiting = 0
    for source in sources:
        if field[source] > 0.0:
            field[source] = 0.0
            item[used], key[used], follow[used] = source, 0.0, head[0]
            head[0] = used
            used += 1
            waiting += 1
    at = 0
    limit = inf
    while waiting > 0:
        slot = at % buckets
        if at * width > limit:
            break
        while head[slot] >= 0:
            entry = head[slot]
            head[slot] = follow[entry]
            waiting -= 1
            here = item[entry]
            if key[entry] > field[here]:
                continue
            if here == until:
                limit = min(limit, key[entry] + margin)
            i, j = here // SIDE, here % SIDE
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    if di == 0 and dj == 0:
                        continue
                    a, b = i + di, j + dj
                    if not (0 <= a < SIDE and 0 <= b < SIDE):
                        continue
                    other = a * SIDE + b
                    mean = 0.5 * (cost[here] + cost[other])
                    if cost[here] >= SHUT or cost[other] >= SHUT:
                        # A way leads out of what is barred, and never into it.
                        entered, left = (other, here) if outward else (here, other)
                        if cost[entered] >= SHUT and cost[left] < SHUT and key[entry] > 0.0:
                            continue
                        mean = 100.0
                    step = mean * CELL * (1.4142 if di != 0 and dj != 0 else 1.0)
                    further = np.float32(key[entry] + step)
                    if further < field[other]:
                        field[other] = further
                        if used == len(item):
                            return field
                        bucket = int(further / width) % buckets
                        item[used], key[used] = other, further
                        follow[used] = head[bucket]
                        head[bucket] = used
                        used += 1
                        waiting += 1
        at += 1
    return field


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def disc_cells(x: float, z: float, radius: float) -> Numbers:
    """Cells whose middle is within a radius of a point, and the point's own."""
    cells = np.empty(SIDE * SIDE, np.int64)
    cells[0] = cell_of(x, z)
    n = 1
    for i in range(max(int((x - radius) / CELL), 0), min(int((x + radius) / CELL), SIDE - 1) + 1):
        for j in range(
            max(int((z - radius) / CELL), 0), min(int((z + radius) / CELL), SIDE - 1) + 1
        ):
            if hypot((i + 0.5) * CELL - x, (j + 0.5) * CELL - z) < radius:
                cells[n] = i * SIDE + j
                n += 1
    return cells[:n].copy()


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _share(sums: Numbers, i: int, j: int, half: int) -> tuple[int, float]:
    """Number and share of cells that were not seen, in a square around one."""
    a, b = max(i - half, 0), max(j - half, 0)
    c, d = min(i + half + 1, SIDE), min(j + half + 1, SIDE)
    unseen = sums[c, d] - sums[a, d] - sums[c, b] + sums[a, b]
    return unseen, unseen / ((c - a) * (d - b))


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def choose_view(
    looked: Singles,
    since: float,
    reach: Singles,
    state: Bytes,
    guesses: Floats,
    ahead_x: float,
    ahead_z: float,
    x: float,
    z: float,
) -> int:
    """The cell to look at next: near, and among many that have not been seen.

    Args:
        looked: When each cell was last seen to hold no goal.
        since: Cells seen before this time count as not seen.
        reach: Cost of the way to each cell.
        state: State of each cell.
        guesses: (n, 3) where a goal is thought to be: x, z, and metres by which that may be wrong.
        ahead_x: The direction that the agent faces, along x.
        ahead_z: The same along z.
        x: Where it is, in metres.
        z: The same.

    Returns:
        The cell, or -1 if there is none.
    """
    sums = np.zeros((SIDE + 1, SIDE + 1), np.int64)
    for i in range(SIDE):
        row = 0
        for j in range(SIDE):
            cell = i * SIDE + j
            if looked[cell] < since and 2 <= i < SIDE - 2 and 2 <= j < SIDE - 2:
                row += 1
            sums[i + 1, j + 1] = sums[i, j + 1] + row
    best, chosen = inf, -1
    for i in range(2, SIDE - 2, 2):
        for j in range(2, SIDE - 2, 2):
            cell = i * SIDE + j
            if reach[cell] >= 1e5 or state[cell] == FIRM or state[cell] == LAVA:
                continue
            if looked[cell] >= since:
                continue
            unseen, share = _share(sums, i, j, 4)
            _, wide = _share(sums, i, j, 16)
            px, pz = (i + 0.5) * CELL - x, (j + 0.5) * CELL - z
            away = hypot(px, pz)
            value = reach[cell] - 4.0 * share - 16.0 * wide
            if len(guesses):
                if unseen < 6:
                    continue
                near = inf
                for k in range(len(guesses)):
                    off = hypot((i + 0.5) * CELL - guesses[k, 0], (j + 0.5) * CELL - guesses[k, 1])
                    near = min(near, max(0.0, off - 0.3 * guesses[k, 2]))
                value += 2.5 * near
            elif share < 0.35:
                continue
            if away > 0.1:
                value += 1.5 * (1.0 - (px * ahead_x + pz * ahead_z) / away)
            if value < best:
                best, chosen = value, cell
    return chosen


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _course(
    state: Bytes,
    dear: Singles,
    field: Singles,
    x: float,
    z: float,
    vx: float,
    vz: float,
    heading: float,
    ticks: int,
    turn: int,
    turning: int,
    running: bool,
    run: int,
    fears: bool,
    pace: float,
) -> float:
    """What a course costs in seconds: its time, and the way from where it comes to a stand."""
    keep = _KEPT**ticks
    push = (_KEPT * (1.0 - keep) / (1.0 - _KEPT)) if ticks > 0 else 0.0
    rub = _RUBBED * (1.0 - keep) / (1.0 - _KEPT)
    stop = (_KEPT * _STOPPING) ** ticks
    stop_rub = _RUBBED * (1.0 - stop) / (1.0 - _KEPT * _STOPPING)
    length = ticks * TICK
    spent = 0.0
    extra = 0.0
    began = field[cell_of(x, z)]
    for k in range(turning + run + 12):
        thrust = False
        if k < turning:
            heading += turn * 2.0 * ticks
            thrust = running
        elif k < turning + run:
            thrust = True
        a = radians(heading)
        ox, oz = vx, vz
        if thrust:
            vx, vz = vx * keep + push * sin(a), vz * keep + push * cos(a)
            rubbed = rub
        else:
            vx, vz = vx * stop, vz * stop
            rubbed = stop_rub
        speed = hypot(vx, vz)
        if speed > rubbed:
            vx, vz = vx * (1.0 - rubbed / speed), vz * (1.0 - rubbed / speed)
        else:
            vx, vz = 0.0, 0.0
        # Where it is half way and at the end of the decision.
        for part in range(2):
            last = cell_of(x, z)
            x += 0.25 * (ox + vx) * length
            z += 0.25 * (oz + vz) * length
            cell = cell_of(x, z)
            held = state[cell]
            if held == LAVA and fears:
                return 1e5 - k
            if 5.0 < dear[cell] < SHUT:
                # Near lava what is not foreseen kills, the more so the faster it goes.
                extra += _UNEASE * dear[cell] * speed * length
            out = x < 0.45 or z < 0.45 or x > ARENA_SIDE - 0.45 or z > ARENA_SIDE - 0.45
            # Where it touches something the map may have it inside, and it may go out of there.
            deeper = state[last] != FIRM or field[cell] >= field[last]
            if out or (held == FIRM and cell != last and deeper):
                x -= 0.25 * (ox + vx) * length
                z -= 0.25 * (oz + vz) * length
                vx, vz = 0.0, 0.0
                extra += 0.3
                break
            if field[cell] <= 0.0 and speed > 0.0:
                return spent + length * 0.5 * (part + 1) + extra
        spent += length
        if k >= turning + run and vx == 0.0 and vz == 0.0:
            break
    end = field[cell_of(x, z)]
    if end >= began - 0.01:
        extra += 2.0
    # The way that remains begins with a turn.
    off = abs(downhill(field, x, z) - heading) % 360.0
    extra += min(off, 360.0 - off) / (2.0 / TICK)
    return spent + extra + min(end, 1e4) / pace


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def downhill(field: Singles, x: float, z: float) -> float:
    """The direction in which the way goes on, in degrees."""
    least, best = inf, 0.0
    for k in range(16):
        a = k * 0.39269908169872414
        px, pz = x + 0.8 * sin(a), z + 0.8 * cos(a)
        if 0.0 < px < ARENA_SIDE and 0.0 < pz < ARENA_SIDE:
            cost = field[cell_of(px, pz)]
            if cost < least:
                least, best = cost, 22.5 * k
    return best


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def steer(
    state: Bytes,
    dear: Singles,
    field: Singles,
    x: float,
    z: float,
    vx: float,
    vz: float,
    heading: float,
    ticks: int,
    last: int,
    fears: bool,
    pace: float,
) -> int:
    """The first action of the best of some hundred courses: turn by an angle, run, and stop.

    Args:
        state: State of each cell.
        dear: What a metre costs in each cell.
        field: Cost of the way from each cell.
        x: Where the agent is, in metres.
        z: The same.
        vx: Its velocity in m/s.
        vz: The same.
        heading: Degrees clockwise from +z.
        ticks: Physics steps in a decision.
        last: The turn of the last decision (0, 1 right, 2 left), which it keeps in a tie.
        fears: Whether lava kills a course.
        pace: Metres a second at which what remains of the way counts.
    """
    turns = np.array([0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 26, 30])
    runs = np.array([1, 3, 7, 14])
    best, action = inf, 0
    scale = 3.0 / ticks
    for number in range(len(turns)):
        steps = turns[number]
        if steps > 4:
            steps = max(5, round(steps * scale))
        for side in range(2):
            if steps == 0 and side == 1:
                continue
            sign = 1 if side == 0 else -1
            turn = 0 if steps == 0 else 1 + side
            for moving in range(2):
                if moving == 1 and (steps == 0 or steps > 6):
                    continue
                for r in range(len(runs)):
                    cost = _course(
                        state, dear, field, x, z, vx, vz, heading, ticks, sign, steps,
                        moving == 1, max(1, round(runs[r] * scale)), fears, pace,
                    )  # fmt: skip
                    if turn and turn != last:
                        cost += 0.02 if last == 0 else 0.15
                    if cost < best:
                        best = cost
                        thrust = moving == 1 or steps == 0
                        action = (3 if thrust else 0) + turn
    # Standing still, or turning there.
    for side in range(3):
        cost = _course(
            state, dear, field, x, z, vx, vz, heading, ticks,
            0 if side == 0 else (1 if side == 1 else -1), 0 if side == 0 else 1,
            False, 0, fears, pace,
        ) + 0.06  # fmt: skip
        if cost < best and best >= 1e4:
            best, action = cost, side
    return action
