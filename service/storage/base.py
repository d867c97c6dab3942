"""The duties of a store of sessions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from animalcat.service.model import (
    BatteryRecord,
    Campaign,
    CapabilityStatus,
    Episode,
    LayoutRecord,
    Session,
    SessionSpec,
    SessionState,
    StoredCertificate,
)
from animalcat.service.storage.listing import (
    CampaignFilter,
    EpisodeFilter,
    Listing,
    Page,
    SessionFilter,
)


class AlreadyFinishedError(Exception):
    """A finished record was to be changed, or an episode was to count twice."""


class InUseError(Exception):
    """What was to be deleted is needed; the message says by what, and what to do."""


class UnreadableError(ValueError):
    """A record cannot be read; the message says what is wrong with it, and what to do."""


def readable(episodes: Iterable[Episode]) -> list[Episode]:
    """The same attempts, which can all be read.

    Raises:
        UnreadableError: One cannot be.
    """
    found = list(episodes)
    for episode in found:
        if episode.unreadable:
            raise UnreadableError(
                f"attempt {episode.attempt} at episode {episode.number} of {episode.session} is "
                f"{episode.unreadable}. Update animalcat if a newer one wrote it; else delete the "
                "session and create it anew"
            )
    return found


def nothing() -> None:
    """Do nothing."""


class SessionStore(ABC):
    """Keeps batteries, layouts, sessions, decisions, episodes, certificates and profiles.

    - **Durable.** When a call returns, what it wrote survives the death of the process and of the
      machine.
    - **All or nothing.** A call that fails or is cut short has written nothing.
    - **By value.** What goes in and comes out are values: changing one changes nothing stored.
    - **Snapshots.** A read sees one state of the store, never half a write.
    - **Finished means finished.** A finished episode never changes, but that a person may declare
      its outcome invalid; of all the attempts at one
      number at most one counts; a session that is over stays in the state it ended in.
    - **Threads.** Every method may be called from any thread at any time. They block: never call
      them on an event loop. One session has one writer, its engine; the store relies on that for
      the order of a session's records, and on nothing else.
    - **Unreadable records** harm what they are about, and no list: it is listed as unreadable, with
      the reason (`SessionState.UNREADABLE`, `Campaign.unreadable`, `Episode.unreadable`). What has
      no list, as a profile has none, raises `UnreadableError`.
    - **Unknown ids.** Reads give None or nothing; writes raise `KeyError`.
    """

    @abstractmethod
    def put_battery(self, battery: BatteryRecord) -> None:
        """Keep a battery's name; a name that exists points to the new content from now on."""

    @abstractmethod
    def battery(self, battery: str) -> BatteryRecord | None:
        """The battery of that id."""

    @abstractmethod
    def batteries(self) -> list[BatteryRecord]:
        """All batteries, by id."""

    @abstractmethod
    def delete_battery(self, battery: str) -> bool:
        """Forget a battery.

        Returns:
            Whether its content is needed no more: no other battery has it.

        Raises:
            KeyError: No such battery.
            InUseError: A session or a campaign was made with it.
        """

    @abstractmethod
    def put_layout(self, layout: LayoutRecord) -> None:
        """Keep a layout; one of that digest is left as it is."""

    @abstractmethod
    def layout(self, digest: str) -> LayoutRecord | None:
        """The layout of that digest."""

    @abstractmethod
    def layouts(self) -> list[LayoutRecord]:
        """All layouts, by name, variant and digest."""

    @abstractmethod
    def create_session(
        self,
        wanted: str,
        spec: SessionSpec,
        created: datetime,
        request_id: str = "",
        allowed: int | None = None,
    ) -> Session:
        """Keep a new session, waiting for its agent.

        Args:
            wanted: Its id; where that is taken, `{wanted}-2`, `{wanted}-3`, ...
            spec: What it is to be.
            created: When, with time zone.
            request_id: The same id again gives the session of the first call and writes nothing;
                empty: no such protection.
            allowed: How many episodes may be begun for now; None: as the stopping rule says.

        Raises:
            ValueError: The request id was used for another request (see `ids.asked_for`).
        """

    @abstractmethod
    def session(self, session: str) -> Session | None:
        """The session of that id."""

    @abstractmethod
    def sessions(
        self, wanted: SessionFilter = SessionFilter(), page: Page = Page()
    ) -> Listing[Session]:
        """Sessions, newest first.

        Raises:
            BadPageError: The page's token is none.
        """

    @abstractmethod
    def delete_session(self, session: str, first: Callable[[], None] = nothing) -> None:
        """Forget a session and all that belongs to it.

        Args:
            session: Its id.
            first: What else is to go; called once the store has found that the session may be
                deleted. Where it fails nothing is deleted here.

        Raises:
            KeyError: No such session.
            InUseError: It is running, or a campaign has it.
        """

    @abstractmethod
    def set_state(self, session: str, state: SessionState, reason: str = "") -> Session:
        """Change a session's state.

        Raises:
            KeyError: No such session.
            AlreadyFinishedError: It is over, in another state.
        """

    @abstractmethod
    def pause(self, session: str, paused: bool) -> Session:
        """Keep that a person has paused a session, or lets it go on.

        Raises:
            KeyError: No such session.
            AlreadyFinishedError: It is over.
        """

    @abstractmethod
    def allow(self, episodes: Mapping[str, int]) -> None:
        """Change how many episodes of sessions may be begun for now: of all of them, or of none.

        Args:
            episodes: By session; sessions that are not named keep what they have.

        Raises:
            KeyError: One of the sessions is not there.
        """

    @abstractmethod
    def create_campaign(self, campaign: Campaign) -> Campaign:
        """Keep a campaign; one of that id is left as it is and given back.

        Raises:
            KeyError: One of its sessions is not there.
        """

    @abstractmethod
    def campaign(self, campaign: str) -> Campaign | None:
        """The campaign of that id."""

    @abstractmethod
    def campaigns(
        self, wanted: CampaignFilter = CampaignFilter(), page: Page = Page()
    ) -> Listing[Campaign]:
        """Campaigns, newest first.

        Raises:
            BadPageError: The page's token is none.
        """

    @abstractmethod
    def delete_campaign(self, campaign: str) -> None:
        """Forget a campaign; its sessions stay, and may then be deleted.

        Raises:
            KeyError: No such campaign.
            InUseError: One of its sessions is not over.
        """

    @abstractmethod
    def end_campaign(self, campaign: str, reason: str) -> Campaign:
        """Keep why no more is handed out; the first reason stays.

        Raises:
            KeyError: No such campaign.
        """

    @abstractmethod
    def open_episode(
        self,
        episode: Episode,
        capabilities: tuple[CapabilityStatus, ...] = (),
        misfit: str = "",
    ) -> None:
        """Keep a decision and that an attempt at it begins, before anything moves.

        Args:
            episode: The attempt; its outcome is None.
            capabilities: How well they are known before it, for lists; empty: as before, and so is
                the misfit.
            misfit: Where predictions fail, as the alarm has it before the attempt.

        Raises:
            KeyError: No such session.
            AlreadyFinishedError: The attempt exists, or one at this number counts already.
        """

    @abstractmethod
    def finish_episode(self, episode: Episode) -> None:
        """Keep how an open attempt ended, outcome and summary at once.

        Raises:
            KeyError: No such attempt.
            AlreadyFinishedError: The attempt is finished, or another at this number counts already.
        """

    @abstractmethod
    def episodes(
        self, session: str, wanted: EpisodeFilter = EpisodeFilter(), page: Page = Page()
    ) -> Listing[Episode]:
        """Attempts of a session, by number and attempt.

        Raises:
            BadPageError: The page's token is none.
        """

    @abstractmethod
    def invalidate_episode(self, session: str, number: int, attempt: int, reason: str) -> Episode:
        """Declare the outcome of an attempt invalid; its record stays, and no longer counts.

        Another attempt at its number may then be opened. The first reason stays.

        Args:
            session: Id of the session.
            number: Number of the episode.
            attempt: Which attempt at it; it counts, or was declared invalid before.
            reason: Why, in words.

        Raises:
            KeyError: No such attempt.
            ValueError: It never counted, or the reason is empty.
        """

    @abstractmethod
    def put_certificate(self, session: str, certificate: StoredCertificate) -> None:
        """Keep a certificate.

        Raises:
            KeyError: No such session.
            AlreadyFinishedError: There is one for that n.
        """

    @abstractmethod
    def certificates(self, session: str) -> dict[int, StoredCertificate]:
        """All certificates of a session, by n."""

    @abstractmethod
    def finish_session(
        self,
        session: str,
        state: SessionState,
        reason: str,
        profile: Mapping[str, Any],
        capabilities: tuple[CapabilityStatus, ...],
        misfit: str = "",
    ) -> Session:
        """End a session and keep its profile and what its alarm found, at once.

        Raises:
            KeyError: No such session.
            AlreadyFinishedError: It is over.
        """

    @abstractmethod
    def profile(self, session: str) -> dict[str, Any] | None:
        """The exported profile, as JSON values; None before the session is over."""

    @abstractmethod
    def close(self) -> None:
        """Free what the store holds; calling it twice is fine."""
