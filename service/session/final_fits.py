"""Makes the fits by NUTS that end a session, and compiles their layouts in advance."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Final

from animalcat.layouts.adaptive.learner import Data, Learner
from animalcat.layouts.inference.fit import FitError, FitRequest, FitResult
from animalcat.layouts.model.spec import Layout
from animalcat.service.measuring.certificates import Waiting, fit_again, fit_seed, untold
from animalcat.service.measuring.kept_fits import keep_fit, kept_fit_key
from animalcat.service.session.parts import Parts
from animalcat.values import Session

log = logging.getLogger(__name__)

WAITS: Final = "the last fit, for its profile"
"""What a session waits for at its end."""


class FinalFits:
    """The last fits of one session; they can be reproduced from what is stored."""

    def __init__(
        self,
        session: Session,
        parts: Parts,
        waiting: Waiting = untold,
    ) -> None:
        """Make nothing yet.

        Args:
            session: The session.
            parts: What all sessions share.
            waiting: Shows what the session waits for.
        """
        self._id, self._spec = session.id, session.spec
        self._fitter = parts.fitter
        self._memory = parts.memory
        self._waiting = waiting
        self._files = parts.files
        self._warming: dict[str, asyncio.Task[None]] = {}
        self._fitting: asyncio.Task[FitResult] | None = None

    def warm(self, layout: Layout) -> None:
        """Compile a layout before its first fit is wanted, since that takes seconds; only once."""
        if layout.digest not in self._warming:
            self._warming[layout.digest] = asyncio.create_task(self._warm(layout))

    @property
    def busy(self) -> bool:
        """Whether a fit or a compilation is under way."""
        tasks = (*self._warming.values(), self._fitting)
        return any(task is not None and not task.done() for task in tasks)

    @property
    def words(self) -> str:
        """What a session waits for while its last fit is made."""
        if not self._fitter.fitting().compiling:
            return WAITS
        return (
            f"{WAITS}; the software for fits is being started, once for as long as the server runs"
        )

    async def profile(self, learner: Learner) -> FitResult:
        """Fit the posterior from which the profile is made, and keep its draws.

        Raises:
            FitError: The fit failed, on this machine or on any.
        """
        episodes = tuple(tell.episode for tell in learner.posterior.tells)
        fitted = await self._fit(learner.layout, learner.data(), "profile")
        if fitted.data is not None:
            fitted = replace(fitted, data=fitted.data._replace(episodes=episodes))
        try:
            await asyncio.to_thread(keep_fit, self._files, self._id, fitted)
        except OSError as error:  # an export can make the fit again
            log.warning("session %s: the draws of its fit are not kept: %s", self._id, error)
        return fitted

    async def kept(self) -> str:
        """Return the SHA-256 of the file of the last fit; empty where it is not kept."""
        try:
            return await asyncio.to_thread(self._files.digest, kept_fit_key(self._id))
        except OSError as error:
            log.warning("session %s: its fit has no digest: %s", self._id, error)
            return ""

    def close(self) -> None:
        """Cancel what is under way; whoever waits for a fit is cancelled too."""
        for task in (*self._warming.values(), self._fitting):
            if task is not None:
                task.cancel()

    async def _warm(self, layout: Layout) -> None:
        try:
            await self._fitter.start(layout)
            if self._spec.policy.exposures != 1:  # repeats may come, which are weighted
                await self._fitter.start(layout, weighted=True)
        except FitError as error:
            log.warning("session %s: %s", self._id, error)  # the fit itself will say so

    async def _fit(self, layout: Layout, data: Data, purpose: str) -> FitResult:
        seed = fit_seed(self._spec.root, purpose, len(data.outcomes))
        request = FitRequest(layout, data.features, data.outcomes, seed, weights=data.weights)
        self._fitting = asyncio.create_task(
            fit_again(self._fitter, request, self._memory, self._waiting)
        )
        return await self._fitting
