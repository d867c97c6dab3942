"""Writes the reference from the code: commands, Python, layouts, wire, files, words, errors.

Nothing of it is kept in the repository: Sphinx makes it anew in docs/reference/generated whenever
the site is built.
"""

from __future__ import annotations

import html
import importlib
import json
import re
import runpy
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, Final

DOCS: Final = Path(__file__).resolve().parents[1]
ROOT: Final = DOCS.parent
PROTOS: Final = ROOT / "protos" / "animalcat" / "v1"
SCHEMAS: Final = ROOT / "animalcat" / "schemas"
MODULES: Final[Mapping[str, str]] = {
    "animalcat": "Measure: labs, arenas, agents, results",
    "animalcat.layouts": "Layouts and the learner",
    "animalcat.plots": "Pictures",
    "animalcat.data": "Look after a store",
    "animalcat.lab": "What a lab gives back",
    "animalcat.client": "The client alone",
}
"""Packages of the Python reference, and what each is for."""
PICTURES: Final[Mapping[str, str]] = {
    "demands.png": "The way, sight, and the order of rewards",
    "demands-more.png": "Directions, blocks, tunnels, light, time and changing rewards",
    "demands-hiding.png": "What is measured by playing",
}
"""Drawings of meta-features, and what each shows; docs/pictures/demands.py makes them."""
GROUPS: Final[Mapping[str, str]] = {
    "arena": "In the arena",
    "way": "The way",
    "sight": "Sight",
    "rewards": "Rewards",
    "look": "Looks",
    "hiding": "Hiding",
    "object permanence": "Object permanence",
}
"""Title of each group of meta-features."""

Pages = dict[str, str]
"""Names of pages without an ending, and their text."""


def cell(text: object) -> str:
    """A text as one cell of a table in Markdown."""
    plain = html.escape(" ".join(str(text).split()), quote=False)
    return re.sub(r"([|*_{}\\])", r"\\\1", plain)


def code(text: object) -> str:
    """A name or value as it is typed, as one cell of a table."""
    plain = " ".join(str(text).split()).replace("|", "\\|")
    return f"`{plain}`" if plain else ""


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def contents_table(caption: str, pages: Iterable[str]) -> str:
    """A table of contents in Markdown."""
    inside = "\n".join(pages)
    return f"```{{toctree}}\n:maxdepth: 1\n:caption: {caption}\n\n{inside}\n```\n"


# Commands -----------------------------------------------------------------------------------------


def commands() -> Pages:
    """A page for every command, from the parsers of the command line itself."""
    import typer

    from animalcat.cli.main import build, nouns

    pages: Pages = {}
    for noun, about in nouns().items():
        program = typer.main.get_command(build([noun]))
        found: Any = getattr(program, "commands", {})[noun]
        verbs = dict(getattr(found, "commands", {}))
        text = [f"# animalcat {noun}\n\n{about}\n\n"]
        if not verbs:
            text.append(_command(found, f"animalcat {noun}"))
        for verb in verbs:
            whole = getattr(typer.main.get_command(build([noun, verb])), "commands", {})[noun]
            text.append(f"## {verb}\n\n")
            text.append(_command(whole.commands[verb], f"animalcat {noun} {verb}"))
        pages[f"commands/{noun}"] = "".join(text)
    rows = ([f"[animalcat {noun}]({noun}.md)", cell(about)] for noun, about in nouns().items())
    pages["commands/index"] = (
        "# Commands\n\nEvery command takes `--help`. These stand before or behind any command that "
        "they mean something to:\n\n"
        + _options(typer.main.get_command(build([])))
        + table(("command", "what it does"), rows)
        + "```{toctree}\n:hidden:\n\n"
        + "\n".join(nouns())
        + "\n```\n"
    )
    return pages


def _command(command: Any, name: str) -> str:
    """Usage, help, arguments and options of one command."""
    import click

    from animalcat.cli.shared.command_help import ANYWHERE
    from animalcat.cli.shared.common import lacks

    context = click.Context(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(context))
    about = "\n\n".join(
        cell(part) for part in (command.help or "").replace("\b", "").split("\n\n") if part.strip()
    )
    besides = ", ".join(f"`{name}`" for name in ANYWHERE if name not in lacks(command.callback))
    text = f"```text\n{name} {usage}\n```\n\n{about}\n\n{_options(command)}"
    return f"{text}Besides: {besides} (see [commands](index.md)).\n\n"


