"""Observation logs: CSV files with a row for each physics step, as builds since 4.1 write them.

A row shows the state in which the step finds the agent. In a step in which the agent decides, that
is before its action, and the row names the action before it. In other steps it is after the action
has turned and braked the agent, and before physics. Both are what the build's agent does when it
collects observations and when it receives an action (its sources; proven on the logs of the
animal-ai-e2e tests).
"""

from __future__ import annotations

import logging
from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING, Final

import numpy as np

from animalcat.arena_configs.catalogue import KINDS
from animalcat.arena_configs.tags import LOGGED_TAGS, MISSED
from animalcat.envs.sim.journal import Journal
from animalcat.envs.sim.movement import QUICK_STOP, to_local
from animalcat.envs.sim.rays import find_hits
from animalcat.envs.types import RAY_LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import TextIO

    from animalcat.arena_configs.placement import PlacedObject
    from animalcat.envs.sim.journal import EpisodeView
    from animalcat.envs.types import RaySpec

COLUMNS: Final = (
    "Episode,Step,Health,Reward,XVelocity,YVelocity,ZVelocity,XPosition,YPosition,ZPosition,"
    "ActionForwardWithDescription,ActionRotateWithDescription,WasAgentFrozen?,"
    "WasNotificationShown?,WasRewardDispensed?,DispensedRewardType,CollectedRewardType,"
    "WasSpawnerButtonTriggered?,CombinedSpawnerInfo,DataZoneMessage,ActiveCamera,"
    "CombinedRaycastData,arenaID"
)
_MOVES: Final = ("0 (No Movement)", "1 (Move Forward)", "2 (Move Backward)")
_TURNS: Final = ("0 (No Rotation)", "1 (Rotate Right)", "2 (Rotate Left)")
_NUMBERS: Final = ",".join(["%d", "%d", *["%.7g"] * 8])
_NO_INFO: Final = "N/A"
_NONE: Final = "None"
_TAGS: Final = (_NONE, "Untagged", *LOGGED_TAGS)
"""What a ray's hit is called, from `MISSED` and `UNLISTED` on."""

logger = logging.getLogger(__name__)


