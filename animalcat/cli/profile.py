"""`animalcat profile`: show, draw and export cognitive profiles."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from animalcat.cli.shared.common import common, without
from animalcat.cli.shared.logs import logs_of
from animalcat.cli.shared.output import (
    insist_no_terminal,
    print_json,
    print_rows,
    remark,
    status,
    to_standard_output,
    wrote,
)
from animalcat.cli.shared.remote import (
    AllowPlugin,
    Margin,
    client_for,
    same_place,
)
from animalcat.cli.shared.table import Column
from animalcat.cli.shared.tables import INTERVAL, print_profile, profile_rows
from animalcat.client import Client
from animalcat.values.profiles import profile_row

_WHAT: Final = {
    "csv": "outcomes",
    "parquet": "outcomes",
    "netcdf": "posterior",
    "draws": "posterior",
}
"""What is in the file, where that is not the profile."""
_BY_SUFFIX: Final = {".csv": "csv", ".html": "html", ".nc": "netcdf", ".parquet": "parquet"}
"""The form of a file by the ending of its name."""
_LAST: Final = (Column("tokens", 2, True), Column("costs", 1, True), Column("labels", 0, True))
"""The last columns of the table of several profiles, which are there if something is in them."""
SessionOrLog = Annotated[
    str,
    typer.Argument(
        metavar="SESSION|LOG.eval",
        help="The id of a session, from `session list`; or the log of an adaptive task of "
        "inspect_ai.",
    ),
]
app = typer.Typer(
    help="Show, draw and export what sessions have found out: cognitive profiles and outcomes.",
    no_args_is_help=True,
)


@app.command()
def show(
    session: Annotated[
        list[str],
        typer.Argument(
            metavar="SESSION|LOG.eval...",
            help="Ids of sessions, from `session list`; or logs of inspect_ai, of adaptive tasks "
            "and of arenas.",
        ),
    ],
) -> None:
    """Show what a session has found out about its agent; of several, a table with a row for each.

    A finished session has a certified profile; before that, the estimate so far is shown. The table
    has the success rate with the interval that needs no layout, and what the layout predicts.
    """
    profiles = _read_profiles(session)
    if len(profiles) > 1:
        rows = [profile_row(one) if common().as_json else _row(one) for one in profiles]
        last = {column.name for column in _LAST}
        names = dict.fromkeys(name for row in rows for name in row if name not in last)
        print_rows(rows, [*names, *_LAST])
        return
    (profile,) = profiles
    if common().as_json:
        print_json(profile)
        return
    about = profile["provenance"]
    log = logs_of(session[0]) is not None
    engine = "NUTS" if profile["diagnostics"]["engine"] == "nuts" else "live, not certified"
    print_profile(
        profile,
        f"{about['agent']} on {about['battery']}: {about['successes']} of {about['episodes']} "
        f"{'samples right' if log else 'episodes passed'} ({engine})",
        where="" if log else same_place(),
    )


def _read_profiles(names: Sequence[str]) -> list[dict[str, Any]]:
    """Profiles of sessions and logs; a server is asked only where there is a session."""
    read = {name: logs.read_log_profile(name) for name in names if (logs := logs_of(name))}
    if asked := [name for name in names if name not in read]:
        with client_for() as client, status("reading the profile"):
            read |= {name: dict(client.profile(name)) for name in asked}
    return [read[name] for name in names]


def _row(profile: Mapping[str, Any]) -> dict[str, Any]:
    """A profile as a row of the table, for people."""
    row, nodes = profile_row(profile), profile["nodes"]
    rate, low, high, less, more = (
        "" if row[name] is None else f"{row[name]:.0%}"
        for name in ("success rate", "low", "high", "predicted low", "predicted high")
    )
    return {
        "agent": row["agent"],
        "battery": row["battery"],
        "episodes": row["episodes"],
        "success rate": f"{rate} ({low} to {high})" if rate else "",
        "predicted": f"{less} to {more}" if less else "",
        **{
            one["capability"]: f"{one['estimate']} ({one[INTERVAL]})"
            for one in profile_rows(profile)
            if nodes[one["capability"]]["kind"] == "capability"
        },
        "tokens": row["tokens"],
        "costs": row["costs"],
        "labels": row["labels"],
    }


@app.command()
@without("--json")
def export(
    session: SessionOrLog,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="json and html are the profile. csv and parquet are the table of outcomes, netcdf "
            "is the posterior with its draws for ArviZ, and draws the same without predictions and "
            "log likelihood of every episode. Any other name is that of a plugin of the server.",
            show_default="what the file's name ends in, and json otherwise",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to this file, not to standard output."
        ),
    ] = None,
    allow_plugin: AllowPlugin = None,
) -> None:
    """Write a session's profile or outcomes to a file."""
    form = form or _BY_SUFFIX.get("" if output is None else output.suffix, "json")
    if (logs := logs_of(session)) is not None:
        logs.export_log(session, form, output)
        return
    with client_for(plugins=allow_plugin or ()) as client:
        if output is None:
            _print_export(client, session, form)
            return
        with status("writing it"):
            left_out = client.save_profile(session, output, form)
    for note in left_out:
        remark(note)
    wrote(_WHAT.get(form, "profile"), output)


