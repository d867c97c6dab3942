"""Certifies the live posterior by fits with NUTS at n = 16, 32, 64, ... episodes."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from animalcat.layouts.adaptive.learner import Data, Floats, Learner
from animalcat.layouts.inference.certificate import Certificate, certify
from animalcat.layouts.inference.fit import FitError, FitInterruptedError, FitRequest, FitResult
from animalcat.layouts.inference.fitter import Fits
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.model.spec import Layout
from animalcat.machine.files import replace_file
from animalcat.service.errors import Code, ServiceError
from animalcat.service.measuring.measurement import CERTIFICATE_DELAY, OneAtATime, is_checkpoint
from animalcat.service.memory import PAUSES, SpareMemory
from animalcat.service.model import StoredCertificate
from animalcat.service.storage.artefacts import Artefacts
from animalcat.service.storage.sql import SqlStore
from animalcat.text.counts import count_of
from animalcat.values import Session

log = logging.getLogger(__name__)

CERTIFICATES: Final = "certificates"
"""Folder of the fits' draws within a data directory; it has one folder per session."""
Waiting: TypeAlias = Callable[[str, bool], AbstractContextManager[object]]
"""Shows for a block that a session waits, given for what, and whether that comes first."""


def untold(what: str, first: bool) -> AbstractContextManager[object]:
    """Show nothing."""
    return nullcontext()


ATTEMPTS: Final = 3
"""How often a fit is tried if the machine interrupts it."""


class OutOfMemoryError(FitInterruptedError):
    """A fit died for want of memory again and again."""


class CertificateMissingError(ServiceError):
    """The machine cannot make a certificate that counts now; ask again later."""

    def __init__(self, n: int, why: str) -> None:
        super().__init__(
            Code.SESSION_FAILED,
            f"the fit that certifies the first {n} episodes was interrupted repeatedly, the last "
            f"time because {why}. Without it the next decision would be a different one, so "
            "the session pauses; every outcome is kept. Resume it when the machine has memory and "
            "time to spare. The server's ANIMALCAT_FIT_QUIET_SECONDS and "
            "ANIMALCAT_FIT_CPU_SECONDS set how long fits may take",
        )


class Checked(NamedTuple):
    """The result of a checkpoint: the certificate, and the fit's draws if they are to be used."""

    passed: bool
    result: dict[str, object]
    draws: Floats | None


