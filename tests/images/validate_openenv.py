"""Lets OpenEnv's validator build and run the package; run it in OpenEnv's own environment.

`openenv validate` does the same, but for two things. The helper from which it watches the network
comes from a registry, and here it is an image that was made of Debian's packages. And it gives a
server 30 s to start, which a busy machine may not keep.
"""

from __future__ import annotations

import sys
from pathlib import Path

from openenv.cli.commands.validate import _render_report
from openenv.validation import Level, run_validation, write_report
from openenv.validation.providers.docker import DockerRunningSubject, DockerValidationProvider
from openenv.validation.runtime.contracts import LaunchSpec


class Patient(DockerValidationProvider):
    """The validator's own provider, which waits longer for a server to start."""

    def start(self, spec: LaunchSpec) -> DockerRunningSubject:
        """Start a server, and wait for it for up to five minutes."""
        return super().start(spec.model_copy(update={"startup_timeout_s": 300.0}))


def main(package: str, helper: str, report: str) -> None:
    """Validate a package up to the last level, write the report and print its table."""
    provider = Patient(helper_image=helper, build_timeout_s=1800)
    found = run_validation(Path(package), max_level=Level.SEMANTIC, provider=provider)
    write_report(found, Path(report))
    print(_render_report(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
