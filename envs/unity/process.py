"""Runs the player in its own session: requests have deadlines, and builds end with it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from animalcat.envs.bare import bare_environment
from animalcat.envs.unity import player
from animalcat.envs.unity.player import BuildStep, Options

_KEPT_LOGS: Final = 20
"""Number of log folders that are kept, the newest."""
_MARGIN_SECONDS: Final = 10
"""How much longer we wait than the player itself, whose message says more than our time-out."""


class UnityFault(RuntimeError):  # noqa: N818  "fault" is the project's word for it
    """The build or its player failed; neither the agent nor the arena is to blame."""


class PlayerProcess:
    """A player with the builds that it started; after a `UnityFault` they are gone."""

    def __init__(self, interpreter: Path, options: Mapping[str, Any], logs: Path) -> None:
        """Start the player.

        Args:
            interpreter: An interpreter that has `animalai`.
            options: Fields of `player.Options`, without `logs`.
            logs: Folder in which the player gets a folder for its logs.

        Raises:
            UnityFault: It did not start.
        """
        self.logs = _log_folder(logs)
        self._options = Options(**options, logs=str(self.logs))
        ours, theirs = socket.socketpair()
        self._socket = ours
        with theirs, (self.logs / "player.log").open("wb") as log:
            try:
                self._process = subprocess.Popen(
                    [interpreter, "-I", player.__file__, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    env=bare_environment(),
                )
            except OSError as error:
                ours.close()
                raise UnityFault(f"{interpreter}: could not be started: {error}") from error
        body = json.dumps(self._options._asdict()).encode()
        self.versions: dict[str, str] = json.loads(
            self._ask(player.OPEN, body, self._options.start_seconds)
        )

    @property
    def pid(self) -> int:
        """Id of the player's process, and of the session with all that it starts."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def load(self, arena: str, seed: int) -> BuildStep:
        """Start an arena, given as text, in a new build; returns the first observation.

        Raises:
            UnityFault: There was no observation.
        """
        body = json.dumps({"arena": arena, "seed": seed}).encode()
        # A build that was started for it may turn out dead; then another one is started.
        return player.unpack_observation(self._ask(player.LOAD, body, self._options.start_seconds))

    def step(self, move: int, turn: int) -> BuildStep:
        """Take a decision; returns the observation.

        Raises:
            UnityFault: There was no observation.
        """
        return player.unpack_observation(
            self._ask(player.STEP, bytes([move, turn]), self._options.step_seconds)
        )

    def close(self) -> None:
        """Let the player end its builds and itself, by force if necessary."""
        self._socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(3 * player.CLOSE_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End the player and its builds at once."""
        self._socket.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _ask(self, kind: int, body: bytes, seconds: float) -> bytes:
        self._socket.settimeout(seconds + _MARGIN_SECONDS)
        try:
            player.send_message(self._socket, kind, body)
            answer = player.receive_message(self._socket)
        except OSError:
            answer = None
        if answer is None:
            ended = self._process.poll() is not None
            self.kill()
            raise UnityFault(self._with_logs("ended" if ended else "gave no answer"))
        kind, data = answer
        if kind == player.FAILED:
            self.kill()
            raise UnityFault(self._with_logs(json.loads(data)["message"]))
        return data

    def _with_logs(self, message: str) -> str:
        """Add to a message what build or player printed last, and the path of the logs."""
        tail: list[str] = []
        for path in (*sorted(self.logs.glob("*/output.log"))[-2:], self.logs / "player.log"):
            with contextlib.suppress(OSError):
                lines = path.read_text(errors="replace").strip().splitlines()
                tail = tail or lines[-3:]
        return " / ".join([f"the build: {message}", *tail, f"logs: {self.logs}"])


def _log_folder(logs: Path) -> Path:
    """Make a folder for one player's logs; the oldest of the others are removed."""
    logs.mkdir(parents=True, exist_ok=True)
    folders = sorted(path for path in logs.iterdir() if path.is_dir())
    for old in folders[: -(_KEPT_LOGS - 1)]:
        shutil.rmtree(old, ignore_errors=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    return Path(tempfile.mkdtemp(prefix=f"{stamp}-{os.getpid()}-", dir=logs))
