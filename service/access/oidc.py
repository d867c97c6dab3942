"""Takes tokens of an identity provider (OpenID Connect) beside our own.

PyJWT verifies them. What is added here: the provider's keys are read from a file or an address and
kept, and never asked for more often than it may be; and claims become subject and role.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol, cast
from urllib.parse import urlsplit

import jwt

from animalcat import names
from animalcat.networks import is_loopback
from animalcat.service.access.callers import Caller, Role
from animalcat.service.errors import Code, ServiceError

log = logging.getLogger(__name__)

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""How tokens may be signed: by a private key that the provider alone has."""
KEPT_SECONDS: Final = 3600.0
"""How long keys from an address are used before they are asked for again."""
PAUSE_SECONDS: Final = 30.0
"""They are asked for no more often than this, whatever keys tokens name."""
ANSWER_SECONDS: Final = 5.0
MOST_BYTES: Final = 1 << 20
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*", re.ASCII)
_WORDS: Final[Mapping[type, str]] = {
    jwt.ExpiredSignatureError: "has expired; get a new one from your identity provider",
    jwt.ImmatureSignatureError: "is not good yet; look at the clocks of both machines",
    jwt.InvalidIssuerError: "is of another issuer than the one that this server trusts",
    jwt.InvalidAudienceError: "is for another service than this one",
    jwt.MissingRequiredClaimError: "lacks a claim that it must have",
    jwt.InvalidAlgorithmError: "is signed in a way that this server does not take",
    jwt.InvalidSignatureError: "is not signed by the key that it names",
    jwt.PyJWTError: "is no token of the identity provider",
}
"""What is said of a token that is not good, by how it fails; the nearest kind counts."""


class ProviderSettings(Protocol):
    """What a server's settings say of a provider; see there."""

    oidc_issuer: str
    oidc_audience: str
    oidc_keys: str
    oidc_leeway_seconds: float
    oidc_subject_claim: str
    oidc_role_claim: str

    @property
    def oidc_roles(self) -> Mapping[str, str]: ...  # noqa: D102

    @property
    def oidc_role(self) -> str: ...  # noqa: D102


