"""Tokens of an identity provider are taken beside our own, and what only looks like one is not."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from animalcat.service.access.callers import Caller, Role
from animalcat.service.access.oidc import KEPT_SECONDS, PAUSE_SECONDS, IdentityProvider
from animalcat.service.access.tokens import Tokens
from animalcat.service.errors import Code, ServiceError
from animalcat.service.host.settings import (
    ExposureError,
    Settings,
    SettingsError,
    check_provider,
)
from animalcat.v1 import sessions_pb2

from .conftest import NOW, Guarded, Service

ISSUER = "https://id.example.org/realms/lab"
AUDIENCE = "animalcat"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CURVE = ec.generate_private_key(ec.SECP256R1())


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
        "exp": NOW + timedelta(hours=1),
        **claims,
    }
    said = {name: value for name, value in said.items() if value is not None}
    return jwt.encode(said, key, algorithm, headers={} if kid is None else {"kid": kid})


def settings(keys: str | Path, **more: Any) -> Settings:
    roles = {"researchers": "researcher", "admins": "administrator", "readers": "viewer"}
    given: dict[str, Any] = {"oidc_issuer": ISSUER, "oidc_audience": AUDIENCE, "oidc_roles": roles}
    return Settings(**{**given, "oidc_keys": str(keys), **more})


class Clock:
    def __init__(self) -> None:
        self.time: datetime = NOW
        self.seconds = 0.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def provider(tmp_path: Path, clock: Clock) -> IdentityProvider:
    keys = tmp_path / "keys.json"
    keys.write_text(key_set(public(KEY, "a"), public(CURVE, "c")))
    return IdentityProvider(settings(keys), lambda: clock.time, lambda: clock.seconds)


def told(provider: IdentityProvider, text: str) -> Caller:
    assert provider.made(text)
    return asyncio.run(provider.caller(text))


def refused(provider: IdentityProvider, text: str) -> str:
    with pytest.raises(ServiceError) as error:
        told(provider, text)
    assert error.value.code is Code.BAD_TOKEN
    assert text not in error.value.message
    return error.value.message


def test_claims_say_who_it_is_and_what_it_may(provider: IdentityProvider) -> None:
    found = told(provider, token())
    assert (found.subject, found.role) == ("ann", Role.RESEARCHER)
    assert found.words == f"ann of {ISSUER}"
    assert found.expires == NOW + timedelta(hours=1, seconds=60)
    assert told(provider, token(CURVE, "c", "ES256")).subject == "ann"
    # Of several roles the one that may most; a claim of one text is one or several words.
    both = told(provider, token(groups="admins researchers"))
    assert both.role is Role.ADMINISTRATOR
    assert told(provider, token(aud=["other", AUDIENCE])).subject == "ann"


def test_claims_may_be_within_others(tmp_path: Path, clock: Clock) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text(key_set(public(KEY, "a")))
    more = {"oidc_role_claim": "realm_access.roles", "oidc_subject_claim": "email"}
    provider = IdentityProvider(settings(keys, **more), lambda: clock.time)
    claims = {"realm_access": {"roles": ["readers"]}, "email": "ann@lab"}
    found = told(provider, token(**claims))
    assert (found.subject, found.role) == ("ann@lab", Role.VIEWER)
    assert "gives you no role" in refused(provider, token(email="ann@lab"))


def unsigned(header: dict[str, Any], key: bytes = b"") -> str:
    """A token that is signed with a secret that everybody knows, or not at all."""

    def part(value: Any) -> str:
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "groups": ["admins"]}
    ends = int((NOW + timedelta(hours=1)).timestamp())
    said = f"{part(header)}.{part({**claims, 'exp': ends})}"
    return f"{said}.{part(hmac.digest(key, said.encode(), hashlib.sha256)) if key else ''}"


def test_what_is_not_good_is_refused_and_said_why(provider: IdentityProvider) -> None:
    pem = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    later, before = NOW + timedelta(minutes=5), NOW - timedelta(minutes=5)
    cases = {
        token(iss="https://id.example.org/realms/other"): "another issuer",
        token(iss=None): "lacks a claim",
        token(aud="another service"): "for another service",
        token(aud=None): "lacks a claim",
        token(exp=before): "has expired",
        token(exp=None): "lacks a claim",
        token(nbf=later): "is not good yet",
        token(OTHER): "is not signed by the key",
        token(kid="unknown"): "is not signed by the key",
        token(kid=None): "is not signed by the key",
        token(KEY, "c"): "",
        token(sub=None): "subject",
        token(sub="=bob"): "begins with =",
        token(groups=["others"]): "gives you no role",
        token(groups={"researchers": True}): "gives you no role",
        unsigned({"alg": "none", "kid": "a"}): "signed in a way",
        unsigned({"alg": "None", "kid": "a"}): "signed in a way",
        unsigned({"alg": "HS256", "kid": "a"}, pem): "signed in a way",
        unsigned({"alg": "HS256", "kid": "a"}, b"secret"): "signed in a way",
        unsigned({"alg": "RS256", "kid": "a"}): "is not signed by the key",
        token()[:-4] + "AAAA": "is not signed by the key",
    }
    for text, why in cases.items():
        assert why in refused(provider, text), why
    # A little of the difference between two clocks is forgiven, and no more.
    assert told(provider, token(exp=NOW - timedelta(seconds=59))).subject == "ann"
    assert told(provider, token(nbf=NOW + timedelta(seconds=59))).subject == "ann"
    refused(provider, token(exp=NOW - timedelta(seconds=60)))
    refused(provider, token(nbf=NOW + timedelta(seconds=61)))


def test_our_own_tokens_are_none_of_a_provider(provider: IdentityProvider, tmp_path: Path) -> None:
    own = Tokens(tmp_path).create(Role.OPERATOR)[1]
    for text in (own, "", "a.b.c", "acat.session.1", "..", "x" * 5000):
        assert not provider.made(text)


def test_keys_of_a_file_are_read_again_when_it_changes(tmp_path: Path, clock: Clock) -> None:
    keys = tmp_path / "keys.json"
    provider = IdentityProvider(settings(keys), lambda: clock.time, lambda: clock.seconds)
    with pytest.raises(ServiceError) as missing:
        told(provider, token())
    assert missing.value.code is Code.ACCESS_CLOSED
    keys.write_text(key_set(public(KEY, "a"), {"kty": "oct", "k": "c2VjcmV0", "kid": "s"}))
    assert told(provider, token()).subject == "ann"
    refused(provider, jwt.encode({}, b"secret" * 6, "HS256", headers={"kid": "s"}))
    keys.write_text(key_set(public(OTHER, "b")))
    os.utime(keys, ns=(1, 1))
    assert told(provider, token(OTHER, "b")).subject == "ann"
    assert told(provider, token(OTHER, None)).subject == "ann"  # one key needs no name
    refused(provider, token())
    keys.write_text("{")  # what was known holds until it can be read
    assert told(provider, token(OTHER, "b")).subject == "ann"


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


def test_keys_of_an_issuer_are_asked_for_seldom(issuer: Issuer, clock: Clock) -> None:
    wanted = settings("", oidc_issuer=issuer.url)
    provider = IdentityProvider(wanted, lambda: clock.time, lambda: clock.seconds)

    def shown(key: Any = KEY, name: str = "a") -> str:
        return token(key, name, iss=issuer.url)

    assert told(provider, shown()).subject == "ann"
    assert issuer.asked == ["/.well-known/openid-configuration", "/keys"]
    # Tokens that name keys which nobody has do not make the server ask again and again.
    for k in range(20):
        refused(provider, shown(name=f"x{k}"))
    assert len(issuer.asked) == 2
    # A key that is new is found once it may be asked for.
    issuer.answers["/keys"] = (200, key_set(public(KEY, "a"), public(OTHER, "b")))
    refused(provider, shown(OTHER, "b"))
    clock.seconds += PAUSE_SECONDS
    assert told(provider, shown(OTHER, "b")).subject == "ann"
    # One that was withdrawn is good no longer after an hour; with a provider that fails, it is.
    issuer.answers["/keys"] = (500, "")
    clock.seconds += KEPT_SECONDS
    assert told(provider, shown()).subject == "ann"
    issuer.answers["/keys"] = (200, key_set(public(OTHER, "b")))
    clock.seconds += KEPT_SECONDS
    refused(provider, shown())


def test_keys_are_taken_from_safe_addresses_alone(issuer: Issuer, clock: Clock) -> None:
    issuer.answers["/away"] = (302, f"{issuer.url}/keys")
    issuer.answers["/large"] = (200, " " * (2 << 20))
    addresses = ["http://192.0.2.7/keys", f"{issuer.url}/away", f"{issuer.url}/large"]
    for address in (*addresses, f"{issuer.url}/none", "ftp://127.0.0.1/keys"):
        provider = IdentityProvider(settings(address), lambda: clock.time)
        with pytest.raises(ServiceError, match="cannot read the keys"):
            told(provider, token())
    assert "/keys" not in issuer.asked


@pytest.mark.asyncio(loop_scope="session")
async def test_a_server_takes_both_kinds_of_tokens(guarded: Guarded, tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text(key_set(public(KEY, "a")))
    given = settings(keys).model_dump(
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
            await connected(token(exp=NOW - timedelta(hours=1))).get(name)
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
    wanted = settings("keys.json", **{"require_token": True, **changes})
    with pytest.raises(ExposureError, match=words):
        check_provider(wanted)


def test_a_role_that_is_none_is_an_error_of_settings() -> None:
    with pytest.raises(SettingsError, match="OIDC_ROLES"):
        settings("keys.json", oidc_roles={"x": "root"})
