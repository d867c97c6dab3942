"""Compares agents for commands: what differs, the table, JSON and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from animalcat.cli.shared.common import common
from animalcat.cli.shared.logs import logs_of
from animalcat.cli.shared.output import fail, print_json, print_table, say, status, wrote
from animalcat.cli.shared.profile_references import is_reference, reference_content
from animalcat.cli.shared.remote import client_for
from animalcat.cli.shared.table import Column
from animalcat.layouts.checking.compare import few_standings
from animalcat.machine.files import write_whole
from animalcat.plots.given import number_agents
from animalcat.plots.results import read_results
from animalcat.service.reporting.comparison import (
    Comparison,
    MixedError,
    compare,
    insist_margins,
    profile_of,
)

COLUMNS: Final = (
    *("node", "agent", "estimate"),
    *(Column("90 %", 4), Column("rank", 3), Column("P(most)", 5), "group"),
    *(Column("first has more by", 1), Column("90 % of that", 6), Column("P(more)", 2), "verdict"),
)


def read_measured(names: Sequence[str], *, whole: bool) -> dict[str, Any]:
    """What is known of agents, by their names; ends the command where a name means nothing.

    Args:
        names: Ids of sessions, files of exported posteriors or of profiles, and references.
        whole: Whether to read what was played, and what came of it.
    """
    from animalcat.cli.shared.pictures import PROFILES, read_sessions
    from animalcat.cli.shared.profile_files import read_profiles
    from animalcat.lab.drawn import drawn_results

    read: dict[str, list[tuple[str, Any]]] = {}
    for name in names:
        if name.endswith(PROFILES):
            read[name] = list(read_profiles(Path(name)))
        elif not is_reference(name) and Path(name).suffix:
            logs = logs_of(name)
            result = read_sessions([name])[0] if logs is None else logs.read_log(name)
            read[name] = [(str(profile_of(result)["provenance"]["agent"]), result)]
    if asked := [name for name in names if name not in read and not is_reference(name)]:
        with client_for() as client, status("reading the draws"):
            for name in asked:
                drawn = drawn_results(client, name, played=whole)
                read[name] = [(drawn.agent, drawn)]
    known = [profile_of(one) for found in read.values() for _, one in found]
    batteries = [str(profile.get("provenance", {}).get("battery", "")) for profile in known]
    for name in filter(is_reference, names):
        try:
            result = read_results(reference_content(name, batteries[0] if batteries else ""))
        except ValueError as error:
            fail(str(error))
        read[name] = [(result.agent, result)]
    found = [(agent, name, one) for name in names for agent, one in read[name]]
    agents, sources, measured = zip(*found, strict=True)
    return dict(zip(number_agents(agents, sources), measured, strict=True))


def side_by_side(
    agents: Mapping[str, Any],
    *,
    mixed: bool,
    margin: float,
    group: Sequence[str] = (),
    within: Mapping[str, float] | None = None,
) -> Comparison:
    """Put agents side by side; ends the command where they cannot be compared.

    Args:
        agents: What is known of each, by name.
        mixed: Whether different layouts, backends and observations may be compared.
        margin: Largest difference of success rates that counts as alike.
        group: Sessions of persons, and tables of outcomes of such sessions, who as a group stand
            beside a single agent.
        within: By node, the margin below which a difference counts as alike.
    """
    try:
        if group:
            agents = {**agents, **_read_group(group, agents, within or {}, mixed=mixed)}
        return compare(agents, mixed=mixed, margin=margin, within=within)
    except MixedError as error:
        fail(f"{error} Say --mixed to compare them anyway.")
    except ValueError as error:
        fail(str(error))


def _read_group(
    group: Sequence[str], agents: Mapping[str, Any], within: Mapping[str, float], *, mixed: bool
) -> dict[str, Any]:
    """The typical person of a group, by its name."""
    from animalcat.lab.group import group_results
    from animalcat.outcomes import read_outcomes

    sessions: dict[str, None] = {}
    for name in group:
        if not Path(name).suffix:
            sessions[name] = None
            continue
        try:
            rows = read_outcomes(Path(name))["session"].dropna()
        except OSError as error:
            fail(f"{name}: {error.strerror}")
        sessions |= dict.fromkeys(str(row).removeprefix("sessions/") for row in rows)
    if len(agents) != 1:
        fail(f"--group: give one agent beside the group, not {len(agents)}")
    (beside,) = agents.values()
    if isinstance(beside, Mapping):
        fail("--group takes an agent with draws: a session, or a file of `--format netcdf`")
    insist_margins(within, beside.layout.latent_names)
    with client_for() as client, status("fitting the group"):
        result = group_results(client, [*sessions], beside, mixed=mixed)
    return {result.agent: result}


def show_comparison(known: Comparison) -> None:
    """Print a comparison.

    Args:
        known: The agents side by side.
    """
    if common().as_json:
        print_json(known.to_dict())
        return
    for line in known.notes():
        say(line)
    shown = few_standings(known.standings)
    left = len(known.profiles) - len(shown) // len(known.nodes)
    title = f"The first and the last; {left} agents between" if left else "Agents side by side"
    print_table([row.cells() for row in shown], COLUMNS, title=title)
    for line in known.remarks():
        say(line)


def write_comparison(
    known: Comparison, output: Path, title: str, intro: Sequence[str] = ()
) -> None:
    """Write the page of a comparison, either completely or not at all.

    Args:
        known: The agents side by side.
        output: Where to.
        title: Its title.
        intro: Sentences below the title.
    """
    from animalcat.service.reporting.comparison_page import comparison_page

    with status("drawing"):
        page = comparison_page(known, title, intro)
    try:
        write_whole(output, page.encode())
    except OSError as error:
        fail(f"{error.filename or output}: cannot be written: {error.strerror}")
    wrote("comparison", output)
