"""The options that define a session, shared by the commands that create one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from animalcat.apart import Bounds, Permission
from animalcat.cli.shared.agent_options import AgentEnv, AgentMay, AgentSees
from animalcat.cli.shared.batteries import find_battery, say_coverage, say_layout
from animalcat.cli.shared.calibrations import NO_CALIBRATION, calibration_file
from animalcat.cli.shared.command_help import AGENT, END, PLAYED
from animalcat.cli.shared.common import common
from animalcat.cli.shared.option_table import observation_of, read_options, with_options
from animalcat.cli.shared.output import fail, print_json, say, status
from animalcat.cli.shared.remote import AllowPlugin, client_for, place
from animalcat.client import Client
from animalcat.envs.agents.limits.reference import is_privileged, pictures_of
from animalcat.envs.agents.load import check_name
from animalcat.envs.backends import AUTOMATIC
from animalcat.extending.files import split_name
from animalcat.layouts.adaptive.plan import preset_options
from animalcat.machine.compiling import LAYOUTS, while_compiling
from animalcat.values import Session
from animalcat.values.options import SPEC, SessionOptions
from animalcat.values.sessions import AS_WRITTEN

Battery = Annotated[
    str,
    typer.Option(
        metavar="NAME_OR_PATH",
        help="The arenas to choose from: the name of a battery, a family of arenas such as "
        "navigation, or a path to a folder of arena files (./FOLDER), which is read as it is now.",
        rich_help_panel=PLAYED,
    ),
]
Features = Annotated[
    Path | None,
    typer.Option(
        metavar="TABLE.csv",
        help="A table with meta-features of your own for the arena files in --battery. It has a "
        "column `instance` and one column for each feature, with the unit in brackets.",
        hidden=True,
        rich_help_panel=PLAYED,
    ),
]
Layout = Annotated[
    str,
    typer.Option(
        metavar="NAME_OR_FILE",
        help="The measurement layout: a name from `layout show`, or a YAML file.",
        show_default="the one that the battery names, else aaio",
        rich_help_panel=PLAYED,
    ),
]
Variant = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="A variant of the layout, from `layout show`.",
        show_default="the battery's, else the one for measuring that covers most of it",
        rich_help_panel=PLAYED,
    ),
]
Calibration = Annotated[
    str,
    typer.Option(
        metavar="NAME_OR_FILE",
        help="Measure with a layout that earlier agents calibrated: a name from `battery "
        "calibrate`, or its YAML file. It names the layout too. With none, what is shipped of "
        "earlier agents is left out.",
        show_default="what is shipped for nine tenths of the arenas",
        rich_help_panel=PLAYED,
    ),
]


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """A session as the command line asks for it, and where it is to be.

    Attributes:
        agent: Name of the agent.
        battery: Name of a battery or a family, or a path to arena files.
        features: Table of meta-features of one's own, for arena files.
        fields: The other fields of `Client.create_session`.
        options: What else was chosen, as `SessionOptions` has it.
        builds: Unity builds that a private server may run.
        plugins: Packages and files whose plugins it may run.
        bounds: Within what the agent's process plays.
        elsewhere: Only make the session: its agent comes by itself.
    """

    agent: str
    battery: str
    features: Path | None
    fields: dict[str, Any]
    options: dict[str, Any]
    builds: tuple[Path, ...]
    plugins: tuple[str, ...]
    bounds: Bounds
    elsewhere: bool

    @contextmanager
    def client(self) -> Generator[Client]:
        """A client of the server that is meant."""
        with client_for(builds=self.builds, plugins=self.plugins) as client:
            yield client

    def create(self, client: Client) -> Session:
        """Create the session, which waits for its agent."""
        where = place()
        battery = find_battery(client, self.battery, self.features, where=where)
        say_layout(client, battery, self.fields["layout"])
        with status(while_compiling("making the session", LAYOUTS)):
            session = client.create_session(
                agent=self.agent, battery=battery, **self.fields, **self.options
            )
        say_coverage(client, session, variant=bool(self.fields["layout"]))
        return session


def _plan(
    agent: Annotated[
        str,
        typer.Option(
            metavar="REFERENCE",
            help="The agent to measure: builtin:NAME, plugin:NAME, path/to/file.py:Class, or a "
            "language model as inspect_ai names it, such as llm:openai/gpt-4o+script. Limits may "
            "follow, as in builtin:scout+lapses=0.1 (animalcat agent list AGENT lists them).",
            rich_help_panel=AGENT,
        ),
    ],
    battery: Battery,
    elsewhere: Annotated[
        bool,
        typer.Option(
            "--elsewhere",
            help="Only make the session, and print its id: its agent connects by itself. It may "
            "have any name, and gives the same name when it connects.",
            rich_help_panel=AGENT,
        ),
    ] = False,
    features: Features = None,
    layout: Layout = "",
    variant: Variant = "",
    calibration: Calibration = "",
    against: Annotated[
        str,
        typer.Option(
            metavar="SESSION",
            help="Compare with another agent's session on the same battery: play the arenas that "
            "were drawn for it, in the same order, until the two agents are told apart.",
            show_default="none",
            rich_help_panel=PLAYED,
        ),
    ] = "",
    prior: Annotated[
        str,
        typer.Option(
            metavar="SESSION",
            help="Go on from an earlier session of the same agent, by the same layout: what it has "
            "found is known from the start, and its arenas are not played again.",
            show_default="none",
            rich_help_panel=PLAYED,
        ),
    ] = "",
    preset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="A ready-made rule: quick (at most 30 episodes), standard (100) or thorough "
            "(400). The options below change parts of it.",
            show_default="standard",
            rich_help_panel=END,
        ),
    ] = "",
    agent_may: AgentMay = Permission.PLAY,
    agent_sees: AgentSees = None,
    agent_env: AgentEnv = None,
    allow_plugin: AllowPlugin = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Play nothing, and say how many tokens a language model would use at most.",
            hidden=True,
            rich_help_panel=AGENT,
        ),
    ] = False,
    prices: Annotated[
        tuple[float, float] | None,
        typer.Option(
            "--token-prices",
            metavar="IN OUT",
            help="With --dry-run: what a million tokens cost that the model is given, and that it "
            "returns.",
            show_default="not said",
            hidden=True,
            rich_help_panel=AGENT,
        ),
    ] = None,
    **options: Any,
) -> SessionPlan:
    if options["camera"] is None:
        options["camera"] = pictures_of(agent) or None
    options["privileged"] = options["privileged"] or is_privileged(agent) or None
    try:
        chosen: dict[str, Any] = dict(preset_options(preset))
    except ValueError as error:
        fail(str(error))
    chosen |= read_options(SessionOptions, options)
    if dry_run or prices:
        if not dry_run:
            fail("--token-prices goes with --dry-run")
        tell_tokens(agent, chosen, prices)
    chosen["backend"], builds = parse_backend(chosen.get("backend", ""))
    fields = {
        "layout": calibrated_layout(layout, variant, calibration),
        "layout_variant": variant or AS_WRITTEN * (calibration == NO_CALIBRATION),
        "against": against,
        "prior": prior,
    }
    bounds = bounds_of(agent_may, agent_sees, agent_env, arena_folders(battery, features))
    return SessionPlan(
        agent,
        battery,
        features,
        fields,
        chosen,
        tuple(builds),
        (*(allow_plugin or ()), *filter(None, (split_name(chosen.get("policy", ""))[0],))),
        bounds,
        elsewhere,
    )


def tell_tokens(agent: str, chosen: dict[str, Any], prices: tuple[float, float] | None) -> NoReturn:
    """Say how many tokens a session takes at most and what they cost, and end the command."""
    model = check_name(agent).door
    if model is None:
        fail(f"--dry-run counts the tokens of a language model, which {agent} is not")
    episodes = int(chosen.get("max_episodes", SPEC.stop.max_episodes))
    given, returned, answers = model.expected(observation_of(SessionOptions, chosen), episodes)
    found: dict[str, Any] = {"episodes": episodes, "given": given, "returned": returned}
    if prices is not None:
        found["cost"] = (given * prices[0] + returned * prices[1]) / 1e6
    if common().as_json:
        print_json(found)
        raise typer.Exit
    say(
        f"At most {given:,} tokens are given to the model, and {returned:,} returned, in "
        f"{episodes} episodes of {answers} answers, without a cache of the provider's."
    )
    if prices is not None:
        say(f"They cost at most {found['cost']:,.2f}, in the currency of the prices.")
    raise typer.Exit


def bounds_of(
    may: Permission,
    sees: Sequence[Path] | None,
    variables: Sequence[str] | None,
    hide: tuple[Path, ...] = (),
    *,
    same_agent: bool = False,
) -> Bounds:
    """Within what an agent plays, by the options of a command."""
    return Bounds(may, tuple(sees or ()), tuple(variables or ()), hide, same_agent)


def arena_folders(battery: str, features: Path | None = None) -> tuple[Path, ...]:
    """The folders of arena files that a battery is made of, which no agent may look into."""
    path = Path(battery)
    folders = [path if path.is_dir() else path.parent] if path.exists() else []
    return tuple(folders + ([features.parent] if features is not None else []))


def calibrated_layout(layout: str, variant: str, calibration: str) -> str:
    """The layout that is meant: its name or file, or the file of a calibration."""
    if calibration in ("", NO_CALIBRATION):
        return layout
    if layout or variant:
        fail("--calibration names the layout too: leave out --layout and --variant")
    return str(calibration_file(calibration))


def takes_plan(command: Callable[[SessionPlan], None]) -> Callable[..., None]:
    """A command whose options are those that define a session."""
    return with_options(_plan, SessionOptions, command)


def parse_backend(backend: str) -> tuple[str, list[Path]]:
    """A backend's name for the server, and the builds that a server of our own may run.

    A path is meant from here unless the server was given, which may be on another machine.
    """
    kind, _, path = backend.partition(":")
    if kind != "unity" or not path or f"{kind}:{path}" == AUTOMATIC or common().server:
        return backend, []
    build = Path(path).expanduser().absolute()
    return f"{kind}:{build}", [build]
