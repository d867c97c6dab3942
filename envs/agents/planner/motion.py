"""Foresees where actions lead by the law of movement, and chooses the action that leads on best.

Each decision tries some hundred courses: to turn by some angle, standing or running, and then to
run for a while. A course is worth the time that it takes, plus what the way costs from where the
agent would stand if it then stopped. So it never runs faster than it can stop before lava, slows
down before corners, and takes the run-up that a ramp needs.

The law is that of reference/animal-ai.md section 3.3; walls are those of the
ground's grid.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from animalcat.arena_configs.ground import CELL, SIDE
from animalcat.arena_configs.model import ARENA_SIDE
from animalcat.arena_configs.placement import AGENT_RADIUS
from animalcat.envs.agents.planner.terrain import SHY, Floats, Land
from animalcat.portable.compiled import cos, sin

DT: Final = 0.02
_KEPT: Final = 0.968
_STOP: Final = 0.9
_FALL: Final = 0.1962
_MU: Final = 0.6
TURN: Final = 2.0
"""Degrees that it turns in a physics step."""
_STEP_UP: Final = 0.26
"""Metres that the body's centre rises on a step that it takes."""
_OFF: Final = 0.03
"""Metres above the ground from which the body is in the air."""
_LOW: Final = AGENT_RADIUS
_HIGH: Final = ARENA_SIDE - AGENT_RADIUS

PACE: Final = 6.0
"""m/s at which what is left of the way is thought to be gone."""
DEATH: Final = 1e5
"""Seconds that dying is worth."""
LOST: Final = 1e4
"""Seconds that being somewhere without a way is worth."""
IDLE: Final = 1e3
"""Seconds that it costs not to get on."""
UNEASE: Final = 1.0
"""Seconds that a metre beside lava costs."""
_PRIZE: Final = 1.0
"""Seconds that touching what is wanted is worth."""
_CLOSE: Final = 0.35
"""Metres from lava within which standing is uneasy."""
_CLOSER: Final = 0.06
"""Metres by which this grows for each m/s."""

WANTED: Final = 1.0
SHUNNED: Final = 2.0
BALL_COLUMNS: Final = 8
"""Columns of balls: x, y, z, radius, velocity along x, y and z, and WANTED or SHUNNED."""

RUNS: Final = (0, 1, 2, 4, 6, 9, 13, 18, 26)
"""Decisions of running after which a course may stop."""

Courses = npt.NDArray[np.int64]


class MotionState(NamedTuple):
    """The position, velocity and heading of the agent's body, and what has become of it.

    What numba keeps of functions that take it has the name of this class: who renames it deletes
    the `.nbi` files beside this one.

    Attributes:
        x: Metres.
        y: Metres.
        z: Metres.
        vx: m/s along x.
        vy: m/s up.
        vz: m/s along z.
        yaw: Degrees clockwise from +z.
        place: The place where it is, or over which; -1: none.
        grounded: Whether it can push off.
        state: 0; 1 it has touched what is wanted; 2 it is dead.
        uneasy: Metres gone near lava, by how near.
    """

    x: float
    y: float
    z: float
    vx: float
    vy: float
    vz: float
    yaw: float
    place: int
    grounded: bool
    state: int
    uneasy: float


@njit(cache=True, inline="always")
def _index(value: float) -> int:
    """Index of the nearest line of the grid to a coordinate."""
    return min(max(round((value - AGENT_RADIUS) / CELL), 0), SIDE - 1)


@njit(cache=True, inline="always")
def place_at(land: Land, x: float, z: float, y: float, climb: float) -> int:
    """The highest place at a position that the body can be at or above; -1: there is none."""
    cell = _index(x) * SIDE + _index(z)
    best = -1
    for place in range(land.first[cell], land.first[cell + 1]):
        if land.height[place] <= y + climb:
            best = place
    if best >= 0 and y > land.ceiling[best] + 0.05:
        return -1
    return best


@njit(cache=True, inline="always")
def floor_at(land: Land, place: int, x: float, z: float) -> float:
    """Height of the body's centre at a position of a place."""
    if land.grade[place] == 0.0:
        return float(land.height[place])
    # Which point of the grid the place is at follows from the position.
    px, pz = AGENT_RADIUS + CELL * _index(x), AGENT_RADIUS + CELL * _index(z)
    rise = land.slope_x[place] * (x - px) + land.slope_z[place] * (z - pz)
    return float(land.height[place] + rise)