def _options(command: Any) -> str:
    """Tables of the arguments and options of a command."""
    import click

    context = click.Context(command)
    text: list[str] = []
    groups: dict[str, list[list[str]]] = defaultdict(list)
    for parameter in command.params:
        vars(parameter)["hidden"] = False
        record = parameter.get_help_record(context)
        if record is None or "--help" in parameter.opts:
            continue
        kind = "Arguments" if parameter.param_type_name == "argument" else ""
        panel = kind or getattr(parameter, "rich_help_panel", None) or "Options"
        words = re.sub(r"(?<=\[default: )\((.*?)\)(?=[;\]])", r"\1", record[1])
        words = re.sub(r" *\[default: ?\]", "", words)
        groups[panel].append([code(record[0]), cell(words)])
    for panel, rows in groups.items():
        text.append(f"**{panel}**\n\n")
        text.append(table(("name", "what it says"), rows))
    return "".join(text)


# Python -------------------------------------------------------------------------------------------


def python() -> Pages:
    """A page for every package of the public Python names, from docstrings."""
    pages: Pages = {}
    for module, about in MODULES.items():
        public = [name for name in dir(importlib.import_module(module)) if name[0] != "_"]
        text = [f"# {module}\n\n{about}.\n\n"]
        for name in public:
            found = getattr(importlib.import_module(module), name)
            if type(found).__name__ == "module":
                continue
            kind = "class" if isinstance(found, type) else "function" if callable(found) else "data"
            text.append(_document(kind, found, module, name))
        pages[f"python/{module}"] = "".join(text)
    rows = ([f"[{module}]({module}.md)", cell(about)] for module, about in MODULES.items())
    pages["python/index"] = (
        "# Python\n\n[By task](../../../python.md) shows how these names are used, and [what a "
        "version number promises](../../../stability.md) says which of them stay.\n\n"
        + table(("package", "what it is for"), rows)
        + "```{toctree}\n:hidden:\n\n"
        + "\n".join(MODULES)
        + "\n```\n"
    )
    return pages


def _document(kind: str, found: Any, module: str, name: str) -> str:
    """What autodoc is to write of one name."""
    if kind == "data":
        return f"## {name}\n\n```text\n{found!r}\n```\n\n"
    members = (
        "\n   :members:\n   :inherited-members: object, tuple, Exception" if kind == "class" else ""
    )
    error = isinstance(found, type) and issubclass(found, BaseException)
    shown = "exception" if error else kind
    return (
        f"## {name}\n\n```{{eval-rst}}\n.. auto{shown}:: {module}.{name}{members}\n"
        f"   :no-index:\n```\n\n"
    )


# Layouts ------------------------------------------------------------------------------------------


