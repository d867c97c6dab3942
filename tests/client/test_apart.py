"""A program that is kept apart sees what it is given, and nothing else, in whichever way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import animalcat
from animalcat.apart import confine
from animalcat.apart import plan as apart
from animalcat.apart.confine import LANDLOCK, NAMESPACES, USER
from animalcat.apart.memory import MemoryLimit
from animalcat.apart.plan import BUBBLEWRAP, Limits, launch_command, plan_of, way

pytestmark = pytest.mark.skipif(
    not way().whole, reason=f"processes cannot be put apart here: {way().why}"
)

INTRUDER = Path(__file__).with_name("intruder.py")
SYSTEM = "/usr/bin/python3"
"""An interpreter that every user can run."""
LIMITS = Limits(processes=40, memory=400 << 20, room=8 << 20, files=100)
ROOT = os.geteuid() == 0
WAYS = [
    NAMESPACES,
    *([BUBBLEWRAP] if shutil.which("bwrap") and not ROOT else []),
    *(["ordinary"] if ROOT and os.access(SYSTEM, os.X_OK) else []),
    *(["ordinary bubblewrap"] if ROOT and shutil.which("bwrap") else []),
    *(["powerless root"] if ROOT and shutil.which("setpriv") else []),
]
"""Ways that show nothing but what is given; where this is root, as others as well."""

PARTIAL = ["ordinary landlock", USER] if ROOT else [LANDLOCK]
"""Ways that cover a part."""
HERE = Path(animalcat.__file__).resolve()
FOR_OTHERS = all(one.stat().st_mode & 0o005 == 0o005 for one in HERE.parents)
"""Whether other users may read this checkout, as what runs as one of them has to."""


def by_name(ways: Sequence[str]) -> pytest.MarkDecorator:
    """Try ways in turn, of which some need that other users may read the software."""
    unreadable = pytest.mark.skipif(not FOR_OTHERS, reason=f"other users may not read {HERE}")
    others = {one for one in ways if ROOT and one.startswith(("ordinary", USER))}
    return pytest.mark.parametrize(
        "name", [pytest.param(one, marks=unreadable if one in others else ()) for one in ways]
    )


SOCKETS = ("tmux-0/default", "docker.sock", "bus", "X11-unix/X0", "agent.1", ".s.PGSQL.5432")
"""Sockets that lead outside: to a shell, a root shell, programs, the screen, keys and databases."""


@dataclass(frozen=True)
class Ground:
    """A machine with things that are no business of an agent."""

    folder: Path
    sockets: dict[str, str]
    port: int
    terminal: str

    def targets(self, folders: Sequence[Path | str] = ()) -> str:
        data = self.folder / "runs" / "d1"
        return json.dumps(
            {
                "data": str(data),
                "secret": str(data / "access" / "tokens.json"),
                "recordings": str(data / "recordings"),
                "sockets": self.sockets,
                "port": self.port,
                "terminals": [self.terminal],
                "folders": list(map(str, folders)),
                "parent": os.getpid(),
            }
        )


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp")))
        folder.chmod(0o755)
        data = folder / "runs" / "d1"
        (data / "access").mkdir(parents=True)
        (data / "access" / "tokens.json").write_text("secret")
        (folder / "large" / "recordings").mkdir(parents=True)
        (data / "recordings").symlink_to(folder / "large" / "recordings")
        (folder / "agent").mkdir()
        (folder / "agent" / "agent.py").write_text("x = 1\n")
        (folder / "weights").mkdir()
        (folder / "weights" / "w.bin").write_bytes(b"weights")
        for path in (folder / "agent", folder / "weights"):
            path.chmod(0o700 if ROOT else 0o755)  # readable by its owner alone
        sockets: dict[str, str] = {}
        for name in SOCKETS:
            at = folder / "sockets" / name
            at.parent.mkdir(parents=True, exist_ok=True)
            _listen(stack, str(at))
            at.chmod(0o777)
            sockets[name] = str(at)
        sockets["abstract"] = f"\0animalcat-test-{os.getpid()}"
        _listen(stack, sockets["abstract"])
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        controls, terminal = os.openpty()
        os.fchmod(terminal, 0o666)
        stack.callback(os.close, controls)
        stack.callback(os.close, terminal)
        yield Ground(folder, sockets, tcp.getsockname()[1], os.ttyname(terminal))


def _listen(stack: ExitStack, at: str) -> None:
    server = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    server.bind(at)
    server.listen()


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs words apart, in one of the ways, and returns what they printed."""
    monkeypatch.setenv("SECRET_KEY", "x")
    monkeypatch.setenv("ANIMALCAT_AGENT_MODE", "careful")
    started: list[apart.Started] = []

    def run(
        name: str, words: Sequence[str], *, interpreter: bool = True, **given: Any
    ) -> subprocess.CompletedProcess[str]:
        user, before = None, list[str]()
        if name == "powerless root":  # such as in a container
            before, name = ["setpriv", "--bounding-set", "-sys_admin"], NAMESPACES
        if name == USER or name.startswith("ordinary"):
            monkeypatch.setattr(sys, "executable", SYSTEM)
            monkeypatch.setattr(apart, "software", lambda: (str(Path(animalcat.__file__).parent),))
            monkeypatch.setenv("XDG_CACHE_HOME", str(ground.folder / "cache"))
        if name.startswith("ordinary"):
            user, name = 65534, name.partition(" ")[2] or NAMESPACES
            monkeypatch.setattr(os, "geteuid", lambda: user)
            monkeypatch.setattr(tempfile, "tempdir", "/tmp")
        asked: dict[str, Any] = {"network": False, "limits": LIMITS, **given}
        plan = plan_of(**asked)
        first = [sys.executable, "-P"] if interpreter else []
        one = launch_command([*first, *words], plan, name)
        started.append(one)
        if user and one.folder:
            os.chown(one.folder, user, user)
        return subprocess.run(
            [*before, *one.command],
            env=one.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            start_new_session=True,
            timeout=60,
            check=False,
            user=user,
            group=user,
            extra_groups=[] if user else None,
        )

    yield run
    for one in started:
        one.remove()


