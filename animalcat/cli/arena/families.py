"""`animalcat arena make`: arenas from families, and which there are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer

from animalcat.arena_configs.families.claims import claim_errors, measure_geometry
from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.families.instance import FamilyInstance
from animalcat.arena_configs.families.language import PARTS, Family, Part
from animalcat.arena_configs.families.library import FAMILIES, load_family, load_family_file
from animalcat.arena_configs.families.scope import Value
from animalcat.arena_configs.families.search import SearchResult, demands_of, search
from animalcat.arena_configs.features.definition import MeasuredFeatures
from animalcat.arena_configs.features.registry import FEATURES
from animalcat.arena_configs.model import Arena, ArenaError
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.sequence import episode_arenas
from animalcat.arena_configs.writer import to_yaml
from animalcat.arenas.arena_files import is_yaml
from animalcat.cli.arena.family import show_family
from animalcat.cli.shared.common import common, without
from animalcat.cli.shared.output import FAILED, complain, fail, print_json, print_table, say, wrote
from animalcat.cli.shared.progress import progress
from animalcat.cli.shared.table import Column
from animalcat.extending import plugins
from animalcat.machine.marks import mark
from animalcat.text.counts import count_of

MANIFEST: Final = "instances.json"
"""File that `make` writes beside the arenas: what each of them is."""


@without("--server", "--data")
def make(
    family: Annotated[
        str,
        typer.Argument(
            metavar="FAMILY",
            help="A family by its name, or the file of one of your own.",
            show_default="list all",
        ),
    ] = "",
    number: Annotated[
        int, typer.Option("-n", metavar="NUMBER", min=1, max=100_000, help="How many instances.")
    ] = 1,
    seed: Annotated[
        int, typer.Option(metavar="NUMBER", min=0, help="The seed that they are drawn from.")
    ] = 0,
    part: Annotated[
        str | None,
        typer.Option(
            metavar="PART",
            help="Only instances for practice, or for test. No instance is for both, whatever the "
            "seed.",
            show_default="both",
        ),
    ] = None,
    paradigm: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only this paradigm.", show_default="all"),
    ] = None,
    control: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="After each instance, this control of it: the same with a demand taken away. "
            "Repeat it for several; `all` for every control.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PARAMETER=VALUE",
            help="Set a parameter, even beyond its range. Repeat it for several.",
        ),
    ] = None,
    demand: Annotated[
        list[str] | None,
        typer.Option(
            "--demand",
            metavar="NAME=NUMBER",
            help="Find an instance that has this demand, such as distance=27. Repeat it for "
            "several. If none has it, the nearest is made.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Measure every instance, by playing as well, and compare it with what the family "
            "claims. The exit code is 1 if a claim does not hold.",
        ),
    ] = False,
    about: Annotated[
        bool, typer.Option("--about", help="Only describe the family and its parameters.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Write the arenas into this folder."),
    ] = None,
) -> None:
    """Make arenas of a family.

    One arena is printed, several are listed; with -o they are written, each into a file of its own,
    beside instances.json, which says what each of them is. The same seed makes the same arenas.

    Without a family, those that come with the project or with plugins are listed; no plugin's
    code is run for that. --about shows one with its paradigms, with what its parameters are
    drawn from, and with its controls.
    """
    if about or not family:
        _describe_families(family)
        return
    if part is not None and part not in PARTS:
        fail(f"--part {part}: it is {' or '.join(PARTS)}")
    if control and demand:
        fail("--control and --demand do not go together: arenas for demands have no controls")
    given = _settings(settings or [])
    try:
        chosen = _family(family)
        if demand:
            results = _search_each(chosen, demand, number, seed, part, paradigm, given)
            instances = [result.instance for result in results]
        else:
            results = []
            names = _controls(chosen, control or [])
            rng = np.random.default_rng(seed)
            instances = generate(
                chosen, number, rng, part=part, paradigm=paradigm, controls=names, given=given
            )
    except ArenaError as error:
        fail(str(error))
    wrong = _broken_claims(chosen, instances) if check else []
    paths = _write_arenas(chosen, instances, output) if output else {}
    rows = _rows(chosen, instances, paths, results)
    if output:
        (output / MANIFEST).write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
        wrote(count_of(len(instances), "arena"), output)
    if common().as_json:
        print_json(rows)
    elif output is None and len(instances) == 1:
        say(to_yaml(instances[0].arena), nl=False)
    elif output is None:
        columns = ["name", "paradigm", Column("part", 2), Column("variant", 1), "control"]
        print_table(rows, columns)
    for result in results:
        _tell(result)
    for line in wrong:
        complain(line)
    if check and not wrong:
        say(f"what the family claims holds on {count_of(len(instances), 'instance')}", err=True)
    if wrong:
        raise typer.Exit(FAILED)


@without("--server", "--data")
def _describe_families(family: str) -> None:
    """List the families that come with the project or with plugins, or show one of them."""
    try:
        chosen = [_family(family)] if family else [load_family(name) for name in FAMILIES]
    except ArenaError as error:
        fail(str(error))
    rows = [_describe(family) for family in chosen]
    if not family:
        rows += [_of_plugin(one) for one in plugins.every("family") if one.name not in FAMILIES]
    if common().as_json:
        print_json(rows)
    elif family:
        show_family(chosen[0], rows[0])
    else:
        print_table(rows, ["family", "description"])


@dataclass(frozen=True, slots=True)
class Player:
    """Measures the demands of arenas by playing them as well.

    Attributes:
        seed: Seed of what spawners and operations leave to chance.
    """

    seed: int = 0

    def __call__(self, arena: Arena) -> MeasuredFeatures:
        """Measure an arena."""
        from animalcat.envs.measure import measure_episode  # it loads the simulator

        placed = [place(part, np.random.default_rng(0)) for part in episode_arenas(arena)]
        return measure_episode(placed, self.seed).features


def _family(name: str) -> Family:
    path = Path(name)
    if is_yaml(path):
        if not path.is_file():
            raise ArenaError(f"there is no file {name}")
        return load_family_file(path)
    return load_family(name)


def _controls(family: Family, names: Sequence[str]) -> Sequence[str]:
    if "all" not in names:
        return names
    return tuple(family.controls)


def _pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            fail(f"{option} {text}: expected NAME=VALUE")
        pairs[name] = value
    return pairs


def _settings(texts: Sequence[str]) -> dict[str, Value]:
    settings: dict[str, Value] = {}
    for name, value in _pairs(texts, "--set").items():
        try:
            settings[name] = float(value)
        except ValueError:
            settings[name] = value
    return settings


def _search_each(
    family: Family,
    demand: Sequence[str],
    number: int,
    seed: int,
    part: Part | None,
    paradigm: str | None,
    given: dict[str, Value],
) -> list[SearchResult]:
    """Instances for demands, each from a seed of its own."""
    asked: dict[str, float] = {}
    for name, value in _pairs(demand, "--demand").items():
        try:
            asked[name] = float(value)
        except ValueError:
            fail(f"--demand {name}={value}: {value} is not a number")
    playing = any(FEATURES[name].measured == "playing" for name in demands_of(asked))
    measure = Player() if playing else measure_geometry
    results: list[SearchResult] = []
    with progress("looking for an arena") as tell:
        for index in range(number):
            result = search(
                family,
                asked,
                np.random.default_rng([seed, index]),
                measure,
                part=part,
                paradigm=paradigm,
                given=given,
                tick=lambda done, total: tell("arenas measured", done, total),
            )
            name = f"{result.instance.name}-{index + 1:0{len(str(number))}d}"
            results.append(result._replace(instance=_rename(result.instance, name)))
    return results


def _rename(instance: FamilyInstance, name: str) -> FamilyInstance:
    return replace(instance, name=name, task=name)


def _broken_claims(family: Family, instances: Sequence[FamilyInstance]) -> list[str]:
    """Claims of a family that do not hold, a line for each."""
    wrong: list[str] = []
    player = Player()
    groups: list[list[FamilyInstance]] = []
    for instance in instances:
        if instance.control_of:
            groups[-1].append(instance)
        else:
            groups.append([instance])
    with progress("measuring arenas") as tell:
        for done, group in enumerate(groups):
            tell("measuring arenas", done, len(groups))
            wrong += claim_errors(family, group, player, played=True)
    return wrong


def _write_arenas(
    family: Family, instances: Sequence[FamilyInstance], folder: Path
) -> dict[str, str]:
    """Write arenas; name of each instance -> name of its file."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mark(folder)
        for instance in instances:
            (folder / f"{instance.name}.yaml").write_text(to_yaml(instance.arena), "utf-8")
    except OSError as error:
        fail(f"cannot write into {folder}: {error.strerror}")
    return {instance.name: f"{instance.name}.yaml" for instance in instances}


