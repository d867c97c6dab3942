"""Installs the interpreter that drives Unity builds, and finds or downloads a build."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from animalcat.envs.unity import player
from animalcat.envs.unity.settings import UnityError, unity_home

_DOWNLOAD_SECONDS: Final = 3600
"""Time limit for the download of a build, some 400 MB."""


@dataclass(frozen=True, slots=True)
class ClientRelease:
    """A version of `animalai`, and how it is installed.

    Attributes:
        pinned: Packages installed regardless of the requirements that they declare.
        needs: Packages that those need, installed in the usual way.
        pretend: The Python version that `pinned` declares; the installer is told that it is this
            one.
        pythons: First and last minor version of Python 3 that it runs on.
    """

    pinned: tuple[str, ...]
    needs: tuple[str, ...]
    pretend: str
    pythons: tuple[int, int]


CLIENTS: Final = {
    "6.2.0": ClientRelease(
        ("animalai==6.2.0", "mlagents-envs-aai==1.0.0"),
        ("grpcio>=1.78", "numpy>=2", "packaging", "pillow", "protobuf>=6.31", "tqdm"),
        "3.14",
        (11, 14),
    ),
    "5.0.1": ClientRelease(
        ("animalai==5.0.1", "mlagents-envs==1.1.0"),
        (
            *("cloudpickle", "filelock", "grpcio==1.48.2", "numpy==1.23.5", "pillow"),
            *("protobuf==3.20.3", "pyyaml"),
        ),
        "3.10.12",
        (10, 10),
    ),
    "4.1.0": ClientRelease(
        ("animalai==4.1.0", "mlagents-envs==0.30.0"),
        ("cloudpickle", "grpcio==1.48.2", "numpy==1.21.2", "pillow", "protobuf==3.20.3", "pyyaml"),
        "3.9",
        (8, 9),
    ),
}
"""By version: 6.2.0 for builds from 4.3.1 on, 5.0.1 for those of ml-agents 3, 4.1.0 for those up to
4.3.0 (reference/animal-ai.md section 0.2)."""


def make_interpreter(base: Path, version: str, tell: Callable[[str], None]) -> Path:
    """Make a virtual environment with `animalai` in the backend's folder, replacing an older one.

    Args:
        base: Interpreter to make it from.
        version: A key of `CLIENTS`; empty for the newest that runs on `base`.
        tell: Called with what is being done.

    Returns:
        Its interpreter, which can import the client.

    Raises:
        UnityError: It could not be made; the message is that of the command that failed.
    """
    minor = _minor(base)
    runs = [name for name, c in CLIENTS.items() if c.pythons[0] <= minor <= c.pythons[1]]
    chosen = version or next(iter(runs), "")
    if chosen not in CLIENTS:
        names = ", ".join(CLIENTS)
        raise UnityError(
            f"{base} is Python 3.{minor}, for which there is no animalai; name another: --python"
            if not version
            else f"there is no animalai {version} here; there are {names}"
        )
    if chosen not in runs:
        first, last = CLIENTS[chosen].pythons
        raise UnityError(
            f"animalai {chosen} runs on Python 3.{first} to 3.{last}, and {base} is 3.{minor}; "
            "name another interpreter: --python"
        )
    folder = unity_home() / f"animalai-{chosen}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    tell(f"making {folder}")
    python = folder / "bin" / "python"
    for command in _commands(CLIENTS[chosen], base, folder, python):
        _run(command)
    tell("trying it")
    client_versions(python)
    return python


def client_versions(python: Path) -> dict[str, str]:
    """Versions of the client in an interpreter.

    Raises:
        UnityError: The interpreter cannot import the client.
    """
    return json.loads(_run([str(python), "-I", player.__file__, "--versions"]))


def download_build(python: Path) -> Path:
    """Let the client find or download a build.

    Raises:
        UnityError: There is none, and none could be downloaded.
    """
    command = [str(python), "-I", player.__file__, "--find-build"]
    answer = json.loads(_run(command, _DOWNLOAD_SECONDS))
    if "build" not in answer:
        why = " ".join(answer["error"].split()).rstrip(".")
        raise UnityError(
            f"no Unity build was found and none could be downloaded ({why}). Fetch one from "
            "Animal-AI's releases where there is a network, unpack it here, and name it: "
            "animalcat unity setup --build PATH"
        )
    return Path(answer["build"])


def _commands(client: ClientRelease, base: Path, folder: Path, python: Path) -> list[list[str]]:
    """The commands that make an environment: by uv if it is installed, else by venv and pip."""
    uv = shutil.which("uv")
    if uv:
        install = [uv, "pip", "install", "--quiet", "--python", str(python)]
        past = ["--python-version", client.pretend, "--no-deps"]
        make = [uv, "venv", "--quiet", "--clear", "--python", str(base), str(folder)]
    else:
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        past = ["--ignore-requires-python", "--no-deps"]
        make = [str(base), "-m", "venv", "--clear", str(folder)]
    return [make, [*install, *client.needs], [*install, *past, *client.pinned]]


def _minor(python: Path) -> int:
    """Minor version of a Python 3."""
    if python == Path(sys.executable):
        return sys.version_info.minor
    code = "import sys; print(sys.version_info.minor if sys.version_info.major == 3 else -1)"
    minor = int(_run([str(python), "-c", code]))
    if minor < 0:
        raise UnityError(f"{python} is not a Python 3; name another interpreter: --python")
    return minor


def _run(command: Sequence[str], seconds: float = 900) -> str:
    """Run a program and return what it prints.

    Raises:
        UnityError: It failed; the message ends with its last lines.
    """
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds
        )
    except OSError as error:
        raise UnityError(f"{command[0]}: could not be started: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise UnityError(f"{' '.join(command[:4])} ...: not done within {seconds:g} s") from error
    if done.returncode:
        printed = (done.stderr or done.stdout).strip().splitlines()
        raise UnityError(f"{' '.join(command[:4])} ... failed: {' / '.join(printed[-4:])}")
    return done.stdout
