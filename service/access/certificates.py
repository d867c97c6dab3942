"""Makes the certificate by which a server speaks TLS that is given none."""

from __future__ import annotations

import hashlib
import ipaddress
import socket
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from animalcat.extending.installing import install
from animalcat.service.access.private_files import private_folder, write_private
from animalcat.service.access.tokens import FOLDER

DAYS: Final = 825
"""Days for which a certificate is good: what browsers and libraries accept at most."""
_MARGIN_DAYS: Final = 7
"""A certificate that ends sooner than this is made anew."""


class CertificateError(ValueError):
    """A certificate cannot be made or read; the text says why and what to do."""


class TlsCertificate(NamedTuple):
    """A certificate and its key.

    Attributes:
        certificate: File of the certificate, PEM.
        key: File of its private key, PEM.
        fingerprint: SHA-256 of the certificate, as clients take it: "sha256:" and hexadecimal.
    """

    certificate: Path
    key: Path
    fingerprint: str


def self_signed(data: Path, names: Sequence[str] = ()) -> TlsCertificate:
    """Return the self-made certificate of a data directory; it is made if need be.

    It stays the same from start to start, so that clients can keep what they trust. It is made anew
    when it is about to end, and when a name is asked for that it does not have.

    Args:
        data: The data directory.
        names: Names and addresses under which clients reach the server, besides those that this
            machine knows of itself.

    Raises:
        CertificateError: The package `cryptography` is not installed.
    """
    folder = data / FOLDER
    own = TlsCertificate(folder / "server.pem", folder / "server.key", "")
    wanted = list(dict.fromkeys([*names, *_own_names()]))
    if not (own.key.exists() and _serves(own.certificate, names)):
        _make(own, wanted)
    return own._replace(fingerprint=fingerprint(own.certificate))


def fingerprint(certificate: Path) -> str:
    """Return the fingerprint of a certificate, as clients take it."""
    import ssl

    content = ssl.PEM_cert_to_DER_cert(certificate.read_text("ascii"))
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _serves(file: Path, names: Sequence[str]) -> bool:
    """Return whether a certificate is good for some time, and for these names."""
    x509 = _x509()
    try:
        certificate = x509.load_pem_x509_certificate(file.read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    if certificate.not_valid_after_utc < datetime.now(UTC) + timedelta(days=_MARGIN_DAYS):
        return False
    try:
        said = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return not names
    return all(_name(name) in said for name in names)


def _make(files: TlsCertificate, names: Sequence[str]) -> None:
    """Make a key and a certificate, and write both."""
    x509 = _x509()
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    whose = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "animalcat server")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(whose)
        .issuer_name(whose)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([_name(name) for name in names]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private_folder(files.key.parent)
    write_private(
        files.key,
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
    write_private(files.certificate, signed.public_bytes(serialization.Encoding.PEM))
    files.certificate.chmod(0o644)


def _own_names() -> list[str]:
    """Return the names and addresses that this machine knows of itself."""
    host = socket.gethostname()
    known = ["localhost", "127.0.0.1", "::1", host]
    with suppress(OSError):
        known.append(socket.getfqdn())
        known += [str(info[4][0]).split("%")[0] for info in socket.getaddrinfo(host, None)]
    for family, far in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        # Nothing is sent: the system only says which of its addresses it would send from.
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((far, 9))
            known.append(str(probe.getsockname()[0]))
    return [name for name in dict.fromkeys(known) if name]


def _name(text: str):
    x509 = _x509()
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        try:
            return x509.DNSName(text.encode("idna").decode())
        except UnicodeError as error:
            raise CertificateError(f"{text!r} is no name of a machine") from error


def _x509():
    try:
        from cryptography import x509
    except ImportError as error:
        raise CertificateError(
            f"making certificates needs the package cryptography: {install('server')}; "
            "or give a certificate of your own with --tls-certificate and --tls-key"
        ) from error
    return x509
