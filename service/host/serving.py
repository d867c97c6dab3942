"""Reads the certificate that a server shows."""

from __future__ import annotations

import ssl
from typing import NamedTuple

import grpc

from animalcat.service.access.certificates import CertificateError, self_signed
from animalcat.service.host.settings import Settings


class Identity(NamedTuple):
    """What a server shows of itself.

    Attributes:
        credentials: What gRPC secures a port with.
        context: The same for browsers.
    """

    credentials: grpc.ServerCredentials
    context: ssl.SSLContext


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
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:  # as of two files that are changed one by one
        raise CertificateError(f"{key} is not the private key of {certificate}: {error}") from error
    return Identity(grpc.ssl_server_credentials([(secret, chain)]), context)
