"""What a client shows to a server, and how it knows the server: token, certificate, TLS."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc

from animalcat.errors import AnimalcatError

TOKEN: Final = "ANIMALCAT_TOKEN"
"""Environment variable: the token."""
CA: Final = "ANIMALCAT_CA"
"""Environment variable: how the server's certificate is known."""
SYSTEM: Final = "system"
"""Stands for the certificates that this machine trusts anyway."""

_FINGERPRINT: Final = re.compile(r"sha256:([0-9a-f]{64})", re.ASCII)
_TOKEN: Final = re.compile(r"[!-~]{1,4000}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client shows to a server, and how it knows the server.

    Attributes:
        token: The token; empty for none.
        ca: A file of certificates, PEM, one of which the server has or is signed by; or
            "sha256:..." of the server's own certificate; or "system". Empty: those that this
            machine trusts, and no TLS to a server of this machine.
    """

    token: str = ""
    ca: str = ""

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Return what goes with every call."""
        return (("authorization", f"Bearer {self.token}"),) if self.token else ()

    def speaks_tls(self, address: str) -> bool:
        """Return whether to speak TLS to an address: always, except to this machine.

        A token never crosses a network in clear.
        """
        return bool(self.ca) or not is_local(address)

    def channel(self, address: str) -> grpc.ChannelCredentials:
        """Return what a channel to an address is secured with.

        Raises:
            AnimalcatError: A file cannot be read, or the server's certificate is another one.
        """
        roots: bytes | None = None
        if match := _FINGERPRINT.fullmatch(self.ca.lower()):
            roots = _certificate_of(address, match[1])
        elif self.ca not in ("", SYSTEM):
            roots = _read(self.ca, "ca")
        return grpc.ssl_channel_credentials(roots)


def credentials(token: str | None = None, ca: str | os.PathLike[str] | None = None) -> Credentials:
    """Return credentials; what is not given comes from the environment.

    Args:
        token: The token, or "@FILE" to read it from a file; None for that of `ANIMALCAT_TOKEN`.
        ca: How to verify the server; None for what `ANIMALCAT_CA` says.

    Raises:
        AnimalcatError: The token's file cannot be read, or what it holds is no token.
    """
    shown = os.environ.get(TOKEN, "") if token is None else token
    if shown.startswith("@"):
        shown = _read(shown[1:], "token").decode(errors="replace")
    shown = shown.strip()
    if shown and not _TOKEN.fullmatch(shown):
        raise AnimalcatError("the token is not one word of plain characters", "BAD_TOKEN")
    return Credentials(shown, os.environ.get(CA, "") if ca is None else os.fspath(ca))


def is_local(address: str) -> bool:
    """Return whether an address is on this machine, judged by its form."""
    if address.startswith("unix:") or address.rpartition(":")[0] == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.rpartition(":")[0].strip("[]")).is_loopback
    except ValueError:  # a name, whose address whoever answers for it decides
        return False


def _certificate_of(address: str, wanted: str) -> bytes:
    """Ask a server for its certificate, and return it if its fingerprint is the one wanted."""
    host, _, port = address.rpartition(":")
    try:
        text = ssl.get_server_certificate((host.strip("[]"), int(port)), timeout=10)
    except (OSError, ValueError) as error:
        raise AnimalcatError(
            f"no server that speaks TLS answers at {address}: {error}", "UNAVAILABLE"
        ) from None
    fingerprint = hashlib.sha256(ssl.PEM_cert_to_DER_cert(text)).hexdigest()
    if fingerprint != wanted:
        raise AnimalcatError(
            f"the server at {address} has another certificate (sha256:{fingerprint}) than the one "
            "that was given: ask its operator for its fingerprint",
            "UNAUTHENTICATED",
        )
    return text.encode()


def _read(path: str, what: str) -> bytes:
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise AnimalcatError(f"{what} {path}: {error.strerror or error}") from None
