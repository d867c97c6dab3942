"""Settings of a server: from options, else the environment, else defaults."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError as SourceError

from animalcat.envs.patience import Patience
from animalcat.errors import AnimalcatError
from animalcat.machine.networks import is_loopback, parse_networks

PREFIX: Final = "ANIMALCAT_"
"""Beginning of the variables of the environment that are settings."""
_PASSWORD: Final = re.compile(r"(?<=://)([^/@:]*):[^/@]*@")
_URL: Final = re.compile(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?(/[A-Za-z0-9._-]+)*", re.ASCII)
WORKER_BYTES: Final = 512 * 1024 * 1024
FIT_BYTES: Final = 1024 * 1024 * 1024
"""What a worker and a fitting process are counted with. Measured with their actors, on 23 November
2026: 372 MiB resident (180 of it shared with nobody) and 690 MiB (440)."""


class SettingsError(AnimalcatError):
    """A setting has a value that will not do; the message names it."""


class Settings(BaseSettings):
    """The settings that a server is started with; what each says is the help of its option.

    Raises:
        SettingsError: A value will not do.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")

    if not TYPE_CHECKING:  # where types are checked, the fields say what it takes

        def __init__(self, **given: Any) -> None:
            try:
                super().__init__(**given)
            except ValidationError as error:
                wrong = map(_wrong, error.errors())
                raise SettingsError("; ".join(wrong)) from error
            except SourceError as error:
                raise SettingsError(
                    f'{error}: {error.__cause__}; give JSON, such as ["a"]'
                ) from error

    home: Path = Path(".animalcat")
    """Data directory, which holds sessions, batteries and recordings."""
    host: str = "127.0.0.1"
    """The address to listen at.

    One that other machines can reach, such as 0.0.0.0, needs TLS: --self-signed, or a certificate
    of your own.
    """
    port: int = Field(default=50051, ge=0, le=65535)
    """The port to listen at. 0 takes any free one."""
    secret: str | None = None
    """Text from which the secrets of sessions follow; None for random ones, kept in `home`.

    Where it is empty, sessions have none: all of their chance follows from their seeds, which an
    agent can guess.
    """
    max_message_bytes: int = Field(default=4 * 1024 * 1024, ge=1024)
    """Most bytes of a message that a caller may send."""
    max_battery_files: int = Field(default=100_000, ge=1)
    """Most files of one imported battery."""
    max_battery_bytes: int = Field(default=512 * 1024 * 1024, ge=1)
    """Most bytes of one imported battery."""
    require_token: bool = False
    """Ask callers of this machine for a token as well. Others need one in any case.

    What a proxy of this machine forwards seems to come from it.
    """
    self_signed: bool = False
    """Speak TLS with a certificate that the server makes for itself and keeps.

    Callers know it by the fingerprint that is printed.
    """
    host_names: tuple[str, ...] = ()
    """With --self-signed: a name or an address under which callers reach the server, besides those
    that this machine knows of itself. Repeat it for several."""
    tls_certificate: Path | None = None
    """Speak TLS with this certificate (PEM), followed by those that signed it."""
    tls_key: Path | None = None
    """The private key of the certificate."""
    oidc_issuer: str = ""
    """Issuer of an identity provider (OpenID Connect) whose tokens are taken beside our own.

    Its address, exactly as tokens have it; empty for none.
    """
    oidc_audience: str = ""
    """For whom its tokens have to be (`aud`): this service, as the provider knows it."""
    oidc_keys: str = ""
    """Address of its keys (JWKS); empty for the one that the issuer tells of."""
    oidc_leeway_seconds: float = Field(default=60.0, ge=0, le=600)
    """By how much its clock may differ from that of this machine."""
    oidc_subject_claim: str = "sub"
    """The claim that says who somebody is, as an owner."""
    oidc_role_claim: str = "groups"
    """The claim of which `oidc_roles` says what role its values give; one within another as in
    "realm_access.roles"."""
    oidc_roles: dict[str, Literal["viewer", "researcher", "operator", "administrator"]] = {}
    """The role that a value of that claim gives; of several the one that may most."""
    oidc_role: Literal["", "viewer", "researcher", "operator", "administrator"] = ""
    """The role of all whom the provider knows; empty: those with a role by `oidc_roles` alone."""
    max_agents: int = Field(default=256, ge=1)
    """The most agents that play at once. Each takes a simulator process."""
    max_streams: int = Field(default=1000, ge=1)
    """The most other streams at once, such as those that watch sessions."""
    max_open_sessions: int = Field(default=10_000, ge=1)
    """The most sessions that are not over."""
    max_operations: int = Field(default=8, ge=1)
    """The most batteries that are uploaded or made at once."""
    spare_memory_bytes: int = Field(default=256 * 1024 * 1024, ge=0)
    """Begin nothing that needs much memory when less than this is free."""
    unused_seconds: float = Field(default=600.0, ge=0)
    """For how long a session's engine or a battery stays in memory that nobody uses."""
    unused_bytes: int = Field(default=512 * 1024 * 1024, ge=0)
    """How many bytes those may take together; with more, the longest unused leave at once."""
    spare_disk_bytes: int = Field(default=256 * 1024 * 1024, ge=0)
    """Begin no episode when less than this is free on the disk of --data."""
    max_strangers: int = Field(default=256, ge=1)
    """The most connections at once over which nobody has shown a token."""
    allowed_builds: tuple[Path, ...] = ()
    """Unity builds that a session may name by path, so that the server runs them.

    The build of `unity:auto` is always allowed.
    """

    allowed_plugins: tuple[str, ...] = ()
    """Packages whose plugins the server may run. Their code can do all that the server may."""

    store: str = ""
    """Keep sessions in this PostgreSQL database: postgresql://USER:PASSWORD@HOST/DATABASE.

    Better given as ANIMALCAT_STORE, as a command line can be seen by others.
    """
    drain_seconds: float = Field(default=30.0, ge=0.0)
    """Seconds for which a server that gets SIGTERM lets open episodes be played to their end."""
    web: str = ""
    """Offer web pages, on which sessions are watched and steered, at this port of this machine, or
    at HOST:PORT. 0 is any free port."""
    web_url: str = ""
    """The address under which browsers reach the web pages by way of a proxy, as in
    https://lab.example.org/animalcat."""
    log: Literal["plain", "json"] = "plain"
    """Write the log for people, or as JSON lines with session and episode."""
    log_level: Literal["", "debug", "info", "warning", "error"] = ""
    """The least that is logged."""
    direct: bool = True
    """Whether agents of this machine may play with the workers that simulate.

    Otherwise the server relays everything.
    """

    fork_workers: bool = True
    """Whether simulators are forks of one warm process, and so share its memory (Linux).

    Otherwise each is started by itself.
    """
    worker_quiet_seconds: float = Field(default=30.0, gt=0)
    """End a simulator process that neither answers nor works for so long."""
    worker_cpu_seconds: float = Field(default=300.0, gt=0)
    """The most CPU time that a simulator process may take for one answer."""
    fit_quiet_seconds: float = Field(default=60.0, gt=0)
    """End the fitting process when it neither answers nor works for so long.

    Its fit is then repeated.
    """
    fit_cpu_seconds: float = Field(default=3600.0, gt=0)
    """The most CPU time that one fit may take."""

    engine: Literal["local", "ray"] = "local"
    """Who starts simulators and fits: processes of this machine, or Ray on the machines of a
    cluster."""
    ray_address: str = ""
    """The Ray cluster to use: where its head listens, or `auto` for the one that this machine has
    joined."""
    cluster_wait_seconds: float = Field(default=0.0, ge=0.0)
    """How long to wait for a cluster that does not answer yet, or has no machine with room for a
    simulator and a fit."""
    max_workers: int = Field(default=0, ge=0)
    """The most simulators at once; other agents wait for their turn.

    0 sets no limit, or in a cluster takes as many as have room.
    """
    campaign_workers: int = Field(default=0, ge=0)
    """The most simulators of one campaign at once. 0 sets no limit."""
    worker_cpus: float = Field(default=0.25, gt=0)
    """What a simulator is counted with of the CPUs of a machine."""
    worker_memory_bytes: int = Field(default=WORKER_BYTES, ge=1)
    """What a simulator is counted with of the memory of a machine."""
    max_fits: int = Field(default=2, ge=1)
    """Most fitting processes in a cluster."""
    fit_memory_bytes: int = Field(default=FIT_BYTES, ge=1)
    """Memory of a node that a fitting process is counted with."""
    direct_networks: str = ""
    """Networks, for example "10.0.0.0/8", in which frames may go between the workers of a cluster
    and agents without encryption. Agents need the same variable."""

    @field_validator("direct_networks")
    @classmethod
    def _are_networks(cls, value: str, info: ValidationInfo) -> str:
        parse_networks(value, f"{PREFIX}{str(info.field_name).upper()}")
        return value

    @field_validator("host")
    @classmethod
    def _is_bare(cls, value: str) -> str:
        return value[1:-1] if value.startswith("[") and value.endswith("]") else value

    @field_validator("web")
    @classmethod
    def _is_port(cls, value: str) -> str:
        if value:
            _host_and_port(value)
        return value

    @field_validator("web_url")
    @classmethod
    def _is_address(cls, value: str) -> str:
        value = value.rstrip("/")
        if value and not _URL.fullmatch(value):
            raise ValueError(
                f"{PREFIX}WEB_URL={value}: give an address such as "
                "https://lab.example.org/animalcat"
            )
        return value

    @property
    def worker_patience(self) -> Patience:
        """How long the server waits for workers."""
        return Patience(self.worker_quiet_seconds, self.worker_cpu_seconds)

    @property
    def fit_patience(self) -> Patience:
        """How long the server waits for the fitting process."""
        return Patience(self.fit_quiet_seconds, self.fit_cpu_seconds)

    @property
    def web_at(self) -> tuple[str, int]:
        """Host and port at which to offer the web pages."""
        return _host_and_port(self.web)

    @property
    def tls(self) -> bool:
        """Whether the server speaks TLS."""
        return self.self_signed or self.tls_certificate is not None

    @property
    def open_to_machine(self) -> bool:
        """Whether callers of this machine need no token."""
        return is_loopback(self.host) and not self.require_token

    @property
    def address(self) -> str:
        """Host and port in gRPC's notation."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def _host_and_port(text: str) -> tuple[str, int]:
    """Parse a port, or a host and a port.

    Raises:
        ValueError: It is neither.
    """
    host, _, port = text.rpartition(":")
    if not (port.isdecimal() and port.isascii()) or int(port) > 65535:
        raise ValueError(
            f"{PREFIX}WEB={text}: this is not a port; give for example 8080 or 0.0.0.0:8080"
        )
    return host.strip("[]") or "127.0.0.1", int(port)


def table_of(settings: Settings, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every setting with its value as it may be shown, and where that comes from.

    Args:
        settings: The settings.
        given: What options said.
    """
    return [
        {
            "key": name,
            "value": _as_shown(name, getattr(settings, name)),
            "from": "option" if name in given else key if key in os.environ else "default",
        }
        for name in type(settings).model_fields
        for key in [PREFIX + name.upper()]
    ]


