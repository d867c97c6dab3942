"""What may be chosen for a session or a campaign: the table of options.

The command line makes its options of it, and Python the arguments of `create_session` and
`create_campaign`. A row says the type of an option, where it stands in the
specification, and a sentence of help. Its default and its range are those of the value there. What
is not given is not sent, so that it has the server's default.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from operator import attrgetter
from pathlib import Path
from textwrap import wrap
from types import NoneType
from typing import (
    Annotated,
    Any,
    Literal,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from animalcat.envs.types import CameraSpec, ObservationSpec
from animalcat.extending.files import split_name
from animalcat.layouts.adaptive.plan import POLICIES
from animalcat.text.ranges import Range, ranges_of
from animalcat.values.campaigns import CampaignSpec
from animalcat.values.sessions import SessionSpec

Group: TypeAlias = Literal["agent", "played", "choice", "end", "running", "shares"]
"""What an option is about."""
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Row:
    """One option of the table; the sentence of help stands beside it.

    Attributes:
        path: Where it stands in the specification.
        group: What it is about.
        metavar: What its value is, in a word of capitals; empty for what is on or off.
        shown: Its default in words, where the value's own does not say it.
        flag: Its name on the command line, where that is another than its own.
    """

    path: str
    group: Group
    metavar: str = ""
    shown: str = ""
    flag: str = ""


class SharedOptions(TypedDict, total=False):
    """What may be chosen for sessions and for campaigns alike."""

    camera: Annotated[
        int,
        Row("observation_spec.camera.resolution", "agent", "PIXELS", "none"),
        "The agent sees camera images with sides of this length. Without it there is no camera.",
    ]
    decision_period: Annotated[
        int,
        Row("observation_spec.decision_period", "agent", "STEPS"),
        "How many steps of the physics go by from one decision to the next.",
    ]
    action_timeout_seconds: Annotated[
        float,
        Row("action_timeout_seconds", "agent", "SECONDS", flag="--action-timeout"),
        "The longest that the agent may take for one action.",
    ]
    lease_seconds: Annotated[
        float,
        Row("lease_seconds", "agent", "SECONDS", flag="--lease"),
        "How long an agent whose connection broke may take to come back to the step that it "
        "left; 0 voids its episode at once.",
    ]
    episode_seconds: Annotated[
        float,
        Row("allowance.episode_seconds", "agent", "SECONDS", "no limit"),
        "The longest that the agent may think in one episode, all its decisions together. "
        "Beyond it the episode is a failure. 0 sets no limit.",
    ]
    decision_tokens: Annotated[
        int,
        Row("allowance.decision_tokens", "agent", "NUMBER", "no limit"),
        "The most tokens that the agent's notes may tell of in one decision. Beyond it the "
        "episode is a failure. 0 sets no limit.",
    ]
    episode_tokens: Annotated[
        int,
        Row("allowance.episode_tokens", "agent", "NUMBER", "no limit"),
        "The same for one episode, all its decisions together.",
    ]
    fresh: Annotated[
        bool,
        Row("fresh", "played"),
        "Play a twin of each arena: another one with the same demands that no other session "
        "has, so that a battery cannot be learnt by heart.",
    ]
    practice: Annotated[
        int,
        Row("practice", "played", "NUMBER"),
        "Play so many episodes first that do not count, on arenas that are not used again.",
    ]
    keep_unpassable: Annotated[
        bool,
        Row("keep_unpassable", "played", flag="--keep-unpassable"),
        "Play arenas that no play can pass too, since no return exceeds their pass mark; the "
        "profile says so. Without it they are set aside.",
    ]
    replace_voids: Annotated[
        bool,
        Row("replace_voids", "played", flag="--replace-voids"),
        "Play another arena after an attempt that did not count: for agents who remember what they "
        "saw. Without it the same one is played again.",
    ]
    secret: Annotated[
        str,
        Row("secret", "played", "WORDS", "one that the server makes; the profile names it"),
        "What all chance follows from beside the seed, so that no agent can work out which "
        "arenas come. The same seed and secret give the same decisions on any server; an "
        "empty one lets the seed alone decide.",
    ]
    policy: Annotated[
        str,
        Row("policy.name", "choice", "NAME"),
        "How the next arena is chosen: variance, information, threshold, stratified, random, "
        "listed, rate, a plugin of the server, or path/to/file.py:Class.",
    ]
    about: Annotated[
        Sequence[str],
        Row("policy.about", "choice", "CAPABILITY", "all"),
        "With the policy information: learn about this capability. Repeat it for several.",
    ]
    random_share: Annotated[
        float,
        Row("policy.random_share", "choice", "SHARE"),
        "This share of the arenas is drawn at random, so that a wrong layout shows.",
    ]
    sharpness: Annotated[
        float,
        Row("policy.sharpness", "choice", "POWER"),
        "How strongly informative arenas are preferred. Chances are proportional to this power of "
        "the information. 0 always takes the most informative one.",
    ]
    per_second: Annotated[
        bool,
        Row("policy.per_second", "choice"),
        "Prefer what is most informative per second of play, and so short episodes.",
    ]
    repeats: Annotated[
        int,
        Row("policy.exposures", "choice", "TIMES"),
        "How often the same arena may be played. 0 sets no limit.",
    ]
    probes: Annotated[
        float,
        Row("policy.probes", "choice", "SHARE"),
        "Where repeats are allowed: this share of the arenas is played again, until it is "
        "known how random the agent is.",
    ]
    cool_down: Annotated[
        int,
        Row("policy.cool_down", "choice", "EPISODES"),
        "For so many episodes no arena with the same demands is chosen again.",
    ]
    pairs: Annotated[
        bool,
        Row("policy.pairs", "choice"),
        "Play an arena and its controls one after the other, in an order that is drawn.",
    ]
    aim: Annotated[
        float,
        Row("policy.aim", "choice", "SHARE", "whatever is most informative"),
        "Prefer arenas that the agent passes at this rate, and of these the most informative. It "
        "costs precision, and is for those whom failures discourage.",
    ]
    generate: Annotated[
        bool,
        Row("policy.generate", "choice"),
        "Make new arenas where none of the battery would tell enough.",
    ]
    enough: Annotated[
        float,
        Row("policy.enough", "choice", "SHARE"),
        "Where new arenas are made: an arena of the battery tells enough when it tells this "
        "share of what the best new one would.",
    ]
    backend: Annotated[
        str,
        Row("backend", "running", "NAME"),
        "What simulates the arenas: sim is the built-in simulator, unity:auto the Unity build "
        "of `animalcat unity setup`, unity:PATH any other build, and any other name a plugin of "
        "the server.",
    ]
    seed: Annotated[
        int,
        Row("seed", "running", "NUMBER"),
        "The seed of everything that is left to chance.",
    ]
    certify: Annotated[
        bool,
        Row("certify", "running"),
        "Check the quick estimates against a full fit (NUTS) from time to time.",
    ]
    record_pixels: Annotated[
        bool,
        Row("record_pixels", "running"),
        "Keep camera images in the recordings.",
    ]


class SessionOptions(SharedOptions, total=False):
    """What may be chosen for a session."""

    slots: Annotated[
        int,
        Row("slots", "agent", "NUMBER"),
        "How many copies of the agent play at once, each in a process of its own.",
    ]
    played_before: Annotated[
        int,
        Row("played_before", "agent", "NUMBER", flag="--played-before"),
        "How many arenas the agent has played before the session, as a person who comes again has. "
        "A layout that counts them, as for practice, goes on from there.",
    ]
    privileged: Annotated[
        bool,
        Row(
            "observation_spec.privileged",
            "agent",
            shown="only for builtin:planner",
            flag="--privileged",
        ),
        "Show the agent the arena's true state as well: for agents that check arenas, not for "
        "those that are measured. The profile says so.",
    ]
    first: Annotated[
        Sequence[str],
        Row("policy.order", "choice", "INSTANCE", "none"),
        "Begin with this arena. Repeat it for several; the policy listed plays only these.",
    ]
    max_episodes: Annotated[
        int,
        Row("stop.max_episodes", "end", "NUMBER", "by the preset"),
        "End after so many episodes.",
    ]
    max_seconds: Annotated[
        float,
        Row("stop.max_seconds", "end", "SECONDS", "no limit"),
        "End after so many seconds of play. 0 sets no limit.",
    ]
    target_sd: Annotated[
        float,
        Row("stop.target_sd", "end", "SHARE", "by the preset"),
        "A capability is known when its standard deviation is this share of its range. 0: never.",
    ]
    targets: Annotated[
        Mapping[str, float],
        Row("stop.targets", "end", "CAPABILITY=SHARE", "none", flag="--target"),
        "The same for one capability. Repeat it for several.",
    ]
    target_width: Annotated[
        float,
        Row("stop.target_width", "end", "SHARE"),
        "A capability is known only when its 90 % interval is no wider than this share of its "
        "range. 0 does not ask for it. With the policy rate, the session ends when the interval of "
        "the success rate is no wider.",
    ]
    futility: Annotated[
        float,
        Row("stop.futility", "end", "SHARE", "by the preset"),
        "Give a capability up when 25 more episodes would lower its standard deviation by "
        "less than this share. 0: never.",
    ]
    stop: Annotated[
        Literal["any", "all"],
        Row("stop.combine", "end", "any|all"),
        "any ends the session at the first limit, or when every capability is known or given "
        "up. all waits until all that is set has come.",
    ]
    stop_at_alarm: Annotated[
        bool,
        Row("stop.stop_at_alarm", "end"),
        "End when the layout turns out not to describe the agent.",
    ]


class CampaignOptions(SharedOptions, total=False):
    """What may be chosen for a campaign."""

    common: Annotated[
        int,
        Row("common", "shares", "ARENAS"),
        "How many random arenas all agents play first, the same ones.",
    ]
    take: Annotated[
        int,
        Row("take", "agent", "NUMBER"),
        "Which campaign of all with the same options. Another number begins another one, for "
        "agents that have changed.",
    ]


@dataclass(frozen=True, slots=True)
class Option:
    """A row with what the value at its place says.

    Attributes:
        name: Name of the option.
        row: The row.
        help: What it says, in a sentence or two.
        kind: Type of its value.
        span: From where to where it goes; None for no numbers, and where there are no bounds.
        default: Its default; None where the specification has none.
    """

    name: str
    row: Row
    help: str
    kind: Any
    span: Range | None
    default: Any

    @property
    def shown(self) -> str:
        """Its default in words."""
        if self.row.shown or self.default is None:
            return self.row.shown
        if self.kind is bool and self.row.flag:
            return ""
        if self.kind is bool:
            return f"{'' if self.default else 'no-'}{self.name.replace('_', '-')}"
        return f"{self.default:g}" if self.kind is float else str(self.default)

    def check(self, value: Any) -> None:
        """Check a value that was given for it.

        Raises:
            ValueError: It does not take it; the message says what to give.
        """
        if not _fits(value, self.kind):
            wanted = _words_for_kind(self.kind)
            if is_dataclass(value) and not isinstance(value, type):
                own = [f.name for f in fields(value) if f.name in SessionOptions.__annotations__]
                parts = ", ".join(f"{name}={getattr(value, name)!r}" for name in own)
                raise ValueError(
                    f"{self.name} is a {type(value).__name__}; give {wanted}: its parts are "
                    f"options of their own, as in {parts}"
                )
            raise ValueError(f"{self.name} is {value!r}; give {wanted}")
        if self.span is not None and not self.span.has(value):
            raise ValueError(f"{self.name} {value} is out of range; give {self.span}")


@cache
def options_of(kind: type) -> Mapping[str, Option]:
    """The options of `SessionOptions` or of another such class, by name."""
    found: dict[str, Option] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        of, row, words = get_args(hint)
        found[name] = Option(name, row, words, of, *_place(row.path))
    return found


def describe_options(kind: type) -> Callable[[F], F]:
    """Let the documentation of a function end with the options that it takes."""

    def describe(function: F) -> F:
        lines = list[str]()
        for option in options_of(kind).values():
            plain = option.kind in (bool, int, float) and option.default is not None
            said = f"{option.name}: {option.help} Default: "
            said += f"{option.default if plain else option.shown}."
            lines += wrap(said, 96, initial_indent=" " * 4, subsequent_indent=" " * 8)
        text = inspect.cleandoc(function.__doc__ or "")
        function.__doc__ = "\n".join([text, "", "Options:", *lines])
        return function

    return describe


def given_options(
    kind: type, options: Mapping[str, Any], observation_spec: ObservationSpec | None = None
) -> dict[str, Any]:
    """Check options, and leave out what is None and so not given.

    Args:
        kind: `SessionOptions` or `CampaignOptions`.
        options: Options by name.
        observation_spec: What the agent sees, apart from what options say; None: as by default.

    Returns:
        Values by their places in the specification; what an agent sees is one value.

    Raises:
        TypeError: There is no such option.
        ValueError: A value is not one that its option takes.
    """
    known = options_of(kind)
    found: dict[str, Any] = {}
    for name, value in options.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
            raise TypeError(f"there is no option {name!r}; {hint}")
        if value is not None:
            known[name].check(value)
            found[known[name].row.path] = value
    spec: Any = observation_spec
    if not isinstance(spec, ObservationSpec | None):
        raise ValueError(
            f"observation_spec is {spec!r:.60}; give an ObservationSpec, or say it by "
            "the options camera, decision_period and privileged"
        )
    seen = {path: found.pop(path) for path in [*found] if path.startswith("observation_spec.")}
    if found.get("policy.name", SPEC.policy.name) not in POLICIES:
        # Which plugins there are, the server knows.
        file, name = split_name(given := found["policy.name"])
        given = f"{Path(file).name}:{name}" if file else given  # where it is, nobody is told
        found |= {"policy.plugin": given, "policy.name": "plugin"}
    if seen or observation_spec is not None:
        found["observation_spec"] = _observation(observation_spec or SPEC.observation_spec, seen)
    return found


def _observation(usual: ObservationSpec, seen: Mapping[str, Any]) -> ObservationSpec:
    """What an agent sees: what it usually does, and what was asked for."""
    short = {path.split(".", 1)[1]: value for path, value in seen.items()}
    camera = short.pop("camera.resolution", None)
    return replace(usual, camera=usual.camera if camera is None else CameraSpec(camera), **short)


SPEC = SessionSpec("", "")
"""What holds for a session where nothing else is said."""
_CAMPAIGN = CampaignSpec((), SPEC, 1)


def _place(path: str) -> tuple[Range | None, Any]:
    """The range and the default of what stands at a path."""
    if path == "max_workers":
        return Range(0, 10_000), 0
    head, *_ = path.split(".")
    value: Any = SPEC if hasattr(SPEC, head) else _CAMPAIGN
    *inner, last = path.split(".")
    holder: type = value.__class__
    for name in inner:
        hint = get_type_hints(holder)[name]
        holder = next((one for one in get_args(hint) if one is not NoneType), hint)
        value = None if value is None else getattr(value, name)
    if not is_dataclass(holder):
        raise TypeError(f"{path}: there is no such place")
    return ranges_of(holder).get(last), None if value is None else attrgetter(last)(value)


def _fits(value: Any, kind: Any) -> bool:
    if kind is bool or kind is str:
        return isinstance(value, kind)
    if kind is int:
        return isinstance(value, SupportsIndex) and not isinstance(value, bool)
    if kind is float:
        return hasattr(value, "__float__") and not isinstance(value, bool)
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if isinstance(value, Mapping):
        return all(_fits(share, float) for share in cast("Mapping[str, Any]", value).values())
    listed = isinstance(value, Sequence) and not isinstance(value, str)
    return listed and all(isinstance(one, str) for one in cast("Sequence[Any]", value))


def _words_for_kind(kind: Any) -> str:
    words = {bool: "True or False", str: "a text", int: "a whole number", float: "a number"}
    if get_origin(kind) is Literal:
        return f"one of: {', '.join(get_args(kind))}"
    several = "a number for each name" if get_origin(kind) is Mapping else "a list of texts"
    return words.get(kind, several)
