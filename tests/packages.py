"""Installs animalcat's own wheel and sdist by pip alone, and runs what each extra is for in them.

Run it by `make packages`, or by hand with the interpreters to try:
`python -m tests.packages PYTHON...`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
README_PORT: Final = "50051"
"""Port that the README's commands name; a free one takes its place."""
BASE: Final = ("--version", "--help", "session list --help", "doctor")
"""Commands of the base install that need no server."""
NEWEST: Final = "[inspect,minari,rerun,server,video]"
"""Extras with which everything can be exported, tried on the oldest and the newest Python."""
SHIFTING: Final = (
    *("numpy", "pandas", "xarray", "arviz", "pymc", "nutpie", "numba", "gymnasium", "grpcio"),
    "typer",
)
"""What a user without a lock gets in its newest version, and what has broken things before."""
EXPORTS: Final = (
    *(f"profile export SESSION --format {form} -o profile.{form}" for form in ("json", "html")),
    *(f"profile export SESSION --format {form} -o profile.{form}" for form in ("csv", "parquet")),
    *(f"profile export SESSION --format {form} -o {form}.nc" for form in ("netcdf", "draws")),
    "profile plot SESSION -o profile.svg",
    "profile export SESSION -o outcomes.parquet",
    "battery export navigation -o battery",
    "session export SESSION -o session.eval",
    "episode export SESSION 0 --format minari -o dataset",
    "episode export SESSION 0 --format rerun -o episode.rrd",
    "episode replay SESSION 0 --verify --video episode.mp4",
)
"""Every way out of a session."""
NOTEBOOK: Final = ROOT / "docs" / "notebooks" / "first_study.ipynb"
"""The notebook that begins with the front page's example."""


class Done(NamedTuple):
    """One command, and how long it took."""

    where: str
    command: str
    seconds: float


class Failed(Exception):  # noqa: N818  it is the answer
    """A command failed."""


def readme_commands() -> list[str]:
    """The commands of the README that are animalcat's own, in order."""
    text = (ROOT / "README.md").read_text("utf-8")
    lines = [
        line
        for language, block in FENCE.findall(text)
        if not language
        for line in block.splitlines()
    ]
    return [line.split("  #")[0].strip() for line in lines if line.startswith("animalcat ")]


def readme_study() -> str:
    """The study in Python that the README shows."""
    text = (ROOT / "README.md").read_text("utf-8")
    (code,) = [block for _, block in FENCE.findall(text) if block.startswith("import animalcat as")]
    return code


def readme_agent() -> str:
    """The agent that the README shows, which its commands call my_agent.py."""
    text = (ROOT / "README.md").read_text("utf-8")
    (code,) = [block for _, block in FENCE.findall(text) if block.startswith("# my_agent.py")]
    return code


