"""What the parts of a server share."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from animalcat.layouts.inference.fitter import Fitter
from animalcat.service.session.events import EventBus
from animalcat.service.session.workers import Workers
from animalcat.service.storage.base import SessionStore


@dataclass(frozen=True, slots=True)
class Parts:
    """What engines share.

    Attributes:
        store: Where records are kept.
        data: The data directory.
        workers: What plays arenas.
        fitter: The process that runs NUTS.
        bus: Who is told of progress.
        versions: Versions of what could change the numbers, by package.
        monotonic: Tells seconds, for budgets of time.
    """

    store: SessionStore
    data: Path
    workers: Workers
    fitter: Fitter
    bus: EventBus
    versions: Mapping[str, str]
    monotonic: Callable[[], float] = time.monotonic
