"""Serves calls on batteries: import, build, get, list and delete them, list their instances."""

from __future__ import annotations

import asyncio
import hashlib
import json
from functools import partial
from typing import Any, Protocol
from weakref import ref

import grpc

from animalcat import values
from animalcat.arena_configs.batteries.library import RECIPES, RecipeFiles, shipped_recipe
from animalcat.arena_configs.batteries.sizing import full_size
from animalcat.arena_configs.features.registry import FEATURES
from animalcat.arena_configs.instance import Instance
from animalcat.arenas.arena_files import MAX_FILE_BYTES, MAX_TABLE_BYTES
from animalcat.extending import plugins
from animalcat.service.access.belongings import whose_filter
from animalcat.service.access.callers import present
from animalcat.service.access.gate import Gate
from animalcat.service.batteries.battery import ArenaFile, Battery, NamedLayout, Tick
from animalcat.service.batteries.naming import link_of, task_of, variant_of
from animalcat.service.batteries.spool import Spool
from animalcat.service.errors import Code, ServiceError
from animalcat.service.host.settings import Settings
from animalcat.service.library.batteries import (
    FAMILY_SIZE,
    SHIPPED,
    BatteryLibrary,
    BatterySource,
    check_family,
    check_name,
    check_recipe,
    name_to_build,
)
from animalcat.service.library.bounded import read_bounded
from animalcat.service.library.layouts import shipped_layout
from animalcat.service.model import BatteryRecord
from animalcat.service.operations import Operations
from animalcat.service.reporting.manifest import manifest
from animalcat.service.rpc.asked import checked_id
from animalcat.service.rpc.paging import page_of_list, stored_page
from animalcat.service.rpc.requests import Requests
from animalcat.service.session.engines import Engines
from animalcat.service.texts import read_checked
from animalcat.text import names
from animalcat.text.marked_yaml import text_of
from animalcat.v1 import sessions_pb2, sessions_pb2_grpc
from animalcat.values import Feature, OperationKind
from animalcat.wire.codec import encode

MOST_MANIFESTS = 8
"""Most manifests of batteries that are kept."""
MAX_PATH = 500
"""Most characters of an arena file's path."""


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


