"""Serves cognitive profiles: gets and exports them."""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from sys import intern
from typing import Any, Final, Literal, NamedTuple, TypeVar

import numpy as np

from animalcat.extending import plugins
from animalcat.extending.plugins import Plugin, PluginError
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.model.spec import to_dict
from animalcat.outcomes import write_rows
from animalcat.service.errors import Code, ServiceError, unknown
from animalcat.service.library.bounded import GoneError, make_bounded
from animalcat.service.library.layouts import layout_of
from animalcat.service.library.plugins import usable
from animalcat.service.measuring.kept_fits import load_fit
from animalcat.service.measuring.report import (
    has_repeats,
    labels,
    outcome_rows,
    played_arenas,
)
from animalcat.service.rpc.posterior import constants_of, write_posterior
from animalcat.service.session.engines import Engines
from animalcat.text import names
from animalcat.v1 import results_pb2, results_pb2_grpc
from animalcat.values import Outcome, SessionState
from animalcat.values.profiles import without_chance
from animalcat.wire.words import FORMATS

T = TypeVar("T")
Row = dict[str, Any]

PIECE: Final = 1024 * 1024
"""Bytes of a file that are sent at a time."""


class Outcomes(NamedTuple):
    """The table of outcomes of a session.

    Attributes:
        rows: Reads its rows, from the store, some at a time.
        units: Unit by meta-feature.
    """

    rows: Callable[[], Iterator[Row]]
    units: Mapping[str, str]

    async def read(self, read: Callable[[Iterator[Row]], T]) -> T:
        """Return what a function makes of the rows in a thread, which ends when the caller goes."""
        gone = threading.Event()

        def rows() -> Iterator[Row]:
            for row in self.rows():
                if gone.is_set():
                    raise GoneError
                yield row

        try:
            return await asyncio.to_thread(read, rows())
        finally:
            gone.set()


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

    # The stub of the generated code knows generators only; gRPC takes coroutines as well.
    async def ExportProfile(  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
        self, request: results_pb2.ExportProfileRequest, context: Any
    ) -> None:
        """Stream the profile as a file in the format that the request names."""
        with tempfile.TemporaryDirectory(
            prefix="animalcat-",
            ignore_cleanup_errors=True,  # what writes may be ending still
        ) as folder:
            path = Path(folder) / "export"
            name, notes = await self._export(request, path)
            size = path.stat().st_size
            await context.write(
                results_pb2.ExportProfileResponse(file_name=name, size=size, notes=notes)
            )
            with path.open("rb") as file:
                while piece := await asyncio.to_thread(file.read, PIECE):
                    await context.write(results_pb2.ExportProfileResponse(content=piece))

    async def _export(
        self, request: results_pb2.ExportProfileRequest, path: Path
    ) -> tuple[str, Sequence[str]]:
        """Write what a request asks for to a file.

        Returns:
            A name for the file, and what was left out of it, in sentences.
        """
        session = names.parse_profile(request.name)
        if request.plugin:
            return await self._by_plugin(session, request.plugin, path), ()
        match request.format:
            case results_pb2.PROFILE_FORMAT_UNSPECIFIED | results_pb2.PROFILE_FORMAT_JSON:
                text = json.dumps(await self._profile_for_files(session), indent=2) + "\n"
                file_name = f"{session}-profile.json"
            case results_pb2.PROFILE_FORMAT_HTML:
                text = await self._page(session)
                file_name = f"{session}-profile.html"
            case results_pb2.PROFILE_FORMAT_OUTCOMES_CSV:
                return await self._table(session, "csv", path), ()
            case results_pb2.PROFILE_FORMAT_OUTCOMES_PARQUET:
                return await self._table(session, "parquet", path), ()
            case results_pb2.PROFILE_FORMAT_NETCDF:
                return f"{session}-posterior.nc", await self._netcdf(session, path)
            case results_pb2.PROFILE_FORMAT_DRAWS:
                await self._netcdf(session, path, pointwise=False)
                return f"{session}-draws.nc", ()
            case other:
                raise ServiceError(
                    Code.INVALID_REQUEST,
                    f"format {other} is unknown; give one of ProfileFormat",
                )
        await asyncio.to_thread(path.write_text, text, "utf-8")
        return file_name, ()

    async def _by_plugin(self, session: str, name: str, path: Path) -> str:
        """Write what another package's export makes, which is told what wrote it.

        Raises:
            ServiceError: There is none of this name.
            PluginError: This server may not run its code, or it fails.
        """
        writer = await asyncio.to_thread(usable, "export", name)
        if writer is None:
            raise unknown(
                Code.INVALID_REQUEST, "format", name, [*FORMATS, *plugins.names("export")]
            )
        profile = await self._profile_for_files(session)
        about = {**profile["provenance"], "exported_by": asdict(writer)}
        rows = await (await self._outcomes(session)).read(list)
        profile = {**profile, "provenance": about}
        await make_bounded(partial(_write_by_plugin, path, writer, profile, rows))
        return f"{session}.{name}"

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

    async def _profile_for_files(self, session: str) -> dict[str, Any]:
        """Return a profile for files, which go anywhere: they do not tell what chance follows."""
        return without_chance(await self._profile(session))

    async def _table(self, session: str, form: Literal["csv", "parquet"], path: Path) -> str:
        outcomes = await self._outcomes(session)

        def write(rows: Iterator[Row]) -> None:
            with path.open("wb") as file:
                write_rows(rows, outcomes.units, file, form)

        await outcomes.read(write)
        return f"{session}-outcomes.{form}"

    async def _netcdf(self, session: str, path: Path, *, pointwise: bool = True) -> tuple[str, ...]:
        fitted = await self._posterior(session)
        outcomes = await self._outcomes(session)
        profile = await self._profile_for_files(session)
        kept = await outcomes.read(partial(constants_of, fitted=fitted))
        return await make_bounded(
            partial(write_posterior, path, fitted, kept, profile, pointwise=pointwise)
        )

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
        # They bring matplotlib.
        from animalcat.service.reporting.session_page import session_page
        from animalcat.service.reporting.session_report import told_rows

        fitted = await self._posterior(session)
        outcomes = await self._outcomes(session)
        profile = await self._profile_for_files(session)
        current = await self._engines.session(session)
        battery = await self._engines.battery(current.spec.battery_digest)
        attempts = partial(self._engines.attempts, session)
        features = fitted.layout.feature_names
        make = await outcomes.read(
            lambda rows: partial(
                session_page,
                profile,
                fitted,
                told_rows(rows, features),
                played_arenas(battery, attempts()),
                because={
                    (e.number, e.attempt): intern(e.decision.because)
                    for e in attempts()
                    if e.decision.because
                },
                created=f"{current.created:%Y-%m-%d}",
            )
        )
        return await make_bounded(make)

    async def _outcomes(self, session: str) -> Outcomes:
        await self._engines.stored(session)  # an error, if it cannot be read
        current = await self._engines.session(session)
        battery = await self._engines.battery(current.spec.battery_digest)
        attempts = partial(self._engines.attempts, session)
        weights: dict[int, float] = {}
        if await asyncio.to_thread(lambda: has_repeats(attempts())):
            data = (await self._posterior(session)).data
            if data is not None and data.weights is not None:
                weights = dict(zip(data.episodes, data.weights.tolist(), strict=True))
        return Outcomes(lambda: outcome_rows(current, battery, attempts(), weights), battery.units)


def _write_by_plugin(
    path: Path, writer: Plugin, profile: Mapping[str, Any], outcomes: Sequence[Row]
) -> None:
    """Write what another package's export makes of a session.

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
    path.write_bytes(content.encode() if isinstance(content, str) else content)
