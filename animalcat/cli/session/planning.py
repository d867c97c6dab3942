"""`animalcat session plan`: what a session is to be expected to find out, before it is run."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from animalcat.cli.session.options import (
    Battery,
    Calibration,
    Features,
    Layout,
    Variant,
    calibrated_layout,
)
from animalcat.cli.shared.batteries import find_battery
from animalcat.cli.shared.command_help import CHOICE, END
from animalcat.cli.shared.option_table import read_options
from animalcat.cli.shared.output import BAD_INPUT, console, fail, print_json, print_rows
from animalcat.cli.shared.progress import progress
from animalcat.cli.shared.remote import AsJson, Data, Server, client_for, place
from animalcat.errors import AnimalcatError
from animalcat.layouts.adaptive.plan import POLICIES, PRESETS
from animalcat.values.options import SessionOptions

OPTIONS: Final = ("policy", "random_share", "pairs", "max_episodes", "target_sd")
"""What may be chosen for a session that makes a difference to a plan."""
LEAST_AGENTS: Final = 3
"""Fewest agents: one with little ability, one in the middle and one with much."""


def plan(
    battery: Battery,
    features: Features = None,
    layout: Layout = "",
    variant: Variant = "",
    calibration: Calibration = "",
    preset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="A ready-made rule: quick (at most 30 episodes), standard (100) or thorough "
            "(400). The options below change parts of it.",
            rich_help_panel=END,
        ),
    ] = "standard",
    agents: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=LEAST_AGENTS,
            help="So many simulated agents take the test. More take longer and say it more "
            "exactly.",
            rich_help_panel=CHOICE,
        ),
    ] = 20,
    seed: Annotated[
        int, typer.Option(metavar="NUMBER", min=0, help="The seed of what is left to chance.")
    ] = 0,
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Say what a session would find out: its episodes and minutes, and the intervals at its end.

    Agents are drawn from the layout's prior and take the test in the layout's own words, each with
    its own choices. So it holds for agents that the layout describes. Nothing is played. The server
    extra is needed on this machine too.
    """
    from animalcat.cli.session.expected import expected

    if preset not in PRESETS:
        fail(f"there is no preset {preset!r}; there are: {', '.join(PRESETS)}")
    chosen = read_options(SessionOptions, options)
    known = [name for name in POLICIES if name != "plugin"]
    if (policy := chosen.get("policy", known[0])) not in known:
        fail(f"--policy {policy!r}: a plan is made for one of {', '.join(known)}", BAD_INPUT)
    choice = {"policy": "name", "random_share": "random_share", "pairs": "pairs"}
    meant = calibrated_layout(layout, variant, calibration, data)
    with client_for(server, data) as client:
        name = find_battery(client, battery, features, where=place(server, data))
        with progress(f"planning on {name}") as tell:
            try:
                plan_found = expected(
                    client,
                    name,
                    (meant, variant),
                    {to: chosen[key] for key, to in choice.items() if key in chosen},
                    preset,
                    {
                        name: chosen[name]
                        for name in ("max_episodes", "target_sd")
                        if name in chosen
                    },
                    agents=agents,
                    seed=seed,
                    tell=tell,
                )
            except ValueError as error:
                raise AnimalcatError(str(error)) from error
    if as_json:
        print_json(plan_found)
        return
    _show(plan_found)


def _show(expectation: dict[str, Any]) -> None:
    shown = [
        {
            **row,
            "known": _percent(row["known"]),
            "known, less noisy half": _percent(row["known_less_noisy"]),
            "at its target": _percent(row["at_target"]),
        }
        for row in expectation["nodes"]
    ]
    columns = ["node", "low", "middle", "high", "known", "known, less noisy half", "at its target"]
    print_rows(
        shown,
        [column for column in columns if any(row[column] for row in shown)],
        as_json=False,
        title="What is true of agents with low, middling and high values, and the 90 % interval "
        "that their test ends with (medians)",
    )
    for sentence in expectation["sentences"]:
        console().print(sentence, highlight=False)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100.0 * share:.0f} %"
