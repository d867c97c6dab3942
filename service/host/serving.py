"""Holds the certificate that a running server shows, and takes another one without a restart."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc

from animalcat.service.access.certificates import CertificateError, self_signed
from animalcat.service.access.tokens import FOLDER, TokenError, Tokens
from animalcat.service.host.settings import Settings

log = logging.getLogger(__name__)

WARNED_DAYS: Final = 30
"""Days before its end from which on a certificate is warned of."""
TOKEN_DAYS: Final = 7
"""The same of a token, which lasts 90 days if nothing else is said."""


class Expiry(NamedTuple):
    """Something that ends at a time.

    Attributes:
        what: "certificate" or "token".
        name: The file of a certificate, or the id of a token.
        ends: When, with time zone.
    """

    what: str
    name: str
    ends: datetime

    def warning(self, now: datetime) -> str:
        """Return in words that it has ended, or is about to; empty if that is far away."""
        of_token = self.what == "token"
        days = (self.ends - now).total_seconds() / 86400
        if days > (TOKEN_DAYS if of_token else WARNED_DAYS):
            return ""
        when = "has expired at" if days <= 0.0 else f"ends in {days:.1f} days, at"
        remedy = (
            f"`animalcat token rotate {self.name}` renews it"
            if of_token
            else "put another in its place, and send the server SIGHUP"
        )
        return f"the {self.what} {self.name} {when} {self.ends:%Y-%m-%d %H:%M} UTC: {remedy}"


@dataclass(frozen=True, slots=True)
class Identity:
    """What a server shows of itself.

    Attributes:
        configuration: The same as gRPC takes it.
        context: The same for browsers.
        expiry: When its certificate ends.
    """

    configuration: grpc.ServerCertificateConfiguration
    context: ssl.SSLContext
    expiry: Expiry


def read_identity(settings: Settings) -> Identity | None:
    """Read certificate and key of the settings, as a whole or not at all.

    Returns:
        What they hold; None for a server without TLS.

    Raises:
        OSError: A file cannot be read.
        CertificateError: A file holds no certificate or key, the key is another certificate's, or
            a certificate cannot be made.
    """
    if settings.self_signed:
        signed = self_signed(settings.home, settings.host_names)
        certificate, key = signed.certificate, signed.key
    elif settings.tls_certificate is not None and settings.tls_key is not None:
        certificate, key = settings.tls_certificate, settings.tls_key
    else:
        return None
    chain, secret = certificate.read_bytes(), key.read_bytes()
    expiry = Expiry("certificate", str(certificate), _end(certificate, chain))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:  # as of two files that are changed one by one
        raise CertificateError(f"{key} is not the private key of {certificate}: {error}") from error
    configuration = grpc.ssl_server_certificate_configuration([(secret, chain)])
    return Identity(configuration, context, expiry)


class ServerCertificates:
    """The certificate of a running server."""

    def __init__(self, settings: Settings) -> None:
        """Read it.

        Raises:
            OSError: A file cannot be read.
            CertificateError: What is in them cannot be used.
        """
        self._identity = read_identity(settings)
        self._fresh = False

    def credentials(self) -> grpc.ServerCredentials | None:
        """Return what gRPC secures a port with; None for a server without TLS."""
        if self._identity is None:
            return None
        make: Any = grpc.dynamic_ssl_server_credentials
        return make(self._identity.configuration, self._fetch)

    def context(self) -> ssl.SSLContext | None:
        """Return what secures the port of browsers, as new as `reload`; None without TLS."""
        if self._identity is None:
            return None

        def renew(socket: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
            assert self._identity is not None, "TLS does not go"
            socket.context = self._identity.context

        self._identity.context.sni_callback = renew
        return self._identity.context

    def reload(self, settings: Settings) -> None:
        """Show from the next connection on what the files hold now.

        Args:
            settings: Name the files.

        Raises:
            OSError: A file cannot be read; what was shown goes on being shown.
            CertificateError: What is in them cannot be used; the same.
        """
        if self._identity is None:
            return
        identity = read_identity(settings)
        if identity is None:
            raise CertificateError("TLS comes and goes by a restart alone")
        self._identity, self._fresh = identity, True

    def expiries(self) -> tuple[Expiry, ...]:
        """Return when what is shown ends."""
        return () if self._identity is None else (self._identity.expiry,)

    def _fetch(self) -> grpc.ServerCertificateConfiguration | None:
        """Return what is new, in a thread of gRPC's that has a new connection; None if nothing."""
        if not self._fresh or self._identity is None:
            return None
        self._fresh = False
        return self._identity.configuration


def expiries_of_tokens(tokens: Tokens) -> Iterator[Expiry]:
    """Yield when good tokens end, the next first; none where their file cannot be read."""
    now = tokens.now()
    try:
        good = [token for token in tokens.all() if not token.ended(now)]
    except (TokenError, OSError):  # calls are refused with that, and the log says so
        return
    ends = [Expiry("token", token.id, token.expires) for token in good if token.expires]
    yield from sorted(ends, key=lambda expiry: expiry.ends)


def expiries_in(settings: Settings) -> Iterator[Expiry]:
    """Yield what would end of a server with these settings, also while it does not run."""
    own = settings.home / FOLDER / "server.pem" if settings.self_signed else None
    for file in (own, settings.tls_certificate):
        if file is not None:
            with suppress(OSError, CertificateError):  # a server that starts says so
                yield Expiry("certificate", str(file), _end(file, file.read_bytes()))
    yield from expiries_of_tokens(Tokens(settings.home))


def _end(path: Path, content: bytes) -> datetime:
    """When the first certificate of a file ends."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(content).not_valid_after_utc.astimezone(UTC)
    except ValueError as error:
        raise CertificateError(f"{path} holds no certificate in PEM: {error}") from error
