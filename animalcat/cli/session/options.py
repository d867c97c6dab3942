"""The options that define a session, shared by the commands that create one."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from animalcat.cli.session.plan import combine, policy_name, stopping_rule
from animalcat.cli.shared.operation_progress import progress
from animalcat.cli.shared.output import fail
from animalcat.cli.shared.remote import AsJson, Data, Server, client_for
from animalcat.client import Client, values
from animalcat.client.values import Session
from animalcat.envs.backends import AUTOMATIC
from animalcat.envs.types import CameraSpec, ObservationSpec
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.service.model import SessionSpec

DEFAULT: Final = Policy()
"""What holds for choosing where nothing else is said."""
RULE: Final = StoppingRule()
"""What holds for stopping where nothing else is said."""

Features = Annotated[
    Path | None,
    typer.Option(
        metavar="TABLE.csv",
        help="Meta-features of your own for the folder of arena files: a column `instance`, and "
        "one each, its unit in brackets.",
    ),
]
SPEC: Final = SessionSpec("", "")
"""What holds for a session where nothing else is said."""

Layout = Annotated[
    str, typer.Option(help="Name of a layout, or a file NAME.yaml.", show_default=SPEC.layout)
]
PolicyName = Annotated[
    str,
    typer.Option(
        help="variance, information, threshold, stratified, random or listed.",
        show_default=DEFAULT.name,
    ),
]
RandomShare = Annotated[
    float | None,
    typer.Option(
        min=0, max=1, help="Share drawn at random.", show_default=str(DEFAULT.random_share)
    ),
]
Backend = Annotated[
    str,
    typer.Option(
        help="What plays: sim, unity:auto, or unity:PATH of a Unity build.",
        show_default=SPEC.backend,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(min=0, help="Seed of the whole session.", show_default=str(SPEC.seed)),
]
Certify = Annotated[
    bool | None,
    typer.Option(help="Check live posteriors by NUTS.", show_default="certify"),
]
Camera = Annotated[
    int | None, typer.Option(min=4, max=512, help="Side of a camera image; none if not given.")
]
DecisionPeriod = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=20,
        help="Physics steps.",
        show_default=str(SPEC.observation_spec.decision_period),
    ),
]
ActionTimeout = Annotated[
    float | None,
    typer.Option(help="Seconds for one action.", show_default=f"{SPEC.action_timeout_seconds:g}"),
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
        server: Host and port, if one was given.
        data: The data directory, if one was given.
        as_json: Print JSON.
    """

    agent: str
    battery: str
    features: Path | None
    fields: dict[str, Any]
    builds: tuple[Path, ...]
    server: str | None
    data: Path | None
    as_json: bool

    @contextmanager
    def client(self) -> Generator[Client]:
        """A client of the server that is meant."""
        with client_for(self.server, self.data, builds=self.builds) as client:
            yield client

    def create(self, client: Client) -> Session:
        """Create the session, which waits for its agent."""
        battery = find_battery(client, self.battery, self.fields["seed"], self.features)
        return client.create_session(agent=self.agent, battery=battery, **self.fields)