class IdentityProvider:
    """An issuer of tokens, and what its claims mean here; used on one event loop only."""

    def __init__(
        self,
        settings: ProviderSettings,
        clock: Callable[[], datetime],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Describe the provider; its keys are read when a token comes.

        Args:
            settings: Say who it is, and what its claims mean.
            clock: Returns the current time with time zone, by which tokens end.
            now: Returns seconds that never go back.
        """
        self._settings = settings
        self._clock = clock
        self._now = now
        self._keys: dict[str, jwt.PyJWK] = {}
        self._read_at = -KEPT_SECONDS
        self._stamp: tuple[int, int] | None = None
        self._reading = asyncio.Lock()

    def made(self, text: str) -> bool:
        """Return whether a text has the form of a provider's token; ours have not."""
        return _TOKEN.fullmatch(text) is not None and _header(text) is not None

    async def caller(self, text: str) -> Caller:
        """Return who shows a token.

        Raises:
            ServiceError: It is not good, or says too little; or the provider's keys cannot be read.
        """
        settings = self._settings
        header = _header(text) or {}
        try:
            if header.get("alg") not in ALGORITHMS:
                raise jwt.InvalidAlgorithmError
            key = await self._key(str(header.get("kid", "")))
            claims: dict[str, Any] = jwt.decode(
                text,
                key,
                algorithms=[*ALGORITHMS],
                audience=settings.oidc_audience,
                issuer=settings.oidc_issuer,
                options={
                    "require": ["exp", "iss", "aud"],
                    # These by our own clock, below.
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
            expires = self._in_time(claims)
        except jwt.PyJWTError as error:
            why = next(_WORDS[kind] for kind in type(error).__mro__ if kind in _WORDS)
            raise ServiceError(Code.BAD_TOKEN, f"the identity provider's token {why}") from error
        return self._meant(claims, expires)

    def _in_time(self, claims: Mapping[str, Any]) -> datetime:
        """Return when a token ends.

        Raises:
            jwt.PyJWTError: It has ended, or has not begun.
        """
        leeway, now = timedelta(seconds=self._settings.oidc_leeway_seconds), self._clock()
        try:
            begins, ends = (
                datetime.fromtimestamp(float(claims.get(name, 0)), UTC) for name in ("nbf", "exp")
            )
        except (TypeError, ValueError, OverflowError, OSError) as error:
            raise jwt.DecodeError from error
        if ends + leeway <= now:
            raise jwt.ExpiredSignatureError
        if begins - leeway > now:
            raise jwt.ImmatureSignatureError
        return ends + leeway

    def _meant(self, claims: Mapping[str, Any], expires: datetime) -> Caller:
        """Return whom claims mean."""
        settings = self._settings
        subject = str(_claim(claims, settings.oidc_subject_claim) or "")
        said = _texts(_claim(claims, settings.oidc_role_claim))
        roles = {settings.oidc_roles[one] for one in said if one in settings.oidc_roles}
        if settings.oidc_role:
            roles.add(settings.oidc_role)
        if not roles:
            raise ServiceError(
                Code.BAD_TOKEN,
                "the identity provider's token gives you no role on this server; whoever runs it "
                "says which claims give one (ANIMALCAT_OIDC_ROLES)",
            )
        try:
            names.check_label(subject, "subject")
        except names.BadNameError as error:
            raise ServiceError(
                Code.BAD_TOKEN, f"the identity provider's token cannot be used: {error}"
            ) from error
        role = max((Role(role) for role in roles), key=[*Role].index)
        return Caller(
            f"{subject} of {settings.oidc_issuer}", role, subject=subject, expires=expires
        )

    async def _key(self, name: str) -> jwt.PyJWK:
        """Return the key of a name; of a provider that has one key alone, that one.

        Raises:
            jwt.PyJWTError: There is none.
            ServiceError: The keys cannot be read.
        """
        async with self._reading:
            if self._due(known=name in self._keys):
                await self._read()
        if not name and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        if name not in self._keys:
            raise jwt.InvalidSignatureError
        return self._keys[name]

    def _due(self, *, known: bool) -> bool:
        """Return whether the keys are to be read again."""
        age = self._now() - self._read_at
        if _is_address(self._source):
            return age >= KEPT_SECONDS or (not known and age >= PAUSE_SECONDS)
        return self._stamp_of_file() != self._stamp or not self._keys

    @property
    def _source(self) -> str:
        """Where the keys are: an address, or a file."""
        return self._settings.oidc_keys or self._settings.oidc_issuer

    def _stamp_of_file(self) -> tuple[int, int] | None:
        try:
            state = Path(self._source).stat()
        except OSError:
            return None
        return state.st_mtime_ns, state.st_size

    async def _read(self) -> None:
        """Read the keys; those that were known stay where they cannot be read.

        Raises:
            ServiceError: They cannot be read, and none are known.
        """
        stamp = None if _is_address(self._source) else self._stamp_of_file()
        try:
            keys = _usable(await asyncio.to_thread(self._fetch))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, jwt.PyJWTError) as error:
            log.error("the keys of the identity provider cannot be read: %s", error)
            self._read_at = self._now() if self._keys else self._read_at
            if not self._keys:
                raise ServiceError(
                    Code.ACCESS_CLOSED,
                    "the server cannot read the keys of the identity provider, so it admits nobody "
                    "by its tokens; the server's log says why",
                ) from error
            return
        self._keys, self._read_at, self._stamp = keys, self._now(), stamp

    def _fetch(self) -> Any:
        source = self._settings.oidc_keys
        if not source:  # as OpenID Connect Discovery 1.0 has it, section 4
            issuer = self._settings.oidc_issuer.rstrip("/")
            source = _json(f"{issuer}/.well-known/openid-configuration")["jwks_uri"]
        return _json(source) if _is_address(source) else json.loads(Path(source).read_bytes())


def _usable(found: Any) -> dict[str, jwt.PyJWK]:
    """Return the public keys of a key set by their names; others are left out."""
    keys: dict[str, jwt.PyJWK] = {}
    for key in found["keys"]:
        if key.get("kty") in ("RSA", "EC", "OKP") and key.get("use", "sig") == "sig":
            with suppress(jwt.PyJWTError):  # one of a kind that is not known here
                keys[str(key.get("kid", ""))] = jwt.PyJWK(key)
    if not keys:
        raise ValueError("there is no public key among them")
    return keys


def _json(address: str) -> Any:
    """Return the JSON at an address, which must be safe from others on the way.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no JSON, or the address is not safe.
    """
    parts = urlsplit(address)
    if parts.scheme != "https" and not (
        parts.scheme == "http" and is_loopback(parts.hostname or "")
    ):
        raise ValueError(f"{address} is no https address, and is not on this machine")
    opener = urllib.request.build_opener(_NoRedirect)
    with opener.open(address, timeout=ANSWER_SECONDS) as answer:
        content = answer.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"{address} gives more than {MOST_BYTES} bytes")
    return json.loads(content)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it could lead to an address that is not safe."""

    def redirect_request(
        self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any
    ) -> None:
        """Refuse."""


def _is_address(source: str) -> bool:
    return source.startswith(("https://", "http://"))


def _header(text: str) -> dict[str, Any] | None:
    try:
        return jwt.get_unverified_header(text)
    except jwt.PyJWTError:
        return None


def _claim(claims: Mapping[str, Any], path: str) -> Any:
    """Return a claim, also one within another, as in "realm_access.roles"; None for none."""
    if path in claims:  # a name may have dots of its own, as that of an address has
        return claims[path]
    found: Any = claims
    for part in path.split("."):
        found = cast("dict[str, Any]", found).get(part) if isinstance(found, dict) else None
    return found


def _texts(value: Any) -> list[str]:
    """Return the texts of a claim that is one text or several."""
    if isinstance(value, str):
        return value.split()
    several = cast("list[Any]", value) if isinstance(value, list) else []
    return [one for one in several if isinstance(one, str)]