def _as_shown(name: str, value: Any) -> Any:
    """A value as it may be shown: secrets are masked, and passwords within URLs."""
    if name == "secret" and value is not None:
        return "(set)"
    if isinstance(value, str):
        return _PASSWORD.sub(r"\1:***@", value)
    if isinstance(value, tuple):
        return [str(part) for part in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return str(value) if isinstance(value, Path) else value


def _wrong(error: Any) -> str:
    """What pydantic says of one setting, with its variable."""
    cause = error.get("ctx", {}).get("error")
    if cause is not None:  # of a validator of ours, which names the variable
        return str(cause)
    said = f"{error['msg'][0].lower()}{error['msg'][1:]}"
    return f"{PREFIX}{str(error['loc'][0]).upper()}={error['input']}: {said}"


class ExposureError(ValueError):
    """The server would be open to a network without credentials."""


def check_exposure(host: str, *, credentials: bool) -> None:
    """Check that a server may listen at a host.

    Args:
        host: Address or name to listen at.
        credentials: Whether the server speaks TLS, and so asks every caller of another machine for
            a token.

    Raises:
        ExposureError: Other machines could reach the server without proving who they are.
    """
    if not is_loopback(host) and not credentials:
        raise ExposureError(
            f"{host} can be reached from other machines, and there the server needs credentials: "
            "add --self-signed (or --tls-certificate and --tls-key), and make a token for each "
            "caller with `animalcat token create`. Or listen at 127.0.0.1 alone"
        )


def check_provider(settings: Settings) -> None:
    """Check that what is said of an identity provider goes together.

    Raises:
        ExposureError: It does not, or nobody asks for tokens.
    """
    if not settings.oidc_issuer:
        if settings.oidc_audience or settings.oidc_keys:
            raise ExposureError("ANIMALCAT_OIDC_AUDIENCE and _KEYS go with ANIMALCAT_OIDC_ISSUER")
        return
    if not settings.oidc_audience:
        raise ExposureError(
            "give ANIMALCAT_OIDC_AUDIENCE, the name by which the identity provider knows this "
            "service: without it, tokens for other services would be taken"
        )
    if not (settings.oidc_role or settings.oidc_roles):
        raise ExposureError(
            "say who gets which role: ANIMALCAT_OIDC_ROLES, or ANIMALCAT_OIDC_ROLE for all"
        )
    if settings.open_to_machine:
        raise ExposureError(
            "an identity provider is useless where callers need no token: add --require-token"
        )


def check_tls(settings: Settings) -> None:
    """Check that what is said of TLS goes together.

    Raises:
        ExposureError: It does not.
    """
    if (settings.tls_certificate is None) != (settings.tls_key is None):
        raise ExposureError("give both --tls-certificate and --tls-key, or neither")
    if settings.self_signed and settings.tls_certificate is not None:
        raise ExposureError("give either --self-signed or a certificate of your own, not both")
    if settings.web:
        check_exposure(settings.web_at[0], credentials=settings.tls)