def layouts(folder: Path) -> Pages:
    """A page for every layout that is shipped, with its graph, which is drawn into the folder."""
    from animalcat.layouts.library import LAYOUTS, load_layout, variants
    from animalcat.plots import graph, save

    (folder / "layouts").mkdir(parents=True, exist_ok=True)
    pages: Pages = {}
    rows: list[list[str]] = []
    for name in LAYOUTS:
        layout = load_layout(name)
        save(graph(layout), folder / "layouts" / f"{name}.svg")
        rows.append([f"[{name}]({name}.md)", str(len(layout.capabilities)), cell(layout.source)])
        text = [
            f"# Layout {name}\n\n{cell(layout.about)}\n\n*Source: {cell(layout.source)}*\n\n",
            f"![The graph of {name}]({name}.svg)\n\n",
            f"The variant that is usual is `{layout.variant}`. `animalcat layout show {name}` "
            "prints all of it.\n\n## Variants\n\n",
            table(
                ("variant", "what differs"),
                ([code(one), cell(load_layout(name, one).about)] for one in variants(name)),
            ),
            "## What it knows of an arena or item\n\n",
            table(
                ("meta-feature", "unit", "range", "what it is"),
                (
                    [code(f.name), cell(f.unit), f"{f.low:g} to {f.high:g}", cell(f.about)]
                    for f in layout.features
                ),
            ),
            "## What it finds out\n\n",
            table(
                ("node", "kind", "unit", "prior", "what it is"),
                (
                    [code(n.name), n.kind, cell(n.unit), code(n.prior), cell(n.about)]
                    for n in layout.latents
                ),
            ),
            "## How demands and abilities meet\n\n",
            table(
                ("node", "unit", "linking function"),
                ([code(n.name), cell(n.unit), code(n.link)] for n in layout.derived),
            ),
        ]
        if layout.excludes:
            text += [
                "## What it does not cover\n\nArenas with any of these are left out.\n\n",
                table(("meta-feature",), ([code(one)] for one in layout.excludes)),
            ]
        pages[f"layouts/{name}"] = "".join(text)
    pages["layouts/index"] = (
        "# Layouts\n\nThese layouts come with animalcat. "
        "[Design a layout](../../../layouts.md) says how to write another.\n\n"
        + table(("layout", "capabilities", "source"), rows)
        + "```{toctree}\n:hidden:\n\n"
        + "\n".join(LAYOUTS)
        + "\n```\n"
    )
    return pages


# The wire -----------------------------------------------------------------------------------------

_DEFINES: Final = re.compile(r"^(service|message|enum|oneof) (\w+)")
_RPC: Final = re.compile(r"^rpc (\w+)\((stream )?([\w.]+)\) returns \((stream )?([\w.]+)\)")
_FIELD: Final = re.compile(r"^(optional |repeated )?([\w.]+(?:<[^>]*>)?) (\w+) = (\d+)")
_VALUE: Final = re.compile(r"^(\w+) = (\d+)")


def definitions(text: str) -> Iterator[tuple[str, str, str, list[tuple[str, str, str]]]]:
    """Services, messages and enums of a proto file: kind, name, comment, and (name, type, comment).

    Args:
        text: A file as `buf format` writes it: one definition a line, its comment before it.
    """
    comment: list[str] = []
    open_: list[tuple[str, str, str, list[tuple[str, str, str]]]] = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith("//"):
            comment.append(line.removeprefix("//").strip())
            continue
        said = " ".join(comment)
        if met := _DEFINES.match(line):
            kind, name = met.groups()
            full = f"{open_[-1][1]}.{name}" if open_ and kind in ("message", "enum") else name
            # The fields of a oneof are the message's own.
            rows = open_[-1][3] if kind == "oneof" and open_ else []
            open_.append((kind, full, said, rows))
            if line.endswith("{}"):
                yield open_.pop()
        elif open_ and (met := _RPC.match(line)):
            name, up, asked, down, given = met.groups()
            sent, got = f"{up or ''}{asked}", f"{down or ''}{given}"
            open_[-1][3].append((name, f"{sent} -> {got}", said))
        elif open_ and (met := _FIELD.match(line)):
            label, kind, name, number = met.groups()
            open_[-1][3].append((name, f"{label or ''}{kind} = {number}", said))
        elif open_ and open_[-1][0] == "enum" and (met := _VALUE.match(line)):
            open_[-1][3].append((met[1], met[2], said))
        elif line == "}" and open_:
            done = open_.pop()
            if done[0] != "oneof":
                yield done
        if line:
            comment = []


