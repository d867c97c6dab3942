"""Serves cognitive profiles: gets and exports them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from animalcat import names
from animalcat.service.errors import Code, ServiceError
from animalcat.service.library.layouts import layout_of
from animalcat.service.measuring.report import outcome_rows, reanalysis
from animalcat.service.rpc.exports import outcomes_csv, profile_html
from animalcat.service.session.engines import Engines
from animalcat.v1 import results_pb2, results_pb2_grpc


class Profiles(results_pb2_grpc.ProfilesServicer):
    """Servicer of cognitive profiles."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines

    async def GetProfile(  # noqa: N802
        self, request: results_pb2.GetProfileRequest, context: Any
    ) -> results_pb2.GetProfileResponse:
        """Return the stored profile of a session that is over, or else its live profile."""
        profile = await self._profile(names.parse_profile(request.name))
        return results_pb2.GetProfileResponse(profile_json=json.dumps(profile))

    async def ExportProfile(  # noqa: N802
        self, request: results_pb2.ExportProfileRequest, context: Any
    ) -> results_pb2.ExportProfileResponse:
        """Return the profile as a file in the format that the request names."""
        session = names.parse_profile(request.name)
        match request.format:
            case results_pb2.PROFILE_FORMAT_UNSPECIFIED | results_pb2.PROFILE_FORMAT_JSON:
                text = json.dumps(await self._profile(session), indent=2) + "\n"
                file_name = f"{session}-profile.json"
            case results_pb2.PROFILE_FORMAT_HTML:
                rows, _ = await self._outcomes(session)
                text = await asyncio.to_thread(profile_html, await self._profile(session), rows)
                file_name = f"{session}-profile.html"
            case results_pb2.PROFILE_FORMAT_OUTCOMES_CSV:
                rows, units = await self._outcomes(session)
                text = outcomes_csv(rows, units)
                file_name = f"{session}-outcomes.csv"
            case results_pb2.PROFILE_FORMAT_REANALYSIS_JSON:
                text = json.dumps(await self._reanalysis(session), indent=2) + "\n"
                file_name = f"{session}-reanalysis.json"
            case other:
                raise ServiceError(
                    Code.INVALID_REQUEST,
                    f"format {other} is unknown; give JSON, HTML, CSV or REANALYSIS_JSON",
                )
        return results_pb2.ExportProfileResponse(content=text.encode(), file_name=file_name)

    async def _profile(self, session: str) -> dict[str, Any]:
        stored = await self._engines.stored(session)
        profile = await asyncio.to_thread(self._engines.parts.store.profile, session)
        if profile is not None:
            return profile
        if stored.state.over:
            raise ServiceError(Code.NO_PROFILE, f"session {session} ended without a profile")
        engine = await self._engines.get(session)
        return await engine.live_profile()

    async def _reanalysis(self, session: str) -> dict[str, Any]:
        stored = await self._engines.stored(session)
        battery = await self._engines.battery(stored.spec.battery_digest)
        episodes = await self._engines.episodes(session)
        layout = await asyncio.to_thread(layout_of, stored.spec, self._engines.parts.store)
        found = await asyncio.to_thread(reanalysis, stored.spec, layout, battery, episodes)
        return {"session": names.session_name(session), **found.to_dict()}

    async def _outcomes(self, session: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
        stored = await self._engines.stored(session)
        battery = await self._engines.battery(stored.spec.battery_digest)
        episodes = await self._engines.episodes(session)
        rows = outcome_rows(stored.spec, battery, episodes)
        return rows, dict(battery.units)
