"""A container engine for tests: Podman in a folder of its own, with Docker Compose in front of it.

Debian has both. Neither Docker's daemon nor a registry is asked: what our images build on is made
of Debian's packages, under the names that the images use.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
DOCKER: Final = ROOT / "docker"
TOOLS: Final = ("podman", "runc", "catatonit", "docker-compose", "debootstrap", "nice")
HUB: Final = "docker.io/library"
BASE: Final = f"{HUB}/debian:bookworm-20250520-slim"
POSTGRES: Final = f"{HUB}/postgres:15.13-bookworm"
PULSE_SECONDS: Final = 2.0
"""How often containers are asked for their health: Podman leaves that to systemd's timers."""
PATIENCE_SECONDS: Final = 300.0
"""How long a container may take to be healthy on a busy machine."""

_CONTAINERS: Final = """[containers]
default_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]
log_driver = "k8s-file"
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
static_dir = "{folder}/libpod"
volume_path = "{folder}/volumes"
tmp_dir = "{folder}/run/libpod"
"""
_STORAGE: Final = """[storage]
driver = "overlay"
graphroot = "{folder}/storage"
runroot = "{folder}/run/storage"
"""


class NoEngineError(Exception):
    """Containers cannot be run here; the text says why."""


class Engine:
    """Podman, with all that it keeps in one folder, and its API at a socket there."""

    def __init__(self, folder: Path) -> None:
        """Describe the engine.

        Args:
            folder: Where images stay from run to run, which makes the next one fast.

        Raises:
            NoEngineError: Its programs are missing, or this is not root.
        """
        missing = [tool for tool in TOOLS if shutil.which(tool) is None]
        if missing or os.geteuid() != 0:
            raise NoEngineError(
                f"missing: {', '.join([*missing, *(['root'] if os.geteuid() else [])])}; as root, "
                "apt-get install podman runc catatonit netavark aardvark-dns iptables "
                "docker-compose debootstrap"
            )
        self.folder = folder
        (folder / "tmp").mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder / "run", ignore_errors=True)  # of an engine that has ended
        (folder / "run").mkdir()
        (folder / "podman.sock").unlink(missing_ok=True)
        # Podman's own defaults are more than a process here may set.
        files, processes = (
            min(resource.getrlimit(what)[1] & 0x7FFFFFFF, most)
            for what, most in ((resource.RLIMIT_NOFILE, 1 << 20), (resource.RLIMIT_NPROC, 4096))
        )
        limits = {"folder": folder, "files": files, "processes": processes}
        (folder / "containers.conf").write_text(_CONTAINERS.format(**limits))
        (folder / "storage.conf").write_text(_STORAGE.format(**limits))
        self.socket = f"unix://{folder}/podman.sock"
        self.environment = os.environ | {
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "TMPDIR": str(folder / "tmp"),
            "DOCKER_HOST": self.socket,
            "COMPOSE_HTTP_TIMEOUT": "900",
        }

    def podman(self, *arguments: str, check: bool = True) -> str:
        """What Podman prints.

        Raises:
            subprocess.CalledProcessError: It failed, and that was to be checked.
        """
        return _run(["podman", *arguments], self.environment, check=check)

    @contextmanager
    def serving(self) -> Generator[None]:
        """Serve the API for the block, and ask containers for their health meanwhile.

        Raises:
            NoEngineError: This machine does not let containers run.
        """
        done = threading.Event()
        with (self.folder / "service.log").open("w") as log:
            service = subprocess.Popen(
                ["nice", "-n", "10", "podman", "system", "service", "--time", "0", self.socket],
                env=self.environment,
                stdout=log,
                stderr=log,
            )
            pulse = threading.Thread(target=self._pulse, args=(done,), daemon=True)
            try:
                while not (self.folder / "podman.sock").exists():
                    if service.poll() is not None:
                        raise NoEngineError((self.folder / "service.log").read_text()[-500:])
                    time.sleep(0.1)
                self._make_bases()
                pulse.start()
                yield
            finally:
                done.set()
                if pulse.is_alive():
                    pulse.join()
                service.terminate()
                service.wait()

    def _pulse(self, done: threading.Event) -> None:
        while not done.wait(PULSE_SECONDS):
            for container in self.podman("ps", "--quiet", check=False).split():
                self.podman("healthcheck", "run", container, check=False)

    def _make_bases(self) -> None:
        """Make what our images build on, unless an earlier run has."""
        if not self._has(BASE):
            with tempfile.TemporaryDirectory(dir=self.folder / "tmp") as made:
                _bootstrap(Path(made) / "root", self.environment)
                tar = f"{made}/base.tar"
                _run(["tar", "-C", f"{made}/root", "-cf", tar, "."], self.environment)
                self.podman("import", tar, BASE)
        try:
            self.podman("run", "--rm", BASE, "true")
        except subprocess.CalledProcessError as error:
            raise NoEngineError(f"no container runs here: {error.stderr.strip()[-300:]}") from error
        if not self._has(POSTGRES):
            here = Path(__file__).parent
            self.podman("build", "--tag", POSTGRES, "--build-arg", f"BASE={BASE}", str(here))

    def _has(self, image: str) -> bool:
        found = self.podman("images", "--noheading", "--filter", f"reference={image}")
        return bool(found.strip())

    def wait_until(self, is_well: Callable[[str], bool], containers: Sequence[str]) -> None:
        """Wait until containers are well, each by what is asked of it.

        Raises:
            AssertionError: One was not in time; it says what that one has printed.
        """
        end = time.monotonic() + PATIENCE_SECONDS
        while unwell := [name for name in containers if not is_well(name)]:
            if time.monotonic() > end:
                logs = self.podman("logs", "--tail", "30", unwell[0], check=False)
                raise AssertionError(f"{', '.join(unwell)}: not healthy:\n{logs}")
            time.sleep(PULSE_SECONDS)

    def image(self, name: str) -> dict[str, Any]:
        """What an image says of itself."""
        (found,) = json.loads(self.podman("image", "inspect", name))
        return found