class Batteries(sessions_pb2_grpc.BatteriesServicer):
    """Servicer of batteries, the item banks of sessions."""

    def __init__(
        self,
        library: BatteryLibrary,
        engines: Engines,
        operations: Operations,
        requests: Requests,
        settings: Settings,
        gate: Gate,
    ) -> None:
        self._library = library
        self._engines = engines
        self._operations = operations
        self._requests = requests
        self._settings = settings
        self._gate = gate
        self._manifests: dict[str, tuple[ref[Battery], str]] = {}

    async def ImportBattery(  # noqa: N802
        self, request_iterator: Any, context: Any
    ) -> sessions_pb2.ImportBatteryResponse:
        """Start an operation that stores the arenas that the client streams as a battery."""
        first: Any = await read_checked(context)
        if first is grpc.aio.EOF or first.WhichOneof("frame") != "header":
            raise ServiceError(Code.BAD_FRAME, "the first frame must be the header")
        battery = check_name(first.header.name)
        await self._gate.check_new(
            present.get(), names.battery_name(battery), replaces=first.header.replace
        )
        request_id = checked_id(first.header.request_id)
        asked = hashlib.sha256(first.header.SerializeToString(deterministic=True))
        layout = _layout(first.header)
        files = await asyncio.to_thread(Spool, self._settings.home)
        try:
            table = await self._receive(context, files, asked)
        except BaseException:
            files.close()
            raise

        async def work(tick: Tick) -> str:
            try:
                await self._library.import_files(
                    battery,
                    first.header.seed,
                    files,
                    table,
                    tick,
                    layout=layout,
                    replace=first.header.replace,
                )
            finally:
                files.close()
            return names.battery_name(battery)

        begun = self._operations.begin(
            OperationKind.IMPORT_BATTERY,
            names.battery_name(battery),
            work,
            request_id,
            asked.hexdigest(),
        )
        return sessions_pb2.ImportBatteryResponse(operation=encode(begun))

    async def _receive(self, context: Any, files: Spool, asked: _Digest) -> str:
        """Keep the files that a client streams, and return the table; empty if there is none.

        Raises:
            ServiceError: A frame is out of place, or the files are too many or too large.
        """
        size, table = 0, ""
        while (frame := await read_checked(context)) is not grpc.aio.EOF:
            if frame.WhichOneof("frame") == "table":
                if table:
                    raise ServiceError(Code.BAD_FRAME, "a battery has one table at most")
                table = _text(frame.table.content)
                size += len(frame.table.content)
            elif frame.WhichOneof("frame") != "file":
                raise ServiceError(Code.BAD_FRAME, "only files and a table may follow the header")
            else:
                files.add(_arena_file(frame.file))
                size += len(frame.file.content)
            asked.update(frame.SerializeToString(deterministic=True))
            if len(files) > self._settings.max_battery_files:
                raise ServiceError(
                    Code.TOO_LARGE, f"more than {self._settings.max_battery_files} files"
                )
            if size > self._settings.max_battery_bytes:
                raise ServiceError(
                    Code.TOO_LARGE, f"more than {self._settings.max_battery_bytes} bytes"
                )
        return table

    async def BuildBattery(  # noqa: N802
        self, request: sessions_pb2.BuildBatteryRequest, context: Any
    ) -> sessions_pb2.BuildBatteryResponse:
        """Start an operation that builds a battery from a recipe or a family of arenas."""
        size = request.instances if request.HasField("instances") else None
        seed = None if request.recipe_seed else request.seed
        files = _recipe(request)
        shipped, replace = not request.HasField("recipe"), request.replace
        if files is not None:
            recipe = await read_bounded(check_recipe, files, size)
            source = BatterySource(recipe.name, full_size(recipe), recipe.seed, shipped, replace)
        else:
            check_family(request.family, FAMILY_SIZE if size is None else size)
            source = BatterySource(request.family, FAMILY_SIZE, 0, shipped, replace)
        name = name_to_build(source, request.name, size, seed)
        if name not in SHIPPED:
            await self._gate.check_new(
                present.get(), names.battery_name(name), replaces=request.replace
            )

        async def work(tick: Tick) -> str:
            if files is not None:
                await self._library.follow(name, files, size, seed, tick, replace=replace)
            else:
                number = FAMILY_SIZE if size is None else size
                await self._library.build(
                    name, request.family, number, seed or 0, tick, replace=replace
                )
            return names.battery_name(name)

        begun = self._operations.begin(
            OperationKind.BUILD_BATTERY,
            names.battery_name(name),
            work,
            checked_id(request.request_id),
            hashlib.sha256(request.SerializeToString(deterministic=True)).hexdigest(),
        )
        return sessions_pb2.BuildBatteryResponse(operation=encode(begun))

    async def GetBattery(  # noqa: N802
        self, request: sessions_pb2.GetBatteryRequest, context: Any
    ) -> sessions_pb2.GetBatteryResponse:
        """Return one battery, with the meta-features that its instances may have."""
        record = await self._library.get(names.parse_battery(request.name))
        battery = await self._engines.battery(record.digest)
        return sessions_pb2.GetBatteryResponse(
            battery=_encode_battery(record),
            features=map(encode, _features(battery)),
            manifest_json=await self._manifest(record.id, battery),
        )

    async def _manifest(self, name: str, battery: Battery) -> str:
        """The manifest of a battery as JSON; it looks at every instance, so it is kept."""
        of, text = self._manifests.get(name, (None, ""))
        if of is None or of() is not battery:
            text = json.dumps(await asyncio.to_thread(manifest, name, battery))
            while len(self._manifests) >= MOST_MANIFESTS:
                del self._manifests[next(iter(self._manifests))]
            self._manifests[name] = ref(battery), text
        return text

    async def ListInstances(  # noqa: N802
        self, request: sessions_pb2.ListInstancesRequest, context: Any
    ) -> sessions_pb2.ListInstancesResponse:
        """List the instances of a battery in order of name."""
        record = await self._library.get(names.parse_battery(request.parent))
        battery = await self._engines.battery(record.digest)
        page = page_of_list([*battery.index], str, request)
        shown = [battery.instances[battery.index[name]] for name in page]
        texts = [""] * len(shown)
        if request.arenas:
            texts = await asyncio.to_thread(
                lambda: [battery.arena_yaml(each) if each.arena else "" for each in shown]
            )
        groups = [battery.groups[instance.name] for instance in shown]
        return sessions_pb2.ListInstancesResponse(
            instances=map(_instance, shown, groups, texts),
            next_page_token=page.next,
        )

    async def DeleteBattery(  # noqa: N802
        self, request: sessions_pb2.DeleteBatteryRequest, context: Any
    ) -> sessions_pb2.DeleteBatteryResponse:
        """Delete a battery that no session was made with."""
        battery = names.parse_battery(request.name)
        await self._requests.once(request, partial(self._library.delete, battery))
        return sessions_pb2.DeleteBatteryResponse()

    async def ListBatteries(  # noqa: N802
        self, request: sessions_pb2.ListBatteriesRequest, context: Any
    ) -> sessions_pb2.ListBatteriesResponse:
        """List the batteries of this server."""
        page = await self._library.list(
            stored_page(request), request.contains, whose_filter(request)
        )
        return sessions_pb2.ListBatteriesResponse(
            batteries=map(_encode_battery, page),
            next_page_token=page.next,
            shipped=(*SHIPPED, *plugins.allowed_names("family")),
        )


