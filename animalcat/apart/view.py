"""What an agent's process sees: the software, the machine's libraries, its folder, what is named.

Everything is at its own true path. Links are links there, too, so that a path means what it means
outside.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import all_suffixes
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import animalcat
from animalcat.machine.marks import MARK

Kind = Literal["see", "share", "link", "empty"]

WORK: Final = "/run/agent"
"""The working folder, which is empty."""
_SMALL: Final = 16 << 20
_BELOW_USR: Final = (
    *("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec", "share", "include"),
    *("cuda", "nvidia"),
)
"""Folders of software in /usr and /usr/local, by how their names begin. People keep things of
theirs in others, such as /usr/src."""
_ETC: Final = (
    *("alternatives", "ca-certificates", "fonts", "gai.conf", "host.conf", "hosts", "ld.so.cache"),
    *("ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "nsswitch.conf", "OpenCL"),
    *("pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "protocols"),
    *("services", "ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "timezone", "vulkan"),
)
_PACKAGES: Final = ("site-packages", "dist-packages")
"""Names of folders for installed packages."""
_DEVICES: Final = ("null", "zero", "full", "random", "urandom")
_PROC: Final = ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version")
"""What is seen of the machine's /proc where the system permits none of one's own."""
_PEOPLE: Final = Path(__file__).with_name("etc")
"""Folder with the made-up users of an agent's machine."""
MOST_BESIDE: Final = 300
"""Most files and folders beside an agent's file that are shown one by one."""
MOST_WITHIN: Final = 2000
"""Most files of a folder beside it that are looked at for what is no business of agents."""
MOST_AT_ALL: Final = 10 * MOST_WITHIN
"""Most files of all folders beside it together."""


@dataclass(frozen=True, slots=True)
class Mount:
    """Something that an agent's process finds.

    Attributes:
        path: Where it is.
        kind: "see" a file or folder of the machine, "share" one that it may change, "link", or
            "empty" folder.
        source: What is there: a path of the machine, or what the link says.
        given: Whether it is a person's, who may keep it to himself, and not the system's.
        size: Bytes that an empty folder takes.
        mode: Permissions of an empty folder.
    """

    path: str
    kind: Kind
    source: str = ""
    given: bool = False
    size: int = 0
    mode: int = 0o755


@dataclass(slots=True)
class View:
    """Collects what an agent sees."""

    mounts: dict[str, Mount] = field(default_factory=dict[str, Mount])

    def see(self, path: str, *, given: bool = False, kind: Kind = "see") -> str:
        """Add a file or folder, and the links that lead to it; what is not there is left out.

        Returns:
            Its path without links; empty if it is not there.
        """
        links, real = _follow_links(path)
        if not os.path.exists(real):
            return ""
        self.mounts |= {at: Mount(at, "link", says) for at, says in links.items()}
        self.mounts[real] = Mount(real, kind, real, given)
        return real

    def put(self, path: str, source: Path) -> None:
        """Add a file of ours at another path."""
        self.mounts[path] = Mount(path, "see", str(source))

    def empty(self, path: str, size: int, mode: int = 0o755) -> None:
        """Add an empty folder in memory."""
        self.mounts[path] = Mount(path, "empty", size=size, mode=mode)

    def seen(self) -> list[str]:
        """Files and folders of the machine that are seen."""
        return [mount.source for mount in self.mounts.values() if mount.kind in ("see", "share")]

    def ordered(self) -> tuple[Mount, ...]:
        """All of it, what is within something behind that; but for what is seen in any case."""
        kept: dict[str, Mount] = {}
        for path in sorted(self.mounts, key=lambda path: path.split("/")):
            mount = self.mounts[path]
            within = next((kept[up] for up in _above(path) if up in kept), None)
            if mount.kind != "share" and within and within.kind in ("see", "share"):
                continue
            kept[path] = mount
        return tuple(kept.values())


def machine(network: bool, room: int) -> View:
    """What every program needs, and empty folders.

    Args:
        network: Whether it uses the network, and so looks names up.
        room: Bytes that each folder takes.
    """
    view = View()
    for top in ("/usr", "/usr/local"):
        for name in _names(top):
            if name.startswith(_BELOW_USR):
                view.see(f"{top}/{name}")
    for path in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"):
        view.see(path)
    for name in (*_ETC, *(("resolv.conf",) if network else ())):
        view.see(f"/etc/{name}")
    for name in ("passwd", "group"):
        view.put(f"/etc/{name}", _PEOPLE / name)
    for name in _DEVICES:
        view.see(f"/dev/{name}")
    for name, number in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        view.mounts[f"/dev/{name}"] = Mount(f"/dev/{name}", "link", f"/proc/self/fd{number}")
    view.empty("/dev/shm", 2 * room, 0o1777)
    view.empty("/tmp", room, 0o1777)
    view.empty("/var/tmp", _SMALL, 0o1777)
    view.empty(WORK, room, 0o700)
    for name in _PROC:
        view.put(f"/proc/{name}", Path(f"/proc/{name}"))
    for name in ("cpu", "node"):
        view.see(f"/sys/devices/system/{name}")
    return view


