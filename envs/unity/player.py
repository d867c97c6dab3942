"""Drives builds of Animal-AI through the `animalai` client, in an interpreter of its own.

Run as a program: `python -I player.py FD`, where FD is a connected socket. It needs the standard
library, numpy and `animalai` (4.1.0, 5.0.1 or 6.x) and runs on Python 3.9 to 3.14, so that no
version of them can clash with ours. `python -I player.py --versions` and `--find-build` print
JSON. What both sides need to talk is here and imports neither.

Usually every episode has a build process of its own, made ready while the one before is played:
only a process's very first reset starts an episode before any physics, and only its start takes
a seed. It ends when the socket is closed, with all that it has started.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import platform
import queue
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from importlib import import_module, metadata
from typing import Any, NamedTuple

HEADER = struct.Struct("<IB")
"""Length of the body in bytes, and kind of the message."""

OPEN, LOAD, STEP = 1, 2, 3
"""Requests: JSON of `Options`; JSON {seed, arena}, the text of a file; two bytes, move and turn."""
READY, STEPPED, FAILED = 16, 17, 18
"""Answers: to OPEN, JSON of versions; to LOAD and STEP, `BuildStep`; JSON {message}."""

SEEN = struct.Struct("<?d4I7f")
"""Over, reward, numbers of rays, camera's height, width and channels, vector; then float32 rays and
uint8 camera."""

CLOSE_SECONDS = 3.0
"""How long a build may take to end after it was asked to."""
_PORTS = 5
"""Number of ports to try if another process takes one in between."""
_SILENT = 20
"""Greatest number of messages in a row with neither a decision nor an end."""


class Options(NamedTuple):
    """How builds are started.

    Attributes:
        build: Path of the executable.
        logs: Folder in which every build has a folder for its logs and its arena.
        camera: Side of the images in pixels; 0 for none.
        grayscale: Whether images have one channel.
        rays: Number of rays on each side.
        ray_degrees: Angle of the outermost ray.
        decision_period: Number of physics steps in a decision.
        graphics: Whether the build may draw; without, it needs no display.
        time_scale: Greatest number of simulated seconds per second.
        arguments: Further words of the build's command line.
        start_seconds: Longest wait for the first observation of an episode.
        step_seconds: Longest wait for any other observation.
        builds: "fresh": every episode has its own build; "spare": likewise, and the next build is
            started while an episode is played; "kept": one build plays all episodes.
    """

    build: str
    logs: str
    camera: int
    grayscale: bool
    rays: int
    ray_degrees: int
    decision_period: int
    graphics: bool
    time_scale: int
    arguments: list[str]
    start_seconds: int
    step_seconds: int
    builds: str


class BuildStep(NamedTuple):
    """One step as a build sent it: whether the episode is over, and the reward and observation.

    The vector holds health, local velocity and position. The camera is (H, W, C) uint8; None
    without a camera.
    """

    over: bool
    reward: float
    vector: Any
    rays: Any
    camera: Any


class _BuildCancelled(Exception):  # noqa: N818
    """A build that was prepared is no longer wanted."""


class BuildError(Exception):
    """A build failed; the message says how in a sentence."""


class Reservation:
    """A free port that no other process is given while it is held.

    The socket is bound but does not listen. A socket that sets SO_REUSEADDR, as the client's does,
    can listen there.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET6 if socket.has_ipv6 else socket.AF_INET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "SO_REUSEPORT"):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            self._socket.bind(("", 0))
        except OSError:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]

    def release(self) -> None:
        """Release the port."""
        self._socket.close()


