"""`animalcat serve`: start the server of a data directory."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import redirect_stdout
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from sqlalchemy.exc import DBAPIError

from animalcat.cli.shared.output import BAD_INPUT, UNREACHABLE, fail
from animalcat.cli.shared.remote import AllowBuild, AllowPlugin, Data, EngineName
from animalcat.plugins import PluginError
from animalcat.service.access.certificates import CertificateError, self_signed
from animalcat.service.access.tokens import TokenError
from animalcat.service.cluster.connect import ClusterError
from animalcat.service.host.lock import DirectoryInUseError
from animalcat.service.host.owning import OtherOwnerError, check_owner, own
from animalcat.service.host.settings import WORKER_BYTES, ExposureError, Settings, SettingsError
from animalcat.service.logs import configure
from animalcat.service.rpc.metrics import MetricsError
from animalcat.service.rpc.server import PortInUseError, serve
from animalcat.service.storage.artefacts import ArtefactsUrlError
from animalcat.service.storage.belonging import StrayPartsError
from animalcat.service.storage.damage import REMEDY, damage_of
from animalcat.service.storage.migrate import StoreUnreachableError, StoreVersionError
from animalcat.service.tracing import TracesError

LISTENING: Final = "Where it listens"
WATCHING: Final = "What it shows of itself"
SAFETY: Final = "Who may call"
MOST: Final = "How much it takes on"
LIMITS: Final = "What it waits for"
CLUSTER: Final = "Many machines"
"""Groups of options."""


class LogStyle(StrEnum):
    """How the log is written."""

    plain = "plain"
    json = "json"


class LogLevel(StrEnum):
    """The least that is logged."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