@app.command()
@without("--json")
def plot(
    sessions: Annotated[
        list[str],
        typer.Argument(
            metavar="SESSION|FILE...",
            help="Ids of sessions, files that `profile export --format netcdf` wrote, or files of "
            "profiles (.json) as `layout fit -o` and `profile export` write them, with one agent "
            "or many; or logs (.eval) of adaptive tasks of inspect_ai.",
        ),
    ],
    kind: Annotated[
        Literal[
            "forest",
            "densities",
            "trajectory",
            "characteristic",
            "reliability",
            "graph",
            "comparison",
        ],
        typer.Option(
            help="What to draw: one agent, or several in comparison. Profiles alone, without draws "
            "and episodes, give forest and comparison."
        ),
    ] = "forest",
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The picture: .svg, .png or .pdf."),
    ] = Path("profile.svg"),
    agent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Draw this agent. Repeat it for several.", show_default="all"
        ),
    ] = None,
) -> None:
    """Draw a profile, or several side by side, as a picture."""
    from animalcat.cli.shared.pictures import draw_profiles

    draw_profiles(sessions, kind, output, agents=agent or [])


@app.command()
def compare(
    sessions: Annotated[
        list[str],
        typer.Argument(
            metavar="SESSION|FILE|LOG.eval|reference:AGENT...",
            help="Ids of two or more sessions (one beside a --group), files that `profile export "
            "--format netcdf` wrote, files of profiles (.json), logs of adaptive tasks of "
            "inspect_ai, or agents whose profiles are shipped: "
            "reference:scout on the battery of the first, reference:scout@basics on another.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE.html", help="Write the comparison as a page as well."
        ),
    ] = None,
    mixed: Annotated[
        bool,
        typer.Option(
            "--mixed",
            help="Compare agents even if they were measured with different "
            "layouts, backends or observations. Of different layouts, only the nodes that all "
            "share are compared.",
        ),
    ] = False,
    margin: Margin = 0.1,
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SESSION|TABLE",
            help="A session of a person, or a table of outcomes whose sessions are those of "
            "persons, as `study export` writes it. Repeat it. All of them are fitted together, and "
            "the typical person stands beside the agent.",
        ),
    ] = None,
    within: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE=VALUE",
            help="Call agents alike in a node where they differ by less than this, in the unit "
            "that the table shows, with a probability of 95 %. Repeat it for several nodes.",
        ),
    ] = None,
) -> None:
    """Compare agents, from the draws of their posteriors.

    For each node it says how the agents rank, which cannot be told apart, and how much more the
    first has than each of the others, with probabilities and 90 % intervals. It names what differed
    when they were measured. Different layouts, backends or observations are compared only with
    --mixed. For up to five agents that were given the same arenas it says which are told apart by
    their success, and which are alike within --margin.
    """
    from animalcat.cli.shared.comparing import (
        read_measured,
        show_comparison,
        side_by_side,
        write_comparison,
    )
    from animalcat.cli.shared.option_table import numbers_by_name
    from animalcat.layouts.adaptive.paired import FAMILY
    from animalcat.layouts.explaining.wording import few_of

    measured = read_measured(sessions, whole=len(sessions) <= FAMILY)
    known = side_by_side(
        measured,
        mixed=mixed,
        margin=margin,
        group=group or (),
        within=numbers_by_name("--within", within or (), "navigationAbility=3"),
    )
    if output is not None:
        title = f"Comparison of {few_of(list(known.profiles))}"
        write_comparison(known, output, title, known.told())
    show_comparison(known)


def _print_export(client: Client, session: str, form: str) -> None:
    """Print the profile or the outcomes of a session, of which little is held at a time.

    Args:
        client: Where the session is.
        session: Its id.
        form: As `Client.export_profile` takes it.
    """
    insist_no_terminal(form)
    with tempfile.TemporaryDirectory(prefix="animalcat-") as folder:
        path = Path(folder) / "export"
        with status("writing it"):
            left_out = client.save_profile(session, path, form)
        for note in left_out:
            remark(note)
        with path.open("rb") as file:
            for line in file:
                to_standard_output(line, form)