class Build:
    """One build process, which is started at once and given its arena later.

    The client's constructor runs in a thread. It waits between the start of the process and the
    handshake until `begin` provides the seed; the arena is read from its file after that.
    """

    def __init__(self, options: Options, number: int) -> None:
        self._options = options
        self._folder = os.path.join(options.logs, f"{number:04}")
        os.makedirs(self._folder, exist_ok=True)
        self._arena = os.path.join(self._folder, "arena.yaml")
        self._seed: int | None = None
        self._wanted = threading.Event()
        self._env: Any = None
        self._error: BaseException | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._reservation: Reservation | None = None
        self._reward = 0.0
        self._thread = threading.Thread(target=self._start, daemon=True)
        self._thread.start()

    @property
    def well(self) -> bool:
        """Whether nothing has gone wrong so far."""
        return self._error is None and (self._process is None or self._process.poll() is None)

    def begin(self, arena: str, seed: int) -> BuildStep:
        """Start its first episode."""
        self._write(arena)
        self._seed = seed
        self._wanted.set()
        self._thread.join(self._options.start_seconds)
        if self._error is not None:
            raise BuildError(_sentence(self._error)) from self._error
        if self._env is None:
            raise BuildError(f"it sent no observation within {self._options.start_seconds} s")
        return self._read_step()

    def again(self, arena: str) -> BuildStep:
        """Start another episode, one physics step later as after any reset but the first."""
        self._write(arena)
        self._env.reset(self._arena)
        return self._read_step()

    def step(self, move: int, turn: int) -> BuildStep:
        """Take one decision."""
        import numpy as np

        base_env: Any = import_module("mlagents_envs.base_env")
        (name,) = self._env.behavior_specs
        self._env.set_actions(
            name, base_env.ActionTuple(discrete=np.array([[move, turn]], np.int32))
        )
        self._env.step()
        return self._read_step()

    def close(self) -> None:
        """End the process, by force if asking does not help."""
        if self._env is None:
            self._wanted.set()  # without a seed: cancelled
            if self._process is not None:
                self._process.kill()
            self._thread.join(CLOSE_SECONDS)
        else:
            with contextlib.suppress(Exception):
                self._env._close(CLOSE_SECONDS)
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait()
        if self._reservation is not None:
            self._reservation.release()

    def _write(self, arena: str) -> None:
        with open(self._arena, "w", encoding="utf-8") as file:
            file.write(arena)

    def _start(self) -> None:
        try:
            for last in [False] * (_PORTS - 1) + [True]:
                self._reservation = Reservation()
                try:
                    self._env = self._construct(self._reservation.port)
                    return
                except Exception as error:
                    taken = type(error).__name__ == "UnityWorkerInUseException"
                    if last or not taken:
                        raise
                    self._reservation.release()
        except BaseException as error:  # noqa: BLE001  told to who waits for it
            self._error = error

    def _construct(self, port: int) -> Any:
        options, client = self._options, _environment_class()
        arguments: dict[str, Any] = {
            "file_name": options.build,
            "log_folder": self._folder,
            "base_port": port,
            "arenas_configurations": self._arena,
            "useCamera": options.camera > 0,
            "resolution": options.camera or 84,
            "grayscale": options.grayscale,
            "useRayCasts": True,
            "raysPerSide": options.rays,
            "rayMaxDegrees": options.ray_degrees,
            "decisionPeriod": options.decision_period,
            "no_graphics": not options.graphics,
            "timescale": options.time_scale,
            # As fast as it can where more than real time is asked for, as the client advises.
            "targetFrameRate": 60 if options.time_scale == 1 else -1,
        }
        if options.arguments:
            arguments["additional_args"] = options.arguments
        if "timeout" in inspect.signature(client.__mro__[1].__init__).parameters:
            arguments["timeout"] = options.start_seconds
        _starting[port] = self
        try:
            env = client(**arguments)
        finally:
            del _starting[port]
        env._communicator.timeout_wait = env._timeout_wait = options.step_seconds
        return env

    def launch(self, path: str, arguments: list[str]) -> Any:
        """Start the build in our own session, so that it ends with us, and keep its output."""
        with open(os.path.join(self._folder, "output.log"), "wb") as output:
            self._process = subprocess.Popen(
                [path, *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        return self._process

    def await_seed(self) -> int:
        """Wait for the seed of the episode, until there is an episode to play."""
        self._wanted.wait()
        if self._seed is None:
            raise _BuildCancelled
        return self._seed

    def _read_step(self) -> BuildStep:
        """What the build now sends; messages with neither a decision nor an end are skipped."""
        (name,) = self._env.behavior_specs
        for _ in range(_SILENT):
            decisions, ends = self._env.get_steps(name)
            if len(decisions) > 1 or len(ends) > 1:
                raise BuildError("it has more than one agent; one is supported")
            for steps, over in ((ends, True), (decisions, False)):
                if len(steps):
                    return _build_step(over, float(steps.reward[0]), [o[0] for o in steps.obs])
            self._env.step()
        raise BuildError(f"it sent {_SILENT} messages without an observation")


class Player:
    """Answers requests on a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._requests: queue.Queue[tuple[int, bytes] | None] = queue.Queue()
        self._options: Options | None = None
        self._build: Build | None = None
        self._spare: Build | None = None
        self._closing: list[threading.Thread] = []
        self._started = 0

    def run(self) -> None:
        """Serve until the other side closes."""
        threading.Thread(target=self._read, daemon=True).start()
        while True:
            request = self._requests.get()
            if request is None:
                break
            try:
                answer = self._answer(*request)
            except Exception as error:  # noqa: BLE001  whatever fails is the answer
                traceback.print_exc()
                answer = FAILED, json.dumps({"message": _sentence(error)}).encode()
            with contextlib.suppress(OSError):
                send_message(self._connection, *answer)
        for build in (self._build, self._spare):
            self._close(build)
        for thread in self._closing:
            thread.join(2 * CLOSE_SECONDS)

    def _read(self) -> None:
        """Receive requests; when the other side has closed, end everything."""
        frame = receive_message(self._connection)
        while frame is not None:
            self._requests.put(frame)
            frame = receive_message(self._connection)
        self._requests.put(None)
        time.sleep(3 * CLOSE_SECONDS)  # a step may be under way, and never come back
        _end_session()

    def _answer(self, kind: int, body: bytes) -> tuple[int, bytes]:
        if kind == OPEN:
            self._options = Options(**json.loads(body))
            _environment_class()
            return READY, json.dumps(versions()).encode()
        if kind == LOAD:
            request = json.loads(body)
            return STEPPED, pack_observation(self._load(request["arena"], request["seed"]))
        assert self._build is not None, "load an arena first"
        return STEPPED, pack_observation(self._build.step(*body))

    def _load(self, arena: str, seed: int) -> BuildStep:
        assert self._options is not None, "open first"
        builds = self._options.builds
        if builds == "kept" and self._build is not None and self._build.well:
            return self._build.again(arena)
        self._close(self._build)
        self._build, self._spare = self._spare, None
        if self._build is None or not self._build.well:
            self._close(self._build)
            self._build = self._next(self._options)
        seen = self._build.begin(arena, seed)
        if builds == "kept":  # so that its first episode starts as the others do
            return self._build.again(arena)
        if builds == "spare":
            self._spare = self._next(self._options)
        return seen

    def _next(self, options: Options) -> Build:
        self._started += 1
        return Build(options, self._started)

    def _close(self, build: Build | None) -> None:
        """End a build in the background."""
        if build is not None:
            self._closing = [thread for thread in self._closing if thread.is_alive()]
            self._closing.append(threading.Thread(target=build.close))
            self._closing[-1].start()


def _environment_class() -> Any:
    """The client's environment, changed to start builds our way and to delay the handshake."""
    client: Any = import_module("animalai.environment")
    base: Any = client.AnimalAIEnvironment
    env_utils: Any = import_module("mlagents_envs.env_utils")

    def launch(path: str, arguments: list[str]) -> Any:
        port = int(arguments[arguments.index("--mlagents-port") + 1])
        return _starting[port].launch(path, arguments)

    class DelayedEnvironment(base):
        def _send_academy_parameters(self, init_parameters: Any) -> Any:
            init_parameters.seed = _starting[self._port].await_seed()
            return base._send_academy_parameters(self, init_parameters)

    env_utils.launch_executable = launch
    return DelayedEnvironment


_starting: dict[int, Build] = {}
"""Builds that are being started, by port: the client knows nothing else of them."""


def versions() -> dict[str, str]:
    """Versions of the software between us and a build."""
    names = {"unity-python": platform.python_version()}
    for name in ("animalai", "mlagents-envs", "mlagents-envs-aai"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            names[name] = metadata.version(name)
    return names


def find_build() -> dict[str, str]:
    """Let the client find or download a build; returns its path, or the error."""
    search: Any = import_module("animalai.executable")
    if not hasattr(search, "find_or_download_executable"):
        return {"error": "this version of animalai downloads no builds"}
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return {"build": os.path.abspath(search.find_or_download_executable())}
    except Exception as error:  # noqa: BLE001  told to who asked
        return {"error": str(error).strip().split("\n\n")[0]}


def pack_observation(seen: BuildStep) -> bytes:
    """Pack what a build sent as bytes."""
    shape = (0, 0, 0) if seen.camera is None else seen.camera.shape
    head = SEEN.pack(seen.over, seen.reward, len(seen.rays), *shape, *seen.vector.tolist())
    camera = b"" if seen.camera is None else seen.camera.tobytes()
    return head + seen.rays.tobytes() + camera


def unpack_observation(body: bytes) -> BuildStep:
    """Unpack what `pack_observation` packed; the arrays are copies."""
    import numpy as np

    over, reward, rays, height, width, channels, *vector = SEEN.unpack_from(body)
    after = SEEN.size + 4 * rays
    camera = None
    if channels:
        camera = np.frombuffer(body, np.uint8, offset=after).reshape(height, width, channels)
        camera = camera.copy()
    return BuildStep(
        over,
        reward,
        np.array(vector, np.float32),
        np.frombuffer(body, np.float32, rays, SEEN.size).copy(),
        camera,
    )


def send_message(connection: socket.socket, kind: int, body: bytes) -> None:
    """Send one message."""
    connection.sendall(HEADER.pack(len(body), kind) + body)


def receive_message(connection: socket.socket) -> tuple[int, bytes] | None:
    """Receive the next message; None when the other side has closed."""
    head = _receive(connection, HEADER.size)
    if head is None:
        return None
    length, kind = HEADER.unpack(head)
    body = _receive(connection, length)
    return None if body is None else (kind, body)


def _end_session() -> None:
    """Kill every process of our session, including this one: no build outlives its player."""
    sys.stderr.flush()
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def _receive(connection: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        try:
            more = connection.recv(size - len(data))
        except OSError:
            return None
        if not more:
            return None
        data += more
    return bytes(data)


def _build_step(over: bool, reward: float, observations: list[Any]) -> BuildStep:
    """Assign the client's list of observations: camera if there is one, rays, vector."""
    import numpy as np

    camera = None
    for image in (o for o in observations if o.ndim == 3):
        if image.shape[1] == image.shape[2]:  # channels first, from ml-agents 3 on
            image = np.moveaxis(image, 0, 2)
        camera = np.ascontiguousarray(np.rint(image * 255.0).astype(np.uint8))
    rays, vector = (np.asarray(o, np.float32) for o in observations if o.ndim == 1)
    return BuildStep(over, reward, vector, rays, camera)


def _sentence(error: BaseException) -> str:
    """An error on one line."""
    if isinstance(error, BuildError):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:4])}"


def main(arguments: list[str]) -> None:
    """Serve the socket whose number is given, or print JSON."""
    if arguments == ["--versions"]:
        _environment_class()
        print(json.dumps(versions()))
    elif arguments == ["--find-build"]:
        print(json.dumps(find_build()))
    else:
        # Ctrl-C in the terminal is the parent's to answer.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with socket.socket(fileno=int(arguments[0])) as connection:
            Player(connection).run()
        _end_session()


if __name__ == "__main__":
    main(sys.argv[1:])
