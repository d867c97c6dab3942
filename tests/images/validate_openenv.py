"""Lets OpenEnv's validator build and run the package; run it in OpenEnv's own environment.

`openenv validate` does the same, but for the helper from which it watches the network: it pulls
that from a registry, and here it is an image that was made of Debian's packages.
"""

from __future__ import annotations

import sys
from pathlib import Path

from openenv.cli.commands.validate import _render_report
from openenv.validation import Level, run_validation, write_report
from openenv.validation.providers.docker import DockerValidationProvider


def main(package: str, helper: str, report: str) -> None:
    """Validate a package up to the last level, write the report and print its table."""
    provider = DockerValidationProvider(helper_image=helper, build_timeout_s=1800)
    found = run_validation(Path(package), max_level=Level.SEMANTIC, provider=provider)
    write_report(found, Path(report))
    print(_render_report(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