class Certifier:
    """Makes the certificates of one session and applies each at its fixed episode.

    The fit that begins at n counts at exactly n + 8, whether it is early or late. The choices of a
    session therefore do not depend on how fast the machine is. They do not depend on its health
    either: only what every machine would find is stored, and a fit that the machine interrupts is
    made again. A certificate is stored before it takes effect, and after a restart it takes effect
    at the same episode.
    """

    def __init__(
        self,
        session: Session,
        learner: Learner,
        think: OneAtATime,
        store: SqlStore,
        fitter: Fits,
        files: Artefacts,
        waiting: Waiting,
        memory: SpareMemory,
    ) -> None:
        self._waiting = waiting
        self._memory = memory
        self._session = session
        self._learner = learner
        self._think = think
        self._store = store
        self._fitter = fitter
        self._files = files
        self._stored: dict[int, StoredCertificate] = {}
        self._asked: dict[int, tuple[list[NodeSummary], Data]] = {}
        self._fits: dict[int, asyncio.Task[Checked]] = {}
        self._due: int | None = None

    @property
    def busy(self) -> bool:
        """Whether a fit is under way."""
        return not all(task.done() for task in self._fits.values())

    async def load(self) -> None:
        """Read the certificates that are stored."""
        self._stored = await asyncio.to_thread(self._store.certificates, self._session.id)

    async def after_episode(self) -> None:
        """Begin the fit that is due after the latest outcome, and apply the one that counts now.

        Raises:
            CertificateMissingError: See `apply_due`.
        """
        n = self._learner.n
        if is_checkpoint(n) and n not in self._stored:
            self._asked[n] = await self._think(self._summary_and_data)
            self._begin(n)
        begun = n - CERTIFICATE_DELAY
        if is_checkpoint(begun):
            self._due = begun
        await self.apply_due()

    async def apply_due(self) -> None:
        """Apply the certificate that counts now, if there is one, and wait for it if it is late.

        Raises:
            CertificateMissingError: The machine cannot make the fit. It stays due, and the next
                call tries again; nothing may be told or chosen before.
        """
        if self._due is not None:
            await self._apply(self._due)
            self._due = None

    def close(self) -> None:
        """Cancel the fits that are under way."""
        for task in self._fits.values():
            task.cancel()

    def _summary_and_data(self) -> tuple[list[NodeSummary], Data]:
        return self._learner.summary(), self._learner.data()

    def _begin(self, n: int) -> None:
        task = asyncio.create_task(self._check(n, *self._asked[n]))
        # A session may end before n + 8; then nobody asks for the result of this fit.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._fits[n] = task

    async def _check(self, n: int, live: list[NodeSummary], data: Data) -> Checked:
        seed = fit_seed(self._session.spec.root, "certificate", n)
        request = FitRequest(
            self._learner.layout,
            data.features,
            data.outcomes,
            seed,
            weights=data.weights,
        )
        try:
            fitted = await fit_again(self._fitter, request, self._memory, self._waiting)
        except FitInterruptedError:
            raise
        except FitError as error:  # it fails on any machine
            log.warning("session %s: no certificate at %d: %s", self._session.id, n, error)
            return Checked(False, {"passed": False, "reasons": [f"no fit: {error}"]}, None)
        certificate: Certificate = certify(live, fitted)
        reseed = certificate.usable and not certificate.passed
        return Checked(
            certificate.passed, certificate.to_dict(), fitted.flat_draws if reseed else None
        )

    async def _apply(self, n: int) -> None:
        if n not in self._stored:
            if n not in self._fits:
                self._begin(n)
            try:
                checked = await self._late(n, self._fits.pop(n))
            except FitInterruptedError as error:
                raise CertificateMissingError(n, str(error)) from error
            draws = digest = ""
            if checked.draws is not None:
                draws = draws_key(self._session.id, n)
                path = self._files.folder / draws
                await asyncio.to_thread(_save, path, self._learner.layout, checked.draws)
                digest = await asyncio.to_thread(self._files.digest, draws)
            certificate = StoredCertificate(n, checked.passed, checked.result, draws)
            await asyncio.to_thread(
                self._store.put_certificate, self._session.id, certificate, digest
            )
            self._stored[n] = certificate
            self._asked.pop(n)
        draws = self._stored[n].draws
        if draws:
            # Read them back even if they were just written: the same path as after a restart.
            loaded = await asyncio.to_thread(lambda: _load(self._files.fetch(draws)))
            await self._think(self._learner.reseed, loaded, n)

    async def _late(self, n: int, checking: asyncio.Task[Checked]) -> Checked:
        """Wait for a fit, and show that if it is not there yet."""
        if checking.done():
            return checking.result()
        with self._waiting(f"the fit that certifies its first {n} episodes", False):
            return await checking


async def fit_again(
    fitter: Fits, request: FitRequest, memory: SpareMemory, waiting: Waiting
) -> FitResult:
    """Run a fit, up to `ATTEMPTS` times if the machine interrupts it.

    Where it died for want of memory, it is tried again as often as there are `PAUSES`, each time
    after a longer one, and the session shows what it waits for.

    Raises:
        FitInterruptedError: It was interrupted every time.
        FitError: It fails on any machine.
    """
    attempts = starved = 0
    while True:
        try:
            return await fitter.fit(request)
        except FitInterruptedError as error:
            attempts += 1
            if memory.was_it(error.died_of):
                starved += 1
                if starved > len(PAUSES):
                    raise OutOfMemoryError(str(error), error.died_of) from error
                log.warning("a fit ran out of memory (%s), and is repeated", error)
                times = count_of(starved, "time")
                with waiting(f"memory for its fit, which ran out of it {times}", True):
                    await memory.recover(starved)
            elif attempts - starved == ATTEMPTS:
                raise
            else:
                log.warning("a fit is repeated, attempt %d: %s", attempts + 1, error)


def fit_seed(seed: int, purpose: str, n: int) -> int:
    """Return the seed for fitting the first n episodes for a given purpose."""
    return int(rng(seed, purpose, n).integers(2**31))


def draws_key(session: str, n: int) -> str:
    """Return where the draws of a session's certificate are kept, within a data directory."""
    return f"{CERTIFICATES}/{session}/{n}.npz"


def _save(path: Path, layout: Layout, draws: Floats) -> None:
    """Write draws durably, either completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, draws=draws, latents=np.array(layout.latent_names))
    replace_file(path, buffer.getvalue())


def _load(path: Path) -> Floats:
    with np.load(path, allow_pickle=False) as content:
        return content["draws"]