def _rows(
    family: Family,
    instances: Sequence[FamilyInstance],
    paths: dict[str, str],
    results: Sequence[SearchResult],
) -> list[dict[str, Any]]:
    by_name = {result.instance.name: result for result in results}
    return [
        {
            "name": instance.name,
            "family": family.name,
            "paradigm": instance.paradigm,
            "part": instance.part,
            "task": instance.task,
            "variant": instance.variant or "plain",
            "control": instance.control or None,
            "control_of": instance.control_of or None,
            "parameters": dict(instance.parameters),
            "file": paths.get(instance.name),
            "demands": _demands(by_name[instance.name]) if instance.name in by_name else None,
            "distance": by_name[instance.name].distance if instance.name in by_name else None,
        }
        for instance in instances
    ]


def _demands(result: SearchResult) -> dict[str, dict[str, float | None]]:
    return {
        name: {"asked": asked, "made": result.made[name]} for name, asked in result.asked.items()
    }


def _tell(result: SearchResult) -> None:
    """Say on standard error how far an instance is from what was asked for."""
    parts = [
        f"{name} {_format_value(result.made[name])} (asked {asked:g})"
        for name, asked in result.asked.items()
    ]
    what = "has" if result.exact else f"is the nearest that was found, {result.distance:.2g} off:"
    say(f"{result.instance.name} {what} {', '.join(parts)}", err=True)


def _format_value(value: float | None) -> str:
    return "does not apply" if value is None else f"{value:.4g}"


def _of_plugin(plugin: plugins.Plugin) -> dict[str, Any]:
    """What is known of a family of another package before its code is run."""
    return {
        "family": plugin.name,
        "description": f"a plugin of {plugin.distribution} {plugin.version}; animalcat arena "
        f"make {plugin.name} --about shows it",
        "paradigms": [],
        "controls": {},
        "parameters": [],
        "claims": [],
    }


def _describe(family: Family) -> dict[str, Any]:
    claims = {claim.demand for paradigm in family.paradigms for claim in family.claims_of(paradigm)}
    return {
        "family": family.name,
        "description": family.description,
        "paradigms": [paradigm.name for paradigm in family.paradigms],
        "controls": {name: control.description for name, control in family.controls.items()},
        "parameters": list(family.parameters),
        "claims": sorted(claims),
        "nodes": {layout: list(nodes) for layout, nodes in family.nodes.items()},
    }