class Project:
    """The services of Compose files, as `docker compose` runs them."""

    def __init__(
        self, engine: Engine, name: str, files: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        """Describe a project; nothing is started.

        Args:
            engine: What runs it.
            name: Its name.
            files: Compose files within the repository.
            environment: Variables that the files ask for.
        """
        self.engine = engine
        self.name = name
        self.environment = {**engine.environment, "COMPOSE_PROJECT_NAME": name, **environment}
        self._files = [word for file in files for word in ("-f", file)]

    def compose(self, *arguments: str) -> str:
        """What Compose prints; `--compatibility` has version 1 heed the number of replicas."""
        command = ["nice", "-n", "10", "docker-compose", "--compatibility", *self._files]
        return _run([*command, *arguments], self.environment)

    def up(self, *services: str) -> None:
        """Start services, and wait until all that were started are healthy."""
        self.compose("up", "--detach", *services)
        self.engine.wait_until(self._is_well, self.containers())

    def containers(self) -> list[str]:
        """Names of its containers, ended ones too."""
        label = f"label=com.docker.compose.project={self.name}"
        return self.engine.podman(
            "ps", "--all", "--filter", label, "--format", "{{.Names}}"
        ).split()

    def _is_well(self, container: str) -> bool:
        (found,) = json.loads(self.engine.podman("inspect", container))
        return found["State"].get("Health", {}).get("Status") == "healthy"

    def begin(self, service: str, line: str) -> subprocess.Popen[str]:
        """Begin a command in the container of a service."""
        command = ["nice", "-n", "10", "docker-compose", *self._files, "exec", "-T", service]
        return _begin([*command, *line.split()], self.environment)

    def run(self, service: str, line: str, **variables: str) -> str:
        """What a command prints in the container of a service."""
        given = [word for pair in variables.items() for word in ("-e", "=".join(pair))]
        return self.compose("exec", "-T", *given, service, *line.split()).strip()

    def copy(self, folder: Path, service: str, to: str) -> None:
        """Copy a folder into the container of a service."""
        container = self.compose("ps", "--quiet", service).split()[0]
        self.engine.podman("cp", str(folder), f"{container}:{to}")

    def down(self, *options: str) -> None:
        """End and remove its containers."""
        self.compose("down", *options)


class Pods:
    """Pods as Kubernetes is told of them, with a network and volumes of their own."""

    def __init__(self, engine: Engine, name: str) -> None:
        """Make the network.

        Args:
            engine: What runs them.
            name: Beginning of all their names.
        """
        self.engine = engine
        self.name = name
        self._made: list[Path] = []
        engine.podman("network", "create", name)

    def up(self, pod: Mapping[str, Any]) -> str:
        """Start a pod, and return its address."""
        name = pod["metadata"]["name"]
        file = self.engine.folder / "tmp" / f"{name}.yaml"
        file.write_text(yaml.safe_dump(pod))
        self._made.append(file)
        self.engine.podman("play", "kube", "--network", self.name, str(file))
        (found,) = json.loads(
            self.engine.podman("inspect", "--type", "pod", name, "--format", "[{{json .}}]")
        )
        (infra,) = json.loads(self.engine.podman("inspect", found["InfraContainerID"]))
        return infra["NetworkSettings"]["Networks"][self.name]["IPAddress"]

    def says(self, container: str, script: str) -> bool:
        """Whether a script ends well in a container, as a probe of Kubernetes."""
        command = ["podman", "exec", container, "bash", "-c", script]
        done = subprocess.run(
            command, env=self.engine.environment, capture_output=True, check=False
        )
        return done.returncode == 0

    def begin(self, container: str, line: str) -> subprocess.Popen[str]:
        """Begin a command in a container."""
        return _begin(["podman", "exec", container, *line.split()], self.engine.environment)

    def run(self, container: str, line: str) -> str:
        """What a command prints in a container."""
        return self.engine.podman("exec", container, *line.split()).strip()

    def copy(self, folder: Path, container: str, to: str) -> None:
        """Copy a folder into a container."""
        self.engine.podman("cp", str(folder), f"{container}:{to}")

    def down(self) -> None:
        """End and remove them, with what they keep."""
        for file in reversed(self._made):
            self.engine.podman("play", "kube", "--down", str(file), check=False)
        self.engine.podman("volume", "prune", "--force")
        self.engine.podman("network", "rm", "--force", self.name)


def _bootstrap(root: Path, environment: Mapping[str, str]) -> None:
    """Make a minimal Debian that asks where this machine asks, with the same certificates."""
    _run(["debootstrap", "--variant=minbase", "bookworm", str(root)], environment)
    for name in ("etc/apt/sources.list.d/debian.sources", "etc/pip.conf"):
        if Path("/", name).exists():
            shutil.copy(Path("/", name), root / name)
    if (root / "etc/apt/sources.list.d/debian.sources").exists():
        (root / "etc/apt/sources.list").unlink()
    for name in ("etc/ssl/certs", "usr/local/share/ca-certificates"):
        shutil.copytree(Path("/", name), root / name, dirs_exist_ok=True, symlinks=True)
    # As Debian's own images for containers.
    keep = (
        'DPkg::Post-Invoke {"rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true";};'
    )
    (root / "etc/apt/apt.conf.d/docker-clean").write_text(
        f'{keep}\nDir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\n'
    )
    shutil.rmtree(root / "var/lib/apt/lists")
    shutil.rmtree(root / "var/cache/apt")
    for name in ("doc", "man", "info", "locale"):
        shutil.rmtree(root / "usr/share" / name, ignore_errors=True)


def _run(command: Sequence[str], environment: Mapping[str, str], *, check: bool = True) -> str:
    """What a command prints; where it fails, what it printed as an error comes with it."""
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if check and done.returncode:
        error = subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        error.add_note(f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}")
        raise error
    return done.stdout


def _begin(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