def wire() -> Pages:
    """A page for every file of the wire contract."""
    pages: Pages = {}
    rows: list[list[str]] = []
    for file in sorted(PROTOS.glob("*.proto")):
        text = file.read_text("utf-8")
        about = text.splitlines()[0].removeprefix("//").strip()
        rows.append([f"[{file.name}]({file.stem}.md)", cell(about)])
        parts = [f"# {file.name}\n\n{cell(about)}\n\n"]
        found = sorted(definitions(text), key=lambda one: one[0] != "service")
        for kind, name, said, fields in found:
            parts.append(f"## {kind} {name}\n\n{cell(said)}\n\n")
            if fields:
                head = {"service": ("call", "request and response"), "enum": ("value", "number")}
                names = head.get(kind, ("field", "type and number"))
                parts.append(
                    table(
                        (*names, "what it is"),
                        ([code(n), code(t), cell(c)] for n, t, c in fields),
                    )
                )
        pages[f"wire/{file.stem}"] = "".join(parts)
    names = [file.stem for file in sorted(PROTOS.glob("*.proto"))]
    pages["wire/index"] = (
        "# The wire\n\nAgents, clients and servers speak gRPC by these files. "
        "[The protocol](../../../protocol.md) says what an agent has to do. "
        "[How the wire may change](../../../design/wire.md) is a promise.\n\n"
        + table(("file", "what is in it"), rows)
        + "```{toctree}\n:hidden:\n\n"
        + "\n".join(names)
        + "\n```\n"
    )
    return pages


# Files --------------------------------------------------------------------------------------------


def files() -> Pages:
    """The formats of files: JSON by its schemas, and tables of outcomes by their columns."""
    from animalcat.outcomes import COLUMNS, OUTCOMES, REQUIRED

    pages: Pages = {}
    rows: list[list[str]] = []
    names: list[str] = ["outcomes"]
    for file in sorted(SCHEMAS.glob("*.schema.json")):
        schema = json.loads(file.read_text("utf-8"))
        name = file.name.removesuffix(".schema.json")
        names.append(name)
        rows.append([f"[{name}]({name}.md)", cell(schema["title"])])
        parts = list(_properties(schema, schema, ""))
        pages[f"files/{name}"] = (
            f"# {name}\n\n{cell(schema['title'])}. The schema is "
            f"`animalcat/schemas/{file.name}`, which `importlib.resources` finds.\n\n"
            + table(("field", "type", "what it is"), parts)
        )
    pages["files/outcomes"] = (
        "# Tables of outcomes\n\nOne row an attempt at an episode, as CSV, Parquet or pandas. "
        f"A table that is read needs {' and '.join(map(code, REQUIRED))}. Every column that is not "
        "in this list is a meta-feature, with its unit in brackets. "
        f"`outcome` is one of {', '.join(map(code, OUTCOMES))}.\n\n"
        + table(("column", "kind"), ([code(n), kind] for n, kind in COLUMNS.items()))
    )
    pages["files/index"] = (
        "# Files\n\nWhat commands print with `--json` follows a schema. Recordings are "
        "[MCAP files](../../../recordings.md#the-files), and posteriors are "
        "[NetCDF for ArviZ](../../../exports.md).\n\n"
        + table(
            ("format", "what is in it"),
            [["[outcomes](outcomes.md)", "tables of outcomes, one row an attempt"], *rows],
        )
        + "```{toctree}\n:hidden:\n\n"
        + "\n".join(names)
        + "\n```\n"
    )
    return pages


def _properties(node: Any, whole: Any, path: str, depth: int = 0) -> Iterator[list[str]]:
    """A row for every field of a JSON schema, those of inner objects after their own."""
    if (ref := node.get("$ref", "")).startswith("#/"):
        node = reduce(getitem, ref[2:].split("/"), whole)
    if depth > 4:
        return
    for inner in ("items", "additionalProperties"):
        if isinstance(node.get(inner), dict):
            yield from _properties(node[inner], whole, f"{path}[]", depth + 1)
    for name, field in node.get("properties", {}).items():
        here = f"{path}.{name}".lstrip(".")
        kinds = field.get("type", "")
        kind = ", ".join(kinds) if isinstance(kinds, list) else kinds
        if "enum" in field:
            kind = ", ".join(json.dumps(one) for one in field["enum"])
        yield [code(here), code(kind), cell(field.get("description", ""))]
        yield from _properties(field, whole, here, depth + 1)


# Meta-features, statuses, errors ------------------------------------------------------------------


def panels() -> dict[str, str]:
    """The title of the panel in which each meta-feature is drawn, from the script that draws."""
    drawn = runpy.run_path(str(DOCS / "pictures" / "demands.py"))
    found: dict[str, str] = {}
    for key in ("PANELS", "MORE", "HIDING"):
        for title, names, _ in drawn[key]:
            for name in names:
                found.setdefault(name, title)
    return found


