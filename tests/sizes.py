"""Counts how large the project is, and refuses growth that nobody gave a reason for.

`make lint` runs it. `python -m tests.sizes --write` writes down what has become smaller; a number
is raised by hand in tests/size.toml, with a reason beside it.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
FILE: Final = Path(__file__).with_name("size.toml")
GENERATED: Final = ("animalcat/v1/", "envs/mlagents/v1/")
YAML: Final = "yaml"
KINDS: Final = {".j2": "templates", ".js": "javascript", ".css": "css", ".yaml": YAML, ".yml": YAML}
SLACK: Final = 0.01
"""A number that fell by more than this share of it is to be written down."""
BY_HAND: Final = "suite"
"""What is measured seldom and written by hand: this compares nothing with it."""
HEAD: Final = """\
# How large the project may be. `make lint` counts again (tests/sizes.py) and refuses growth: take
# something out, or raise the number here with a reason beside it, {most = 12, why = "..."}.
# `python -m tests.sizes --write` writes down what has become smaller, and keeps the reasons.
# The suite is measured by hand, its CPU time in units of `sum(i * i for i in range(10**7))`.
"""

_LITTLE: Final = (
    "a again all already an and any anew apart as at away back be been both but by ever first for "
    "from how if in just last least less longer more most much new newly next no nor not now of "
    "off on once one only or other others out over own same so some still such than that the then "
    "there this to together too up well what when where which while who with without yet"
)
"""Words that make no verb phrase of a participle beside them, and name nothing."""
_IRREGULAR: Final = (
    "begun bent born bought bound broken brought built caught chosen dealt done drawn driven eaten "
    "fallen fed felt forbidden forgotten fought found frozen given gone grown heard held hidden "
    "hung kept known laid led left lent lit lost made meant met mistaken overwritten paid proven "
    "rebuilt rewritten risen said seen sent shaken shown sold sought sown spent spoken spun stood "
    "struck stuck sung sunk swept taken taught thought thrown told torn understood withdrawn "
    "withheld won worn written"
)
_NO_PARTICIPLES: Final = (
    "bed embed exceed feed heed hundred need proceed red reseed seed shed speed succeed"
)


class Limit(NamedTuple):
    """What a number may be.

    Attributes:
        most: The largest that it may be.
        why: Why it was raised; empty if it never was.
    """

    most: float
    why: str = ""


def is_participle(word: str) -> bool:
    """Return whether a word is a past participle and nothing else that a function is named by."""
    regular = word.endswith("ed") and word not in _NO_PARTICIPLES.split()
    return regular or word in _IRREGULAR.split()


def is_bare(name: str) -> bool:
    """Return whether a function is named by a participle without a verb or a noun beside it."""
    words = [word for word in name.split("_") if word]
    return any(map(is_participle, words)) and all(
        is_participle(word) or word in _LITTLE.split() for word in words
    )


def function_names(tree: ast.AST) -> Iterator[str]:
    """Return the names of all functions and methods, but for those that Python itself names."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name[:2] != "__":
            yield node.name


def count_statements(tree: ast.AST) -> int:
    """Return how many statements a tree has, docstrings among them."""
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree))


def count_words(path: Path) -> int:
    """Return how many words people read on a page, or in the cells of a notebook.

    Comments are not among them: most name the file that a figure is taken from.
    """
    text = path.read_text("utf-8")
    if path.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return len(re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL).split())


def count_commands() -> dict[str, int]:
    """Return how many commands there are, and how many options and arguments they take."""
    import typer

    from animalcat.cli.main import build, nouns

    counts: Counter[str] = Counter()
    counts["parameters"] = len(typer.main.get_command(build([])).params)  # of all commands
    for noun in nouns():
        found: Any = getattr(typer.main.get_command(build([noun])), "commands", {})[noun]
        for verb in getattr(found, "commands", {"": None}):
            words = [noun, verb] if verb else [noun]
            command: Any = typer.main.get_command(build(words))
            for word in words:
                command = command.commands[word]
            counts["commands"] += 1
            counts["parameters"] += len(command.params)
    return dict(counts)


