"""Makes options of commands from the table of what may be chosen (`animalcat.values.options`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, ParameterInfo

from animalcat.cli.shared.command_help import AGENT, CHOICE, END, PLAYED, RUNNING
from animalcat.cli.shared.output import BAD_INPUT, fail
from animalcat.envs.types import ObservationSpec
from animalcat.values.options import SPEC, Option, given_options, options_of

SHARES: Final = "How episodes are shared out"
"""A group of options."""
_GROUPS: Final = {
    "agent": AGENT,
    "played": PLAYED,
    "shares": SHARES,
    "choice": CHOICE,
    "end": END,
    "running": RUNNING,
}
"""Groups of options, in the order of the help."""
IN_PYTHON: Final = frozenset(
    {
        *("about", "aim", "cool_down", "enough", "per_second", "played_before", "probes"),
        *("max_seconds", "replace_voids", "sharpness", "stop", "target_width"),
    }
)
"""What is chosen in Python alone."""
OFTEN: Final = frozenset(
    {
        *("backend", "camera", "certify", "max_episodes", "pairs", "policy", "seed", "target_sd"),
    }
)
"""What --help shows; the others are shown by --help-all."""
_MOST: Final = 2**31
"""No greater bound is shown, since it bounds nothing that anybody asks for."""


def with_options(
    command: Callable[..., Any],
    kind: type,
    then: Callable[[Any], None] | None = None,
) -> Callable[..., None]:
    """A command with the options of a table instead of a parameter `options`.

    Args:
        command: Takes `**options`: those of the table, None where one is not given.
        kind: `SessionOptions` or `CampaignOptions`.
        then: Is the command itself where `command` only makes what it works with.
    """
    hints = get_type_hints(command, include_extras=True)
    own = [
        parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(command).parameters.items()
        if name != "options"
    ]
    taken = [option for name, option in options_of(kind).items() if name not in IN_PYTHON]
    parameters = sorted([*own, *map(_parameter, taken)], key=_order)

    def call(**values: Any) -> None:
        result = command(**values)
        if then is not None:
            then(result)

    named = then or command
    call.__name__, call.__doc__ = named.__name__, named.__doc__
    signature = inspect.Signature(parameters)
    call.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def read_options(kind: type, values: Mapping[str, Any], listed: str = "targets") -> dict[str, Any]:
    """The options that were given; what is wrong with one ends the command with a sentence.

    Args:
        kind: `SessionOptions` or `CampaignOptions`.
        values: What the command line gives, by name of the option.
        listed: The option that is given as several "NAME=SHARE".
    """
    options = {name: value for name, value in values.items() if value is not None and value != []}
    if listed in options:
        options[listed] = numbers_by_name("--target", options[listed], "visualAbility=0.1")
    try:
        given_options(kind, options)
    except (TypeError, ValueError) as error:
        fail(str(error), BAD_INPUT)
    return options


def observation_of(kind: type, options: Mapping[str, Any]) -> ObservationSpec:
    """What the agent sees with some options."""
    return given_options(kind, options).get("observation_spec", SPEC.observation_spec)


def _parameter(option: Option) -> inspect.Parameter:
    numbers = option.kind in (int, float)
    span = option.span if numbers else None
    several = get_origin(option.kind) in (Sequence, Mapping)
    plain = list[str] if several else option.kind if option.kind in (int, float, bool) else str
    info = typer.Option(
        *([option.row.flag] if option.row.flag else []),
        metavar=option.row.metavar or None,
        min=None if span is None or span.above else span.low,
        max=None if span is None or span.high >= _MOST else span.high,
        help=option.help,
        hidden=option.name not in OFTEN,
        show_default=option.shown or False,
        rich_help_panel=_GROUPS[option.row.group],
    )
    annotation: Any = Annotated[plain | None, info]
    only = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(option.name, only, default=None, annotation=annotation)


def _order(parameter: inspect.Parameter) -> int:
    """Arguments first, then the groups in their order."""
    infos: Iterable[Any] = getattr(parameter.annotation, "__metadata__", ())
    info = next((info for info in infos if isinstance(info, ParameterInfo)), None)
    if isinstance(info, ArgumentInfo):
        return -1
    panels = list(_GROUPS.values())
    panel = None if info is None else info.rich_help_panel
    return panels.index(panel) if panel in panels else len(panels)


def numbers_by_name(option: str, texts: Sequence[str], example: str) -> dict[str, float]:
    """Numbers of an option that is repeated, each given as "NAME=NUMBER".

    Args:
        option: What the option is called.
        texts: What was given.
        example: One of them that would be right.
    """
    numbers: dict[str, float] = {}
    for text in texts:
        name, _, number = text.partition("=")
        if name in numbers:
            fail(f"{option} {text}: {name} has a number already; give it once", BAD_INPUT)
        try:
            numbers[name] = float(number)
        except ValueError:
            fail(f"{option} {text}: give a name and a number, for example {example}", BAD_INPUT)
    return numbers
