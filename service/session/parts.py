"""Groups what all engines of a server share."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from animalcat.layouts.inference.fitter import Fits
from animalcat.service.memory import SpareMemory
from animalcat.service.session.disk import Disk
from animalcat.service.session.events import EventBus
from animalcat.service.session.workers import Workers
from animalcat.service.storage.artefacts import Artefacts
from animalcat.service.storage.sql import SqlStore


@dataclass(frozen=True, slots=True)
class Parts:
    """What all engines of a server share.

    Attributes:
        store: Keeps the records.
        data: The data directory.
        files: Keeps batteries, recordings and draws.
        workers: Lends what plays arenas.
        fitter: Runs NUTS.
        bus: Tells watchers of changes.
        versions: Version by package, of every package that could change a result.
        monotonic: Clock in seconds, for measuring how long an attempt took.
        disk: Says whether there is room for what is to be played.
        memory: Says whether there is memory for it, and whether something has died of having none.
        environment: The environment variables of the server, and so of its simulators.
        unused_seconds: For how long engines and batteries stay in memory that nobody uses.
        unused_bytes: How many bytes they may take together.
    """

    store: SqlStore
    data: Path
    files: Artefacts
    workers: Workers
    fitter: Fits
    bus: EventBus
    versions: Mapping[str, str]
    monotonic: Callable[[], float] = time.monotonic
    disk: Disk = field(default_factory=Disk)
    memory: SpareMemory = field(default_factory=SpareMemory)
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    unused_seconds: float = 600.0
    unused_bytes: int = 512 * 1024**2
