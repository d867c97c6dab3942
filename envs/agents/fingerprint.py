"""The fingerprint of an agent: what it is beside its name, so that another is not taken for it."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias, get_args

Source: TypeAlias = Literal["unknown", "declared", "computed"]
SOURCES: Final[tuple[Source, ...]] = get_args(Source)
"""Where a fingerprint may come from."""
SHORT: Final = 8
"""Letters of a fingerprint in lists."""
MOST_FILES: Final = 500
"""Most files that stand in a fingerprint one by one; folders stand for more."""
_SHOWN: Final = 5
"""Most differences that a sentence names."""
_WORDS: Final[Mapping[Source, str]] = {
    "unknown": "unknown: nothing was declared",
    "declared": "as its client declares",
    "computed": "computed in the agent's process",
}


@dataclass(frozen=True, slots=True)
class AgentFingerprint:
    """What an agent is, as its own process says.

    Attributes:
        source: "computed" from what the process imported and opened, "declared" by whoever
            connects, or "unknown".
        name: What was loaded, such as "builtin:scout" or "agent.py:Agent".
        version: Version of the agent; of animalcat if its code is part of the agent.
        options: What the agent was given, such as its limits.
        files: SHA-256 of its sources, and of the files that it opened until the end of its first
            `reset`, by path: relative to the folder of the agent's file where that is near.
        environment: Environment variables that may change what it does. They are not part of its
            digest; where they differ, a note says so.
        process: Of an unknown agent, what stands for this start of it: nobody can tell whether it
            is what it was at another.
    """

    source: Source = "unknown"
    name: str = ""
    version: str = ""
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    process: str = ""

    def __post_init__(self) -> None:
        if self.source == "declared" and not (self.version or self.options or self.files):
            raise ValueError(
                "fingerprint: a name alone says no more than the agent's name; declare a version, "
                "options or files too, or nothing"
            )

    @classmethod
    def declared(
        cls,
        name: str = "",
        *,
        version: str = "",
        options: Mapping[str, object] | None = None,
        files: Iterable[str | Path] = (),
    ) -> Self:
        """Declare what an agent is, for `evaluate` and `RemoteEnv`.

        Args:
            name: What it is called by whoever wrote it.
            version: Its version, such as a revision of its repository.
            options: What it was given, such as its hyperparameters.
            files: What it is made of, such as its sources and weights; they are read here.

        Raises:
            OSError: A file cannot be read.
            ValueError: There is nothing beside the name.
        """
        given = {key: str(value) for key, value in (options or {}).items()}
        read = {Path(path).as_posix(): digest_of(Path(path)) for path in files}
        return cls("declared", name, version, given, fold_digests(read))

    @property
    def known(self) -> bool:
        """Whether anything is known of the agent."""
        return self.source != "unknown"

    @property
    def digest(self) -> str:
        """SHA-256 of name, version, options and files; empty of an unknown agent."""
        if not self.known:
            return ""
        kept = (self.name, self.version, dict(self.options), dict(self.files))
        return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()

    @property
    def short(self) -> str:
        """The beginning of the digest, for lists; "unknown" of an unknown agent."""
        return self.digest[:SHORT] or "unknown"

    @property
    def words(self) -> str:
        """The fingerprint in a line."""
        if not self.known:
            why = self.options.get(UNREAD)
            return f"unknown: {why} cannot be read" if why else _WORDS["unknown"]
        parts = [self.name, f"version {self.version}" if self.version else ""]
        parts += [f"{name} {value}" for name, value in self.options.items()]
        parts.append(f"{len(self.files)} files" if len(self.files) != 1 else "1 file")
        whole = f"{self.short} ({_WORDS[self.source]}: {', '.join(filter(None, parts))})"
        return " ".join(whole.split())

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, with the digest."""
        values = asdict(self)
        del values["process"]  # of no use to anybody else
        return {"digest": self.digest, **values}


UNKNOWN: Final = AgentFingerprint()
"""The fingerprint of a client that declares nothing."""
UNREAD: Final = "unread"
"""The option that says what of an unknown agent cannot be read."""


def unknown(name: str = "", unread: str = "") -> AgentFingerprint:
    """The fingerprint of an unknown agent that starts now.

    Args:
        name: What it is called, where that is known.
        unread: What of it cannot be read, where it was looked at.
    """
    said = {UNREAD: unread} if unread else {}
    return AgentFingerprint(name=name, options=said, process=uuid.uuid4().hex)


