"""Keeps tokens in a data directory: only their digests, in one file that its owner alone reads.

A secret has 256 random bits. It cannot be guessed from its SHA-256, and a slow digest, as passwords
need it, would add nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import secrets
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

from pydantic import TypeAdapter

from animalcat.machine.marks import mark
from animalcat.service.access.callers import Caller, Role
from animalcat.service.access.private_files import (
    keep_owner,
    make_private,
    private_folder,
    write_private,
)
from animalcat.text import names

PREFIX: Final = "acat"
"""What every token begins with, so that it is recognised where it was left by mistake."""
FOLDER: Final = "access"
"""The folder in a data directory that holds tokens and keys."""
USUAL_DAYS: Final = 90
"""Days after which a token ends if nothing else is said."""
FORGOTTEN_DAYS: Final = 30
"""Days for which a token stays on the list after its end."""
KEY_BYTES: Final = 32
"""Random bytes of a key that a data directory keeps."""
MOST_TOKENS: Final = 10_000
"""Most tokens of one data directory."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token, without its secret.

    Attributes:
        id: Its public part.
        role: What it permits.
        digest: SHA-256 of the secret in hexadecimal.
        created: When it was made, with time zone.
        expires: When it ends, with time zone; None if it never does.
        note: Whose it is, in the words of who made it.
        agent: The name of the agent whose sessions it plays; empty if it is for no agent.
        sessions: Ids of the only sessions that it plays; empty for all of the agent.
        revoked: When it was revoked, with time zone; None if it was not.
        subject: Who shows it, as an owner; of an agent's token, whose sessions alone it plays.
    """

    id: str
    role: Role
    digest: str
    created: datetime
    expires: datetime | None
    note: str = ""
    agent: str = ""
    sessions: tuple[str, ...] = ()
    revoked: datetime | None = None
    subject: str = ""

    def ended(self, now: datetime) -> str:
        """Return why it is no longer good: "revoked", "expired", or empty if it is good."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= now else ""

    @property
    def caller(self) -> Caller:
        """Who shows it."""
        return Caller(
            self.id, self.role, self.agent, frozenset(self.sessions), subject=self.subject
        )


class TokenError(ValueError):
    """A token cannot be made, found or read; the text says why and what to do."""


_FORM: Final = TypeAdapter(tuple[Token, ...])


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


Note: TypeAlias = Callable[[str, str, str], None]
"""Takes what is done, to what, and what is to be said of it."""


def note_nothing(action: str, thing: str, words: str) -> None:
    """Write nothing."""


