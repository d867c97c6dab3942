"""The options that define a session, shared by the commands that create one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from animalcat.apart import Bounds, Permission
from animalcat.cli.session.plan import combine, policy_named, stopping_rule
from animalcat.cli.shared.agent_options import AgentEnv, AgentMay, AgentSees
from animalcat.cli.shared.batteries import find_battery, say_layout
from animalcat.cli.shared.calibrations import calibration_file
from animalcat.cli.shared.command_help import AGENT, CHOICE, END, PLAYED, RUNNING
from animalcat.cli.shared.output import fail, status
from animalcat.cli.shared.remote import AllowPlugin, AsJson, Data, Server, client_for, place
from animalcat.cli.shared.tables import left_out
from animalcat.client import Client
from animalcat.client.values import Session
from animalcat.compiling import LAYOUTS, while_compiling
from animalcat.envs.agents.base import Allowance
from animalcat.envs.agents.limits import is_privileged
from animalcat.envs.backends import AUTOMATIC
from animalcat.envs.types import CameraSpec, ObservationSpec
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.service.model import SessionSpec

DEFAULT: Final = Policy()
"""What holds for choosing where nothing else is said."""
RULE: Final = StoppingRule()
"""What holds for stopping where nothing else is said."""

SPEC: Final = SessionSpec("", "")
"""What holds for a session where nothing else is said."""

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
        rich_help_panel=PLAYED,
    ),
]
Layout = Annotated[
    str,
    typer.Option(
        metavar="NAME_OR_FILE",
        help="The measurement layout: a name from `layout list`, or a YAML file.",
        show_default="the one that the battery names, else aaio",
        rich_help_panel=PLAYED,
    ),
]
Variant = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="A variant of the layout, from `layout show`.",
        show_default="the battery's, else the usual one: metres-15 of aaio, else the first",
        rich_help_panel=PLAYED,
    ),
]
Calibration = Annotated[
    str,
    typer.Option(
        metavar="NAME_OR_FILE",
        help="Measure with a layout that earlier agents calibrated: a name from `battery "
        "calibrate`, or its YAML file. It says the layout too.",
        show_default="none",
        rich_help_panel=PLAYED,
    ),
]
PolicyName = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="How the next arena is chosen: variance, information, threshold, stratified, random, "
        "listed, or a plugin of the server.",
        show_default=DEFAULT.name,
        rich_help_panel=CHOICE,
    ),
]
RandomShare = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        min=0,
        max=1,
        help="This share of the arenas is drawn at random, so that a wrong layout shows.",
        show_default=str(DEFAULT.random_share),
        rich_help_panel=CHOICE,
    ),
]
Backend = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="What simulates the arenas: sim is the built-in simulator, unity:auto the Unity "
        "build of `animalcat unity setup`, unity:PATH any other build, and any other name a plugin "
        "of the server.",
        show_default=SPEC.backend,
        rich_help_panel=RUNNING,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        min=0,
        help="The seed of everything that is left to chance.",
        show_default=str(SPEC.seed),
        rich_help_panel=RUNNING,
    ),
]
Certify = Annotated[
    bool | None,
    typer.Option(
        help="Check the quick estimates against a full fit (NUTS) from time to time.",
        show_default="certify",
        rich_help_panel=RUNNING,
    ),
]
Fresh = Annotated[
    bool | None,
    typer.Option(
        help="Play a twin of each arena: another one with the same demands that no other session "
        "has, so that a battery cannot be learnt by heart.",
        show_default="no-fresh",
        rich_help_panel=PLAYED,
    ),
]
Camera = Annotated[
    int | None,
    typer.Option(
        metavar="PIXELS",
        min=4,
        max=512,
        help="The agent sees camera images with sides of this length. Without it there is no "
        "camera.",
        rich_help_panel=AGENT,
    ),
]
DecisionPeriod = Annotated[
    int | None,
    typer.Option(
        metavar="STEPS",
        min=1,
        max=20,
        help="How many steps of the physics go by from one decision to the next.",
        show_default=str(SPEC.observation_spec.decision_period),
        rich_help_panel=AGENT,
    ),
]
ActionTimeout = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="The longest that the agent may take for one action.",
        show_default=f"{SPEC.action_timeout_seconds:g}",
        rich_help_panel=AGENT,
    ),
]
Lease = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        min=0.0,
        max=3600.0,
        help="How long an agent whose connection broke may take to come back to the step that it "
        "left; 0 voids its episode at once.",
        show_default=f"{SPEC.lease_seconds:g}",
        rich_help_panel=AGENT,
    ),
]
Practice = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        min=0,
        help="Play so many episodes first that do not count, on arenas that are not used again.",
        show_default=str(SPEC.practice),
        rich_help_panel=PLAYED,
    ),
]
KeepUnpassable = Annotated[
    bool | None,
    typer.Option(
        "--keep-unpassable",
        help="Play arenas that no play can pass too, since no return exceeds their pass mark; the "
        "profile says so. Without it they are set aside.",
        rich_help_panel=PLAYED,
    ),
]
Secret = Annotated[
    str | None,
    typer.Option(
        metavar="WORDS",
        help="What all chance follows from beside the seed, so that no agent can work out which "
        "arenas come. The same seed and secret give the same decisions on any server; an empty one "
        "lets the seed alone decide. [default: one that the server makes; exports name it]",
        show_default=False,
        rich_help_panel=PLAYED,
    ),
]
EpisodeSeconds = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        min=0.0,
        help="The longest that the agent may think in one episode, all its decisions together. "
        "Beyond it the episode is a failure. 0 sets no limit.",
        show_default="no limit",
        rich_help_panel=AGENT,
    ),
]
DecisionTokens = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        min=0,
        help="The most tokens that the agent's notes may tell of in one decision. Beyond it the "
        "episode is a failure. 0 sets no limit.",
        show_default="no limit",
        rich_help_panel=AGENT,
    ),
]
EpisodeTokens = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        min=0,
        help="As --decision-tokens, for one episode.",
        show_default="no limit",
        rich_help_panel=AGENT,
    ),
]


@dataclass(frozen=True, slots=True)
class Plan:
    """A session as the command line asks for it, and where it is to be.

    Attributes:
        agent: Name of the agent.
        battery: Name of a battery or a family, or a path to arena files.
        features: Table of meta-features of one's own, for arena files.
        fields: The other fields of `Client.create_session`.
        builds: Unity builds that a private server may run.
        plugins: Packages whose plugins it may run.
        bounds: Within what the agent's process plays.
        server: Host and port, if one was given.
        data: The data directory, if one was given.
        as_json: Print JSON.
    """

    agent: str
    battery: str
    features: Path | None
    fields: dict[str, Any]
    builds: tuple[Path, ...]
    plugins: tuple[str, ...]
    bounds: Bounds
    server: str | None
    data: Path | None
    as_json: bool

    @contextmanager
    def client(self) -> Generator[Client]:
        """A client of the server that is meant."""
        with client_for(self.server, self.data, builds=self.builds, plugins=self.plugins) as client:
            yield client

    def create(self, client: Client) -> Session:
        """Create the session, which waits for its agent."""
        where = place(self.server, self.data)
        battery = find_battery(client, self.battery, self.features, where=where)
        say_layout(client, battery, self.fields["layout"])
        with status(while_compiling("making the session", LAYOUTS)):
            session = client.create_session(agent=self.agent, battery=battery, **self.fields)
            gaps = left_out(client.profile(session))
        if gaps:
            typer.echo(f"note: {gaps}", err=True)
        return session


def _plan(
    agent: Annotated[
        str,
        typer.Option(
            metavar="REFERENCE",
            help="The agent to measure: builtin:NAME, plugin:NAME, or path/to/file.py:Class. "
            "Limits may follow, as in builtin:scout+lapses=0.1 (animalcat agent limits lists "
            "them).",
            rich_help_panel=AGENT,
        ),
    ],
    battery: Battery,
    camera: Camera = None,
    decision_period: DecisionPeriod = None,
    action_timeout: ActionTimeout = None,
    lease: Lease = None,
    episode_seconds: EpisodeSeconds = None,
    decision_tokens: DecisionTokens = None,
    episode_tokens: EpisodeTokens = None,
    slots: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            max=64,
            help="How many copies of the agent play at once, each in a process of its own.",
            show_default=str(SPEC.slots),
            rich_help_panel=AGENT,
        ),
    ] = None,
    privileged: Annotated[
        bool,
        typer.Option(
            "--privileged",
            help="Show the agent the arena's true state as well: for agents that check arenas, not "
            "for those that are measured. The profile says so.",
            show_default="only for builtin:planner",
            rich_help_panel=AGENT,
        ),
    ] = False,
    features: Features = None,
    layout: Layout = "",
    variant: Variant = "",
    calibration: Calibration = "",
    policy: PolicyName = "",
    about: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CAPABILITY",
            help="With --policy information: learn about this capability. Repeat it for several.",
            show_default="all",
            rich_help_panel=CHOICE,
        ),
    ] = None,
    random_share: RandomShare = None,
    sharpness: Annotated[
        float | None,
        typer.Option(
            metavar="POWER",
            min=0,
            max=100,
            help="How strongly arenas that tell more are preferred. Chances are proportional to "
            "this power of what they tell. 0 always takes the one that tells most.",
            show_default=str(DEFAULT.sharpness),
            rich_help_panel=CHOICE,
        ),
    ] = None,
    per_second: Annotated[
        bool | None,
        typer.Option(
            help="Prefer what tells most per second of play, and so short episodes.",
            show_default="no-per-second",
            rich_help_panel=CHOICE,
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            metavar="TIMES",
            min=0,
            help="How often the same arena may be played. 0 sets no limit.",
            show_default=str(DEFAULT.exposures),
            rich_help_panel=CHOICE,
        ),
    ] = None,
    probes: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=1,
            help="Where --repeats allows it: this share of the arenas is played again, until it "
            "is known how random the agent is.",
            show_default=str(DEFAULT.probes),
            rich_help_panel=CHOICE,
        ),
    ] = None,
    cool_down: Annotated[
        int | None,
        typer.Option(
            metavar="EPISODES",
            min=0,
            help="For so many episodes no arena with the same demands is chosen again.",
            show_default=str(DEFAULT.cool_down),
            rich_help_panel=CHOICE,
        ),
    ] = None,
    first: Annotated[
        list[str] | None,
        typer.Option(
            metavar="INSTANCE",
            help="Begin with this arena. Repeat it for several; --policy listed plays only these.",
            rich_help_panel=CHOICE,
        ),
    ] = None,
    generate: Annotated[
        bool | None,
        typer.Option(
            help="Make new arenas where none of the battery would tell enough.",
            show_default="no-generate",
            rich_help_panel=CHOICE,
        ),
    ] = None,
    enough: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=1,
            help="With --generate: an arena of the battery tells enough when it tells this share "
            "of what the best new one would.",
            show_default=str(DEFAULT.enough),
            rich_help_panel=CHOICE,
        ),
    ] = None,
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
    max_episodes: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="End after so many episodes.",
            show_default="by the preset",
            rich_help_panel=END,
        ),
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="End after so many seconds of play. 0 sets no limit.",
            show_default="no limit",
            rich_help_panel=END,
        ),
    ] = None,
    target_sd: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=1,
            help="A capability is known when its standard deviation is this share of its range. "
            "0: never.",
            show_default="by the preset",
            rich_help_panel=END,
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CAPABILITY=SHARE",
            help="As --target-sd, for one capability. Repeat it for several.",
            rich_help_panel=END,
        ),
    ] = None,
    target_width: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=1,
            help="A capability is known only when its 90 % interval is no wider than this share "
            "of its range. 0 does not ask for it.",
            show_default=f"{RULE.target_width:g}",
            rich_help_panel=END,
        ),
    ] = None,
    futility: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=1,
            help="Give a capability up when 25 more episodes would lower its standard deviation "
            "by less than this share. 0: never.",
            show_default="by the preset",
            rich_help_panel=END,
        ),
    ] = None,
    stop: Annotated[
        str,
        typer.Option(
            metavar="any|all",
            help="any ends the session at the first limit, or when every capability is known or "
            "given up. all waits until all that is set has come.",
            show_default=RULE.combine,
            rich_help_panel=END,
        ),
    ] = "",
    stop_at_alarm: Annotated[
        bool | None,
        typer.Option(
            help="End when the layout turns out not to describe the agent.",
            show_default="no-stop-at-alarm",
            rich_help_panel=END,
        ),
    ] = None,
    backend: Backend = "",
    seed: Seed = None,
    certify: Certify = None,
    fresh: Fresh = None,
    practice: Practice = None,
    keep_unpassable: KeepUnpassable = None,
    secret: Secret = None,
    against: Annotated[
        str,
        typer.Option(
            metavar="SESSION",
            help="Compare with another agent's session on the same battery: play the arenas that "
            "it has played, in the same order, until the two agents are told apart.",
            show_default="none",
            rich_help_panel=PLAYED,
        ),
    ] = "",
    record_pixels: Annotated[
        bool | None,
        typer.Option(
            help="Keep camera images in the recordings.",
            show_default="no-record-pixels",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    agent_may: AgentMay = Permission.PLAY,
    agent_sees: AgentSees = None,
    agent_env: AgentEnv = None,
    allow_plugin: AllowPlugin = None,
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> Plan:
    backend, builds = parse_backend(backend, server)
    fields = {
        "layout": calibrated_layout(layout, variant, calibration, data),
        "layout_variant": variant,
        "stop": stopping_rule(
            preset,
            target or [],
            {
                "max_episodes": max_episodes,
                "target_sd": target_sd,
                "target_width": target_width,
                "futility": futility,
                "max_seconds": max_seconds,
                "stop_at_alarm": stop_at_alarm,
                "combine": combine(stop),
            },
        ),
        "policy": policy_named(
            policy,
            random_share=random_share,
            sharpness=sharpness,
            exposures=repeats,
            probes=probes,
            generate=generate,
            enough=enough,
            cool_down=cool_down,
            order=tuple(first or ()),
            per_second=per_second,
            about=tuple(about or ()),
        ),
        "seed": seed,
        "backend": backend,
        "observation_spec": observation(
            camera, decision_period, privileged=privileged or is_privileged(agent)
        ),
        "action_timeout_seconds": action_timeout,
        "lease_seconds": lease,
        "allowance": allowance(episode_seconds, decision_tokens, episode_tokens),
        "record_pixels": record_pixels,
        "certify": certify,
        "slots": slots,
        "fresh": fresh,
        "practice": practice,
        "against": against,
        "keep_unpassable": keep_unpassable,
        "secret": secret,
    }
    bounds = bounds_of(agent_may, agent_sees, agent_env, arena_folders(battery, features))
    allowed = tuple(builds), tuple(allow_plugin or ())
    return Plan(agent, battery, features, fields, *allowed, bounds, server, data, as_json)


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


def calibrated_layout(layout: str, variant: str, calibration: str, data: Path | None) -> str:
    """The layout that is meant: its name or file, or the file of a calibration."""
    if not calibration:
        return layout
    if layout or variant:
        fail("--calibration says the layout too: leave --layout and --variant out")
    return str(calibration_file(calibration, data))


def takes_plan(command: Callable[[Plan], None]) -> Callable[..., None]:
    """A command whose options are those that define a session."""

    @wraps(_plan)
    def call(**given: Any) -> None:
        command(_plan(**given))

    call.__name__, call.__doc__ = command.__name__, command.__doc__
    return call


def allowance(
    episode_seconds: float | None, decision_tokens: int | None, episode_tokens: int | None
) -> Allowance | None:
    """What an agent may spend; None: nothing is said."""
    given = (episode_seconds, decision_tokens, episode_tokens)
    if given == (None, None, None):
        return None
    return Allowance(episode_seconds or 0.0, decision_tokens or 0, episode_tokens or 0)


def observation(
    camera: int | None, decision_period: int | None, *, privileged: bool = False
) -> ObservationSpec | None:
    """What the agent sees: rays, and a camera where its side is given; None: nothing is said.

    Args:
        camera: Side of the camera's image.
        decision_period: Physics steps of a decision.
        privileged: Whether it is shown the arena's true state.
    """
    if camera is None and decision_period is None and not privileged:
        return None
    default = SPEC.observation_spec
    return replace(
        default,
        camera=CameraSpec(camera) if camera else default.camera,
        decision_period=decision_period or default.decision_period,
        privileged=privileged,
    )


def parse_backend(backend: str, server: str | None) -> tuple[str, list[Path]]:
    """A backend's name for the server, and the builds that a server of our own may run.

    A path is meant from here unless the server was given, which may be on another machine.
    """
    kind, _, path = backend.partition(":")
    if kind != "unity" or not path or f"{kind}:{path}" == AUTOMATIC or server:
        return backend, []
    build = Path(path).expanduser().absolute()
    return f"{kind}:{build}", [build]
