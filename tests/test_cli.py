"""The command line as a whole: help, and commands whose extra is missing."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

from rich.progress import Progress
from rich.table import Table
from typer.testing import CliRunner

import animalcat
from animalcat.cli.main import COMMANDS, build
from animalcat.cli.shared import output


def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "animalcat", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(env or {})},
    )


def test_help_lists_every_command() -> None:
    text = run("--help").stdout
    assert all(name in text for name in COMMANDS)


def test_every_noun_has_help() -> None:
    for name in COMMANDS:
        done = CliRunner().invoke(build([name]), [name, "--help"])
        assert done.exit_code == 0, f"{name}: {done.output}"


def test_the_version_and_short_help() -> None:
    assert run("--version").stdout == f"animalcat {animalcat.__version__}\n"
    assert run("-h").stdout == run("--help").stdout
    assert run("battery", "build", "-h").stdout == run("battery", "build", "--help").stdout


def test_a_shell_completes_nouns_verbs_and_options() -> None:
    def completed(words: str) -> list[str]:
        env = {"_ANIMALCAT_COMPLETE": "complete_bash", "COMP_WORDS": words}
        env["COMP_CWORD"] = str(len(words.split()) - 1)
        return run(env=env).stdout.split()

    assert completed("animalcat se") == ["serve", "session"]
    assert completed("animalcat session re") == ["reanalyse", "resume"]
    assert completed("animalcat session run --max-e") == ["--max-episodes"]


def test_unknown_command_is_an_error() -> None:
    assert run("sesion").returncode == 2


def test_doctor_lists_what_it_looked_for() -> None:
    done = run("doctor", "--json")
    findings = {f["item"]: f["status"] for f in json.loads(done.stdout)}
    assert findings["grpcio"] == "ok"
    assert done.returncode == (3 if "missing" in findings.values() else 0)


def test_names_are_no_markup(tmp_path: Path) -> None:
    """Wherever rich would read them as such; a closing tag ended commands."""
    name = "a[/b] [bold]:fire:"
    shown = io.StringIO()
    terminal = output.console()
    terminal.file = shown
    terminal.print(name)
    table = Table(name, title=name)
    terminal.print(table)
    with Progress(output.plain_column(), console=terminal) as progress:
        progress.add_task(name)
    assert shown.getvalue().count(name) == 4
    with output.status(name) as tell:
        tell(name)
