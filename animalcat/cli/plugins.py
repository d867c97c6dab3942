"""`animalcat plugins`: list and check what other packages add; nothing is run but by `check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Annotated, Any, Final

import typer

from animalcat.cli.shared.output import FAILED, print_rows, status
from animalcat.cli.shared.table import Column
from animalcat.extending import plugins
from animalcat.extending.plugins import GROUPS, KINDS, SHORT, Kind, Plugin, PluginError

app = typer.Typer(
    help="List and check plugins: what other packages add by entry points.", no_args_is_help=True
)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
COLUMNS: Final = ("kind", "name", "package", Column("version", 1), Column("digest", 2), "problem")


@app.command("list")
def list_plugins(as_json: AsJson = False) -> None:
    """List the plugins that are installed here, with the packages that they come with.

    None of their code is run. Ask for one by its name, such as --policy NAME; for an agent by
    --agent plugin:NAME. A server runs those alone that its operator allows (serve --allow-plugin).
    """
    _print([_row(plugin, problem) for plugin, problem in _with_problems()], as_json)


@app.command()
def check(
    package: Annotated[
        str, typer.Argument(metavar="[PACKAGE]", help="Those of this package.", show_default="all")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Import the plugins that are installed here, and say which break; their code is run.

    The exit code is 1 where one cannot be used.
    """
    rows: list[dict[str, Any]] = []
    with status("importing plugins"):
        for plugin, problem in _with_problems():
            if package and plugins.same_name(plugin.distribution) != plugins.same_name(package):
                continue
            if not problem:
                try:
                    plugins.load(plugin.kind, plugin.name)
                except PluginError as error:
                    problem = str(error)
            rows.append(_row(plugin, problem))
    _print(rows, as_json)
    if any(row["problem"] for row in rows):
        raise typer.Exit(FAILED)


def _print(rows: list[dict[str, Any]], as_json: bool) -> None:
    if not rows and not as_json:
        groups = ", ".join(GROUPS.values())
        typer.echo(f"no plugin is installed: no package has an entry point of {groups}")
        return
    shown = rows if as_json else [{**row, "digest": row["digest"][:SHORT]} for row in rows]
    columns = COLUMNS if any(row["problem"] for row in rows) else COLUMNS[:-1]
    print_rows(shown, columns, as_json=as_json)


def _row(plugin: Plugin, problem: str) -> dict[str, Any]:
    return {
        "kind": plugin.kind,
        "name": plugin.name,
        "package": plugin.distribution,
        "version": plugin.version,
        "digest": plugin.digest,
        "problem": problem,
    }


def _with_problems() -> Iterable[tuple[Plugin, str]]:
    """All plugins, each with why its name stands for something else; empty if it does not."""
    every = plugins.every()
    times = Counter((plugin.kind, plugin.name) for plugin in every)
    ours = _built_in({plugin.kind for plugin in every})
    for plugin in every:
        others = [p.distribution for p in every if (p.kind, p.name) == (plugin.kind, plugin.name)]
        if plugin.name in ours.get(plugin.kind, ()):
            yield (
                plugin,
                f"never used: a {plugin.kind} of animalcat itself has this name; rename it",
            )
        elif times[plugin.kind, plugin.name] > 1:
            packages = " and ".join(sorted(others))
            yield plugin, f"not used: {packages} have one of this name; uninstall all but one"
        else:
            yield plugin, ""


def _built_in(kinds: Iterable[Kind]) -> Mapping[Kind, Iterable[str]]:
    """The names of our own of some kinds; agents have another form, so that none has theirs."""
    built_in: dict[Kind, Iterable[str]] = {}
    for kind in sorted(kinds, key=KINDS.index):
        with suppress(ModuleNotFoundError):  # the base install alone, which has none of them
            built_in[kind] = _names(kind)
    return built_in


def _names(kind: Kind) -> Iterable[str]:
    match kind:
        case "policy":
            from animalcat.layouts.adaptive.plan import POLICIES

            return POLICIES
        case "backend":
            return ("sim", "unity")
        case "export":
            from animalcat.wire.words import FORMATS

            return FORMATS
        case "layout":
            from animalcat.layouts.library import LAYOUTS

            return LAYOUTS
        case "family":
            from animalcat.arena_configs.batteries import RECIPES
            from animalcat.arena_configs.families import FAMILIES

            return (*RECIPES, *FAMILIES)
        case "agent":
            return ()