class Tokens:
    """The tokens of a data directory.

    The file is read again whenever it has changed, so what one process makes or revokes holds for
    every other from its next call on.
    """

    def __init__(
        self, data: Path, clock: Callable[[], datetime] = utc_now, note: Note = note_nothing
    ) -> None:
        """Describe the tokens of a directory; nothing is read or made.

        Args:
            data: The data directory.
            clock: Returns the current time with time zone.
            note: Writes what is about to be changed into the audit log.
        """
        self._folder = data / FOLDER
        self._file = self._folder / "tokens.json"
        self._note = note
        self._clock = clock
        self._seen: tuple[int, int, int] | None = None
        self._known: dict[str, Token] = {}

    def create(
        self,
        role: Role,
        *,
        note: str = "",
        agent: str = "",
        sessions: Sequence[str] = (),
        days: float = USUAL_DAYS,
        subject: str = "",
    ) -> tuple[Token, str]:
        """Make a token.

        Args:
            role: What it permits.
            note: Whose it is, for people.
            agent: The name of the agent whose sessions it plays.
            sessions: Ids of the only sessions that it plays.
            days: Days after which it ends; 0 means that it does not.
            subject: Who shows it, as an owner. What is made with a token that says none belongs to
                the token; an agent's token that says none plays sessions of everybody.

        Returns:
            The token, and the text to show, which is kept nowhere.

        Raises:
            TokenError: An agent's token says neither agent nor session, or another one says them;
                there are too many tokens; or the file cannot be read.
        """
        if role is Role.AGENT and not (agent or sessions):
            raise TokenError(
                "a token for an agent must say what it plays: give the agent's name or a session"
            )
        if role is not Role.AGENT and (agent or sessions):
            raise TokenError(f"a token for {role.words} is not restricted to an agent or sessions")
        if role in (Role.RESEARCHER, Role.VIEWER) and not subject:
            raise TokenError(
                f"a token for {role.words} must say whose it is, since it sees what belongs to "
                "them: give a subject (--subject NAME)"
            )
        names.check_label(subject or "none", "subject")
        now = self._clock()
        secret = secrets.token_urlsafe(32)
        with self._changing() as known:
            if len(known) >= MOST_TOKENS:
                raise TokenError(f"there are {MOST_TOKENS} tokens already; revoke some")
            identity = secrets.token_hex(5)
            by_itself = "" if role is Role.AGENT else f"token-{identity}"
            token = Token(
                id=identity,
                role=role,
                digest=_digest(secret),
                created=now,
                expires=now + timedelta(days=days) if days else None,
                note=note,
                agent=agent,
                sessions=tuple(sessions),
                subject=subject or by_itself,
            )
            known[token.id] = token
            self._note("CreateToken", f"tokens/{token.id}", _audit_words(token))
        return token, f"{PREFIX}_{token.id}_{secret}"

    def all(self) -> list[Token]:
        """List all tokens that are not forgotten, oldest first.

        Raises:
            TokenError: The file cannot be read.
        """
        return sorted(self._read().values(), key=lambda token: (token.created, token.id))

    def revoke(self, token: str) -> Token:
        """Revoke the token with this id, or the one that this text is.

        Raises:
            TokenError: There is no such token, or the file cannot be read.
        """
        with self._changing() as known:
            known_token = _token_named(known, token)
            if known_token.revoked is None:
                known_token = replace(known_token, revoked=self._clock())
                known[known_token.id] = known_token
            told = _audit_words(known_token)
            self._note("RevokeToken", f"tokens/{known_token.id}", told)
        return known_token

    def find(self, text: str) -> Token | None:
        """Return the token that a text shows, ended or not; None if it shows none.

        Raises:
            TokenError: The file cannot be read.
        """
        prefix, _, rest = text.partition("_")
        identity, _, secret = rest.partition("_")
        token = self._read().get(identity) if prefix == PREFIX else None
        # Compared in any case, so that the time tells nothing of which ids there are.
        same = hmac.compare_digest(_digest(secret), token.digest if token else _digest(""))
        return token if same and secret else None

    def now(self) -> datetime:
        """Return the current time, by which tokens end."""
        return self._clock()

    def good(self, identity: str) -> bool:
        """Return whether the token with this id is still good.

        Raises:
            TokenError: The file cannot be read.
        """
        return self.known(identity) is not None

    def known(self, identity: str) -> Token | None:
        """Return the token with this id; None if there is none that is still good.

        Raises:
            TokenError: The file cannot be read.
        """
        token = self._read().get(identity)
        return None if token is None or token.ended(self._clock()) else token

    def _read(self) -> dict[str, Token]:
        try:
            state = self._file.stat()
        except FileNotFoundError:
            self._seen, self._known = None, {}
            return self._known
        except OSError as error:
            raise TokenError(
                f"{self._folder} cannot be looked into ({error.strerror}), so no token is "
                "accepted: make it belong to the user that runs the server"
            ) from error
        stamp = (state.st_mtime_ns, state.st_size, state.st_ino)
        if stamp != self._seen:
            try:
                tokens = _FORM.validate_json(self._file.read_bytes())
            except OSError as error:
                raise TokenError(
                    f"{self._file} cannot be read ({error.strerror}), so no token is accepted: "
                    "make it belong to the user that runs the server"
                ) from error
            except ValueError as error:
                raise TokenError(
                    f"{self._file} cannot be read, so no token is accepted: restore it, or delete "
                    "it and make new tokens"
                ) from error
            self._known, self._seen = {token.id: token for token in tokens}, stamp
        return self._known

    @contextmanager
    def _changing(self) -> Generator[dict[str, Token]]:
        """Hand out the tokens to be changed, and write them afterwards as a whole.

        Whoever changes some meanwhile waits; what is done is in the audit log already.
        """
        private_folder(self._folder)
        mark(self._folder.parent)
        path = self._folder / "tokens.lock"
        with path.open("ab") as lock:
            keep_owner(path)
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = dict(self._read())
            yield known
            over = self._clock() - timedelta(days=FORGOTTEN_DAYS)
            kept = [token for token in known.values() if not _ended_before(token, over)]
            write_private(self._file, _FORM.dump_json(tuple(kept), indent=1))


def kept_key(file: Path, danger: str, then: str) -> bytes:
    """Return the random key that a file keeps; it is made where it is not there.

    Args:
        file: The file, which its owner alone may read.
        danger: What could happen with a key that others know, for the message.
        then: What follows once a new key is made, for the message.

    Raises:
        TokenError: The file holds no such key, as one that a power cut tore: what is empty, or of
            zeros, is known to everybody.
    """
    if not file.exists():
        private_folder(file.parent)
        mark(file.parent.parent)
        make_private(file, secrets.token_bytes(KEY_BYTES))
    key = file.read_bytes()
    if len(key) != KEY_BYTES or len(set(key)) == 1:
        content = "zeros" if len(key) == KEY_BYTES else f"{len(key)} bytes"
        raise TokenError(
            f"{file} holds {content} where a key of {KEY_BYTES} random bytes belongs, so that "
            f"{danger}. Restore the file, or delete it: then a new key is made, and {then}"
        )
    return key


def _token_named(known: Mapping[str, Token], token: str) -> Token:
    """Return the token with an id, or the one that a text is."""
    wanted = token.split("_")[1] if token.startswith(f"{PREFIX}_") else token
    found = known.get(wanted)
    if found is None:
        raise TokenError(f"no token has the id {wanted[:40]!r}; list them to see their ids")
    return found


def _audit_words(token: Token) -> str:
    """Return what the audit log says of a token."""
    parts = [f"for {token.role.words}"]
    parts += [f"subject {token.subject}"] if token.subject else []
    parts += [f"agent {token.agent}"] if token.agent else []
    parts += [f"sessions {', '.join(token.sessions)}"] if token.sessions else []
    ends = "never" if token.expires is None else f"{token.expires:%Y-%m-%d %H:%M}"
    return "; ".join([*parts, f"ends {ends}"])


def _ended_before(token: Token, time: datetime) -> bool:
    ends = [end for end in (token.expires, token.revoked) if end is not None]
    return bool(ends) and min(ends) < time


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
