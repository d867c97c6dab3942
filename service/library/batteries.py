"""The batteries of a server by name: imported, built from families, or built when asked for."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from animalcat import names
from animalcat.arena_configs.families import FAMILIES
from animalcat.arena_configs.model import ArenaError
from animalcat.service.batteries.battery import (
    ArenaFile,
    Battery,
    Tick,
    build_family,
    import_files,
    silent,
)
from animalcat.service.errors import Code, ServiceError, unknown
from animalcat.service.model import BatteryRecord
from animalcat.service.storage.base import SessionStore

FAMILY_SIZE: Final = 450
"""Instances of a battery that is built from its family because a session names it."""
WAITING: Final = "waiting for the battery before it"
"""What is said while another battery is being made."""
MAX_INSTANCES: Final = 100_000
"""Most instances that a build may ask for."""


class BatteryLibrary:
    """Keeps batteries on disk and their names in the store."""

    def __init__(self, store: SessionStore, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self._building = asyncio.Lock()

    async def find(self, battery: str) -> BatteryRecord:
        """The battery of that id; one that is named like a family is built on demand.

        Raises:
            ServiceError: There is neither.
        """
        record = await asyncio.to_thread(self._store.battery, battery)
        if record is None and battery in FAMILIES:
            return await self.build(battery, battery, FAMILY_SIZE, 0)
        return record or await self.get(battery)

    async def get(self, battery: str) -> BatteryRecord:
        """The battery of that id, if it is there.

        Raises:
            ServiceError: It is not.
        """
        record = await asyncio.to_thread(self._store.battery, battery)
        if record is None:
            known = [b.id for b in await asyncio.to_thread(self._store.batteries)]
            raise unknown(Code.UNKNOWN_BATTERY, "battery", battery, sorted({*known, *FAMILIES}))
        return record

    async def all(self) -> list[BatteryRecord]:
        """All batteries, by id."""
        return await asyncio.to_thread(self._store.batteries)

    async def delete(self, battery: str) -> None:
        """Delete a battery that no session was made with, and its arenas with the last name of it.

        Raises:
            ServiceError: There is no such battery.
            InUseError: A session or a campaign was made with it.
        """
        async with self._building:
            record = await asyncio.to_thread(self._store.battery, battery)
            if record is None:
                known = [b.id for b in await asyncio.to_thread(self._store.batteries)]
                raise unknown(Code.UNKNOWN_BATTERY, "battery", battery, known)
            last = await asyncio.to_thread(self._store.delete_battery, battery)
            if last:
                with suppress(FileNotFoundError):
                    await asyncio.to_thread(shutil.rmtree, self._folder / record.digest)

    async def build(
        self, battery: str, family: str, n: int, seed: int, tick: Tick = silent
    ) -> BatteryRecord:
        """Build a battery from a family.

        Args:
            battery: Id that it gets.
            family: Name of the family.
            n: How many instances.
            seed: For the drawing.
            tick: Told of progress; what it raises ends the building.

        Raises:
            ServiceError: No such family, or the number is out of range.
        """
        check_family(family, n)
        tick(0, n, WAITING)
        async with self._building:
            made = await asyncio.to_thread(build_family, family, n, seed, self._folder, tick)
            return await self._keep(battery, made)

    async def import_files(
        self,
        battery: str,
        seed: int,
        files: Sequence[ArenaFile],
        table: str = "",
        tick: Tick = silent,
    ) -> BatteryRecord:
        """Make a battery of arena files, and of a table of meta-features where there is one.

        Args:
            battery: Id that it gets.
            seed: For values that the files leave to chance.
            files: The files.
            table: Meta-features of the caller's own, CSV; empty: none.
            tick: Told of progress; what it raises ends the import.

        Raises:
            ServiceError: A file cannot be used; the message names file and line.
        """
        tick(0, len(files), WAITING)
        async with self._building:
            try:
                made = await asyncio.to_thread(import_files, files, seed, self._folder, table, tick)
            except ArenaError as error:
                raise ServiceError(Code.INVALID_ARENA, _explained(error)) from error
            except ValueError as error:
                raise ServiceError(Code.INVALID_REQUEST, str(error)) from error
            return await self._keep(battery, made)

    async def _keep(self, battery: str, made: Battery) -> BatteryRecord:
        record = BatteryRecord(
            names.check_component(battery, "battery"),
            made.digest,
            len(made.instances),
            made.problems,
        )
        await asyncio.to_thread(self._store.put_battery, record)
        return record


def check_family(family: str, n: int) -> None:
    """Refuse a family that is not there, or too many of its instances.

    Raises:
        ServiceError: See above.
    """
    if family not in FAMILIES:
        raise unknown(Code.UNKNOWN_FAMILY, "family", family, list(FAMILIES))
    if not 1 <= n <= MAX_INSTANCES:
        raise ServiceError(Code.INVALID_REQUEST, f"instances is {n}; give 1 to {MAX_INSTANCES}")


def _explained(error: ArenaError) -> str:
    """The error with its first problems, each with file and line."""
    lines = [str(p) for p in error.problems if p.severity == "error" and str(p) not in str(error)]
    return "\n".join([str(error), *lines[:10]])