def tracked_files() -> list[Path]:
    """Return the files that git follows or would follow, with their path in the checkout."""
    asked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    said = subprocess.run(asked, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    names = sorted({name for name in said.split("\0") if name})
    return [Path(name) for name in names if not (ROOT / name).is_symlink()]


def count_all() -> dict[str, dict[str, float]]:
    """Return every number that is kept, by table and name."""
    lines: Counter[str] = Counter()
    statements: Counter[str] = Counter()
    others: Counter[str] = Counter()
    words: Counter[str] = Counter()
    names: list[str] = []
    for path in tracked_files():
        file, top = ROOT / path, path.parts[0]
        if not file.is_file() or str(path).startswith(GENERATED):
            continue
        if path.suffix in {".py", ".pyi"} and len(path.parts) > 1:
            text = file.read_text("utf-8")
            tree = ast.parse(text)
            lines[top] += len(text.splitlines())
            statements[top] += count_statements(tree)
            names += function_names(tree) if path.suffix == ".py" else ()
        elif path.suffix in KINDS and top != "tests":
            others[KINDS[path.suffix]] += len(file.read_text("utf-8").splitlines())
        if path.suffix == ".ipynb" or (path.suffix == ".md" and top == "docs"):
            words["docs"] += count_words(file)
        elif str(path) in {"README.md", "CHANGELOG.md"}:
            words[path.stem.lower()] += count_words(file)
    share = round(100 * sum(map(is_bare, names)) / len(names), 1)
    return {
        "lines": dict(lines),
        "statements": dict(statements),
        "other_lines": dict(others),
        "words": dict(words),
        "commands": {**count_commands()},
        "names": {"percent_bare_participles": share},
    }


def read_limits(text: str) -> dict[str, dict[str, Limit]]:
    """Return what the file allows, by table and name."""
    tables = tomllib.loads(text)
    return {
        table: {name: Limit(**row) for name, row in rows.items()} for table, rows in tables.items()
    }


def show_limits(limits: Mapping[str, Mapping[str, Limit]]) -> str:
    """Return the text of the file."""
    parts = [HEAD]
    for table, rows in limits.items():
        parts.append(f"\n[{table}]\n")
        for name, limit in rows.items():
            why = f", why = {json.dumps(limit.why, ensure_ascii=False)}" if limit.why else ""
            parts.append(f"{name} = {{most = {limit.most}{why}}}\n")
    return "".join(parts)


def _pairs(
    counts: Mapping[str, Mapping[str, float]], limits: Mapping[str, Mapping[str, Limit]]
) -> Iterator[tuple[str, float, Limit]]:
    """Each number with its name in the file and its limit, which is 0 for what is new."""
    for table, rows in counts.items():
        for name, count in rows.items():
            yield f"{table}.{name}", count, limits.get(table, {}).get(name, Limit(0))


def refusals(
    counts: Mapping[str, Mapping[str, float]], limits: Mapping[str, Mapping[str, Limit]]
) -> list[str]:
    """Return a sentence for each number that has grown."""
    return [
        f"{name} is {count:,}, which is {round(count - limit.most, 1):,} more than the "
        f"{limit.most:,} of tests/size.toml: take something out, or raise it there with a reason "
        "beside it (the key `why`)"
        for name, count, limit in _pairs(counts, limits)
        if count > limit.most
    ]


def reminders(
    counts: Mapping[str, Mapping[str, float]], limits: Mapping[str, Mapping[str, Limit]]
) -> list[str]:
    """Return a sentence for each number that fell by so much that it is to be written down."""
    return [
        f"{name} fell from {limit.most:,} to {count:,}: `python -m tests.sizes --write` writes it "
        "down, so that it stays"
        for name, count, limit in _pairs(counts, limits)
        if count < limit.most * (1 - SLACK)
    ]


def lower_limits(
    counts: Mapping[str, Mapping[str, float]], limits: Mapping[str, Mapping[str, Limit]]
) -> dict[str, dict[str, Limit]]:
    """Return limits no larger than what was counted, with their reasons; a new number is taken."""
    lower = {
        table: {
            name: Limit(count)
            if (known := limits.get(table, {}).get(name)) is None
            else known._replace(most=min(count, known.most))
            for name, count in sorted(rows.items())
        }
        for table, rows in counts.items()
    }
    by_hand = {BY_HAND: dict(limits[BY_HAND])} if BY_HAND in limits else {}
    return lower | by_hand


def _print_all(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        print(sentence, file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare what is counted with the file, or write down what has become smaller."""
    parser = argparse.ArgumentParser(prog="tests.sizes", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write down what became smaller")
    options = parser.parse_args(arguments)
    limits = read_limits(FILE.read_text("utf-8")) if FILE.exists() else {}
    counts = count_all()
    if options.write:
        limits = lower_limits(counts, limits)
        FILE.write_text(show_limits(limits), "utf-8")
    _print_all(reminders(counts, limits))
    grown = refusals(counts, limits)
    _print_all(grown)
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