@cache
def software() -> tuple[str, ...]:
    """Folders of the interpreter, of installed packages, and of animalcat."""
    package = Path(animalcat.__file__).parent
    folders = [sys.executable, sys.prefix, sys.base_prefix, sys.exec_prefix, str(package)]
    folders += [str(path) for path in package.iterdir() if path.is_symlink() and path.is_dir()]
    folders += [path for path in sys.path if os.path.basename(path) in _PACKAGES]
    # A system's own interpreter has what surrounds it as its prefix.
    return tuple(path for path in dict.fromkeys(folders) if path not in ("/", "/usr", "/usr/local"))


def beside(file: Path, hidden: Iterable[Path] = ()) -> tuple[list[str], list[str]]:
    """What an agent sees of the folder of its file.

    It is the modules in it, and its folders in which animalcat has written nothing; its other files
    as well, if animalcat has written nothing beside them either (see `machine.marks`). Nothing is
    shown whose name has a dot in front.

    Args:
        file: The agent's.
        hidden: What is none of its business besides.

    Returns:
        Paths of what it sees, and of what is left out; without what has a dot in front.

    Raises:
        ValueError: There is too much to show it one by one.
    """
    away = [os.path.realpath(path) for path in hidden]
    shown, left = [str(file)], list[str]()
    names = [name for name in _names(str(file.parent)) if not name.startswith(".")]
    if len(names) > MOST_BESIDE:
        raise ValueError(
            f"beside {file} there are {len(names)} files and folders, and an agent is shown at "
            f"most {MOST_BESIDE} of them; move it into a folder of its own, or show it the whole "
            f"folder with --agent-sees {file.parent}"
        )
    endings = tuple(all_suffixes() if (file.parent / MARK).exists() else ("",))
    walked = 0
    for name in names:
        path = str(file.parent / name)
        if path == str(file) or name == "__pycache__":
            continue
        if os.path.islink(path):  # what it leads to is shown or not on its own account
            seen = True
        elif os.path.isdir(path):
            within = list(islice(_files(path), min(MOST_WITHIN, MOST_AT_ALL - walked) + 1))
            walked += len(within)
            seen = len(within) <= MOST_WITHIN and walked <= MOST_AT_ALL
            seen = seen and all(map(_is_plain, within))
        else:
            seen = _is_plain(path) and name.endswith(endings)
        (shown if seen and not _within_or_above(path, away) else left).append(path)
    return shown, left


def _files(folder: str) -> Iterator[str]:
    for inner, folders, names in os.walk(folder):
        folders.sort()
        yield from (os.path.join(inner, name) for name in names)


def _is_plain(path: str) -> bool:
    """Whether a file is no mark, and leads to no other programs, as a socket does."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    plain = stat.S_ISREG(mode) or stat.S_ISLNK(mode)
    return plain and os.path.basename(path) != MARK


def _within_or_above(path: str, others: Sequence[str]) -> bool:
    real = os.path.realpath(path)
    return any(real == other or real in _above(other) or other in _above(real) for other in others)


def holds(places: Iterable[str], path: str) -> str:
    """Which of some files and folders has a path in it; empty if none."""
    real = os.path.realpath(path)
    return next((place for place in places if place == real or place in _above(real)), "")


def _above(path: str) -> list[str]:
    """All folders in which a path is, the nearest first."""
    parts = path.split("/")
    return ["/".join(parts[:end]) or "/" for end in range(len(parts) - 1, 0, -1)]


def _follow_links(path: str) -> tuple[Mapping[str, str], str]:
    """The links on the way to a path, and the path without them."""
    links: dict[str, str] = {}
    left, at = [part for part in os.path.abspath(path).split("/") if part][::-1], ""
    while left and len(links) < 64:
        part = left.pop()
        if part in (".", ""):
            continue
        if part == "..":
            at = at.rpartition("/")[0]
            continue
        at = f"{at}/{part}"
        if not os.path.islink(at):
            continue
        links[at] = os.readlink(at)
        left += [part for part in links[at].split("/") if part][::-1]
        at = "" if links[at].startswith("/") else at.rpartition("/")[0]
    return links, at or "/"


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def as_json(mounts: Iterable[Mount]) -> list[dict[str, Any]]:
    """Mounts as `confine` reads them."""
    return [
        {name: getattr(mount, name) for name in ("path", "kind", "source", "given", "size", "mode")}
        for mount in mounts
    ]
