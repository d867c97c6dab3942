"""Settings of a server: from arguments, else the environment (`ANIMALCAT_*`), else defaults."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import NamedTuple

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from animalcat.envs.patience import Patience


class Settings(BaseSettings):
    """What a server is started with."""

    model_config = SettingsConfigDict(env_prefix="ANIMALCAT_", frozen=True, extra="ignore")

    home: Path = Path(".animalcat")
    """Data directory: sessions, batteries, recordings."""
    host: str = "127.0.0.1"
    """Address to listen at."""
    port: int = Field(default=50051, ge=0, le=65535)
    """Port to listen at; 0: any free one."""
    max_message_bytes: int = Field(default=4 * 1024 * 1024, ge=1024)
    """Largest message that a caller may send."""
    max_battery_files: int = Field(default=100_000, ge=1)
    """Most files of one imported battery."""
    max_battery_bytes: int = Field(default=512 * 1024 * 1024, ge=1)
    """Most bytes of one imported battery."""
    allowed_builds: tuple[Path, ...] = ()
    """Unity builds that a session may name by path; that of `unity:auto` is always allowed. To
    name one is to have the server run it."""

    worker_quiet_seconds: float = Field(default=30.0, gt=0)
    """A worker that neither answers nor works for so long hangs: a fault."""
    worker_cpu_seconds: float = Field(default=300.0, gt=0)
    """Most CPU time of a worker for one answer."""
    fit_quiet_seconds: float = Field(default=60.0, gt=0)
    """A fitting process that neither answers nor works for so long hangs: its fit is repeated."""
    fit_cpu_seconds: float = Field(default=3600.0, gt=0)
    """Most CPU time of the fitting process for one fit."""

    @property
    def worker_patience(self) -> Patience:
        """How long workers are waited for."""
        return Patience(self.worker_quiet_seconds, self.worker_cpu_seconds)

    @property
    def fit_patience(self) -> Patience:
        """How long the fitting process is waited for."""
        return Patience(self.fit_quiet_seconds, self.fit_cpu_seconds)

    @property
    def address(self) -> str:
        """Host and port as gRPC writes them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class ExposureError(ValueError):
    """The server would be open to a network without credentials."""


class Exposure(NamedTuple):
    """Who can reach the server.

    Attributes:
        loopback: Only this machine.
    """

    loopback: bool


def exposure(host: str, *, credentials: bool) -> Exposure:
    """Who can reach a server that listens at a host, if that may be.

    Args:
        host: Address or name to listen at.
        credentials: Callers must prove who they are. TLS and tokens are not built yet, so every
            caller of this version passes False.

    Raises:
        ExposureError: Others than this machine could reach it and need not prove who they are.
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
