"""The command line as a whole: help, and commands whose extra is missing."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.progress import Progress
from rich.table import Table
from typer.testing import CliRunner

from animalcat.cli.main import build, nouns
from animalcat.cli.shared import output
from animalcat.cli.shared.common import Common, keep_common
from animalcat.cli.shared.remote import data_folder
from animalcat.service.host.settings import Settings


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
    assert all(name in text for name in nouns())


@pytest.mark.parametrize("said", ["", "ANIMALCAT_HOME", "animalcat_home"])
def test_a_command_means_the_data_directory_of_the_settings(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_common(Common())  # other tests have called commands in this process
    monkeypatch.delenv("ANIMALCAT_HOME", raising=False)
    if said:
        monkeypatch.setenv(said, str(tmp_path / "file"))
    assert data_folder() == Settings().home
    assert (data_folder() == Path(".animalcat")) is not bool(said)


def line_so_far(shell: str, words: str) -> dict[str, str]:
    """What the shell's script hands over in the environment when a word is to be completed."""
    env = {"_ANIMALCAT_COMPLETE": f"complete_{shell}"}
    if shell == "bash":
        return env | {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    env["_TYPER_COMPLETE_ARGS"] = words
    env["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    env["_TYPER_COMPLETE_WORD_TO_COMPLETE"] = words.split()[-1]
    return env


@pytest.mark.parametrize(
    "shell",
    [
        "bash",
        *(pytest.param(shell, marks=pytest.mark.slow) for shell in ("zsh", "fish", "powershell")),
    ],
)
def test_a_shell_completes_nouns_verbs_and_options(shell: str) -> None:
    def complete_words(words: str) -> list[str]:
        offered = run(env=line_so_far(shell, words)).stdout
        if shell == "zsh":
            return re.findall(r'"([^"]+)":"', offered)
        return [re.split("\t|:::", line)[0] for line in offered.splitlines()]

    assert complete_words("animalcat se") == ["serve", "server", "session"]
    assert complete_words("animalcat session re") == ["resume"]
    assert complete_words("animalcat session run --max-e") == ["--max-episodes"]
    assert complete_words("animalcat layout fit --pass") == ["--pass-marks"]


def test_help_says_what_everything_stands_for() -> None:
    """No type where a person expects a word, but where it lists the choices."""
    for noun in nouns():
        root: Any = typer.main.get_command(build([noun]))
        for verb in getattr(root.commands[noun], "commands", {None: None}):
            words = [noun, verb] if verb else [noun]
            done = CliRunner().invoke(build(words), [*words, "--help"])
            assert done.exit_code == 0, done.output
            assert not re.findall(
                r"<[a-z ]+(?:\[.*\])?>|\{|\b(?:TEXT|INTEGER|FLOAT)\b", done.stdout
            )
            usage, about, *_ = re.split(r"\n\n", done.stdout)
            assert usage.startswith(f"Usage: root {' '.join(words)} [OPTIONS]")
            assert about.strip().endswith("."), words


def test_many_options_come_in_groups_few_do_not() -> None:
    def groups(*words: str) -> list[str]:
        text = CliRunner().invoke(build([*words]), [*words, "--help"]).stdout
        return [line[:-1] for line in text.splitlines() if line.endswith(":") and line[0] != " "]

    assert groups("session", "run") == [
        *("Agent", "What is played", "How arenas are chosen", "When it ends"),
        *("How it is played and checked", "Output", "Options"),
    ]
    assert groups("session", "list") == ["Options"]


def test_rarer_options_are_shown_when_all_are_asked_for() -> None:
    def options(asked: str) -> list[str]:
        words = ["session", "run", asked]
        shown = CliRunner().invoke(build(words), words).stdout
        return re.findall(r"^  (--?[a-z-]+)", shown, re.MULTILINE)

    few, every = options("--help"), options("--help-all")
    assert len(few) <= 25
    assert {*few} < {*every}
    assert "--lease" in every


def test_what_a_server_is_shown_may_stand_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (["--token", "a", "agent", "list"], ["agent", "list", "--token=a", "--ca", "b"]):
        monkeypatch.setenv("ANIMALCAT_TOKEN", "")
        monkeypatch.setenv("ANIMALCAT_CA", "")
        assert CliRunner().invoke(build(words), words).exit_code == 0
        assert os.environ["ANIMALCAT_TOKEN"] == "a"
    assert os.environ["ANIMALCAT_CA"] == "b"


def test_options_of_all_commands_stand_anywhere_and_are_refused_where_they_mean_nothing() -> None:
    for words in (["--json", "agent", "list"], ["agent", "list", "--json"]):
        assert json.loads(CliRunner().invoke(build(words), words).stdout)
    for words, name in {
        ("agent", "list", "--server", "host:1"): "--server",
        ("--data=.", "arena", "make"): "--data",
        ("arena", "play", "a.yaml", "--json"): "--json",
    }.items():
        done = CliRunner().invoke(build([*words]), [*words])
        assert done.exit_code == 2
        assert f"{name} means nothing to" in done.stderr


@pytest.mark.parametrize("words", [("session", "list"), ("layout", "show")])
def test_a_list_imports_nothing_that_fits_or_simulates(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    """Neither in its own process nor in that of its private server."""
    env = {"PYTHONPROFILEIMPORTTIME": "1", "ANIMALCAT_HOME": str(tmp_path)}
    done = run(*words, "--json", env=env)
    assert done.returncode == 0, done.stderr
    for printed in (done.stderr, (tmp_path / "server.log").read_text()):
        imported = {line.rpartition("|")[2].strip() for line in printed.splitlines()}
        assert "animalcat.cli.main" in imported
        heavy = {"pymc", "pytensor", "pandas", "matplotlib", "scipy.stats", "numba", "sapien"}
        assert not heavy & imported


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
