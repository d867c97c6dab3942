"""Builds and runs the images of `docker/` without Docker: by buildah, on a base of debootstrap."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("buildah", "debootstrap")
MIRROR = "http://deb.debian.org/debian"
BASE = "localhost/animalcat-base:bookworm"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


class Images:
    """A store of images and containers in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        """Make the base: Debian's smallest system, with the certificates that this machine trusts.

        The test is skipped where the tools are absent and cannot be installed.
        """
        _need_tools()
        self._folder = folder
        system = folder / "system"
        subprocess.run(
            ["debootstrap", "--variant=minbase", "bookworm", system, MIRROR],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        container = self._out("from", "scratch")
        self._out("add", container, str(system), "/")
        options = ["--env", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
        if os.path.exists(CERTIFICATES):
            self._out("add", container, CERTIFICATES, "/etc/host-certificates.crt")
            options += ["--env", "PIP_CERT=/etc/host-certificates.crt"]
        self._out("config", *options, container)
        self._out("commit", "--rm", container, BASE)
        shutil.rmtree(system)

    def build(self, name: str) -> str:
        """Build the image of a folder of `docker/`; its name."""
        image = f"localhost/animalcat-{name}"
        options = [
            "--isolation",
            "chroot",
            "--network",
            "host",
            "--format",
            "docker",
            "--pull-never",
        ]
        file = ROOT / "docker" / name / "Dockerfile"
        self._out(
            *("bud", *options, "--build-arg", f"BASE={BASE}", "-f", str(file), "-t", image),
            str(ROOT),
        )
        return image

    def container(self, image: str) -> str:
        """A container of an image; nothing runs in it yet."""
        return self._out("from", "--pull-never", image)

    def command(self, container: str, *command: str, **variables: str) -> list[str]:
        """The command that runs another one in a container, as its user and on this network."""
        given = [part for name, value in variables.items() for part in ("--env", f"{name}={value}")]
        return [
            *(*self._buildah(), "run", "--isolation", "chroot", "--network", "host", *given),
            *(container, "--", *command),
        ]

    def _buildah(self) -> Sequence[str]:
        places = ("--root", str(self._folder / "store"), "--runroot", str(self._folder / "run"))
        return ("buildah", *places, "--storage-driver", "vfs")

    def _out(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._buildah(), *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"buildah {' '.join(arguments)}: {done.stderr[-3000:]}"
        return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""


def _need_tools() -> None:
    """Install what builds images, or skip the test."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if os.geteuid() != 0:
        pytest.skip("images are built as root only here")
    if missing and shutil.which("apt-get"):
        install = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
        subprocess.run(install, capture_output=True, check=False)
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        pytest.skip(f"there is no {' and no '.join(missing)} here; on Debian: apt-get install")