def command(
    port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65535,
            help="The port to listen at. 0 takes any free one.",
            show_default="50051",
            rich_help_panel=LISTENING,
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="The address to listen at. One that other machines can reach, such as 0.0.0.0, "
            "needs TLS: --self-signed, or a certificate of your own.",
            show_default="127.0.0.1",
            rich_help_panel=LISTENING,
        ),
    ] = None,
    self_signed: Annotated[
        bool | None,
        typer.Option(
            "--self-signed",
            help="Speak TLS with a certificate that the server makes for itself and keeps. Callers "
            "know it by the fingerprint that is printed.",
            rich_help_panel=SAFETY,
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="With --self-signed: a name or an address under which callers reach the server, "
            "besides those that this machine knows of itself. Repeat it for several.",
            rich_help_panel=SAFETY,
        ),
    ] = None,
    tls_certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Speak TLS with this certificate (PEM), followed by those that signed it.",
            rich_help_panel=SAFETY,
        ),
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The private key of the certificate.", rich_help_panel=SAFETY
        ),
    ] = None,
    client_ca: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Mutual TLS: admit only callers with a certificate that one of these signed "
            "(`animalcat token certificate` makes them).",
            rich_help_panel=SAFETY,
        ),
    ] = None,
    require_token: Annotated[
        bool | None,
        typer.Option(
            "--require-token",
            help="Ask callers of this machine for a token as well. Others need one in any case.",
            rich_help_panel=SAFETY,
        ),
    ] = None,
    behind_proxy: Annotated[
        bool | None,
        typer.Option(
            "--behind-proxy",
            help="Say that calls come by a proxy: everybody needs a token, also who seems to call "
            "from this machine. A server that sees a proxy's headers does so by itself.",
            rich_help_panel=SAFETY,
        ),
    ] = None,
    data: Data = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Read settings from this TOML file. Options count before the environment "
            "(ANIMALCAT_*), and that before the file. `animalcat config show` lists the keys.",
            show_default="ANIMALCAT_CONFIG, else none",
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Keep sessions in this PostgreSQL database, which several servers may share: "
            "postgresql://USER:PASSWORD@HOST/DATABASE. They share the data directory too, or "
            "--artefacts. Better given as ANIMALCAT_STORE, as a command line can be seen by "
            "others.",
            show_default="SQLite in the data directory",
        ),
    ] = None,
    artefacts: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Keep batteries, recordings and draws in this object storage, for example "
            "s3://BUCKET/FOLDER. Its credentials come from the environment.",
            show_default="the data directory",
        ),
    ] = None,
    engine: Annotated[
        EngineName | None,
        typer.Option(
            help="Who starts simulators and fits: processes of this machine, or Ray on the "
            "machines of a cluster.",
            show_default="local",
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="The Ray cluster to use: where its head listens, or `auto` for the one that this "
            "machine has joined.",
            show_default="a Ray of the server's own, on this machine",
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    cluster_wait: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.0,
            help="How long to wait for a cluster that does not answer yet, or has no machine with "
            "room for a simulator and a fit.",
            show_default="0",
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    max_workers: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=0,
            help="The most simulators at once; other agents wait for their turn. 0 sets no limit, "
            "or in a cluster takes as many as have room.",
            show_default="0",
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    campaign_workers: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=0,
            help="The most simulators of one campaign at once. 0 sets no limit.",
            show_default="0",
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    worker_cpus: Annotated[
        float | None,
        typer.Option(
            metavar="CPUS",
            min=0.001,
            help="What a simulator is counted with of the CPUs of a machine.",
            show_default="0.25",
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    worker_memory: Annotated[
        int | None,
        typer.Option(
            metavar="MIB",
            min=1,
            help="What a simulator is counted with of the memory of a machine, in MiB.",
            show_default=str(WORKER_BYTES >> 20),
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    allow_build: AllowBuild = None,
    allow_plugin: AllowPlugin = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="PORT",
            help="Offer measurements to Prometheus at this port of this machine, or at HOST:PORT.",
            rich_help_panel=WATCHING,
        ),
    ] = None,
    log: Annotated[
        LogStyle | None,
        typer.Option(
            help="Write the log for people, or as JSON lines with session and episode.",
            show_default="plain",
            rich_help_panel=WATCHING,
        ),
    ] = None,
    log_level: Annotated[
        LogLevel | None,
        typer.Option(
            help="The least that is logged.",
            show_default="warning, and info with --log json",
            rich_help_panel=WATCHING,
        ),
    ] = None,
    traces: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Send a trace of each decision to this collector of OpenTelemetry (OTLP over "
            "HTTP), for example http://localhost:4318.",
            rich_help_panel=WATCHING,
        ),
    ] = None,
    max_agents: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="The most agents that play at once. Each takes a simulator process.",
            show_default="256",
            rich_help_panel=MOST,
        ),
    ] = None,
    max_streams: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="The most other streams at once, such as those that watch sessions.",
            show_default="1000",
            rich_help_panel=MOST,
        ),
    ] = None,
    max_open_sessions: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="The most sessions that are not over.",
            show_default="10000",
            rich_help_panel=MOST,
        ),
    ] = None,
    max_operations: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="The most batteries that are uploaded or made at once.",
            show_default="8",
            rich_help_panel=MOST,
        ),
    ] = None,
    spare_memory: Annotated[
        int | None,
        typer.Option(
            metavar="MIB",
            min=0,
            help="Begin nothing that needs much memory when less than this is free, in MiB.",
            show_default="256",
            rich_help_panel=MOST,
        ),
    ] = None,
    spare_disk: Annotated[
        int | None,
        typer.Option(
            metavar="MIB",
            min=0,
            help="Begin no episode when less than this is free on the disk of --data, in MiB.",
            show_default="256",
            rich_help_panel=MOST,
        ),
    ] = None,
    max_strangers: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="The most connections at once over which nobody has shown a token.",
            show_default="256",
            rich_help_panel=MOST,
        ),
    ] = None,
    worker_quiet_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.001,
            help="End a simulator process that neither answers nor works for so long.",
            show_default="30",
            rich_help_panel=LIMITS,
        ),
    ] = None,
    worker_cpu_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.001,
            help="The most CPU time that a simulator process may take for one answer.",
            show_default="300",
            rich_help_panel=LIMITS,
        ),
    ] = None,
    fit_quiet_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.001,
            help="End the fitting process when it neither answers nor works for so long.",
            show_default="60",
            rich_help_panel=LIMITS,
        ),
    ] = None,
    fit_cpu_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.001,
            help="The most CPU time that one fit may take.",
            show_default="3600",
            rich_help_panel=LIMITS,
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Say in JSON where it listens.", rich_help_panel=LISTENING),
    ] = False,
    private: Annotated[
        bool, typer.Option(hidden=True, help="End with standard input; implies --json.")
    ] = False,
) -> None:
    """Serve a data directory to agents, operators and viewers, until SIGTERM or Ctrl-C."""
    given: dict[str, Any] = {
        "port": port,
        "host": host,
        "self_signed": self_signed,
        "host_names": name or None,
        "tls_certificate": tls_certificate,
        "tls_key": tls_key,
        "client_ca": client_ca,
        "require_token": require_token,
        "behind_proxy": behind_proxy,
        "config": config,
        "log": None if log is None else log.value,
        "log_level": None if log_level is None else log_level.value,
        "traces": traces,
        "max_agents": max_agents,
        "max_streams": max_streams,
        "max_open_sessions": max_open_sessions,
        "max_operations": max_operations,
        "spare_memory_bytes": None if spare_memory is None else spare_memory << 20,
        "spare_disk_bytes": None if spare_disk is None else spare_disk << 20,
        "max_strangers": max_strangers,
        "home": data,
        "store": store,
        "artefacts": artefacts,
        "engine": None if engine is None else engine.value,
        "ray_address": address,
        "cluster_wait_seconds": cluster_wait,
        "max_workers": max_workers,
        "campaign_workers": campaign_workers,
        "worker_cpus": worker_cpus,
        "worker_memory_bytes": None if worker_memory is None else worker_memory << 20,
        "metrics": metrics,
        "allowed_builds": allow_build,
        "allowed_plugins": allow_plugin,
        "worker_quiet_seconds": worker_quiet_seconds,
        "worker_cpu_seconds": worker_cpu_seconds,
        "fit_quiet_seconds": fit_quiet_seconds,
        "fit_cpu_seconds": fit_cpu_seconds,
    }
    given = {key: value for key, value in given.items() if value is not None}

    def read() -> Settings:
        return Settings(**given)

    try:
        settings = read()
        check_owner(settings.home)
    except (SettingsError, OtherOwnerError) as error:
        fail(str(error), BAD_INPUT)
    configure(settings.log, settings.log_level)
    if address and settings.engine != "ray":
        fail("--address names a Ray cluster; it goes with --engine ray")

    output = sys.stdout

    def ready(address: str) -> None:
        facts = _told(settings, address)
        if as_json or private:
            lines = [json.dumps(facts)]
        else:
            lines = [f"animalcat serves {settings.home} at {address}; Ctrl-C stops it"]
            if "ca" in facts:
                lines.append(f"callers know it by: ANIMALCAT_CA={facts['ca']}")
            if facts["token"]:
                lines.append(
                    f"callers need a token, from: animalcat token create{_where(settings)}"
                )
        typer.echo("\n".join(lines), file=output)
        output.flush()

    own(settings.home)
    try:
        with redirect_stdout(sys.stderr):  # Ray prints what befalls its nodes
            asyncio.run(serve(settings, ready, with_stdin=private, reread=read))
    except (ExposureError, CertificateError, PluginError) as error:
        fail(str(error), BAD_INPUT)
    except (
        StoreVersionError,
        StoreUnreachableError,
        ArtefactsUrlError,
        MetricsError,
        TokenError,
        TracesError,
        StrayPartsError,
    ) as error:
        fail(str(error), BAD_INPUT)
    except DBAPIError as error:
        if not (damage := damage_of(error)):
            raise
        where = "" if settings.store else f" in {settings.home}"
        fail(f"the database{where} is damaged ({damage}), so nothing was started. {REMEDY}.")
    except ClusterError as error:
        fail(str(error), UNREACHABLE)
    except (DirectoryInUseError, PortInUseError) as error:
        fail(str(error), UNREACHABLE)
    except OSError as error:
        fail(f"{error.filename or settings.home}: {error.strerror or error}", UNREACHABLE)


def _told(settings: Settings, address: str) -> dict[str, Any]:
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