def _recipe(request: sessions_pb2.BuildBatteryRequest) -> RecipeFiles | None:
    """The recipe that is asked for; None for a family."""
    if not request.HasField("recipe"):
        return shipped_recipe(request.family) if request.family in RECIPES else None
    if request.family:
        raise ServiceError(Code.INVALID_REQUEST, "give either a recipe or a family")
    sent = request.recipe
    families = dict(sent.families)
    size = len(sent.text) + sum(map(len, families.values()))
    if size > MAX_FILE_BYTES:
        raise ServiceError(Code.TOO_LARGE, f"the recipe has more than {MAX_FILE_BYTES} characters")
    return RecipeFiles(sent.file[:MAX_PATH] or "recipe", sent.text, families)


def _layout(header: sessions_pb2.BatteryHeader) -> NamedLayout | None:
    """The layout that a battery is to name; None for none.

    Raises:
        ServiceError: There is no such layout or variant.
    """
    if not header.layout:
        if header.layout_variant:
            raise ServiceError(Code.INVALID_REQUEST, "a layout's variant goes with its name")
        return None
    shipped_layout(header.layout, header.layout_variant)
    return NamedLayout(header.layout, header.layout_variant)


def _text(table: bytes) -> str:
    if len(table) > MAX_TABLE_BYTES:
        raise ServiceError(Code.TOO_LARGE, f"the table has more than {MAX_TABLE_BYTES} bytes")
    if not table.strip():
        raise ServiceError(Code.INVALID_REQUEST, "the table is empty")
    try:
        return table.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = table[: error.start].count(b"\n") + 1
        raise ServiceError(Code.INVALID_REQUEST, f"table, line {line}: not UTF-8 text") from error


def _arena_file(file: sessions_pb2.ArenaFile) -> ArenaFile:
    """Check a file; its path serves only as a name and is never opened."""
    path = file.path
    parts = path.split("/")
    if not 1 <= len(path) <= MAX_PATH or not path.isprintable() or {"", ".", ".."} & set(parts):
        raise ServiceError(
            Code.INVALID_REQUEST, f"path {path[:120]!r} is not a relative path of a file"
        )
    for part in parts:
        names.check_label(part, f"path {path[:120]!r}:")
    if len(file.content) > MAX_FILE_BYTES:
        raise ServiceError(Code.TOO_LARGE, f"{path} has more than {MAX_FILE_BYTES} bytes")
    return ArenaFile(path, text_of(file.content))


def _encode_battery(battery: BatteryRecord) -> sessions_pb2.Battery:
    return encode(
        values.Battery(
            battery.id,
            battery.digest,
            battery.instances,
            battery.problems,
            battery.suites,
            owner=battery.owner,
        )
    )


def _features(battery: Battery) -> list[Feature]:
    """Return what the meta-features of a battery are, in order of name."""
    features: list[Feature] = []
    for name, unit in sorted(battery.units.items()):
        known = FEATURES.get(name)
        said, how = (known.description, known.measured) if known else ("", "caller")
        features.append(Feature(name, unit, said, battery.versions.get(name, 0), how))
    return features


def _instance(instance: Instance, group: str, arena_yaml: str) -> sessions_pb2.Instance:
    """Return what clients are told of an instance.

    Args:
        instance: The instance.
        group: Its group of variants.
        arena_yaml: Its arena; empty unless the caller asked for arenas.
    """
    return encode(
        values.Instance(
            name=instance.name,
            paradigm=instance.paradigm,
            features=instance.features,
            missing=instance.missing,
            pass_mark=instance.pass_mark,
            time_limit_steps=instance.time_limit_steps,
            places=instance.places,
            arena_yaml=arena_yaml,
            origin=instance.origin,
            suite=instance.suite,
            task=task_of(instance),
            variant=variant_of(instance),
            group=group,
            **link_of(instance)._asdict(),
        )
    )
