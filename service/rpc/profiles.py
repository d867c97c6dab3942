"""Serves cognitive profiles: gets and exports them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

import numpy as np

from animalcat import names, plugins
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.model.spec import to_dict
from animalcat.outcomes import outcomes_bytes, outcomes_frame
from animalcat.plugins import Plugin, PluginError
from animalcat.service.errors import Code, ServiceError, unknown
from animalcat.service.library.layouts import layout_of
from animalcat.service.library.plugins import usable
from animalcat.service.measuring.kept_fits import load_fit
from animalcat.service.measuring.report import (
    has_repeats,
    labels,
    outcome_rows,
    played_arenas,
    provenance,
    reanalysis,
)
from animalcat.service.rpc.posterior import posterior_netcdf
from animalcat.service.session.engines import Engines
from animalcat.v1 import results_pb2, results_pb2_grpc
from animalcat.values import Outcome, SessionState
from animalcat.words import FORMATS


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

    async def GetDraws(  # noqa: N802
        self, request: results_pb2.GetDrawsRequest, context: Any
    ) -> results_pb2.GetDrawsResponse:
        """Return the draws of the posterior, with the profile that rests on them."""
        session = names.parse_profile(request.name)
        fitted = await self._posterior(session)
        passed: dict[str, bool] = {}
        if request.played:
            for episode in await self._engines.episodes(session):
                if episode.counts:
                    made = episode.decision.made
                    instance = episode.decision.instance if made is None else made.instance.name
                    passed.setdefault(instance, episode.outcome is Outcome.SUCCESS)
        features = np.empty(0) if fitted.data is None else fitted.data.features
        return results_pb2.GetDrawsResponse(
            profile_json=json.dumps(await self._profile(session)),
            layout_json=json.dumps(to_dict(fitted.layout)),
            draws=np.ascontiguousarray(fitted.draws, "<f8").tobytes(),
            chains=len(fitted.draws),
            features=np.ascontiguousarray(features, "<f8").tobytes(),
            passed=passed,
        )

    async def ExportProfile(  # noqa: N802
        self, request: results_pb2.ExportProfileRequest, context: Any
    ) -> results_pb2.ExportProfileResponse:
        """Return the profile as a file in the format that the request names."""
        session = names.parse_profile(request.name)
        if request.plugin:
            return await self._by_plugin(session, request.plugin)
        match request.format:
            case results_pb2.PROFILE_FORMAT_UNSPECIFIED | results_pb2.PROFILE_FORMAT_JSON:
                text = json.dumps(await self._profile(session), indent=2) + "\n"
                file_name = f"{session}-profile.json"
            case results_pb2.PROFILE_FORMAT_HTML:
                text = await self._page(session)
                file_name = f"{session}-profile.html"
            case results_pb2.PROFILE_FORMAT_OUTCOMES_CSV:
                return await self._table(session, "csv")
            case results_pb2.PROFILE_FORMAT_OUTCOMES_PARQUET:
                return await self._table(session, "parquet")
            case results_pb2.PROFILE_FORMAT_NETCDF:
                return results_pb2.ExportProfileResponse(
                    content=await self._netcdf(session), file_name=f"{session}-posterior.nc"
                )
            case results_pb2.PROFILE_FORMAT_REANALYSIS_JSON:
                text = json.dumps(await self._reanalysis(session), indent=2) + "\n"
                file_name = f"{session}-reanalysis.json"
            case other:
                raise ServiceError(
                    Code.INVALID_REQUEST,
                    f"format {other} is unknown; give one of ProfileFormat",
                )
        return results_pb2.ExportProfileResponse(content=text.encode(), file_name=file_name)

    async def _by_plugin(self, session: str, name: str) -> results_pb2.ExportProfileResponse:
        """Return what another package's export writes, which is told what wrote it.

        Raises:
            ServiceError: There is none of this name.
            PluginError: This server may not run its code, or it fails.
        """
        writer = await asyncio.to_thread(usable, "export", name)
        if writer is None:
            raise unknown(
                Code.INVALID_REQUEST, "format", name, [*FORMATS, *plugins.names("export")]
            )
        profile = await self._profile(session)
        about = {**profile["provenance"], "exported_by": asdict(writer)}
        rows, _ = await self._outcomes(session)
        content = await asyncio.to_thread(_written, writer, {**profile, "provenance": about}, rows)
        return results_pb2.ExportProfileResponse(content=content, file_name=f"{session}.{name}")

    async def _profile(self, session: str) -> dict[str, Any]:
        stored = await self._engines.stored(session)
        if stored.state.over:
            profile = await asyncio.to_thread(self._engines.parts.store.profile, session)
            if profile is None:
                raise ServiceError(Code.NO_PROFILE, f"session {session} ended without a profile")
        else:
            engine = await self._engines.get(session)
            profile = await engine.live_profile()
        current = await self._engines.session(session)
        return {**profile, "labels": labels(current, profile["diagnostics"])}

    async def _table(
        self, session: str, form: Literal["csv", "parquet"]
    ) -> results_pb2.ExportProfileResponse:
        rows, units = await self._outcomes(session)
        content = await asyncio.to_thread(lambda: outcomes_bytes(outcomes_frame(rows, units), form))
        name = f"{session}-outcomes.{form}"
        return results_pb2.ExportProfileResponse(content=content, file_name=name)

    async def _netcdf(self, session: str) -> bytes:
        fitted = await self._posterior(session)
        rows, _ = await self._outcomes(session)
        profile = await self._profile(session)
        return await asyncio.to_thread(posterior_netcdf, fitted, rows, profile)

    async def _posterior(self, session: str) -> FitResult:
        """Return the posterior with its draws; those that were kept need no engine."""
        stored = await self._engines.stored(session)
        if stored.state is SessionState.FINISHED:
            parts = self._engines.parts
            layout = await asyncio.to_thread(layout_of, stored.spec, parts.store)
            kept = await asyncio.to_thread(load_fit, parts.files, session, layout)
            if kept is not None:
                return kept
        engine = await self._engines.get(session)
        return await engine.posterior()

    async def _page(self, session: str) -> str:
        from animalcat.service.reporting.session_page import session_page  # brings matplotlib

        fitted = await self._posterior(session)
        rows, _ = await self._outcomes(session)
        profile = await self._profile(session)
        current = await self._engines.session(session)
        battery = await self._engines.battery(current.spec.battery_digest)
        episodes = await self._engines.episodes(session)
        return await asyncio.to_thread(
            lambda: session_page(
                profile,
                fitted,
                rows,
                played_arenas(battery, episodes),
                because={(e.number, e.attempt): e.decision.because for e in episodes},
                created=f"{current.created:%Y-%m-%d}",
            )
        )

    async def _reanalysis(self, session: str) -> dict[str, Any]:
        stored = await self._engines.stored(session)
        battery = await self._engines.battery(stored.spec.battery_digest)
        episodes = await self._engines.episodes(session)
        layout = await asyncio.to_thread(layout_of, stored.spec, self._engines.parts.store)
        estimates = await asyncio.to_thread(reanalysis, stored.spec, layout, battery, episodes)
        current = await self._engines.session(session)
        about = provenance(current, episodes, {})
        kept = ("agent", "battery", "battery_digest", "backend", "played_with")
        return {
            "session": names.session_name(session),
            "labels": labels(current),
            **{key: about[key] for key in kept},
            **estimates.to_dict(),
        }

    async def _outcomes(self, session: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
        await self._engines.stored(session)  # an error, if it cannot be read
        current = await self._engines.session(session)
        battery = await self._engines.battery(current.spec.battery_digest)
        episodes = await self._engines.episodes(session)
        weights: dict[int, float] = {}
        if has_repeats(episodes):
            data = (await self._posterior(session)).data
            if data is not None and data.weights is not None:
                weights = dict(zip(data.episodes, data.weights.tolist(), strict=True))
        rows = await asyncio.to_thread(outcome_rows, current, battery, episodes, weights)
        return rows, dict(battery.units)


def _written(
    writer: Plugin, profile: Mapping[str, Any], outcomes: Sequence[Mapping[str, Any]]
) -> bytes:
    """What another package's export makes of a session.

    Raises:
        PluginError: It fails, or gives something else than text or bytes.
    """
    try:
        content = plugins.load("export", writer.name)(profile, outcomes)
    except PluginError:
        raise
    except Exception as error:
        raise PluginError(f"the {writer.words} fails: {type(error).__name__}: {error}") from error
    if not isinstance(content, str | bytes):
        kind = type(content).__name__
        raise PluginError(f"the {writer.words} gives {kind}; an export gives text or bytes")
    return content.encode() if isinstance(content, str) else content
