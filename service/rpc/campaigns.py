"""Serves calls on campaigns: create, get, list and delete them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from animalcat.layouts.adaptive.campaign import common_instances
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.inference.randomness import rng
from animalcat.service.access.belongings import whose_filter as asked_whose
from animalcat.service.access.secret import ServerSecret
from animalcat.service.calls import owner_of_new
from animalcat.service.errors import Code, ServiceError, unknown
from animalcat.service.ids import campaign_id, session_id
from animalcat.service.library.layouts import refuse_known_agent
from animalcat.service.model import StoredCampaign
from animalcat.service.rpc import paging
from animalcat.service.rpc.asked import asked_spec, checked_id
from animalcat.service.rpc.requests import Requests
from animalcat.service.rpc.sessions import Sessions
from animalcat.service.session.engines import Engines
from animalcat.service.storage.listing import CampaignFilter
from animalcat.service.storage.sql import CampaignCounts
from animalcat.text import names
from animalcat.v1 import campaigns_pb2, campaigns_pb2_grpc, sessions_pb2, types_pb2
from animalcat.values import (
    MAX_EPISODES,
    Campaign,
    CampaignSpec,
    Session,
    SessionSpec,
)
from animalcat.wire.codec import WireError, decode, encode

MAX_AGENTS: Final = 1000
"""Most agents of one campaign."""


class Campaigns(campaigns_pb2_grpc.CampaignsServicer):
    """Servicer of campaigns, which measure several agents on one battery."""

    def __init__(
        self,
        engines: Engines,
        sessions: Sessions,
        requests: Requests,
        clock: Callable[[], datetime],
        secret: ServerSecret,
    ) -> None:
        self._secret = secret
        self._engines = engines
        self._sessions = sessions
        self._requests = requests
        self._clock = clock

    async def CreateCampaign(  # noqa: N802
        self, request: campaigns_pb2.CreateCampaignRequest, context: Any
    ) -> campaigns_pb2.CreateCampaignResponse:
        """Create a campaign and its sessions; a repeated call returns the same campaign."""
        checked_id(request.request_id)  # the same spec gives the same campaign with any id
        spec = asked_campaign(request.spec)
        if spec.session.against is not None:
            raise ServiceError(
                Code.INVALID_REQUEST,
                "session.against goes with a single session; a campaign compares its agents itself",
            )

        if spec.session.prior is not None:
            raise ServiceError(
                Code.INVALID_REQUEST,
                "session.prior goes with a single session, whose agent alone has an earlier one",
            )

        def secret(session: SessionSpec) -> str:
            return self._secret.of_campaign(replace(spec, session=session))

        checked, measurement = await self._sessions.checked(
            spec.session,
            request.spec.session.layout_definition,
            secret=None if request.spec.session.HasField("secret") else secret,
            agents=spec.agents,
        )
        for agent in spec.agents:
            refuse_known_agent(measurement.learner.layout, agent)
        spec = replace(spec, session=checked)
        campaign = campaign_id(spec)
        candidates = measurement.candidates
        order = _common(spec, candidates)
        sessions: list[str] = []
        for k, agent in enumerate(spec.agents):
            plan = _plan(spec, agent, order, campaign)
            try:
                session = await asyncio.to_thread(
                    self._engines.parts.store.create_session,
                    session_id(plan),
                    plan,
                    self._clock(),
                    f"campaigns/{campaign}/{k}",
                    owner_of_new(),
                )
            except ValueError as error:
                raise ServiceError(
                    Code.NAME_TAKEN,
                    "somebody else has a campaign of the same agents, battery, seed and options; "
                    "give another number of it (--take, take=)",
                ) from error
            sessions.append(session.id)
        stored = await asyncio.to_thread(
            self._engines.parts.store.create_campaign,
            StoredCampaign(campaign, spec, tuple(sessions), self._clock(), owner=owner_of_new()),
        )
        created = await self._engines.sessions_of(stored.sessions)
        return campaigns_pb2.CreateCampaignResponse(campaign=_of_sessions(stored, created))

    async def GetCampaign(  # noqa: N802
        self, request: campaigns_pb2.GetCampaignRequest, context: Any
    ) -> campaigns_pb2.GetCampaignResponse:
        """Return one campaign."""
        campaign = await self._load_stored(names.parse_campaign(request.name))
        sessions = await self._engines.sessions_of(campaign.sessions)
        common = await self._common(sessions) if request.common else []
        return campaigns_pb2.GetCampaignResponse(
            campaign=_of_sessions(campaign, sessions), common=common
        )

    async def ListCampaigns(  # noqa: N802
        self, request: campaigns_pb2.ListCampaignsRequest, context: Any
    ) -> campaigns_pb2.ListCampaignsResponse:
        """List the campaigns that match the request, newest first."""
        wanted = CampaignFilter(
            battery=names.parse_battery(request.battery) if request.battery else "",
            whose=asked_whose(request),
        )
        page = await asyncio.to_thread(
            self._engines.parts.store.campaigns, wanted, paging.stored_page(request)
        )
        counted = await asyncio.to_thread(
            self._engines.parts.store.campaign_counts, [campaign.id for campaign in page]
        )
        return campaigns_pb2.ListCampaignsResponse(
            campaigns=[
                encode(_campaign(campaign, counted.get(campaign.id, CampaignCounts(0, 0))))
                for campaign in page
            ],
            next_page_token=page.next,
        )

    async def DeleteCampaign(  # noqa: N802
        self, request: campaigns_pb2.DeleteCampaignRequest, context: Any
    ) -> campaigns_pb2.DeleteCampaignResponse:
        """Delete a campaign but keep its sessions."""
        await self._requests.once(request, partial(self._delete, request.name))
        return campaigns_pb2.DeleteCampaignResponse()

    async def _delete(self, name: str) -> None:
        campaign = await self._load_stored(names.parse_campaign(name))
        await asyncio.to_thread(self._engines.parts.store.delete_campaign, campaign.id)

    async def _load_stored(self, campaign: str) -> StoredCampaign:
        store = self._engines.parts.store
        stored = await asyncio.to_thread(store.campaign, campaign)
        if stored is None:
            known = await asyncio.to_thread(store.campaign_ids)
            raise unknown(Code.UNKNOWN_CAMPAIGN, "campaign", campaign, known)
        return stored

    async def _common(self, sessions: Sequence[Session]) -> list[campaigns_pb2.CommonOutcomes]:
        """Return what sessions made of the arenas that come first, in the order of the sessions."""
        first = {s.id: s.spec.practice + len(s.spec.policy.order) for s in sessions}
        played = await asyncio.to_thread(self._engines.parts.store.first_outcomes, first)
        return [
            campaigns_pb2.CommonOutcomes(
                outcomes=[
                    _OUTCOMES[played[session.id].get(instance)]
                    for instance in session.spec.policy.order
                ]
            )
            for session in sessions
        ]


_OUTCOMES: Final[Mapping[bool | None, types_pb2.Outcome.ValueType]] = {
    True: types_pb2.OUTCOME_SUCCESS,
    False: types_pb2.OUTCOME_FAILURE,
    None: types_pb2.OUTCOME_UNSPECIFIED,
}


def _of_sessions(campaign: StoredCampaign, sessions: Sequence[Session]) -> campaigns_pb2.Campaign:
    """Return what clients are told of a campaign with its sessions."""
    counted = CampaignCounts(
        sum(session.episodes for session in sessions),
        sum(not session.over for session in sessions),
    )
    return encode(_campaign(campaign, counted, sessions))


def _campaign(
    campaign: StoredCampaign, counted: CampaignCounts, sessions: Sequence[Session] = ()
) -> Campaign:
    return Campaign(
        campaign.id,
        campaign.spec,
        tuple(sessions),
        campaign.unreadable,
        campaign.created,
        counted.episodes,
        not counted.going_on,
        campaign.owner,
    )


def asked_campaign(message: campaigns_pb2.CampaignSpec) -> CampaignSpec:
    """Convert a message to a campaign's specification, with defaults for what it leaves out.

    Raises:
        ServiceError: A value is out of its range; the message says which, and what is allowed.
        animalcat.text.names.BadNameError: The battery's name cannot be parsed.
    """
    agents = tuple(message.agents)
    if not 2 <= len(agents) <= MAX_AGENTS or len(set(agents)) != len(agents):
        raise _bad(f"agents: give 2 to {MAX_AGENTS} names, each once")
    for agent in agents:
        names.check_label(agent, "agent")
    if not 1 <= message.budget <= MAX_EPISODES:
        raise _bad(f"budget: give 1 to {MAX_EPISODES} episodes")
    template = sessions_pb2.SessionSpec()
    template.CopyFrom(message.session)
    template.agent = agents[0]
    rule = sessions_pb2.StoppingRule(max_episodes=message.budget, target_sd=0.0, futility=0.0)
    template.stop.CopyFrom(rule)
    session = replace(asked_spec(template), slots=1)
    if session.policy.order:
        raise _bad("policy: a campaign draws the first instances itself; leave out the list")
    whole = campaigns_pb2.CampaignSpec()
    whole.CopyFrom(message)
    whole.session.CopyFrom(template)
    try:
        spec = decode(CampaignSpec, whole, strict=True)
    except WireError as error:
        raise _bad(str(error)) from error
    if spec.share < spec.common:
        raise _bad(
            f"budget: {spec.budget} episodes are too few for the {spec.common} common ones that "
            f"each of the {len(agents)} agents plays; give at least {spec.common * len(agents)}, "
            "or fewer common ones"
        )
    return replace(spec, session=session)


def _plan(spec: CampaignSpec, agent: str, order: tuple[str, ...], campaign: str) -> SessionSpec:
    """Return the specification of one agent's session, which ends after its share of episodes.

    Sessions that play twins share them, so that what is played in common is the same.
    """
    return replace(
        spec.session,
        agent=agent,
        policy=replace(spec.session.policy, order=order),
        stop=StoppingRule(max_episodes=spec.share, target_sd=0.0, futility=0.0),
        twins_of=campaign if spec.session.fresh else "",
    )


def _common(spec: CampaignSpec, candidates: dict[str, str]) -> tuple[str, ...]:
    instances = list(candidates)
    generator = rng(spec.session.root, "common", 0)
    rows = common_instances(list(candidates.values()), spec.common, generator)
    return tuple(instances[row] for row in rows)


def _bad(message: str) -> ServiceError:
    return ServiceError(Code.INVALID_REQUEST, message)
