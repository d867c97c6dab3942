"""`animalcat serve`: start the server of a data directory."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from enum import Enum
from itertools import pairwise
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    get_args,
    get_origin,
    get_type_hints,
)

import typer
from sqlalchemy.exc import DBAPIError

from animalcat.cli.shared.common import common, without
from animalcat.cli.shared.output import BAD_INPUT, UNREACHABLE, fail
from animalcat.cli.shared.remote import AllowBuild, AllowPlugin
from animalcat.extending.plugins import PluginError
from animalcat.service.access.certificates import CertificateError, self_signed
from animalcat.service.access.tokens import TokenError
from animalcat.service.host.lock import DirectoryInUseError
from animalcat.service.host.owning import OtherOwnerError, check_owner, own
from animalcat.service.host.settings import ExposureError, Settings, SettingsError
from animalcat.service.logs import configure
from animalcat.service.rpc.server import PortInUseError, serve
from animalcat.service.session.workers import EngineError
from animalcat.service.storage.belonging import StrayPartsError
from animalcat.service.storage.damage import REMEDY, damage_of
from animalcat.service.storage.errors import StoreInUseError
from animalcat.service.storage.migrate import StoreUnreachableError, StoreVersionError
from animalcat.text.terminals import harmless

LISTENING: Final = "Where it listens"
WATCHING: Final = "What it shows of itself"
SAFETY: Final = "Who may call"
CLUSTER: Final = "Many agents and machines"
"""Groups of options."""


class _Row(NamedTuple):
    """A setting that is an option too.

    Attributes:
        panel: Its group; empty for none.
        metavar: What stands for its value; empty for a flag or a choice.
        flag: Its name; empty for that of the setting.
        default: What holds where it is not given, in words; empty for the setting's default.
    """

    panel: str
    metavar: str = ""
    flag: str = ""
    default: str = ""


_ROWS: Final[Mapping[str, _Row]] = {
    "port": _Row(LISTENING, "PORT"),
    "host": _Row(LISTENING, "ADDRESS"),
    "self_signed": _Row(SAFETY),
    "host_names": _Row(SAFETY, "HOST", "--name"),
    "tls_certificate": _Row(SAFETY, "FILE"),
    "tls_key": _Row(SAFETY, "FILE"),
    "require_token": _Row(SAFETY),
    "store": _Row("", "URL", default="SQLite in the data directory"),
    "engine": _Row(CLUSTER),
    "ray_address": _Row(
        CLUSTER, "HOST:PORT", "--address", "a Ray of the server's own, on this machine"
    ),
    "max_workers": _Row(CLUSTER, "NUMBER"),
    "web": _Row(WATCHING, "PORT"),
    "log": _Row(WATCHING),
    "max_agents": _Row(CLUSTER, "NUMBER"),
}
"""The settings that are options too; their types, bounds, defaults and help are those there."""


def _words() -> dict[str, str]:
    """What the settings say of themselves, which stands in their source alone."""
    (kind,) = ast.parse(inspect.getsource(Settings)).body
    assert isinstance(kind, ast.ClassDef)
    return {
        field.target.id: " ".join(str(said.value.value).split())
        for field, said in pairwise(kind.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(said, ast.Expr) and isinstance(said.value, ast.Constant)
    }


def _option(name: str, row: _Row, words: str) -> inspect.Parameter:
    """The option of a setting."""
    field = Settings.model_fields[name]
    low = next((bound.ge for bound in field.metadata if hasattr(bound, "ge")), None)
    low = 0.001 if any(hasattr(bound, "gt") for bound in field.metadata) else low
    high = next((bound.le for bound in field.metadata if hasattr(bound, "le")), None)
    kinds = [kind for kind in (get_args(field.annotation) or (field.annotation,)) if kind]
    kind: Any = kinds[0]
    usual: Any = field.default
    default = "" if usual is None or isinstance(usual, bool | tuple) else str(usual)
    if get_origin(field.annotation) is Literal:
        kind = Enum(name, {str(choice): str(choice) for choice in kinds})
    elif get_origin(field.annotation) is tuple:
        kind = list[kind]
    info = typer.Option(
        row.flag or f"--{name.replace('_', '-')}",
        metavar=row.metavar or None,
        min=low,  # pyright: ignore[reportArgumentType]
        max=high,  # pyright: ignore[reportArgumentType]
        help=words,
        show_default=row.default or default.removesuffix(".0") or False,
        rich_help_panel=row.panel or None,
    )
    annotation = Annotated[kind | None, info]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _value(value: Any) -> Any:
    """What an option says, as the setting takes it."""
    return value.value if isinstance(value, Enum) else value


@without("--server")
def _serve(
    allow_build: AllowBuild = None,
    allow_plugin: AllowPlugin = None,
    private: Annotated[
        bool, typer.Option(hidden=True, help="End when standard input ends; implies --json.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Only say whether a server could start like this, and list all settings with "
            "their sources. Secrets are masked.",
        ),
    ] = False,
    **options: Any,
) -> None:
    """Serve a data directory to agents, operators and viewers, until SIGTERM or Ctrl-C.

    Further settings stand in the environment, as ANIMALCAT_MAX_STREAMS: `animalcat serve --check`
    lists them.
    """
    given: dict[str, Any] = {
        **{name: _value(said) for name, said in options.items() if said not in (None, [])},
        "home": common().data,
        "allowed_builds": allow_build,
        "allowed_plugins": allow_plugin,
    }
    given = {key: value for key, value in given.items() if value is not None}
    if check:
        from animalcat.cli.server_settings import show_settings

        show_settings(given)
        return

    try:
        settings = Settings(**given)
        check_owner(settings.home)
    except (SettingsError, OtherOwnerError) as error:
        fail(str(error), BAD_INPUT)
    configure(settings.log, settings.log_level)
    if "ray_address" in given and settings.engine != "ray":
        fail("--address names a Ray cluster; it goes with --engine ray")

    output = sys.stdout

    def ready(address: str, link: str) -> None:
        facts = _announcement(settings, address) | ({"web": link} if link else {})
        if common().as_json or private:
            lines = [json.dumps(facts)]
        else:
            lines = [f"animalcat serves {settings.home} at {address}; Ctrl-C stops it"]
            if "ca" in facts:
                lines.append(f"callers know it by: ANIMALCAT_CA={facts['ca']}")
            if link:
                lines.append(f"watch it at {link}")
            if facts["token"]:
                lines.append(
                    f"callers need a token, from: animalcat token create{_where(settings)}"
                )
        print(harmless("\n".join(lines)), file=output)
        output.flush()

    own(settings.home)
    try:
        with redirect_stdout(sys.stderr):  # Ray prints what befalls its nodes
            asyncio.run(serve(settings, ready, with_stdin=private))
    except (ExposureError, CertificateError, PluginError) as error:
        fail(str(error), BAD_INPUT)
    except (
        StoreVersionError,
        StoreUnreachableError,
        TokenError,
        StrayPartsError,
    ) as error:
        fail(str(error), BAD_INPUT)
    except DBAPIError as error:
        if not (damage := damage_of(error)):
            raise
        where = "" if settings.store else f" in {settings.home}"
        fail(f"the database{where} is damaged ({damage}), so nothing was started. {REMEDY}.")
    except EngineError as error:
        fail(str(error), UNREACHABLE)
    except (DirectoryInUseError, StoreInUseError, PortInUseError) as error:
        fail(str(error), UNREACHABLE)
    except OSError as error:
        fail(f"{error.filename or settings.home}: {error.strerror or error}", UNREACHABLE)


def _command() -> Callable[..., None]:
    """The command, with an option for each row of the table."""
    words, hints = _words(), get_type_hints(_serve, include_extras=True)
    own = [
        parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(_serve).parameters.items()
        if name != "options"
    ]
    parameters = [*(_option(name, row, words[name]) for name, row in _ROWS.items()), *own]

    def command(**values: Any) -> None:
        _serve(**values)

    command.__doc__ = _serve.__doc__
    command.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def _announcement(settings: Settings, address: str) -> dict[str, Any]:
    """What is said once the server listens."""
    facts: dict[str, Any] = {
        "address": address,
        "data": str(settings.home.absolute()),
        "tls": settings.tls,
        "token": not settings.open_to_machine,
    }
    if settings.self_signed:
        certificates = self_signed(settings.home, settings.host_names)
        facts |= {
            "ca": certificates.fingerprint,
            "certificate": str(certificates.certificate.absolute()),
        }
    return facts


def _where(settings: Settings) -> str:
    """The option that names the data directory again, where it is not the usual one."""
    return f" --data {settings.home}" if settings.home != Settings().home else ""


command: Final = _command()
