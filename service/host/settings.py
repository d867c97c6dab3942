"""Settings of a server, from arguments, else the environment (`ANIMALCAT_*`), else defaults."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import NamedTuple

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from animalcat.envs.patience import Patience


class Settings(BaseSettings):
    """The settings that a server is started with."""

    model_config = SettingsConfigDict(env_prefix="ANIMALCAT_", frozen=True, extra="ignore")

    home: Path = Path(".animalcat")
    """Data directory, which holds sessions, batteries and recordings."""
    host: str = "127.0.0.1"
    """Address to listen at."""
    port: int = Field(default=50051, ge=0, le=65535)
    """Port to listen at; 0 for any free one."""
    max_message_bytes: int = Field(default=4 * 1024 * 1024, ge=1024)
    """Most bytes of a message that a caller may send."""
    max_battery_files: int = Field(default=100_000, ge=1)
    """Most files of one imported battery."""
    max_battery_bytes: int = Field(default=512 * 1024 * 1024, ge=1)
    """Most bytes of one imported battery."""
    allowed_builds: tuple[Path, ...] = ()
    """Unity builds that a session may name by path, so that the server runs them.

    The build of `unity:auto` is always allowed.
    """

    worker_quiet_seconds: float = Field(default=30.0, gt=0)
    """Seconds after which a worker that neither answers nor works counts as hanging, a fault."""
    worker_cpu_seconds: float = Field(default=300.0, gt=0)
    """Most CPU seconds of a worker for one answer."""
    fit_quiet_seconds: float = Field(default=60.0, gt=0)
    """Seconds after which a fitting process that neither answers nor works counts as hanging.

    Its fit is then repeated.
    """
    fit_cpu_seconds: float = Field(default=3600.0, gt=0)
    """Most CPU seconds of the fitting process for one fit."""

    @property
    def worker_patience(self) -> Patience:
        """How long the server waits for workers."""
        return Patience(self.worker_quiet_seconds, self.worker_cpu_seconds)

    @property
    def fit_patience(self) -> Patience:
        """How long the server waits for the fitting process."""
        return Patience(self.fit_quiet_seconds, self.fit_cpu_seconds)

    @property
    def address(self) -> str:
        """Host and port in gRPC's notation."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class ExposureError(ValueError):
    """The server would be open to a network without credentials."""


class Exposure(NamedTuple):
    """Who can reach the server.

    Attributes:
        loopback: Whether only this machine can.
    """

    loopback: bool


def exposure(host: str, *, credentials: bool) -> Exposure:
    """Return who can reach a server that listens at a host, if it may listen there.

    Args:
        host: Address or name to listen at.
        credentials: Whether callers must prove who they are. TLS and tokens do not exist yet, so
            every caller of this version passes False.

    Raises:
        ExposureError: Other machines could reach the server without proving who they are.
    """
    loopback = host == "localhost" or _is_loopback(host)
    if not loopback and not credentials:
        raise ExposureError(
            f"{host} can be reached from other machines, and this version has no credentials "
            "(TLS and tokens come later). Listen at 127.0.0.1 and forward the port, for example "
            "with ssh -L"
        )
    return Exposure(loopback)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
