"""Checks the settings of a server, and shows what holds and why, for `serve --check`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from animalcat.cli.shared.common import common
from animalcat.cli.shared.output import fail, print_json, print_table, remark, say
from animalcat.cli.shared.table import Column
from animalcat.service.access.certificates import CertificateError
from animalcat.service.host.serving import read_identity
from animalcat.service.host.settings import (
    ExposureError,
    Settings,
    SettingsError,
    check_exposure,
    check_tls,
    table_of,
)


def show_settings(given: Mapping[str, Any]) -> None:
    """Print all settings, or end the command where a server could not start with them.

    Args:
        given: What the options of the command say.
    """
    try:
        settings = Settings(**given)
    except SettingsError as error:
        fail(str(error))
    try:
        check_exposure(settings.host, credentials=settings.tls)
        check_tls(settings)
        if not settings.self_signed:
            read_identity(settings)
    except (ExposureError, CertificateError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")
    rows = table_of(settings, dict(given))
    if common().as_json:
        print_json(rows)
        return
    print_table(rows, ["key", Column("value", 1), "from"])
    remark("options of `animalcat serve` count before the environment")
    say("A server can start like this.")
