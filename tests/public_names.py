"""The names that are promised to stay, with what each has: public_names.txt lists them.

docs/stability.md says what is promised. `python -m tests.public_names` prints all names that there
are, as the list has them; a line of it that is to be promised is copied there by hand.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer

from animalcat.cli.main import build, nouns

ROOT: Final = Path(__file__).resolve().parents[1]
LIST: Final = Path(__file__).with_suffix(".txt")
SCHEMAS: Final = ROOT / "animalcat" / "schemas"


Names = Iterator[tuple[str, set[str]]]
"""Names, and what each has: options, arguments, fields, properties."""


def packages() -> tuple[str, ...]:
    """The packages of the Python reference."""
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    return (*importlib.import_module("generated").MODULES, "animalcat.values")


def commands() -> Names:
    """Commands with their options and arguments."""
    for noun in nouns():
        found: Any = getattr(typer.main.get_command(build([noun])), "commands", {})[noun]
        for verb in getattr(found, "commands", {"": None}):
            words = [noun, verb] if verb else [noun]
            command: Any = typer.main.get_command(build(words))
            for word in words:
                command = command.commands[word]
            takes = set[str]()
            for one in command.params:
                if not getattr(one, "hidden", False):
                    option = one.opts[0].startswith("-")
                    takes |= {*one.opts, *one.secondary_opts} if option else {one.name.upper()}
            yield f"command {' '.join(words)}", takes


def python() -> Names:
    """Names of Python with the arguments of functions and the members of classes."""
    seen = set[int]()
    for package in packages():
        module = importlib.import_module(package)
        for name in dir(module):
            found = getattr(module, name)
            if name[0] == "_" or inspect.ismodule(found):
                continue
            said = f"python {package}.{name}"
            if id(found) in seen or not callable(found):  # the same by another way, or data
                yield said, set()
            elif inspect.isclass(found):
                yield from members(found, said)
            else:
                yield said, arguments(found)
            seen.add(id(found))


def members(kind: type, name: str) -> Names:
    """A class of ours: its methods, properties and fields, and what it is made with."""
    own = [base for base in kind.__mro__ if base.__module__.startswith("animalcat")]
    has = {each for base in own for each in (*vars(base), *inspect.get_annotations(base))}
    yield name, {each for each in has if each[0] != "_"}
    if "__init__" in vars(kind):
        yield f"{name}()", arguments(kind)
    for member in has:
        found = inspect.getattr_static(kind, member, None)
        method = isinstance(found, (staticmethod, classmethod)) or inspect.isfunction(found)
        if method and member[0] != "_" and (takes := arguments(getattr(kind, member))):
            yield f"{name}.{member}", takes


def arguments(function: Any) -> set[str]:
    """What a function takes by name."""
    taken = inspect.signature(function).parameters.values()
    stars = {inspect.Parameter.VAR_KEYWORD: "**", inspect.Parameter.VAR_POSITIONAL: "*"}
    return {
        stars.get(one.kind, "") + one.name
        for one in taken
        if one.name not in {"self", "cls"} and one.name[0] != "_"
    }


def schemas() -> Names:
    """The fields of the JSON of a profile."""
    yield "json profile", properties((SCHEMAS / "profile.schema.json").read_text("utf-8"))


def properties(schema: str) -> set[str]:
    """The names of all properties in a JSON Schema."""
    names = set[str]()
    json.loads(schema, object_hook=lambda one: names.update(one.get("properties", ())) or one)
    return names


def lines() -> dict[str, set[str]]:
    """All that there are, of which those are promised that the list holds."""
    return dict(found for part in (commands, python, schemas) for found in part())


def promised_names() -> dict[str, set[str]]:
    """What the list holds."""
    rows = (line.partition(":") for line in LIST.read_text("utf-8").splitlines())
    return {name: set(each.strip().split("; ")) - {""} for name, _, each in rows}


if __name__ == "__main__":
    for title, has in sorted(lines().items()):
        print(f"{title}: {'; '.join(sorted(has))}".rstrip())