def differences(
    known: AgentFingerprint,
    now: AgentFingerprint,
    *,
    known_whole: bool = True,
    now_whole: bool = True,
) -> tuple[str, ...]:
    """Return how an agent differs from the one before it, in words; empty if it is the same.

    A file that has moved to another path with the same content is the same file.

    Args:
        known: The agent before.
        now: The agent now.
        known_whole: Whether the first `reset` of the agent before was over, so that its
            fingerprint has all files.
        now_whole: Whether the first `reset` of the agent now is over.
    """
    if not known.known and not now.known:
        if now.process and known.process == now.process:
            return ()
        why = now.options.get(UNREAD)
        told = f"{why} cannot be read" if why else "nothing is known of it"
        return (f"nobody can tell whether the agent is the same: {told}",)
    if not now.known:
        return (f"nothing is known of the agent, which was {known.name or 'declared'}",)
    if not known.known:
        return (f"the agent is {now.name or 'declared'}, and before it was unknown",)
    changes: list[str] = []
    if known.name != now.name:
        changes.append(f"the agent is {now.name or 'nameless'} and was {known.name or 'nameless'}")
    if known.version != now.version:
        changes.append(f"the version is {now.version or 'none'} and was {known.version or 'none'}")
    for name in sorted({*known.options, *now.options}):
        before, after = known.options.get(name), now.options.get(name)
        if before != after:
            says = "is not given" if after is None else f"is {after}"
            changes.append(
                f"{name} {says} and {'was not given' if before is None else f'was {before}'}"
            )
    changes = [" ".join(change.split()) for change in changes]
    return (*changes, *_file_differences(known.files, now.files, known_whole, now_whole))


def _file_differences(
    known: Mapping[str, str], now: Mapping[str, str], known_whole: bool, now_whole: bool
) -> list[str]:
    changed = [name for name in sorted(known) if name in now and known[name] != now[name]]
    gone = {name: known[name] for name in sorted(known) if name not in now}
    new = {name: now[name] for name in sorted(now) if name not in known}
    moved = set(gone.values()) & set(new.values())
    return [
        *(f"{name} has other content" for name in changed),
        *(f"{name} is new" for name in new if known_whole and new[name] not in moved),
        *(
            f"{name} is not there or not read"
            for name in gone
            if now_whole and gone[name] not in moved
        ),
    ]


def together(
    known: AgentFingerprint, now: AgentFingerprint, *, now_whole: bool
) -> AgentFingerprint:
    """Return what is known of an agent from two of its processes, of which one may not be ready."""
    return now if now_whole else replace(now, files={**known.files, **now.files})


def environment_changes(known: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Return which environment variables differ from before, each in a few words."""
    return tuple(
        f"the environment variable {name} is {now.get(name, 'not set')} and was "
        f"{known.get(name, 'not set')}"
        for name in sorted({*known, *now})
        if known.get(name) != now.get(name)
    )


def in_words(changes: Iterable[str]) -> str:
    """Return differences as one phrase, the first few of them."""
    listed = list(changes)
    more = f"; and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return "; ".join(listed[:_SHOWN]) + more


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fold_digests(files: Mapping[str, str], most: int = MOST_FILES) -> dict[str, str]:
    """Return digests by path; where there are too many, one digest stands for a whole folder.

    Args:
        files: Digest by path.
        most: Most entries. Where even the folders are more, one digest stands for everything.
    """
    if len(files) <= most:
        return {name: files[name] for name in sorted(files)}
    folders: dict[str, list[str]] = {}
    for name in sorted(files):
        head, slash, _ = name.rpartition("/")
        folders.setdefault(head if slash else "", []).append(name)
    single = {name: files[name] for names in folders.values() if len(names) == 1 for name in names}
    whole: dict[str, str] = {}
    for folder, names in folders.items():
        if len(names) > 1:
            text = "\n".join(f"{name} {files[name]}" for name in names)
            label = f"{folder or '.'}/* ({len(names)} files)"
            whole[label] = hashlib.sha256(text.encode()).hexdigest()
    joined = {**single, **whole}
    if len(joined) <= most:
        return {name: joined[name] for name in sorted(joined)}
    text = "\n".join(f"{name} {joined[name]}" for name in sorted(joined))
    return {f"* ({len(files)} files)": hashlib.sha256(text.encode()).hexdigest()}