@njit(cache=True, inline="always")
def onward(land: Land, body: MotionState, x: float, z: float) -> int:
    """The place to which the body comes when it goes to a position; -1 if something bars it."""
    if not body.grounded or body.place < 0:
        return place_at(land, x, z, body.y, 0.05)
    column, row = _index(x), _index(z)
    if column == _index(body.x) and row == _index(body.z):
        return body.place
    place = body.place
    for _ in range(4):
        cell = land.cell[place]
        dx = min(max(column - cell // SIDE, -1), 1)
        dz = min(max(row - cell % SIDE, -1), 1)
        if dx == 0 and dz == 0:
            return place
        place = land.near[place, _direction(dx, dz)]
        if place < 0:
            return -1
    return place


@njit(cache=True, inline="always")
def _direction(dx: int, dz: int) -> int:
    """Column of `Land.near`."""
    if dx == 1:
        return (7, 0, 4)[dz + 1]
    if dx == 0:
        return (3, 3, 1)[dz + 1]
    return (6, 2, 5)[dz + 1]


@njit(cache=True, inline="always")
def _on_slope(
    slope_x: float, slope_z: float, vx: float, vy: float, vz: float
) -> tuple[float, float, float]:
    """Velocity after a physics step in contact with a slope, by steps 3 and 4 of the law.

    Args:
        slope_x: Rise for each metre along x.
        slope_z: Rise for each metre along z.
        vx: Velocity with the thrust, in m/s; vy and vz too.
        vy: Upwards.
        vz: Along z.
    """
    length = math.sqrt(1.0 + slope_x * slope_x + slope_z * slope_z)
    nx, ny, nz = -slope_x / length, 1.0 / length, -slope_z / length
    # One axis is that of the movement, the other lies across it; friction acts along each.
    lift = vx * nx + vy * ny + vz * nz
    ax, ay, az = vx - lift * nx, vy - lift * ny, vz - lift * nz
    size = math.sqrt(ax * ax + ay * ay + az * az)
    vx, vy, vz = vx * _KEPT, (vy - _FALL) * _KEPT, vz * _KEPT
    push = -(vx * nx + vy * ny + vz * nz)
    if push <= 0.0:
        return vx, vy, vz
    vx, vy, vz = vx + push * nx, vy + push * ny, vz + push * nz
    limit = _MU * push
    if size < 1e-6:
        speed = math.sqrt(vx * vx + vy * vy + vz * vz)
        share = 1.0 - limit / speed if speed > limit else 0.0
        return vx * share, vy * share, vz * share
    ax, ay, az = ax / size, ay / size, az / size
    bx, by, bz = ny * az - nz * ay, nz * ax - nx * az, nx * ay - ny * ax
    along = _less(vx * ax + vy * ay + vz * az, limit)
    across = _less(vx * bx + vy * by + vz * bz, limit)
    return along * ax + across * bx, along * ay + across * by, along * az + across * bz


@njit(cache=True, inline="always")
def _less(speed: float, by: float) -> float:
    return math.copysign(max(0.0, abs(speed) - by), speed)


@njit(cache=True, no_cfunc_wrapper=True)
def advance(
    land: Land, balls: Floats, body: MotionState, move: int, turn: int, steps: int, time: float
) -> MotionState:
    """Foresee some physics steps with one action.

    Args:
        land: The ground.
        balls: What is wanted or shunned, see `BALL_COLUMNS`.
        body: The agent.
        move: 0 none, 1 forward, 2 backward.
        turn: 0 none, 1 right, 2 left.
        steps: How many.
        time: Seconds from now at which they begin.
    """
    for step in range(steps):
        if body.state:
            break
        body = _step(land, balls, body, move, turn, time + (step + 1) * DT)
    return body


@njit(cache=True, inline="always")
def _step(
    land: Land, balls: Floats, body: MotionState, move: int, turn: int, now: float
) -> MotionState:
    """Foresee one physics step, which ends at the time `now`."""
    x, y, z, vx, vy, vz, yaw, place, grounded, state, uneasy = body
    if grounded:
        if move:
            angle = math.radians(yaw)
            push = 1.0 if move == 1 else -1.0
            vx += push * sin(angle)
            vz += push * cos(angle)
        else:
            vx, vy, vz = vx * _STOP, vy * _STOP, vz * _STOP
    if turn:
        yaw += TURN if turn == 1 else -TURN
    if grounded and place >= 0 and land.grade[place] > 0.0:
        vx, vy, vz = _on_slope(float(land.slope_x[place]), float(land.slope_z[place]), vx, vy, vz)
    elif grounded:
        # As on a slope of 0; what it comes down with is lost, and rubs.
        fall = (vy - _FALL) * _KEPT
        vx, vy, vz = vx * _KEPT, max(fall, 0.0), vz * _KEPT
        speed = math.sqrt(vx * vx + vz * vz)
        rub = _MU * max(-fall, 0.0)
        share = 1.0 - rub / speed if speed > rub else 0.0
        vx, vz = vx * share, vz * share
    else:
        vx, vy, vz = vx * _KEPT, (vy - _FALL) * _KEPT, vz * _KEPT
    nx, nz = x + vx * DT, z + vz * DT
    if nx < _LOW or nx > _HIGH:
        nx = min(max(nx, _LOW), _HIGH)
        vz *= max(0.0, 1.0 - _MU * abs(vx) / max(abs(vz), 1e-6))
        vx = 0.0
    if nz < _LOW or nz > _HIGH:
        nz = min(max(nz, _LOW), _HIGH)
        vx *= max(0.0, 1.0 - _MU * abs(vz) / max(abs(vx), 1e-6))
        vz = 0.0
    here = MotionState(x, y, z, vx, vy, vz, yaw, place, grounded, state, uneasy)
    to = onward(land, here, nx, nz)
    if to < 0:
        along_x = onward(land, here, nx, z)
        along_z = onward(land, here, x, nz)
        if along_x >= 0 and (along_z < 0 or abs(vx) >= abs(vz)):
            to, nz = along_x, z
            vx *= max(0.0, 1.0 - _MU * abs(vz) / max(abs(vx), 1e-6))
            vz = 0.0
        elif along_z >= 0:
            to, nx = along_z, x
            vz *= max(0.0, 1.0 - _MU * abs(vx) / max(abs(vz), 1e-6))
            vx = 0.0
        else:
            to, nx, nz, vx, vz = place, x, z, 0.0, 0.0
    x, z = nx, nz
    if to >= 0:
        place = to
        floor = floor_at(land, place, x, z)
        if grounded:
            free = y + vy * DT
            if free > floor + _OFF:
                grounded, y = False, free
            else:
                y = floor
        else:
            y += vy * DT
            if y <= floor + 0.001:
                lost = _MU * abs(vy)
                speed = math.sqrt(vx * vx + vz * vz)
                share = max(0.0, 1.0 - lost / speed) if speed > 0.0 else 0.0
                vx, vz, vy, y, grounded = vx * share, vz * share, 0.0, floor, True
        low = y - land.height[place] < 0.15
        away = float(land.away[place])
        if low and away == 0.0:
            state = 2
        elif low and away < SHY:
            speed = math.sqrt(vx * vx + vz * vz)
            near = 1.0 - away / (_CLOSE + _CLOSER * speed)
            uneasy += max(0.0, near) * speed * DT
    touched = _touch_state(balls, x, y, z, now)
    if touched:
        state = touched
    return MotionState(x, y, z, vx, vy, vz, yaw, place, grounded, state, uneasy)


@njit(cache=True, inline="always")
def _touch_state(balls: Floats, x: float, y: float, z: float, now: float) -> int:
    """State of a body at a place: 1 where it touches what is wanted, 2 what is shunned, else 0."""
    state = 0
    for k in range(len(balls)):
        dx = x - balls[k, 0] - balls[k, 4] * now
        dy = y - balls[k, 1] - balls[k, 5] * now
        dz = z - balls[k, 2] - balls[k, 6] * now
        wanted = balls[k, 7] == WANTED
        reach = AGENT_RADIUS + balls[k, 3] + (0.01 if wanted else 0.06)
        if dx * dx + dy * dy + dz * dz <= reach * reach:
            state = 1 if wanted else 2
    return state


@njit(cache=True, no_cfunc_wrapper=True)
def cost_at(land: Land, field: Floats, body: MotionState) -> float:
    """What the way costs from where the body is, between the points of the grid."""
    fx = min(max((body.x - AGENT_RADIUS) / CELL, 0.0), SIDE - 1.0)
    fz = min(max((body.z - AGENT_RADIUS) / CELL, 0.0), SIDE - 1.0)
    column, row = int(fx), int(fz)
    total, weight = 0.0, 0.0
    for dx in range(2):
        for dz in range(2):
            if column + dx >= SIDE or row + dz >= SIDE:
                continue
            share = (fx - column if dx else 1.0 - fx + column) * (
                fz - row if dz else 1.0 - fz + row
            )
            if share <= 1e-6:
                continue
            cell = (column + dx) * SIDE + row + dz
            best = -1
            for place in range(land.first[cell], land.first[cell + 1]):
                if land.height[place] <= body.y + _STEP_UP:
                    best = place
            if best < 0 or math.isinf(field[best]):
                continue
            if body.place >= 0 and abs(land.height[best] - land.height[body.place]) > 0.6:
                continue
            total += share * field[best]
            weight += share
    if weight > 0.0:
        return total / weight
    if body.place >= 0:
        return field[body.place]
    return np.inf


@njit(cache=True, no_cfunc_wrapper=True)
def worth(
    land: Land,
    balls: Floats,
    field: Floats,
    body: MotionState,
    time: float,
    pace: float,
    unease: float,
    enough: float,
) -> float:
    """Seconds that a course is worth if the agent stops at its end; the less the better.

    Args:
        land: The ground.
        balls: What is wanted or shunned.
        field: Cost of the way from each place.
        body: The agent at the end of the course.
        time: Seconds that the course takes.
        pace: m/s at which the way is thought to be gone.
        unease: Seconds that a metre beside lava costs.
        enough: Cost of the way below which a course makes progress. Any other course has a penalty:
            without it the agent would stand still where turning round takes longer than the next
            stretch of the way saves.
    """
    if body.state == 2:
        return DEATH - time
    if body.state == 1:
        return time - _PRIZE + unease * body.uneasy
    later = time
    for _ in range(16):
        if abs(body.vx) + abs(body.vz) < 0.3 and body.grounded:
            break
        body = advance(land, balls, body, 0, 0, 3, later)
        later += 3 * DT
        if body.state == 2:
            return DEATH - later
        if body.state == 1:
            return later - _PRIZE + unease * body.uneasy
    left = cost_at(land, field, body)
    if math.isinf(left):
        return LOST + time
    idle = 0.0 if left < enough else IDLE
    return time + left / pace + unease * body.uneasy + idle


@njit(cache=True, no_cfunc_wrapper=True)
def choose(
    land: Land,
    balls: Floats,
    field: Floats,
    body: MotionState,
    period: int,
    pace: float,
    unease: float,
    last_turn: int,
    runs: Courses,
) -> tuple[int, int, float]:
    """Choose the next action.

    Args:
        land: The ground.
        balls: What is wanted or shunned, see `BALL_COLUMNS`.
        field: Cost of the way from each place.
        body: The agent.
        period: Physics steps of a decision.
        pace: m/s at which the way is thought to be gone.
        unease: Seconds that a metre beside lava costs.
        last_turn: The turn of the decision before, which it rather goes on with.
        runs: `RUNS`.

    Returns:
        Move, turn, and what the best course is worth.
    """
    length = period * DT
    most = math.ceil(180.0 / (TURN * period))
    best_move, best_turn = 0, 0
    enough = cost_at(land, field, body) - 0.15
    best = worth(land, balls, field, body, 0.0, pace, unease, enough) + 0.02
    for turn in range(3):
        for while_turning in range(3):
            if turn == 0 and while_turning == 0:
                continue
            turned = body
            count = 0
            limit = most if turn else 10
            if while_turning:
                limit = min(limit, 12)
            while count < limit:
                if turn or while_turning == 2:
                    turned = advance(
                        land, balls, turned, while_turning, turn, period, count * length
                    )
                    count += 1
                else:
                    count = limit
                running = turned
                done = 0
                time = count * length if (turn or while_turning == 2) else 0.0
                if turned.state:
                    value = worth(land, balls, field, turned, time, pace, unease, enough)
                    if turn and turn == last_turn:
                        value -= 0.01
                    if value < best:
                        best, best_move, best_turn = value, while_turning, turn
                    break
                for number in range(len(runs)):
                    run = runs[number]
                    if while_turning == 2 and run > 0:
                        break  # or it would go to and fro, each time for a better place to stop
                    if turn and count > 4 and number % 2 == 1:
                        continue  # not fewer turns, or it would never come to the one it wants
                    if count > 10 and number not in (4, 6):
                        continue
                    if run > done:
                        running = advance(land, balls, running, 1, 0, (run - done) * period, time)
                        time += (run - done) * length
                        done = run
                    if run == 0 and (while_turning == 0 or (turn == 0 and while_turning == 1)):
                        continue
                    value = worth(land, balls, field, running, time, pace, unease, enough)
                    if turn and turn == last_turn:
                        value -= 0.01
                    if value < best:
                        best, best_move, best_turn = value, while_turning, turn
                    if running.state:
                        break
    return best_move, best_turn, best