def _got(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@by_name(WAYS)
def test_what_is_not_given_is_not_there(name: str, ground: Ground, run: Run) -> None:
    readable = ground.folder / "agent"
    if name.startswith("ordinary"):
        readable.chmod(0o755)
    package = Path(animalcat.__file__).parent
    folders = [package, readable, "/usr/lib", "/etc", "/"]
    words = [str(INTRUDER), ground.targets(folders)]
    got = _got(run(name, words, sees=[str(INTRUDER), str(readable)]))
    refused = [one for one in got if one.startswith(("socket ", "write ")) or one in REFUSED]
    reached = {one: got[one] for one in refused if not str(got[one]).startswith("error: ")}
    assert reached == {}
    assert set(got["top"]) <= TOP | {"home", "root", "work", *ground.folder.parts[1:2]} | {
        Path(sys.prefix).parts[1],
        Path(sys.base_prefix).parts[1],
        INTRUDER.parts[1],
    }
    assert set(got["dev"]) == DEVICES
    assert got["here"] == []
    assert got["into_terminal"] == got["terminals"] == got["through_proc"] == []
    assert got["others"] == got["syscalls"] == []
    assert got["memory"].startswith("error: ")
    assert "ANIMALCAT_AGENT_MODE" in got["environment"]
    assert "SECRET_KEY" not in got["environment"]
    assert max(got["open"]) <= 3
    assert got["nice"] == "1000"
    assert got["ids"][:2] == [1000, 1000]
    assert (ground.folder / "runs" / "d1" / "access" / "tokens.json").read_text() == "secret"


REFUSED = ("plant", "secret", "recordings", "port", "kill_parent", "sysctl", "sysrq", "vsock")
OF_MACHINE = (
    *("datagram", "memory", "semaphores", "messages", "queue"),
    *("limits", "slow", "move"),
)
"""What is everybody's where no namespace keeps it apart."""
TOP = {
    *("bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "dev", "proc", "sys"),
    *("run", "tmp", "var", "opt", "nix"),
}
DEVICES = {
    *("null", "zero", "full", "random", "urandom", "fd", "stdin", "stdout", "stderr", "shm"),
}


HONEST = """
import json, multiprocessing, os, subprocess, sys, tempfile, threading
from multiprocessing import shared_memory
from pathlib import Path

def square(number):
    return number * number

if __name__ == "__main__":
    beside = (Path(__file__).parent / "beside.txt").read_text()
    weights = Path(sys.argv[1]).read_text()
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x")
    Path("notes.txt").write_text("x")
    (Path.home() / "notes.txt").write_text("x")
    memory = shared_memory.SharedMemory(create=True, size=1 << 16)
    memory.buf[0] = 7
    memory.close()
    memory.unlink()
    with multiprocessing.Pool(2) as pool:
        squares = pool.map(square, range(4))
    threads = [threading.Thread(target=lambda: None) for _ in range(8)]
    for one in threads:
        one.start()
    inner = subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True)
    print(json.dumps([beside, weights, squares, inner.stdout.strip(), os.environ["HOME"]]))
"""


@by_name([*WAYS, *PARTIAL])
def test_an_honest_program_has_what_it_needs(name: str, ground: Ground, run: Run) -> None:
    home = ground.folder / "honest"
    home.mkdir(exist_ok=True)
    (home / "agent.py").write_text(HONEST)
    (home / "beside.txt").write_text("beside")
    weights = ground.folder / "weights.txt"
    weights.write_text("weights")
    done = run(name, [str(home / "agent.py"), str(weights)], sees=[str(home), str(weights)])
    got = _got(done)
    assert got[:4] == ["beside", "weights", [0, 1, 4, 9], "42"]


@pytest.mark.skipif(not ROOT, reason="only root keeps files from the agent's own number")
def test_what_only_its_owner_may_read_is_shown_as_the_agents_own(ground: Ground, run: Run) -> None:
    (ground.folder / "weights").chmod(0o700)
    code = f"import json; print(json.dumps(open({str(ground.folder / 'weights/w.bin')!r}).read()))"
    assert _got(run(NAMESPACES, ["-c", code], sees=[str(ground.folder / "weights")])) == "weights"


GREEDY = """
import json, os, sys, threading, time
got = {}
def kept(name, attempt):
    try:
        attempt()
        got[name] = "no limit"
    except (OSError, MemoryError, RuntimeError) as error:
        got[name] = type(error).__name__

def forks():
    for _ in range(400):
        if not os.fork():
            time.sleep(60)
            os._exit(0)

def fill(folder):
    with open(folder + "/full", "wb") as file:
        for _ in range(200):
            file.write(bytes(1 << 20))

kept("memory", lambda: bytearray(1 << 30))
for folder in (".", "/tmp", os.path.expanduser("~"), "/dev/shm", "/run"):
    kept(folder[:4] if folder[0] != "." else ".", lambda: fill(folder))
kept("open files", lambda: [os.dup(0) for _ in range(500)])
for number in range(3, 100):
    try:
        os.close(number)
    except OSError:
        pass
kept("forks", forks)
print(json.dumps(got))
sys.stdout.flush()
os._exit(0)
"""


@by_name(WAYS)
def test_what_a_program_takes_is_limited(name: str, run: Run) -> None:
    got = _got(run(name, ["-c", GREEDY]))
    unlimited = {one for one, told in got.items() if told == "no limit"}
    assert unlimited == set()


MANY = """
import mmap, os, sys, time
whole, many = mmap.mmap(-1, 40 << 20), int(sys.argv[1])
whole.write(bytes(len(whole)))  # all share it
for _ in range(many):
    if not os.fork():
        own = bytearray(int(sys.argv[2]) << 20)
        whole[::4096], own[::4096]
        time.sleep(20 if own else 0.7)
        os._exit(0)
sys.exit(any([os.wait()[1] for _ in range(many)]))
"""


@pytest.mark.parametrize(("many", "own", "ends"), [(4, 40, True), (6, 0, False)])
def test_memory_is_limited_for_all_processes_together(many: int, own: int, ends: bool) -> None:
    """What processes share counts once: six that share 40 MiB have not got 240."""
    with subprocess.Popen([sys.executable, "-c", MANY, str(many), str(own)]) as process:
        limit = MemoryLimit(process, 150 << 20)
        code = process.wait(20)
    assert bool(limit.why) is ends
    assert (code != 0) is ends


WEIGHTS = """
import mmap, os, sys, time
if not os.fork():
    with open(sys.argv[1], "rb") as file:
        seen = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    seen[::4096]
    own = bytearray(int(sys.argv[2]) << 20)
    own[::4096]
    time.sleep(20 if own else 0.7)
    os._exit(0)
sys.exit(os.wait()[1] != 0)
"""


@pytest.mark.parametrize(("own", "ends"), [(0, False), (200, True)])
def test_weights_that_are_mapped_from_disk_do_not_count(
    tmp_path: Path, own: int, ends: bool
) -> None:
    kind = subprocess.check_output(["stat", "-f", "-c", "%T", tmp_path], text=True).strip()
    if kind in ("tmpfs", "ramfs"):
        pytest.skip("this folder is in memory")
    weights = tmp_path / "weights"
    weights.touch()
    os.truncate(weights, 200 << 20)
    with subprocess.Popen([sys.executable, "-c", WEIGHTS, weights, str(own)]) as process:
        limit = MemoryLimit(process, 150 << 20)
        code = process.wait(20)
    assert bool(limit.why) is ends
    assert (code != 0) is ends


@pytest.mark.parametrize("file", ["'/tmp/x'", "os.memfd_create('x')"])
def test_what_is_in_files_in_memory_counts_too(file: str) -> None:
    code = f"import os, time; x = open({file}, 'wb', 0); x.write(bytes(100 << 20)); time.sleep(20)"
    limits = Limits(processes=40, memory=400 << 20, room=128 << 20, files=100)
    plan = plan_of(network=False, limits=limits)
    one = launch_command([sys.executable, "-c", code], plan, NAMESPACES)
    with subprocess.Popen(one.command, env=one.variables, start_new_session=True) as process:
        folders = [one.path for one in plan.mounts if one.kind == "empty"]
        limit = MemoryLimit(process, 90 << 20, folders)
        assert process.wait(20) == 128 + signal.SIGKILL
    assert "GiB of memory together" in limit.why


ORPHANS = """
import os, sys, time
if not os.fork():
    os.setsid()
    if os.fork():
        os._exit(0)
os.write(1, os.environ["ANIMALCAT_AGENT_MARK"].encode() + b"\\n")  # at once: two write
time.sleep(60)
"""


def _running(mark: str) -> list[int]:
    """Processes of this machine that have a mark in their environment."""
    found: list[int] = []
    for one in Path("/proc").iterdir():
        if one.name.isdigit():
            with suppress(OSError):
                if mark.encode() in (one / "environ").read_bytes():
                    found.append(int(one.name))
    return found


def _wait(done: Callable[[], bool], seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if done():
            return True
        time.sleep(0.02)
    return False


ENDING = [
    NAMESPACES,
    LANDLOCK,
    *([USER] if ROOT else []),
    *([BUBBLEWRAP] if shutil.which("bwrap") else []),
]


@by_name(ENDING)
def test_a_program_ends_with_the_one_that_started_it(
    name: str, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"mark-{os.getpid()}-{name}"
    code = f"""
import subprocess, sys, time
sys.path[:0] = {sys.path!r}
from animalcat.apart import plan as apart
given = {{}}
if {name == USER}:
    sys.executable, apart.software = {SYSTEM!r}, lambda: ({str(Path(confine.__file__).parent)!r},)
plan = apart.plan_of(network=False, variables={{"ANIMALCAT_AGENT_MARK": {mark!r}}})
one = apart.launch_command([sys.executable, "-c", {ORPHANS!r}], plan, {name!r})
started = subprocess.Popen(one.command, env=one.variables, start_new_session=True)
time.sleep(60)
"""
    monkeypatch.setenv("XDG_CACHE_HOME", str(ground.folder / "cache"))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as parent:
        try:
            assert parent.stdout is not None
            said = [parent.stdout.readline() for _ in range(2)]
            assert said == [f"{mark}\n"] * 2
            assert len(_running(mark)) >= 2
        finally:
            parent.send_signal(signal.SIGKILL)
    assert _wait(lambda: not _running(mark)), _running(mark)


@by_name(PARTIAL)
def test_where_it_is_kept_apart_in_part_files_and_terminals_are_refused(
    name: str, ground: Ground, run: Run
) -> None:
    if confine.landlock_version() < 6:
        pytest.skip("this kernel's Landlock is older")
    (ground.folder / "agent").chmod(0o755)
    words = [str(INTRUDER), ground.targets([ground.folder, "/etc"])]
    got = _got(run(name, words, sees=[str(INTRUDER), str(ground.folder / "agent")]))
    refused = [*REFUSED, f"write {ground.folder}", "write /etc", "socket abstract", *OF_MACHINE]
    refused += ["slow_all"] if name != USER else []  # whose all processes are its own
    reached = {one: got[one] for one in refused if not str(got[one]).startswith("error: ")}
    assert reached == {}
    assert got["terminals"] == got["through_proc"] == []


def test_the_network_brings_no_abstract_sockets(ground: Ground, run: Run) -> None:
    if confine.landlock_version() < 6:
        pytest.skip("this kernel's Landlock is older")
    words = [str(INTRUDER), ground.targets()]
    got = _got(run(NAMESPACES, words, network=True, sees=[str(INTRUDER)]))
    assert got["port"] == "connected"
    reached = [one for one in got if one.startswith("socket ") and "connected" in got[one]]
    assert reached == []
    assert got["secret"].startswith("error: ")


POISON = """
import json, os
cache = os.environ["NUMBA_CACHE_DIR"]
there = sorted(os.listdir(cache + "/planner_1"))
for name in there:
    path = f"{cache}/planner_1/{name}"
    told = open(path).read()
    try:
        open(path, "w").write("poison")
    except OSError:
        os.unlink(path)
        open(path, "w").write("poison")
open(cache + "/planner_1/more.nbi", "w").write("poison")
print(json.dumps([there, told]))
"""


@by_name([one for one in WAYS if " " not in one and one != "ordinary"])
def test_compiled_code_comes_from_ours_alone_and_none_flows_back(
    name: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    code = tmp_path / "animalcat" / "compiled" / "planner_1" / "f.nbi"
    code.parent.mkdir(parents=True)
    code.write_text("ours")
    assert _got(run(name, ["-c", POISON])) == [["f.nbi"], "ours"]
    assert code.read_text() == "ours"
    assert [one.name for one in code.parent.iterdir()] == ["f.nbi"]
    fills = "import os; open(os.environ['NUMBA_CACHE_DIR'] + '/new', 'w').write('x')"
    assert run(name, ["-c", fills], ours=True).returncode == 0  # our own agents fill it
    assert (code.parents[1] / "new").read_text() == "x"


def test_variables_are_named() -> None:
    given = {"OPENAI_API_KEY": "x", "LANG": "C", "SSH_AUTH_SOCK": "/x", "OMP_NUM_THREADS": "2"}
    given |= {"ANIMALCAT_TOKEN": "mine", "ANIMALCAT_AGENT_X": "y", "https_proxy": "p"}
    kept = apart.clean_environment(given, network=False)
    assert kept == {"LANG": "C", "OMP_NUM_THREADS": "2", "ANIMALCAT_AGENT_X": "y"}
    assert apart.clean_environment(given, network=True) == {**kept, "https_proxy": "p"}
    named = apart.named_variables(["OPENAI_API_KEY", "MODE=a=b"], given)
    assert named == {"OPENAI_API_KEY": "x", "MODE": "a=b"}
    with pytest.raises(ValueError, match="it is not set here"):
        apart.named_variables(["AWAY"], given)
