"""The errors of the store, and the check that what was read can be used."""

from __future__ import annotations

from collections.abc import Iterable

from animalcat.values import Episode


class AlreadyFinishedError(Exception):
    """A finished record was to be changed, or an episode was to count twice."""


class InUseError(Exception):
    """What was to be deleted is still needed; the message says by what, and what to do."""


class StoreInUseError(Exception):
    """Another server uses the database; the message says which, and what to do."""


class UnreadableError(ValueError):
    """A record cannot be read; the message says what is wrong with it, and what to do."""


def readable(episodes: Iterable[Episode]) -> list[Episode]:
    """Return the attempts as a list, after checking that all of them can be read.

    Raises:
        UnreadableError: An attempt cannot be read.
    """
    attempts = list(episodes)
    for episode in attempts:
        if episode.unreadable:
            raise UnreadableError(
                f"attempt {episode.attempt} at episode {episode.number} of {episode.session} is "
                f"{episode.unreadable}. Update animalcat if a newer version wrote it; otherwise "
                "delete the session and create it again"
            )
    return attempts
