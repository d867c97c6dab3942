"""Defines what a store of sessions must do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from animalcat.service.model import BatteryRecord, LayoutRecord, StoredCampaign, StoredCertificate
from animalcat.service.storage.chain import Chain
from animalcat.service.storage.listing import (
    CampaignFilter,
    EpisodeFilter,
    Listing,
    Page,
    SessionFilter,
)
from animalcat.values import (
    CapabilityStatus,
    Episode,
    Identity,
    Ruling,
    Session,
    SessionSpec,
    SessionState,
)


class AlreadyFinishedError(Exception):
    """A finished record was to be changed, or an episode was to count twice."""


class InUseError(Exception):
    """What was to be deleted is still needed; the message says by what, and what to do."""


class UnreadableError(ValueError):
    """A record cannot be read; the message says what is wrong with it, and what to do."""


def readable(episodes: Iterable[Episode]) -> list[Episode]:
    """Return the attempts as a list, after checking that all of them can be read.

    Raises:
        UnreadableError: An attempt cannot be read.
    """
    found = list(episodes)
    for episode in found:
        if episode.unreadable:
            raise UnreadableError(
                f"attempt {episode.attempt} at episode {episode.number} of {episode.session} is "
                f"{episode.unreadable}. Update animalcat if a newer version wrote it; otherwise "
                "delete the session and create it again"
            )
    return found


def nothing() -> None:
    """Do nothing."""


class SessionStore(ABC):
    """Keeps batteries, layouts, sessions, decisions, episodes, certificates and profiles.

    - **Durable.** When a call returns, what it wrote survives the death of the process and of the
      machine.
    - **All or nothing.** A call that fails or is cut short has written nothing.
    - **By value.** Arguments and results are values: changing one changes nothing in the store.
    - **Snapshots.** A read sees one state of the store, never half of a write.
    - **Finished means finished.** A finished episode never changes, except that a person may
      declare its outcome invalid, or say what it is where the agent's code failed. At most one
      attempt at an episode counts. A session that is over keeps the state in which it ended.
    - **Threads.** Every method may be called from any thread at any time. Methods block, so never
      call them on an event loop. Each session has one writer, its engine. The store relies on that
      for the order of a session's records, and for nothing else.
    - **Unreadable records** affect only what they describe. A list still shows an unreadable item,
      with the reason (`SessionState.UNREADABLE`, `Campaign.unreadable`, `Episode.unreadable`). What
      appears in no list, such as a profile, raises `UnreadableError`.
    - **Unknown ids.** Reads return None or nothing; writes raise `KeyError`.
    """

    @abstractmethod
    def check_owned(self, session: str) -> None:
        """Check that this server may write what belongs to a session; several may share a store.

        A server that was frozen, and lost its sessions meanwhile, asks before it writes their files
        as well.

        Raises:
            NotOwnerError: Another server owns the session by now.
        """

    @abstractmethod
    def put_battery(self, battery: BatteryRecord) -> None:
        """Store a battery; if its id exists, it refers to the new content from now on."""

    @abstractmethod
    def battery(self, battery: str) -> BatteryRecord | None:
        """Return the battery with this id; None if there is none."""

    @abstractmethod
    def batteries(self) -> list[BatteryRecord]:
        """List all batteries in order of id."""

    @abstractmethod
    def delete_battery(self, battery: str) -> bool:
        """Delete a battery.

        Returns:
            Whether its content may be deleted too, because no other battery has the same.

        Raises:
            KeyError: There is no such battery.
            InUseError: A session or a campaign was made with it.
        """

    @abstractmethod
    def put_layout(self, layout: LayoutRecord) -> None:
        """Store a layout; one with the same digest stays as it is."""

    @abstractmethod
    def layout(self, digest: str) -> LayoutRecord | None:
        """Return the layout with this digest; None if there is none."""

    @abstractmethod
    def layouts(self) -> list[LayoutRecord]:
        """List all layouts in order of name, variant and digest."""

    @abstractmethod
    def create_session(
        self,
        wanted: str,
        spec: SessionSpec,
        created: datetime,
        request_id: str = "",
        allowed: int | None = None,
    ) -> Session:
        """Store a new session that waits for its agent.

        Args:
            wanted: The id it should have; if that is taken, it gets `{wanted}-2`, `{wanted}-3`, ...
            spec: The session's specification.
            created: Time of creation, with time zone.
            request_id: A repeated call with the same id returns the session of the first one and
                writes nothing; empty for no such protection.
            allowed: Number of episodes that may begin for now; None if the stopping rule alone
                decides.

        Raises:
            ValueError: The request id was used for another request (see `ids.asked_for`).
        """

    @abstractmethod
    def session(self, session: str) -> Session | None:
        """Return the session with this id; None if there is none."""

    @abstractmethod
    def requested(self, request_id: str) -> Session | None:
        """Return the session that was created under this request id; None if there is none."""

    @abstractmethod
    def sessions(
        self, wanted: SessionFilter = SessionFilter(), page: Page = Page()
    ) -> Listing[Session]:
        """List sessions, newest first.

        Raises:
            BadPageError: The page's token did not come from such a list.
        """

    @abstractmethod
    def count_sessions(self) -> dict[str, int]:
        """Return the number of sessions by the name of their state, without reading their specs."""

    @abstractmethod
    def delete_session(self, session: str, first: Callable[[], None] = nothing) -> None:
        """Delete a session and everything that belongs to it.

        Args:
            session: Its id.
            first: Deletes what is kept elsewhere. It is called once the store has found that the
                session may be deleted; if it fails, the store deletes nothing.

        Raises:
            KeyError: There is no such session.
            InUseError: The session is running, or belongs to a campaign.
        """

    @abstractmethod
    def set_state(self, session: str, state: SessionState, reason: str = "") -> Session:
        """Change a session's state.

        Raises:
            KeyError: There is no such session.
            AlreadyFinishedError: The session is over, in another state.
        """

    @abstractmethod
    def pause(self, session: str, paused: bool) -> Session:
        """Store whether a person has paused a session.

        Raises:
            KeyError: There is no such session.
            AlreadyFinishedError: The session is over.
        """

    @abstractmethod
    def identify(self, session: str, identity: Identity) -> None:
        """Store who plays a session.

        Raises:
            KeyError: There is no such session.
        """

    @abstractmethod
    def allow(self, episodes: Mapping[str, int]) -> None:
        """Change how many episodes of these sessions may begin for now, for all of them or none.

        Args:
            episodes: The number by session id; other sessions keep theirs.

        Raises:
            KeyError: One of the sessions does not exist.
        """

    @abstractmethod
    def create_campaign(self, campaign: StoredCampaign) -> StoredCampaign:
        """Store a campaign; if its id exists, only its limit of simulators becomes the given one.

        Raises:
            KeyError: One of its sessions does not exist.
        """

    @abstractmethod
    def campaign(self, campaign: str) -> StoredCampaign | None:
        """Return the campaign with this id; None if there is none."""

    @abstractmethod
    def campaign_of(self, session: str) -> StoredCampaign | None:
        """Return the campaign to which a session belongs; None if there is none."""

    @abstractmethod
    def campaigns(
        self, wanted: CampaignFilter = CampaignFilter(), page: Page = Page()
    ) -> Listing[StoredCampaign]:
        """List campaigns, newest first.

        Raises:
            BadPageError: The page's token did not come from such a list.
        """

    @abstractmethod
    def delete_campaign(self, campaign: str) -> None:
        """Delete a campaign. Its sessions stay, and may then be deleted.

        Raises:
            KeyError: There is no such campaign.
            InUseError: One of its sessions is not over.
        """

    @abstractmethod
    def end_campaign(self, campaign: str, reason: str) -> StoredCampaign:
        """Store why a campaign hands out no more episodes; the first reason stays.

        Raises:
            KeyError: There is no such campaign.
        """

    @abstractmethod
    def open_episode(
        self,
        episode: Episode,
        capabilities: tuple[CapabilityStatus, ...] = (),
        misfit: str = "",
    ) -> None:
        """Store a decision and the beginning of an attempt at it, before anything moves.

        Args:
            episode: The attempt; its outcome is None.
            capabilities: How well each capability is known before the attempt, for lists; if empty,
                the stored ones and the stored misfit stay.
            misfit: Where the alarm finds, before the attempt, that predictions fail.

        Raises:
            KeyError: There is no such session.
            AlreadyFinishedError: The attempt exists, or another at this number counts already.
        """

    @abstractmethod
    def finish_episode(self, episode: Episode, recording: str = "") -> None:
        """Store how an open attempt ended, its outcome and its summary at once.

        Args:
            episode: The attempt with its outcome.
            recording: SHA-256 of its recording in hexadecimal digits, for the chain; empty without
                one.

        Raises:
            KeyError: There is no such attempt.
            AlreadyFinishedError: The attempt is finished, or another at this number counts already.
        """

    @abstractmethod
    def episodes(
        self, session: str, wanted: EpisodeFilter = EpisodeFilter(), page: Page = Page()
    ) -> Listing[Episode]:
        """List the attempts of a session in order of number and attempt.

        Raises:
            BadPageError: The page's token did not come from such a list.
        """

    @abstractmethod
    def invalidate_episode(self, session: str, number: int, attempt: int, reason: str) -> Episode:
        """Declare the outcome of an attempt invalid; its record stays but no longer counts.

        Another attempt at the same number may then begin. The first reason stays.

        Args:
            session: Id of the session.
            number: Number of the episode.
            attempt: Which attempt at the episode; it must count, or have been declared invalid
                before.
            reason: Why it is invalid, in words.

        Raises:
            KeyError: There is no such attempt.
            ValueError: The attempt never counted, or the reason is empty.
        """

    @abstractmethod
    def judge_failures(self, session: str, ruling: Ruling) -> list[Episode]:
        """Store what a person says of the attempts at which the agent's code failed.

        Those that wait for it get the outcome of the ruling; all others stay as they are.

        Args:
            session: Id of the session.
            ruling: What they are.

        Returns:
            The attempts that were judged, as they are now.

        Raises:
            KeyError: There is no such session.
            ValueError: The ruling says nothing.
        """

    @abstractmethod
    def put_certificate(
        self, session: str, certificate: StoredCertificate, draws: str = ""
    ) -> None:
        """Store a certificate.

        Args:
            session: The session.
            certificate: The certificate.
            draws: SHA-256 of the file of its draws; empty without one.

        Raises:
            KeyError: There is no such session.
            AlreadyFinishedError: The session already has a certificate for that n.
        """

    @abstractmethod
    def certificates(self, session: str) -> dict[int, StoredCertificate]:
        """Return all certificates of a session by n, the number of episodes certified."""

    @abstractmethod
    def finish_session(
        self,
        session: str,
        state: SessionState,
        reason: str,
        profile: Mapping[str, Any],
        capabilities: tuple[CapabilityStatus, ...],
        misfit: str = "",
        fit: str = "",
    ) -> Session:
        """End a session, and store its profile and what its alarm found, at once.

        Args:
            session: The session.
            state: How it ended.
            reason: Why.
            profile: The profile.
            capabilities: How well each capability is known.
            misfit: What its alarm found.
            fit: SHA-256 of the file of the fit that the profile rests on; empty without one.

        Raises:
            KeyError: There is no such session.
            AlreadyFinishedError: The session is over already.
        """

    @abstractmethod
    def profile(self, session: str) -> dict[str, Any] | None:
        """Return the exported profile as JSON values; None if the session has none yet."""

    @abstractmethod
    def chain(self, session: str) -> Chain:
        """Return the chain of a session, and the digests of what is stored now.

        Whatever is stored for good adds a link (see `storage.chain`): the session's specification,
        how it stands, the end of an attempt, a certificate, the profile, and an outcome declared
        invalid. What cannot be read is told in the chain, and nothing is raised for it.
        """

    @abstractmethod
    def damage(self) -> tuple[str, ...]:
        """Look for damage of the database itself; one sentence each, and none where it is whole."""

    @abstractmethod
    def close(self) -> None:
        """Free the store's resources; a second call does nothing."""
