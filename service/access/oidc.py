"""Takes tokens of an identity provider (OpenID Connect) beside our own.

PyJWT fetches and keeps the provider's keys, and verifies the tokens. What is added here: claims
become subject and role, and a provider that fails is not asked again at once.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol, cast
from urllib.parse import urlsplit

import jwt

from animalcat.machine.networks import is_loopback
from animalcat.service.access.callers import Caller, Role
from animalcat.service.errors import Code, ServiceError
from animalcat.text import names

log = logging.getLogger(__name__)

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""How tokens may be signed: by a private key that the provider alone has."""
KEPT_SECONDS: Final = 3600.0
"""How long keys are used before they are asked for again."""
PAUSE_SECONDS: Final = 30.0
"""They are asked for no more often than this, whatever keys tokens name, and however that ends."""
ANSWER_SECONDS: Final = 5.0
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*", re.ASCII)
_WORDS: Final[Mapping[type, str]] = {
    jwt.ExpiredSignatureError: "has expired; get a new one from your identity provider",
    jwt.ImmatureSignatureError: "is not valid yet; check the clocks of both machines",
    jwt.InvalidIssuerError: "is from an issuer that this server does not trust",
    jwt.InvalidAudienceError: "is for another service",
    jwt.MissingRequiredClaimError: "lacks a claim that it must have",
    jwt.InvalidAlgorithmError: "is signed in a way that this server does not accept",
    jwt.InvalidSignatureError: "is not signed by the key that it names",
    jwt.PyJWTError: "is not a token of the identity provider",
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

    def __init__(self, settings: ProviderSettings) -> None:
        """Describe the provider; its keys are fetched when a token comes.

        Args:
            settings: Say who it is, and what its claims mean.
        """
        self._settings = settings
        self._keys: jwt.PyJWKClient | None = None
        self._asked_at = -math.inf
        self._asking = asyncio.Lock()

    def made(self, text: str) -> bool:
        """Return whether a text has the form of a provider's token; ours have not."""
        try:
            return _TOKEN.fullmatch(text) is not None and bool(jwt.get_unverified_header(text))
        except jwt.PyJWTError:
            return False

    async def caller(self, text: str) -> Caller:
        """Return who shows a token.

        Raises:
            ServiceError: It is not good, or says too little; or the provider's keys cannot be read.
        """
        settings = self._settings
        try:
            header = jwt.get_unverified_header(text)
            if header.get("alg") not in ALGORITHMS:
                raise jwt.InvalidAlgorithmError
            claims: dict[str, Any] = jwt.decode(
                text,
                await self._key(str(header.get("kid", ""))),
                algorithms=[*ALGORITHMS],
                audience=settings.oidc_audience,
                issuer=settings.oidc_issuer,
                leeway=settings.oidc_leeway_seconds,
                options={"require": ["exp", "iss", "aud"]},
            )
            expires = datetime.fromtimestamp(float(claims["exp"]), UTC)
        except (jwt.PyJWTError, ValueError, OverflowError, OSError) as error:
            why = next((_WORDS[kind] for kind in type(error).__mro__ if kind in _WORDS), "")
            why = why or _WORDS[jwt.PyJWTError]
            raise ServiceError(Code.BAD_TOKEN, f"the identity provider's token {why}") from error
        return self._caller_of(claims, expires + timedelta(seconds=settings.oidc_leeway_seconds))

    def _caller_of(self, claims: Mapping[str, Any], expires: datetime) -> Caller:
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
                "the identity provider's token gives you no role on this server; its operator "
                "decides which claims give one (ANIMALCAT_OIDC_ROLES)",
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
        """Return the provider's key of a name.

        Raises:
            jwt.PyJWTError: There is none.
            ServiceError: The provider's keys cannot be read.
        """
        async with self._asking:
            try:
                key = await asyncio.to_thread(self._find, name)
            except (jwt.PyJWTError, ValueError) as error:
                raise ServiceError(
                    Code.ACCESS_CLOSED,
                    "the server cannot read the keys of the identity provider, so it accepts none "
                    "of its tokens; the server's log says why",
                ) from error
        if key is None:
            raise jwt.InvalidSignatureError
        return key

    def _find(self, name: str) -> jwt.PyJWK | None:
        """Return a key as it is kept, or else as the provider gives it; None if there is none."""
        cache = None if self._keys is None else self._keys.jwk_set_cache
        kept = None if cache is None else cache.get()
        if kept is None or all(key.key_id != name for key in kept.keys):
            now = time.monotonic()
            if now - self._asked_at >= PAUSE_SECONDS:
                self._asked_at = now
                self._fetch()
            elif kept is None:
                raise jwt.PyJWKClientConnectionError("they were asked for just now")
        assert self._keys is not None, "they were fetched"
        return next((key for key in self._keys.get_signing_keys() if key.key_id == name), None)

    def _fetch(self) -> None:
        """Fetch the keys from the provider."""
        try:
            if self._keys is None:
                address = self._settings.oidc_keys
                if not address:  # as OpenID Connect Discovery 1.0 has it, section 4
                    issuer = self._settings.oidc_issuer.rstrip("/")
                    discovery = f"{issuer}/.well-known/openid-configuration"
                    about = _client(discovery, of_keys=False).fetch_data()
                    address = str(about.get("jwks_uri"))
                self._keys = _client(address)
            self._keys.fetch_data()
        except (jwt.PyJWTError, ValueError) as error:
            log.error("the keys of the identity provider cannot be read: %s", error)
            raise


def _client(address: str, *, of_keys: bool = True) -> jwt.PyJWKClient:
    """Return what fetches JSON, that of keys or another, from an address safe from others.

    Raises:
        ValueError: It is not.
    """
    parts = urlsplit(address)
    if parts.scheme != "https" and not (
        parts.scheme == "http" and is_loopback(parts.hostname or "")
    ):
        raise ValueError(f"{address} is neither an https address nor on this machine")
    return jwt.PyJWKClient(
        address, cache_jwk_set=of_keys, lifespan=KEPT_SECONDS, timeout=ANSWER_SECONDS
    )


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
