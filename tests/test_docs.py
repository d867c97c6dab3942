"""The documentation names only what exists, and shows as output only what a run prints.

A block marked `text` is the output of the block of commands before it. It is compared with a run,
unless an HTML comment `seen DATE, MACHINE` right before it says where such a long run was seen.
"""

from __future__ import annotations

import builtins
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
import yaml
from PIL import Image
from typer.testing import CliRunner

from animalcat.cli.main import build
from animalcat.cli.shared.command_help import ANYWHERE
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import from_dict
from benchmarks.__main__ import PARTS
from tests.printed import agrees

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
GENERATED = ROOT / "docs" / "reference" / "generated"
PAGES = [
    README,
    ROOT / "CHANGELOG.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if GENERATED not in page.parents),
]
SEEN = re.compile(r"<!-- seen \d{4}-\d\d-\d\d, \S.* -->")
PLAYED_ELSEWHERE = {"unity.md"}
"""Pages that tests/unity/test_page.py follows word by word, with clients of animalai."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language ("" for none), its text, and the line of text before it."""

    language: str
    text: str
    before: str

    @property
    def commands(self) -> list[str]:
        lines = [
            line.removeprefix(".venv/bin/").removeprefix("!") for line in self.text.splitlines()
        ]
        plain = self.language in {"", "sh"} or self.language.startswith("{code-cell}")
        return [line for line in lines if plain and line.startswith("animalcat ")]


def blocks(page: Path) -> Iterator[Block]:
    language, text, before = None, "", ""
    for line in page.read_text().splitlines(keepends=True):
        if language is None and line.startswith("```"):
            language, text = line[3:].strip(), ""
        elif line.startswith("```"):
            yield Block(language or "", text, before)
            language = None
        elif language is not None:
            text += line
        elif line.strip():
            before = line.strip()


def outputs() -> Iterator[tuple[Path, str, Block]]:
    """Every block of output, with the command that prints it."""
    for page in PAGES:
        command = ""
        for block in blocks(page):
            if block.language == "text":
                yield page, command, block
            command = block.commands[-1] if block.commands else ""


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def inline(page: Path) -> list[str]:
    """Commands within sentences."""
    return re.findall(r"`(animalcat [a-z][^`\n]*)`", page.read_text())


COMMANDS = sorted(
    {line for page in PAGES for block in blocks(page) for line in block.commands}
    | {line for page in PAGES for line in inline(page)}
)
OUTPUTS = [row for row in outputs() if row[0].name not in PLAYED_ELSEWHERE]


def command_of(words: list[str]) -> Any:
    """The command that some words call; they are taken off."""
    command: Any = typer.main.get_command(build(words))
    while words and words[0] != "--help" and (verbs := getattr(command, "commands", None)):
        command = verbs[words.pop(0)]
    return command


def test_commands_that_messages_name_exist() -> None:
    folders = ("animalcat", "arena_configs", "doors", "envs", "layouts", "service")
    code = "".join(f.read_text() for name in folders for f in (ROOT / name).rglob("*.py"))
    joined = re.sub(r'"\s*\n\s*f?"', "", code)
    nouns = "agent|arena|battery|campaign|data|episode|profile|session|study|token|unity"
    named = set(re.findall(rf"`(?:animalcat )?((?:{nouns}) [a-z]+)(?=[ `])", joined))
    assert len(named) > 30
    for words in sorted(named):
        command_of(words.split())


