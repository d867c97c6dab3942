"""Tokens of an identity provider are taken beside our own, and what only looks like one is not."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from animalcat.service.access import oidc
from animalcat.service.access.callers import Caller, Role
from animalcat.service.access.oidc import IdentityProvider
from animalcat.service.access.tokens import Tokens
from animalcat.service.errors import Code, ServiceError
from animalcat.service.host.settings import (
    ExposureError,
    Settings,
    SettingsError,
    check_provider,
)
from animalcat.v1 import sessions_pb2

from .conftest import Guarded, Service

ISSUER = "https://id.example.org/realms/lab"
AUDIENCE = "animalcat"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CURVE = ec.generate_private_key(ec.SECP256R1())


def now() -> datetime:
    """The time of this moment, since a suite takes longer than a token lasts beyond its end."""
    return datetime.now(UTC)


def public(key: Any, name: str) -> dict[str, Any]:
    """A key as a key set has it."""
    kind = jwt.algorithms.RSAAlgorithm if key is not CURVE else jwt.algorithms.ECAlgorithm
    return {**kind.to_jwk(key.public_key(), as_dict=True), "kid": name, "use": "sig"}


def key_set(*keys: dict[str, Any]) -> str:
    return json.dumps({"keys": [*keys]})


def token(key: Any = KEY, kid: str | None = "a", algorithm: str = "RS256", **claims: Any) -> str:
    said: dict[str, Any] = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ann",
        "groups": ["lab", "researchers"],
        "exp": now() + timedelta(hours=1),
        **claims,
    }
    said = {name: value for name, value in said.items() if value is not None}
    return jwt.encode(said, key, algorithm, headers={} if kid is None else {"kid": kid})


def settings(keys: str, **more: Any) -> Settings:
    roles = {"researchers": "researcher", "admins": "administrator", "readers": "viewer"}
    given: dict[str, Any] = {"oidc_issuer": ISSUER, "oidc_audience": AUDIENCE, "oidc_roles": roles}
    return Settings(**{**given, "oidc_keys": keys, **more})


class Issuer:
    """An identity provider on this machine."""

    def __init__(self) -> None:
        issuer = self
        self.answers: dict[str, tuple[int, str]] = {}
        self.asked: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                status, text = issuer.answers.get(self.path, (404, ""))
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", text)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.answers["/.well-known/openid-configuration"] = (
            200,
            json.dumps({"issuer": self.url, "jwks_uri": f"{self.url}/keys"}),
        )
        self.answers["/keys"] = (200, key_set(public(KEY, "a")))


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    made = Issuer()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.fixture
def provider(issuer: Issuer) -> IdentityProvider:
    issuer.answers["/keys"] = (200, key_set(public(KEY, "a"), public(CURVE, "c")))
    return IdentityProvider(settings(f"{issuer.url}/keys"))


def tell_all(provider: IdentityProvider, text: str) -> Caller:
    assert provider.made(text)
    return asyncio.run(provider.caller(text))


def refusal_of(provider: IdentityProvider, text: str) -> str:
    with pytest.raises(ServiceError) as error:
        tell_all(provider, text)
    assert error.value.code is Code.BAD_TOKEN
    assert text not in error.value.message
    return error.value.message


def test_claims_say_who_it_is_and_what_it_may(provider: IdentityProvider) -> None:
    found = tell_all(provider, token())
    assert (found.subject, found.role) == ("ann", Role.RESEARCHER)
    assert found.words == f"ann of {ISSUER}"
    assert found.expires is not None
    assert abs(found.expires - now() - timedelta(hours=1, seconds=60)) < timedelta(seconds=20)
    assert tell_all(provider, token(CURVE, "c", "ES256")).subject == "ann"
    # Of several roles the one that may most; a claim of one text is one or several words.
    both = tell_all(provider, token(groups="admins researchers"))
    assert both.role is Role.ADMINISTRATOR
    assert tell_all(provider, token(aud=["other", AUDIENCE])).subject == "ann"


def test_claims_may_be_within_others(issuer: Issuer) -> None:
    more = {"oidc_role_claim": "realm_access.roles", "oidc_subject_claim": "email"}
    provider = IdentityProvider(settings(f"{issuer.url}/keys", **more))
    claims = {"realm_access": {"roles": ["readers"]}, "email": "ann@lab"}
    found = tell_all(provider, token(**claims))
    assert (found.subject, found.role) == ("ann@lab", Role.VIEWER)
    assert "gives you no role" in refusal_of(provider, token(email="ann@lab"))


def sign_badly(header: dict[str, Any], key: bytes = b"") -> str:
    """A token that is signed with a secret that everybody knows, or not at all."""

    def part(value: Any) -> str:
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "groups": ["admins"]}
    ends = int((now() + timedelta(hours=1)).timestamp())
    said = f"{part(header)}.{part({**claims, 'exp': ends})}"
    return f"{said}.{part(hmac.digest(key, said.encode(), hashlib.sha256)) if key else ''}"


def test_what_is_not_good_is_refused_and_said_why(provider: IdentityProvider) -> None:
    pem = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    later, before = now() + timedelta(minutes=5), now() - timedelta(minutes=5)
    cases = {
        token(iss="https://id.example.org/realms/other"): "an issuer that this server",
        token(iss=None): "lacks a claim",
        token(aud="another service"): "for another service",
        token(aud=None): "lacks a claim",
        token(exp=before): "has expired",
        token(exp=None): "lacks a claim",
        token(nbf=later): "is not valid yet",
        token(OTHER): "is not signed by the key",
        token(kid="unknown"): "is not signed by the key",
        token(kid=None): "is not signed by the key",
        token(exp=1e300): "is not a token",
        token(KEY, "c"): "",
        token(sub=None): "subject",
        token(sub="=bob"): "begins with =",
        token(groups=["others"]): "gives you no role",
        token(groups={"researchers": True}): "gives you no role",
        sign_badly({"alg": "none", "kid": "a"}): "signed in a way",
        sign_badly({"alg": "None", "kid": "a"}): "signed in a way",
        sign_badly({"alg": "HS256", "kid": "a"}, pem): "signed in a way",
        sign_badly({"alg": "HS256", "kid": "a"}, b"secret"): "signed in a way",
        sign_badly({"alg": "RS256", "kid": "a"}): "is not signed by the key",
        token()[:-4] + "AAAA": "is not signed by the key",
    }
    for text, why in cases.items():
        assert why in refusal_of(provider, text), why
    # A little of the difference between two clocks is forgiven, and no more.
    assert tell_all(provider, token(exp=now() - timedelta(seconds=30))).subject == "ann"
    assert tell_all(provider, token(nbf=now() + timedelta(seconds=30))).subject == "ann"
    refusal_of(provider, token(exp=now() - timedelta(seconds=60)))
    refusal_of(provider, token(nbf=now() + timedelta(seconds=90)))


def test_our_own_tokens_are_none_of_a_provider(provider: IdentityProvider, tmp_path: Path) -> None:
    own = Tokens(tmp_path).create(Role.OPERATOR)[1]
    for text in (own, "", "a.b.c", "acat.session.1", "..", "x" * 5000):
        assert not provider.made(text)


def test_keys_of_an_issuer_are_asked_for_seldom(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc, "PAUSE_SECONDS", 0.5)
    provider = IdentityProvider(settings("", oidc_issuer=issuer.url))

    def show_value(key: Any = KEY, name: str = "a") -> str:
        return token(key, name, iss=issuer.url)

    found = issuer.answers.pop("/.well-known/openid-configuration")
    for _ in range(3):  # a provider that fails is not asked again at once
        with pytest.raises(ServiceError) as failed:
            tell_all(provider, show_value())
        assert failed.value.code is Code.ACCESS_CLOSED
    assert issuer.asked == ["/.well-known/openid-configuration"]
    time.sleep(0.5)
    issuer.answers["/.well-known/openid-configuration"] = found
    assert tell_all(provider, show_value()).subject == "ann"
    assert len(issuer.asked) == 3
    # Tokens that name keys which nobody has do not make the server ask again and again.
    for k in range(20):
        refusal_of(provider, show_value(name=f"x{k}"))
    assert len(issuer.asked) == 3
    # A key that is new is found once it may be asked for.
    issuer.answers["/keys"] = (200, key_set(public(KEY, "a"), public(OTHER, "b")))
    refusal_of(provider, show_value(OTHER, "b"))
    time.sleep(0.5)
    assert tell_all(provider, show_value(OTHER, "b")).subject == "ann"


def test_keys_are_taken_from_safe_addresses_alone(issuer: Issuer) -> None:
    issuer.answers["/away"] = (302, f"{issuer.url}/keys")
    issuer.answers["/list"] = (200, "[]")
    issuer.answers["/torn"] = (200, "{")
    addresses = ["http://192.0.2.7/keys", *(f"{issuer.url}/{name}" for name in ("away", "list"))]
    for address in (*addresses, f"{issuer.url}/torn", f"{issuer.url}/none", "ftp://127.0.0.1/keys"):
        with pytest.raises(ServiceError, match="cannot read the keys"):
            tell_all(IdentityProvider(settings(address)), token())
    assert "/keys" not in issuer.asked


@pytest.mark.asyncio(loop_scope="session")
async def test_a_server_takes_both_kinds_of_tokens(
    guarded: Guarded, issuer: Issuer, tmp_path: Path
) -> None:
    given = settings(f"{issuer.url}/keys").model_dump(
        include={name for name in Settings.model_fields if "oidc" in name}
    )
    own = Tokens(tmp_path).create(Role.ADMINISTRATOR, subject="ada")[1]
    async with guarded(tmp_path, **given) as connected:
        ann: Service = connected(token())
        name = await ann.create(2)
        assert (await ann.get(name)).owner == "ann"
        listed = await connected(own).sessions.ListSessions(sessions_pb2.ListSessionsRequest())
        assert [session.owner for session in listed.sessions] == ["ann"]
        with pytest.raises(Exception, match="has expired"):
            await connected(token(exp=now() - timedelta(hours=1))).get(name)
        with pytest.raises(Exception, match="nothing named"):
            await connected(token(sub="bob")).get(name)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"oidc_audience": ""}, "tokens for other services"),
        ({"oidc_roles": {}}, "who gets which role"),
        ({"require_token": False}, "--require-token"),
        ({"oidc_issuer": ""}, "go with"),
    ],
)
def test_what_is_said_of_a_provider_goes_together(changes: dict[str, Any], words: str) -> None:
    wanted = settings("https://id.example.org/keys", **{"require_token": True, **changes})
    with pytest.raises(ExposureError, match=words):
        check_provider(wanted)


def test_a_role_that_is_none_is_an_error_of_settings() -> None:
    with pytest.raises(SettingsError, match="OIDC_ROLES"):
        settings("", oidc_roles={"x": "root"})
