"""Compares sessions for commands: what differs, tables, JSON and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from animalcat.cli.shared.agent_comparison import print_comparison
from animalcat.cli.shared.output import fail, print_json, status, wrote
from animalcat.cli.shared.profile_references import is_reference, reference_content
from animalcat.cli.shared.remote import client_for
from animalcat.files import write_whole
from animalcat.lab.comparison import agent_names
from animalcat.layouts.checking.side_by_side import compare_agents
from animalcat.plots.results import read_results
from animalcat.service.reporting.comparison import Compared, Measured, MixedError, compared


def read_measured(
    sessions: Sequence[str],
    server: str | None,
    data: Path | None,
    *,
    played: bool,
    whole: bool,
) -> list[Measured]:
    """Read what is known of agents; ends the command where a reference means nothing.

    Args:
        sessions: Ids of sessions, files of exported posteriors, and references to shipped ones.
        server: Host and port, if one was given.
        data: The data directory, if one was given.
        played: Whether to read what was played, and what came of it.
        whole: Whether to read all that a page is drawn from.
    """
    named = [name for name in sessions if is_reference(name)]
    files = [name for name in sessions if name not in named and (whole or Path(name).suffix)]
    if files:
        from animalcat.cli.shared.pictures import read_sessions

        read: dict[str, Measured] = dict(
            zip(files, read_sessions(files, server, data), strict=True)
        )
    else:
        read = {}
    if asked := [name for name in sessions if name not in read and name not in named]:
        from animalcat.lab.drawn import drawn_results

        with client_for(server, data) as client, status("reading the draws"):
            read |= {name: drawn_results(client, name, played=played) for name in asked}
    measured_on = [str(one.profile["provenance"]["battery"]) for one in read.values()]
    for name in named:
        try:
            content = reference_content(name, measured_on[0] if measured_on else "")
        except ValueError as error:
            fail(str(error))
        read[name] = read_results(content)
    return [read[name] for name in sessions]


def side_by_side(results: Sequence[Measured], *, mixed: bool) -> Compared:
    """Put sessions side by side; ends the command where they cannot be compared.

    Args:
        results: What each session found.
        mixed: Whether different layouts, backends and observations may be compared.
    """
    named = dict(zip(agent_names(results), results, strict=True))
    try:
        return compared(named, mixed=mixed)
    except MixedError as error:
        fail(f"{error} Say --mixed to compare them all the same.")
    except ValueError as error:
        fail(str(error))


def show_comparison(known: Compared, *, as_json: bool, pairs: bool = False) -> None:
    """Print a comparison.

    Args:
        known: The agents side by side.
        as_json: Whether as JSON.
        pairs: Whether every two agents are compared; two alone always are.
    """
    nodes = {name: profile["nodes"] for name, profile in known.profiles.items()}
    every = "every" if pairs else None
    comparison = compare_agents(known.posteriors, pairs=every, scales=known.scales, nodes=nodes)
    if as_json:
        print_json(known.to_dict(pairs=pairs) | comparison)
        return
    for line in known.notes(pairs=pairs):
        typer.echo(line)
    print_comparison(comparison, title="Differences", every=pairs)


def write_comparison(
    known: Compared,
    output: Path,
    title: str,
    intro: Sequence[str] = (),
    common: Mapping[str, Sequence[bool | None]] | None = None,
    against: str = "",
    *,
    pairs: bool = False,
) -> None:
    """Write the page of a comparison, either completely or not at all.

    Args:
        known: The agents side by side.
        output: Where to.
        title: Its title.
        intro: Sentences below the title.
        common: Whether each agent passed the arenas that all play.
        against: The agent with which the others are compared on these; empty for none.
        pairs: Whether the page has the difference of every two agents; of two it always has.
    """
    from animalcat.service.reporting.comparison_page import comparison_page

    with status("drawing"):
        page = comparison_page(known, title, intro, common, against, pairs=pairs)
    try:
        write_whole(output, page.encode())
    except OSError as error:
        fail(f"{error.filename or output}: cannot be written: {error.strerror}")
    wrote("comparison", output)