@pytest.mark.parametrize("line", COMMANDS)
def test_documented_commands_exist(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    command = command_of(words)
    known = {"--help", *ANYWHERE}
    known |= {name for parameter in command.params for name in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_documented_benchmarks_exist() -> None:
    """On pages that are kept up with the code: not in notebooks, nor in what was changed."""
    pages = [page for page in PAGES if not {"research", "CHANGELOG.md"} & {*page.parts}]
    text = "".join(page.read_text() for page in pages)
    assert {*re.findall(r"-m benchmarks ([a-z0-9]+)", text)} <= PARTS.keys()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    lost: list[str] = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if "://" in target:
            continue
        if not file.exists():
            lost.append(target)
        elif anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
            if anchor not in map(slug, headings):
                lost.append(target)
    assert not lost


@pytest.mark.parametrize(
    ("page", "command", "block"), OUTPUTS, ids=[f"{row[0].name}: {row[1]}" for row in OUTPUTS]
)
def test_what_is_shown_is_what_a_run_prints(
    page: Path, command: str, block: Block, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command, f"{page.name}: this output belongs to no command:\n{block.text}"
    if not SEEN.fullmatch(block.before):
        monkeypatch.chdir(ROOT)
        words = shlex.split(command, comments=True)[1:]
        seen = CliRunner().invoke(build(words), words).stdout
        assert agrees(block.text, seen), f"{page.name} shows\n{block.text}but this is\n{seen}"


def test_what_is_quoted_of_a_file_is_in_it() -> None:
    shown = list(blocks(ROOT / "docs" / "layouts.md"))
    (table,) = (block.text for block in shown if block.language == "csv")
    layout, outcomes = (yaml.safe_load(b.text) for b in shown if b.language == "yaml")
    assert (ROOT / "docs" / "examples" / "reading.csv").read_text().startswith(table)
    assert (
        from_dict(layout).digest == load_layout(ROOT / "docs" / "examples" / "reading.yaml").digest
    )
    shipped = yaml.safe_load((ROOT / "layouts" / "library" / "navigation-speed.yaml").read_text())
    assert outcomes["outcomes"] == shipped["outcomes"]


PICTURES = {
    "animalcat arena show docs/examples/yard.yaml -o map.png": "map.png",
    "animalcat arena show docs/examples/yard.yaml --first-person --resolution 384 -o frame.png": (
        "frame.png"
    ),
    "animalcat layout show docs/examples/reading.yaml --variant tables -o graph.svg": "reading.svg",
}


@pytest.mark.parametrize(("command", "picture"), PICTURES.items(), ids=PICTURES.values())
def test_pictures_are_what_the_commands_draw(
    command: str, picture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command in COMMANDS
    monkeypatch.chdir(ROOT)
    *words, name = shlex.split(command)[1:]
    drawn, kept = tmp_path / name, ROOT / "docs" / "pictures" / picture
    assert CliRunner().invoke(build(words), [*words, str(drawn)]).exit_code == 0
    if drawn.suffix == ".svg":
        shapes = [re.findall(r'<path[^>]* d="([^"]*)"', p.read_text()) for p in (drawn, kept)]
        assert shapes[0]
        assert shapes[0] == shapes[1]
    else:
        pixels = [np.asarray(Image.open(p).convert("RGB"), dtype=float) for p in (drawn, kept)]
        assert pixels[0].shape == pixels[1].shape
        assert np.abs(pixels[0] - pixels[1]).mean() < 1


def python_of(page: str) -> dict[str, Any]:
    """What the Python of a page defines, its blocks run one after another, with shorter fits."""
    names: dict[str, Any] = {"__name__": "page"}
    for code in (b for b in blocks(ROOT / "docs" / page) if b.language == "python"):
        quick = code.text.replace("seed=1)\noak", "seed=1, chains=2, draws=200, tune=200)\noak")
        exec(compile(quick, page, "exec"), names)
    return names


@pytest.fixture
def beside_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder that has the documentation, and to which may be written."""
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)


def person(prompt: str) -> str:
    """Somebody at the keyboard who knows every sum."""
    a, b = prompt.removesuffix(" = ").split("+")
    return str(int(a) + int(b))


@pytest.mark.usefixtures("beside_docs")
def test_the_learners_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "input", person)
    page = python_of("learner.md")
    assert "carrying" in page["learner"].to_frame().index
    assert (page["choice"].reason, page["learner"].n) == ("easy", 5)


@pytest.mark.usefixtures("beside_docs")
def test_the_pages_of_layouts_and_pictures_run() -> None:
    oak = python_of("layouts.md")["oak"]
    assert oak.to_frame().loc["span", "unit"] == "kiloword"
    gallery = python_of("gallery.md")
    gallery["plt"].close(gallery["figure"])
    assert Path("forest.pdf").read_bytes().startswith(b"%PDF")


@pytest.fixture
def port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return int(listener.getsockname()[1])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_readme_can_be_followed(tmp_path: Path, port: int) -> None:
    """Every command of the README runs as it stands there, but for the port."""
    (script,) = (block for block in blocks(README) if block.text.startswith("# my_agent.py"))
    (tmp_path / "my_agent.py").write_text(script.text)
    # Blocks with a language are for other machines.
    own = [block for block in blocks(README) if not block.language]
    commands = [line for block in own for line in block.commands]
    assert len(commands) > 8
    program = Path(sys.executable).with_name("animalcat")

    def words(line: str) -> list[str | Path]:
        return [program, *shlex.split(line.replace("50051", str(port)), comments=True)[1:]]

    serve = words(commands[0])
    assert "serve" in serve
    # What plays and shows in this folder finds the server of this folder: one for all commands.
    with subprocess.Popen(serve, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert str(port) in server.stdout.readline()
            for line in commands[1:]:
                run = subprocess.run(
                    words(line),
                    cwd=tmp_path,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert run.returncode == 0, f"{line}\n{run.stdout}\n{run.stderr}"
        finally:
            server.send_signal(signal.SIGINT)
    assert (tmp_path / "profile.html").stat().st_size > 1000
    assert list((tmp_path / "shots").rglob("*.png"))


def test_each_rule_for_what_strangers_send_has_its_test() -> None:
    page = (ROOT / "docs" / "security.md").read_text()
    rules = page.partition("comes from strangers\n")[2].partition("\n## ")[0]
    named = re.findall(r"\| `test_\w+` \|$", rules, re.MULTILINE)
    assert len(named) == rules.count("\n| ") - 1
    there = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert not [one for one in re.findall(r"`(test_\w+)`", page) if f"def {one}(" not in there]
