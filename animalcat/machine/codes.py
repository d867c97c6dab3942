"""Exit codes of every command."""

from __future__ import annotations

from typing import Final

FAILED: Final = 1
"""Exit code: what was asked for was done, and its answer is bad."""
BAD_INPUT: Final = 2
"""Exit code: an argument, a file or a name was wrong."""
MISSING: Final = 3
"""Exit code: a package, a system library or a build is missing."""
UNREACHABLE: Final = 4
"""Exit code: no server could be reached or started."""
