"""Keeps a server's batteries by name, whether imported or built from a family or a recipe."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from animalcat.arena_configs.batteries.language import Recipe
from animalcat.arena_configs.batteries.library import (
    RECIPES,
    RecipeFiles,
    load_recipe,
    shipped_recipe,
)
from animalcat.arena_configs.batteries.reader import MOST
from animalcat.arena_configs.batteries.sizing import counts_for
from animalcat.arena_configs.families.library import FAMILIES, is_family
from animalcat.arena_configs.model import ArenaError
from animalcat.extending import plugins
from animalcat.service.batteries.battery import (
    BATTERIES,
    ArenaFile,
    Battery,
    NamedLayout,
    Tick,
    build_family,
    family_readings,
    import_files,
    load,
    silent,
)
from animalcat.service.batteries.readings import ship
from animalcat.service.batteries.recipes import build_recipe, recipe_readings
from animalcat.service.batteries.spool import Spool
from animalcat.service.batteries.writing import UNFINISHED
from animalcat.service.calls import owner_of_new
from animalcat.service.errors import Code, ServiceError, unknown
from animalcat.service.library.bounded import Work, run_bounded
from animalcat.service.library.plugins import usable
from animalcat.service.model import BatteryRecord
from animalcat.service.storage.artefacts import Artefacts
from animalcat.service.storage.listing import Listing, Page, WhoseFilter
from animalcat.service.storage.sql import SqlStore
from animalcat.text import names

FAMILY_SIZE: Final = 450
"""Number of instances of a battery that is built because a session names its family."""
USUAL_FAMILY: Final = "navigation"
"""The family whose battery most first sessions name."""
WAITING: Final = "waiting for the battery before it"
"""Progress message while another battery is being made."""
MAX_INSTANCES: Final = MOST
"""Most instances that a build may ask for: a number beyond is a slip, and takes a day and more."""
SHIPPED: Final = tuple(sorted({*RECIPES, *FAMILIES}))
"""Names of the batteries that come with the project; nothing else may take them."""


class BatterySource(NamedTuple):
    """What a battery is built from.

    Attributes:
        name: Name of the recipe or family.
        size: Number of instances that is usual for it.
        seed: Seed that is usual for it.
        shipped: Whether it comes with the project.
        replace: Whether the battery's name may stand for another one so far.
    """

    name: str
    size: int
    seed: int
    shipped: bool
    replace: bool


class BatteryLibrary:
    """The batteries of a server: their content on disk, and their names in the store."""

    def __init__(self, store: SqlStore, files: Artefacts) -> None:
        self._store = store
        self._files = files
        self._folder = files.folder / BATTERIES
        self._building = asyncio.Lock()

    async def find(self, battery: str) -> BatteryRecord:
        """Return the battery with this id; one of a shipped recipe or family is built if need be.

        Raises:
            ServiceError: There is no battery, recipe or family of this name.
        """
        record = await asyncio.to_thread(self._store.battery, battery)
        if record is None and battery in RECIPES:
            return await self.follow(battery, shipped_recipe(battery))
        if record is None and await asyncio.to_thread(is_family, battery):
            return await self.build(battery, battery, FAMILY_SIZE, 0)
        return record or await self.get(battery)

    async def get(self, battery: str) -> BatteryRecord:
        """Return the battery with this id.

        Raises:
            ServiceError: There is no such battery.
        """
        record = await asyncio.to_thread(self._store.battery, battery)
        if record is None:
            await asyncio.to_thread(usable, "family", battery)  # the server may not run it, perhaps
            known = await asyncio.to_thread(self._store.battery_ids)
            raise unknown(Code.UNKNOWN_BATTERY, "battery", battery, sorted({*known, *SHIPPED}))
        return record

    async def list(self, page: Page, contains: str, whose: WhoseFilter) -> Listing[BatteryRecord]:
        """List batteries in order of id.

        Args:
            page: Which page.
            contains: What their ids have in them; empty for all.
            whose: To whom they belong, and who asks.

        Raises:
            BadPageError: The page's token did not come from such a list.
        """
        return await asyncio.to_thread(self._store.batteries, page, contains, whose)

    async def delete(self, battery: str) -> None:
        """Delete a battery; its arenas go too, unless another battery has the same content.

        Raises:
            ServiceError: There is no such battery.
            InUseError: A session or a campaign was made with it.
        """
        async with self._building:
            record = await asyncio.to_thread(self._store.battery, battery)
            if record is None:
                known = await asyncio.to_thread(self._store.battery_ids)
                raise unknown(Code.UNKNOWN_BATTERY, "battery", battery, known)
            last = await asyncio.to_thread(self._store.delete_battery, battery)
            if last:
                await asyncio.to_thread(self._files.remove, f"{BATTERIES}/{record.digest}")

    async def build(
        self,
        battery: str,
        family: str,
        n: int,
        seed: int,
        tick: Tick = silent,
        *,
        replace: bool = False,
    ) -> BatteryRecord:
        """Build a battery from a family of arenas.

        Args:
            battery: Id for the battery.
            family: Name of the family.
            n: Number of instances.
            seed: Seed for drawing the instances.
            tick: Told of progress; an exception that it raises ends the build.
            replace: Whether the name is to stand for this if it stands for other content.

        Raises:
            ServiceError: There is no such family, the number is out of range, the family claims of
                an instance what is not so, or the name is taken.
        """
        await asyncio.to_thread(check_family, family, n)
        check_name(battery, family)
        tick(0, n, WAITING)
        async with self._building:
            try:
                built = await asyncio.to_thread(
                    build_family, family, n, seed, self._folder, tick, os.cpu_count() or 1
                )
            except ArenaError as error:
                raise ServiceError(Code.INVALID_ARENA, _explain(error)) from error
            return await self._keep(battery, built, replace)

    async def follow(
        self,
        battery: str,
        files: RecipeFiles,
        size: int | None = None,
        seed: int | None = None,
        tick: Tick = silent,
        *,
        replace: bool = False,
    ) -> BatteryRecord:
        """Build a battery from a recipe.

        Args:
            battery: Id for the battery.
            files: The recipe.
            size: Number of instances with controls; None for what the recipe asks for.
            seed: Seed for drawing the instances; None for the recipe's.
            tick: Told of progress; an exception that it raises ends the build.
            replace: Whether the name is to stand for this if it stands for other content.

        Raises:
            ServiceError: The recipe is wrong or cannot be followed, and the message names the
                place; or the name is taken.
        """
        check_name(battery, "" if files != _shipped_files(battery) else battery)
        tick(0, size or 0, WAITING)
        async with self._building:
            try:
                if files == _shipped_files(battery):
                    recipe = await asyncio.to_thread(files.read)
                    built = await asyncio.to_thread(
                        build_recipe, recipe, self._folder, size, seed, tick, os.cpu_count() or 1
                    )
                else:
                    built = await self._make_apart(
                        partial(_follow_files, files, self._folder, size, seed), tick
                    )
            except ArenaError as error:
                raise ServiceError(Code.INVALID_ARENA, _explain(error)) from error
            return await self._keep(battery, built, replace)

    async def import_files(
        self,
        battery: str,
        seed: int,
        files: Sequence[ArenaFile] | Spool,
        table: str = "",
        tick: Tick = silent,
        *,
        layout: NamedLayout | None = None,
        replace: bool = False,
    ) -> BatteryRecord:
        """Make a battery from arena files, and optionally a table of what they are.

        Args:
            battery: Id for the battery.
            seed: Seed for values that the files leave to chance.
            files: The arena files.
            table: What the caller says of the instances as CSV; empty for none.
            tick: Told of progress; an exception that it raises ends the import.
            layout: The layout that the battery is to name; None for none.
            replace: Whether the name is to stand for this if it stands for other content.

        Raises:
            ServiceError: A file cannot be used, and the message names file and line; or the name is
                taken.
        """
        check_name(battery)
        tick(0, len(files), WAITING)
        async with self._building:
            try:
                work = partial(
                    import_files,
                    files,
                    seed,
                    self._folder,
                    table,
                    processes=os.cpu_count() or 1,
                    in_order=isinstance(files, Spool),
                    layout=layout,
                )
                imported = await self._make_apart(work, tick)
            except ArenaError as error:
                raise ServiceError(Code.INVALID_ARENA, _explain(error)) from error
            except ValueError as error:
                raise ServiceError(Code.INVALID_REQUEST, str(error)) from error
            return await self._keep(battery, imported, replace)

    async def _make_apart(self, make: Work[Battery], tick: Tick) -> Battery:
        """Make a battery of what a caller sent, in a process that can be ended."""
        try:
            work = partial(_make_digest, make)
            return load(await asyncio.to_thread(run_bounded, work, tick), self._folder)
        finally:
            for left in self._folder.glob(f"{UNFINISHED}*"):  # of a process that was ended
                await asyncio.to_thread(shutil.rmtree, left, ignore_errors=True)

    async def _keep(self, battery: str, content: Battery, replace: bool) -> BatteryRecord:
        """Let a name stand for a battery; unasked it is not taken from another one."""
        suites = await asyncio.to_thread(
            lambda: Counter(instance.suite for instance in content.instances if instance.suite)
        )
        record = BatteryRecord(
            battery,
            content.digest,
            len(content.instances),
            content.problems,
            dict(sorted(suites.items())),
            owner="" if battery in SHIPPED else owner_of_new(),
        )
        before = await asyncio.to_thread(self._store.battery, battery)
        if before is not None and before.digest != content.digest and not replace:
            old, new = map(names.short_digest, (before.digest, content.digest))
            raise ServiceError(
                Code.NAME_TAKEN,
                f"battery {battery!r} exists already with other content: {before.instances} "
                f"instances, digest {old}; what you give has {record.instances}, digest {new}. "
                "Give yours another name, or replace the other (--replace, replace=True); "
                "sessions keep the content that they began with",
            )
        await asyncio.to_thread(self._store.put_battery, record)
        return record


def _make_digest(make: Work[Battery], *, tick: Tick) -> str:
    return make(tick=tick).digest


def _follow_files(
    files: RecipeFiles, folder: Path, size: int | None, seed: int | None, *, tick: Tick
) -> Battery:
    return build_recipe(files.read(), folder, size, seed, tick, os.cpu_count() or 1)


def name_to_build(source: BatterySource, name: str, size: int | None, seed: int | None) -> str:
    """Return the name of a battery that is built, which may have it.

    The name of a recipe or family is that of the battery which has its usual size and seed. One of
    another size or seed has a name of its own, unless it is asked for that it replaces that one.

    Args:
        source: What it is built from.
        name: The name that is asked for; empty for the one that it has by itself.
        size: Number of instances; None for the usual one.
        seed: Seed of the drawing; None for the usual one.

    Returns:
        For example "navigation", "navigation-60" or "navigation-60-seed7".

    Raises:
        ServiceError: It is the name of another battery that comes with the project.
        animalcat.text.names.BadNameError: It is no name.
    """
    parts = [source.name]
    if size not in (None, source.size):
        parts.append(str(size))
    if seed not in (None, source.seed):
        parts.append(f"seed{seed}")
    own = "-".join(parts)
    same = source.shipped and (own == source.name or source.replace)
    return check_name(name or own, source.name if same else "", own)


def check_name(battery: str, source: str = "", other: str = "") -> str:
    """Check that a battery may have a name, and return it.

    Args:
        battery: The name.
        source: The shipped recipe or family that it is built from; empty for anything else.
        other: A name to give it instead, for the message.

    Raises:
        ServiceError: It is the name of another battery that comes with the project.
        animalcat.text.names.BadNameError: It is no name.
    """
    names.check_component(battery, "battery")
    if battery in SHIPPED and source != battery:
        raise ServiceError(
            Code.NAME_TAKEN,
            f"{battery!r} is the name of a battery that comes with animalcat, and stands for "
            "nothing else; give yours another name (--name "
            f"{other if other not in ('', battery) else f'{battery}-files'})",
        )
    return battery


def _shipped_files(name: str) -> RecipeFiles | None:
    return shipped_recipe(name) if name in RECIPES else None


def check_family(family: str, n: int) -> None:
    """Check that a family exists and that a battery may have so many instances.

    Raises:
        ServiceError: There is no such family, or the number is out of range.
        PluginError: It is another package's, whose code this server may not run, or it is broken.
    """
    if not is_family(family):
        known = [*FAMILIES, *plugins.names("family")]
        raise unknown(Code.UNKNOWN_FAMILY, "family", family, known)
    if family not in FAMILIES:
        usable("family", family)
    if not 1 <= n <= MAX_INSTANCES:
        raise ServiceError(Code.INVALID_REQUEST, f"instances is {n}; give 1 to {MAX_INSTANCES}")


def check_recipe(files: RecipeFiles, size: int | None) -> Recipe:
    """Check that a recipe can be read and may have so many instances, and return it.

    Raises:
        ServiceError: It is wrong, or the number is out of range.
    """
    try:
        recipe = files.read()
        counts_for(recipe, size)
    except ArenaError as error:
        raise ServiceError(Code.INVALID_ARENA, _explain(error)) from error
    return recipe


def ship_readings(folder: Path) -> None:
    """Measure the battery that most first sessions name and those of all recipes, and keep that.

    Args:
        folder: Where to write; running this module writes what comes with the project.
    """
    processes = os.cpu_count() or 1
    usual = family_readings(USUAL_FAMILY, FAMILY_SIZE, 0, processes)
    ship(usual, folder / f"{USUAL_FAMILY}.json.gz")
    for name in RECIPES:
        readings = recipe_readings(load_recipe(name), processes)
        ship(readings, folder / f"{name}.json.gz")


def _explain(error: ArenaError) -> str:
    """Return the error followed by its first problems, each with file and line."""
    lines = [str(p) for p in error.problems if p.severity == "error" and str(p) not in str(error)]
    return "\n".join([str(error), *lines[:10]])


if __name__ == "__main__":
    ship_readings(Path(__file__).resolve().parents[1] / "batteries" / "shipped")