def build(folder: Path) -> tuple[Path, Path]:
    """Build wheel and sdist; the wheel is made of the sdist, as an index would have it."""
    run([uv(), "build", "--quiet", "--out-dir", str(folder), str(ROOT)], ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def install(python: str, what: Path, extra: str, folder: Path) -> Path:
    """A new environment with an artefact in it, by pip alone as a user has it; its commands.

    Nothing holds versions back, so this finds what a newer library breaks.
    """
    run([uv(), "venv", "--quiet", "--seed", "--python", python, str(folder)], folder.parent)
    wanted = f"animalcat{extra} @ {what.as_uri()}"
    run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", wanted], folder.parent)
    return folder / "bin"


def uv() -> str:
    """The uv that the Makefile set up, or the one on the path."""
    own = ROOT / ".tools" / "bin" / "uv"
    return str(own) if own.exists() else "uv"


def run(command: Sequence[str], folder: Path, path: Path | None = None) -> str:
    """Run a command in a folder, as on a machine that knows nothing of this checkout."""
    done = subprocess.run(
        command, cwd=folder, env=environment(path), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Failed(
            f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def environment(path: Path | None) -> dict[str, str]:
    """The environment of a command; without what would lead it back to this checkout."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return kept if path is None else kept | {"PATH": f"{path}{os.pathsep}{kept['PATH']}"}


@contextmanager
def serving(command: Sequence[str], folder: Path, path: Path) -> Iterator[None]:
    """A server, from when it says that it serves until the others are done."""
    with subprocess.Popen(
        command, cwd=folder, env=environment(path), stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            server.stdout.readline()
            yield
        finally:
            server.terminate()


def free_port() -> int:
    """A port that nothing listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def try_base(bin_: Path, folder: Path, where: str) -> Iterator[Done]:
    """What an agent's machine has: the client, which says what it lacks."""
    for words in BASE:
        yield time_run(["animalcat", *words.split()], folder, bin_, where)
    code = "import animalcat; print(animalcat.__version__); animalcat.connect"
    yield time_run([str(bin_ / "python"), "-c", code], folder, bin_, where)


def try_readme(bin_: Path, folder: Path, where: str) -> Iterator[Done]:
    """Every command of the README, in its order, and the notebook of a first study."""
    (folder / "my_agent.py").write_text(readme_agent())
    port = str(free_port())
    commands = [shlex.split(line.replace(README_PORT, port)) for line in readme_commands()]
    (serve,) = [command for command in commands if command[1] == "serve"]
    with serving([*serve, "--data", str(folder / "server")], folder, bin_):
        for command in commands:
            if command is not serve:
                yield time_run(command, folder, bin_, where)
    (folder / NOTEBOOK.name).write_bytes(NOTEBOOK.read_bytes())
    added = ["pip", "install", "--quiet", "nbclient", "ipykernel"]
    run([str(bin_ / "python"), "-m", *added], folder)
    yield time_run(["jupyter-execute", NOTEBOOK.name], folder, bin_, where)


def try_inspect(bin_: Path, folder: Path, where: str) -> Iterator[Done]:
    """The page about inspect_ai, from a task to a profile, with what its extra brings."""
    examples = Path("docs", "examples", "inspect")
    shutil.copytree(ROOT / examples, folder / examples)
    lines = (ROOT / "docs" / "inspect.md").read_text().splitlines()
    (measure,) = [line for line in lines if line.startswith("inspect eval ")]
    yield time_run(shlex.split(measure), folder, bin_, where)
    (log,) = (folder / "logs").glob("*.eval")
    yield time_run(["animalcat", "profile", "show", str(log)], folder, bin_, where)
    lost = f"! animalcat profile plot {log} 2> said && grep -q learner said"  # it has no sampler
    yield time_run(["bash", "-c", lost], folder, bin_, where)


def try_learner(bin_: Path, folder: Path, where: str) -> Iterator[Done]:
    """The learner's page, with somebody who can add up to four digits and answers 40 items."""
    examples = Path("docs", "examples")
    (folder / examples).mkdir(parents=True)
    for name in ("sums.csv", "sums.yaml"):
        shutil.copy(ROOT / examples / name, folder / examples)
    page = (ROOT / "docs" / "learner.md").read_text("utf-8")
    code = next(block for language, block in FENCE.findall(page) if language == "python")
    asked = 'int(input(f"{item} = "))'
    assert asked in code
    able = "(sum(map(int, item.split('+'))) if len(item) < 10 else 0)"
    (folder / "page.py").write_text(code.replace(asked, able) + "\nassert learner.n\n")
    yield time_run([str(bin_ / "python"), "page.py"], folder, bin_, where)


def try_mcp(bin_: Path, folder: Path, where: str) -> Iterator[Done]:
    """The door for clients of MCP: both servers are there, and a missing server is told."""
    code = "import animalcat.doors.mcp.playing, animalcat.doors.mcp.looking"
    yield time_run([str(bin_ / "python"), "-c", code], folder, bin_, where)
    lost = f"! animalcat mcp --operator --connect localhost:{free_port()} 2> said && grep -q . said"
    yield time_run(["bash", "-c", lost], folder, bin_, where)


def try_newest(bin_: Path, folder: Path, where: str) -> Iterator[Done]:
    """A study, a session, a fit and every export, with the newest of what is depended on."""
    python = str(bin_ / "python")
    told = (
        "import importlib.metadata as m, sys; print(*(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    )
    versions = run([python, "-c", told, *SHIFTING], folder).strip()
    yield Done(where, versions, 0.0)
    (folder / "study.py").write_text(readme_study())
    yield time_run([python, "study.py"], folder, bin_, where)
    own = "animalcat session run --agent "  # the one that waits for agents elsewhere is another
    (play,) = [line for line in readme_commands() if line.startswith(own)]
    with serving(["animalcat", "serve", "--port", str(free_port())], folder, bin_):
        yield time_run(shlex.split(play), folder, bin_, where)
        (listed,) = json.loads(run(["animalcat", "session", "list", "--json"], folder, bin_))
        for line in EXPORTS:
            words = line.replace("SESSION", str(listed["session"]))
            yield time_run(["animalcat", *words.split()], folder, bin_, where)
    (folder / "draws.py").write_text(
        "import arviz\ndata = arviz.from_netcdf('netcdf.nc')\n"
        "print(arviz.loo(data))\narviz.plot_forest(data)\n"
    )
    yield time_run([python, "draws.py"], folder, bin_, where)
    page = (ROOT / "docs" / "layouts.md").read_text("utf-8").splitlines()
    fit = next(line for line in page if line.startswith("animalcat layout fit docs/examples/"))
    examples = Path("docs", "examples")
    (folder / examples).mkdir(parents=True)
    for name in ("reading.csv", "reading.yaml"):
        shutil.copy(ROOT / examples / name, folder / examples)
    yield time_run([*shlex.split(fit), "-o", "fit.json"], folder, bin_, where)


def time_run(command: Sequence[str], folder: Path, path: Path, where: str) -> Done:
    """Run a command and tell how long it took."""
    began = time.monotonic()
    run(command, folder, path)
    return Done(where, shlex.join(command), time.monotonic() - began)


ATTEMPTS: Final = {
    "": try_base,
    "[server]": try_readme,
    "[learner]": try_learner,
    "[inspect]": try_inspect,
    "[mcp]": try_mcp,
    NEWEST: try_newest,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Try wheel and sdist on each interpreter, with and without the server extra."""
    parser = argparse.ArgumentParser(prog="tests.packages", description=__doc__)
    parser.add_argument("pythons", nargs="*", default=[sys.executable], help="interpreters to try")
    parser.add_argument(
        "--quick", action="store_true", help="try the base install of the sdist alone"
    )
    parser.add_argument("--only", metavar="EXTRA", help="try this extra alone, such as learner")
    wanted = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        wheel, sdist = build(Path(place) / "dist")
        tries = [
            (wheel, ""),
            (sdist, ""),
            (wheel, "[server]"),
            (sdist, "[server]"),
            (wheel, "[learner]"),
            (wheel, "[inspect]"),
            (wheel, "[mcp]"),
            (wheel, NEWEST),
        ]
        tries = tries[1:2] if wanted.quick else tries
        if wanted.only is not None:
            tries = [(what, extra) for what, extra in tries if extra == f"[{wanted.only}]"]
        for number, python in enumerate(wanted.pythons):
            version = run([python, "-c", "import platform; print(platform.python_version())"], ROOT)
            for what, extra in tries:
                if extra == NEWEST and 0 < number < len(wanted.pythons) - 1:
                    continue
                where = f"{version.strip()} {what.suffix.removeprefix('.')}{extra}"
                folder = Path(place) / f"{number}{what.suffix}{extra.strip('[]')}"
                (folder / "work").mkdir(parents=True)
                try:
                    bin_ = install(python, what, extra, folder / "env")
                    attempt = ATTEMPTS[extra]
                    for done in attempt(bin_, folder / "work", where):
                        print(f"{done.where:28} {done.seconds:7.1f} s  {done.command}", flush=True)
                except Failed as error:
                    print(f"{where}: {error}", file=sys.stderr)
                    return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