def features() -> Pages:
    """The meta-features that are measured of arenas, with the panels in which they are drawn."""
    from animalcat.arena_configs.features.definition import FeatureDefinition
    from animalcat.arena_configs.features.registry import FEATURES

    shown = panels()

    def span(one: FeatureDefinition) -> str:
        ends = f"{one.low:g} to {one.high:g}".replace("inf", "∞")
        return cell(f"{ends} {one.unit}" + (f", version {one.version}" * (one.version > 1)))

    def about(one: FeatureDefinition) -> str:
        played = "" if one.measure else " (by playing)"
        drawn = f"; drawn in *{shown[one.name]}*" if one.name in shown else ""
        return cell(one.description + played) + drawn

    text = [
        "# Meta-features\n\n`animalcat arena features FILE --explain` measures these and says why. "
        "[What arenas demand](../../demands.md) says how ways, sight and hiding are found, and "
        "what the words for a chain of arenas mean.\n\n",
        *(
            f"![{words}](../../pictures/{name})\n\n*{words}. The titles of the panels stand in the "
            "tables.*\n\n"
            for name, words in PICTURES.items()
        ),
    ]
    for group in dict.fromkeys(one.group for one in FEATURES.values()):
        rows = [
            [code(one.name), span(one), one.chain or "not measured", about(one)]
            for one in FEATURES.values()
            if one.group == group
        ]
        head = ("meta-feature", "range", "in a chain", "what it is")
        text.append(f"## {GROUPS[group]}\n\n{table(head, rows)}")
    return {"meta-features": "".join(text)}


def statuses() -> Pages:
    """The words for why a session ended and where a capability stands."""
    from typing import get_args

    from animalcat.layouts.adaptive.statuses import End
    from animalcat.service.measuring.profile_words import STATUS_MEANS

    return {
        "statuses": (
            "# Statuses\n\n[How they are decided](../../statuses.md) is a page of its own.\n\n"
            "## Of a capability\n\n"
            + table(
                ("word", "what it means"),
                ([code(word), cell(means)] for word, means in STATUS_MEANS.items()),
            )
            + "## Why a session ended\n\n"
            + "".join(f"- `{word}`\n" for word in get_args(End))
        )
    }


def errors() -> Pages:
    """The codes of errors, with what is said where there is no better text."""
    from animalcat.service.errors import CATALOGUE

    return {
        "errors": (
            "# Errors\n\nA call that fails has one of these codes in its trailing metadata, and as "
            "`AnimalcatError.code` in Python. Codes are never reused. The text mostly says more "
            "than here.\n\n"
            + table(
                ("code", "gRPC status", "what it says"),
                (
                    [code(one.value), one_of.status.name, cell(one_of.text)]
                    for one, one_of in CATALOGUE.items()
                ),
            )
        )
    }


def write(folder: Path) -> list[str]:
    """Write the whole reference into a folder, and return the names of its pages."""
    shutil.rmtree(folder, ignore_errors=True)
    pages: Pages = {}
    for part in (commands, python, wire, files, features, statuses, errors):
        pages |= part()
    pages |= layouts(folder)
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_text(text, "utf-8")
    return sorted(pages)


def show_examples(
    app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]
) -> None:
    """Mark the indented examples of a docstring as code, as `help` shows them."""
    for number in reversed(range(1, len(lines))):
        before = next((line for line in reversed(lines[:number]) if line), "")
        begins = lines[number].startswith("    ") and not lines[number - 1]
        if begins and before[:1].strip() and not before.endswith("::"):
            lines[number:number] = ["::", ""]


def setup(app: Any) -> dict[str, bool]:
    """Write the reference before Sphinx looks for pages."""

    def begin(app: Any) -> None:
        sys.setrecursionlimit(10_000)
        write(Path(app.srcdir) / "reference" / "generated")

    app.connect("builder-inited", begin, priority=1)
    app.connect("autodoc-process-docstring", show_examples, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
