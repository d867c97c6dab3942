"""Takes changed settings into a running server, as far as that can be done without a restart."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from animalcat.service.access.certificates import CertificateError
from animalcat.service.host.serving import ServerCertificates
from animalcat.service.host.settings import Settings, SettingsError
from animalcat.service.logs import set_level

log = logging.getLogger(__name__)

RELOADED: Final = frozenset({"log_level", "tls_certificate", "tls_key", "host_names", "config"})
"""Settings that hold at once when they are read again; all others wait for a restart."""


def reload_settings(
    settings: Settings, reread: Callable[[], Settings], certificates: ServerCertificates
) -> str:
    """Take in what may change while a server runs, and say in the log what was done.

    What is wrong changes nothing: the server goes on with what it had.

    Args:
        settings: Those that it was started with.
        reread: Reads them again.
        certificates: What it shows.

    Returns:
        Why nothing was taken in; empty where it was.
    """
    try:
        now = reread()
        certificates.reload(now)
    except (SettingsError, CertificateError, OSError) as error:
        log.error("nothing was read again, and the server goes on as it was: %s", error)
        return str(error)
    set_level(now.log, now.log_level)
    waiting = [
        name
        for name in Settings.model_fields
        if name not in RELOADED and getattr(now, name) != getattr(settings, name)
    ]
    log.warning("certificates, tokens and the level of the log were read again")
    if waiting:
        log.warning("these settings hold from the next start on: %s", ", ".join(waiting))
    return ""