class ObservationLog(Journal):
    """One file, from its first episode until `close`.

    What cannot be written is reported once and left out; it ends no episode.
    """

    def __init__(
        self,
        folder: Path,
        rays: RaySpec | None,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        """Begin before the first episode.

        Args:
            folder: Where the file goes; it is made when the first episode begins.
            rays: The rays that rows show; None for none.
            now: The time of day, which names the file.
        """
        self._folder, self._rays, self._now = folder, rays, now
        self._ray_format = ";".join(["%.7g:%s"] * (2 * rays.per_side + 1 if rays else 0))
        self._file: TextIO | None = None
        self._usable = True
        self._episode = self._goals = self._spawners = self._buttons = 0
        self._step = self._arena = 0
        self._arenas: deque[int] = deque()
        self._numbers: dict[int, int] = {}
        self._action = (0, 0)
        self._decides = False
        self._clear()

    def begin(self, arenas: Sequence[int], *, first_step: int = 1) -> None:
        """An episode begins.

        Args:
            arenas: Numbers of the arenas that it may lead through.
            first_step: Number of its first row: 0 after a RESET command, otherwise 1.
        """
        if self._file is None and self._usable:
            self._open()
        if self._episode:
            self._write(self._summary())
            self._flush()
        self._episode += 1
        self._goals = 0
        self._step = first_step
        self._arenas = deque(arenas)

    def decide(self) -> None:
        """The next physics step is one in which the agent decides."""
        self._decides = True

    def close(self) -> None:
        """End the last episode and the file."""
        if self._episode:
            self._write(self._summary())
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._fail(error)
        self._file, self._usable = None, False

    def enter(self, things: Sequence[PlacedObject]) -> None:
        """Note the arena's number, and number its spawners and buttons."""
        self._arena = self._arenas.popleft() if self._arenas else self._arena
        self._numbers.clear()
        for thing in things:
            if thing.kind.reward == "spawner":
                self._spawners += 1
                self._numbers[id(thing)] = self._spawners
            elif thing.kind.reward == "button":
                self._buttons += 1
                self._numbers[id(thing)] = self._buttons

    def step(self, played: EpisodeView, move: int, turn: int) -> None:
        """Write the row of a physics step."""
        if self._file is None:
            return
        agent = played.agent
        frozen = played.episode.frozen_next
        decides, self._decides = self._decides, False
        if decides:
            shown, yaw, velocity = self._action, agent.yaw, agent.velocity
        else:
            shown, yaw, velocity = (move, turn), agent.yaw, agent.velocity
            if not frozen:
                if agent.grounded and not move:
                    x, y, z = velocity
                    velocity = (x * QUICK_STOP, y * QUICK_STOP, z * QUICK_STOP)
                if turn:
                    yaw += agent.turn if turn == 1 else -agent.turn
        self._action = (move, turn)
        self._row(played, velocity, yaw, shown, frozen=frozen)

    def await_decision(self, played: EpisodeView) -> None:
        """Write the row of the step in which the agent would decide next."""
        if self._file is not None:
            agent, frozen = played.agent, played.episode.frozen_next
            self._row(played, agent.velocity, agent.yaw, self._action, frozen=frozen)

    def collect(self, kind: str, reward: float) -> None:
        """Note the reward for the next row."""
        self._collected = kind
        self._goals += reward > 0.0 and kind in KINDS

    def dispense(self, spawner: PlacedObject, goal: PlacedObject) -> None:
        """Note the goal for the next row."""
        self._dispensed = goal.kind.name
        number = self._numbers.get(id(spawner), 0)
        self._spawned.append(f" SpawnerID:{number}{_place(spawner)}{goal.kind.name}")

    def operate(self, owner: PlacedObject, spawned: PlacedObject) -> None:
        """Note what was spawned for the next row, if it is a goal."""
        if "Goal" not in spawned.kind.name:
            return
        self._triggered = True
        ident = self._numbers.get(id(owner)) or _zone_id(owner)
        self._spawned.append(f"SpawnerButtonID:{ident}{_place(owner)}{spawned.kind.name}")

    def cross(self, zone: PlacedObject, *, entered: bool) -> None:
        """Note the zone for the next row; the first one's verb stands for all, as in the build."""
        if self._zones:
            self._zones += f" | {_zone_id(zone)}"
        else:
            way = "was in" if entered else "left"
            self._zones = f"Agent {way} DataZone: {_zone_id(zone)}"

    def _clear(self) -> None:
        """Forget what the next row would tell of events."""
        self._collected = self._dispensed = ""
        self._spawned: list[str] = []
        self._triggered = False
        self._zones = ""

    def _row(
        self,
        played: EpisodeView,
        velocity: tuple[float, float, float],
        yaw: float,
        shown: tuple[int, int],
        *,
        frozen: bool,
    ) -> None:
        episode, agent = played.episode, played.agent
        right, up, forward = to_local(velocity, yaw)
        numbers = _NUMBERS % (
            self._episode,
            self._step,
            float(episode.health),
            float(episode.total) or 0.0,  # without the sign of a zero
            right or 0.0,
            up or 0.0,
            forward or 0.0,
            *agent.position,
        )
        self._step += 1
        fields = (
            numbers.replace("e", "E"),
            _MOVES[shown[0]],
            _TURNS[shown[1]],
            "Yes" if frozen else "No",
            _NONE,
            "Yes" if self._dispensed else "No",
            self._dispensed or _NONE,
            self._collected or _NONE,
            "Yes" if self._triggered else "No",
            "|".join(self._spawned).replace(",", ";") or _NO_INFO,
            self._zones or _NONE,
            "0 (First-Person)",
            self._ray_hits(played, yaw),
            str(self._arena),
        )
        self._clear()
        self._write(",".join(fields))

    def _ray_hits(self, played: EpisodeView, yaw: float) -> str:
        """What every ray hits, and how far away as a share of its length."""
        if self._rays is None:
            return ""
        played.refresh()
        distances, tags = find_hits(played.scene, played.agent.position, yaw, self._rays)
        told: list[float | str] = [""] * (2 * len(tags))
        told[::2] = (distances / RAY_LENGTH).astype(np.float32).tolist()
        told[1::2] = [_TAGS[tag - MISSED] for tag in tags.tolist()]
        return (self._ray_format % tuple(told)).replace("e-", "E-")

    def _summary(self) -> str:
        return f"Positive Goals Collected: {self._goals}"

    def _open(self) -> None:
        """Make the file; one of the same minute is kept, other than in the build."""
        stem = f"Observations_{self._now():%d-%m-%y_%H%M}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for number in range(1, 10_000):
                name = f"{stem}.csv" if number == 1 else f"{stem}_{number}.csv"
                try:
                    self._file = (self._folder / name).open("x", encoding="utf-8", newline="\n")
                except FileExistsError:
                    continue
                break
        except OSError as error:
            self._fail(error)
        else:
            self._write(COLUMNS)

    def _write(self, line: str) -> None:
        if self._file is None:
            return
        try:
            self._file.write(line + "\n")
        except OSError as error:
            self._fail(error)

    def _flush(self) -> None:
        if self._file is not None:
            try:
                self._file.flush()
            except OSError as error:
                self._fail(error)

    def _fail(self, error: OSError) -> None:
        self._file, self._usable = None, False
        logger.warning(
            "no observation log in %s: %s; --observationLogs FOLDER names another folder, and "
            "--observationLogs none wants no log",
            self._folder,
            error.strerror,
        )


def _zone_id(zone: PlacedObject) -> str:
    ids = zone.item.trigger_zone_id
    return ids[0] if ids else ""


def _place(thing: PlacedObject) -> str:
    position = ",".join(f"{value:.7g}" for value in np.array(thing.position, np.float32).tolist())
    return f", Position:{position}, RewardType:"