def _plan(
    agent: Annotated[str, typer.Option(help="builtin:NAME, or path/to/file.py:Class.")],
    battery: Annotated[
        str, typer.Option(help="Name of a battery or a family, or a folder of arena files.")
    ],
    layout: Layout = "",
    variant: Annotated[str, typer.Option(help="Variant of the layout.")] = "",
    features: Features = None,
    preset: Annotated[
        str,
        typer.Option(help="Stopping rule: quick, standard or thorough.", show_default="standard"),
    ] = "",
    max_episodes: Annotated[int | None, typer.Option(min=1, help="Most episodes.")] = None,
    target_sd: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Enough at this SD, a share of the range; 0: never."),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=SHARE", help="Target of one capability; may be repeated."),
    ] = None,
    target_width: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Greatest width of 90 % intervals, a share of the range."),
    ] = None,
    futility: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Enough when 25 more would gain less; 0: never."),
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(min=0, help="Most seconds of play.")] = None,
    stop: Annotated[
        str,
        typer.Option(help="any: what comes first; all: when all came.", show_default=RULE.combine),
    ] = "",
    stop_at_alarm: Annotated[
        bool | None, typer.Option(help="Stop when the layout turns out not to describe the agent.")
    ] = None,
    policy: PolicyName = "",
    random_share: RandomShare = None,
    sharpness: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=100,
            help="Preference for what tells more; 0: always the most.",
            show_default=str(DEFAULT.sharpness),
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="How often an arena may be played; 0: any number of times.",
            show_default=str(DEFAULT.exposures),
        ),
    ] = None,
    probes: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="With --repeats: share that tells how random the agent is.",
            show_default=str(DEFAULT.probes),
        ),
    ] = None,
    generate: Annotated[
        bool | None,
        typer.Option(help="Make arenas on demand where none of the battery would tell enough."),
    ] = None,
    enough: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="An arena tells enough at this share of the best made.",
            show_default=str(DEFAULT.enough),
        ),
    ] = None,
    balance: Annotated[
        int | None,
        typer.Option(
            min=-1,
            help="Plays that a paradigm may be ahead of the most owed one; -1: any number.",
            show_default="any number",
        ),
    ] = None,
    cool_down: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Episodes in which arenas with the same demands do not return.",
            show_default=str(DEFAULT.cool_down),
        ),
    ] = None,
    first: Annotated[
        list[str] | None,
        typer.Option(
            help="Arena to begin with; may be repeated. --policy listed plays nothing else."
        ),
    ] = None,
    per_second: Annotated[bool | None, typer.Option(help="Prefer short episodes.")] = None,
    about: Annotated[
        list[str] | None,
        typer.Option(help='Capability that "information" is about; may be repeated.'),
    ] = None,
    seed: Seed = None,
    backend: Backend = "",
    camera: Camera = None,
    decision_period: DecisionPeriod = None,
    action_timeout: ActionTimeout = None,
    record_pixels: Annotated[bool | None, typer.Option(help="Keep camera images.")] = None,
    certify: Certify = None,
    slots: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            help="Episodes at once, each by a process of its own.",
            show_default=str(SPEC.slots),
        ),
    ] = None,
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> Plan:
    backend, builds = parse_backend(backend, server)
    fields = {
        "layout": layout,
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
        "policy": values.Policy(
            name=policy_name(policy),
            random_share=random_share,
            sharpness=sharpness,
            exposures=repeats,
            probes=probes,
            generate=generate,
            enough=enough,
            balance=balance,
            cool_down=cool_down,
            order=tuple(first or ()),
            per_second=per_second,
            about=tuple(about or ()),
        ),
        "seed": seed,
        "backend": backend,
        "observation_spec": observation(camera, decision_period),
        "action_timeout_seconds": action_timeout,
        "record_pixels": record_pixels,
        "certify": certify,
        "slots": slots,
    }
    return Plan(agent, battery, features, fields, tuple(builds), server, data, as_json)


def takes_plan(command: Callable[[Plan], None]) -> Callable[..., None]:
    """A command whose options are those that define a session."""

    @wraps(_plan)
    def call(**given: Any) -> None:
        command(_plan(**given))

    call.__name__, call.__doc__ = command.__name__, command.__doc__
    return call


def observation(camera: int | None, decision_period: int | None) -> ObservationSpec | None:
    """What the agent sees: rays, and a camera where its side is given; None: nothing is said."""
    if camera is None and decision_period is None:
        return None
    default = SPEC.observation_spec
    return replace(
        default,
        camera=CameraSpec(camera) if camera else default.camera,
        decision_period=decision_period or default.decision_period,
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


def find_battery(
    client: Client, battery: str, seed: int | None, features: Path | None = None
) -> str:
    """Id of a battery; a path is imported first.

    Args:
        client: Of the server.
        battery: A name or a path.
        seed: Of the import.
        features: Table of meta-features that goes with a path.
    """
    path = Path(battery)
    known = {b.id for b in client.list_batteries()}
    written_as_path = "/" in battery or path.suffix in (".yaml", ".yml")
    stored = battery in known and features is None
    if not written_as_path and (stored or not path.exists()):
        if features is not None:
            fail(f"--features goes with a folder of arena files, and there is none at {battery}")
        return battery
    if not path.exists():
        fail(f"{battery}: no such file or folder")
    with progress(f"importing {battery}") as tell:
        made = client.import_battery(path, seed=seed or 0, features=features, on_progress=tell)
    for problem in made.problems[:5]:
        typer.echo(f"note: {problem}", err=True)
    if len(made.problems) > 5:
        typer.echo(f"note: and {len(made.problems) - 5} more; see `battery list --json`", err=True)
    return made.id
