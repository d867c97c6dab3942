"""Chains digests of what a session leaves behind, so that a byte that is changed later is found.

Whenever something of a session is stored for good (its specification, how it stands, the end of an
attempt with its decision and its recording, a certificate and its draws, its profile and the fit
behind it), a link is added in the same transaction. Each link holds the digest of that content and
of the link before it. Who changes content, adds or removes some, or changes a link, breaks the
chain. Who may write the whole database can forge a whole chain: the last link, which
`session show --verify` prints, is what to note elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple

BEGINNING = "session"
"""What the first link of a chain is about: the session's specification."""
STANDING = "standing"
"""What a link is about that is added whenever a session's state or its reason changes, who plays
it, or what is known of its capabilities."""
PROFILE = "profile"
CERTIFICATE = "certificate "
"""What a link about a certificate begins with; the number of its episodes follows."""


class ChainLink(NamedTuple):
    """One link of a chain.

    Attributes:
        what: What it is about: "session", "standing", an attempt as "NUMBER-ATTEMPT",
            "certificate N", or "profile".
        content: SHA-256 of what was stored, in hexadecimal digits.
        recording: SHA-256 of the file that belongs to it: the attempt's recording, or the draws of
            the certificate's or the profile's fit; empty without one.
        digest: SHA-256 of all this and of the digest of the link before.
    """

    what: str
    content: str
    recording: str
    digest: str


class Chain(NamedTuple):
    """The chain of a session beside what is stored now.

    Attributes:
        links: The links in order.
        now: Digest by what it is about, of everything that a link should be about.
        damage: What cannot be read, one sentence each; of that nothing is in `now`.
    """

    links: tuple[ChainLink, ...]
    now: Mapping[str, str]
    damage: tuple[str, ...] = ()


def make_link(before: str, what: str, content: str, recording: str) -> ChainLink:
    """Return the link that follows one with the digest `before`."""
    whole = "\n".join((before, what, content, recording))
    return ChainLink(what, content, recording, sha256(whole.encode()).hexdigest())


def content_digest(values: Mapping[str, Any]) -> str:
    """Return the digest of a row: names and values of its columns; JSON is text as it is stored."""
    plain = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in values.items()
    }
    return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
