"""Importing the engine is quiet, and what is missing is said in one clear sentence."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from animalcat.extending.installing import install

BROKEN = """
import importlib.abc, sys, warnings
class Broken(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "sapien":
            raise {error}
sys.meta_path.insert(0, Broken())
from animalcat.envs.backends import make_environment
from animalcat.envs.types import ObservationSpec
try:
    make_environment("sim", ObservationSpec(rays=None))
except ImportError as error:
    print(type(error).__name__, error)
"""


def run(code: str, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *flags, "-c", textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, check=True)


def test_the_warning_about_libvulkan_is_silenced_and_no_other() -> None:
    code = """
    import warnings
    from animalcat.envs.sim import engine
    warnings.warn("another")
    """
    seen = run(code, "-W", "always::UserWarning").stderr
    assert "another" in seen
    assert "vulkan" not in seen


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            'ImportError("libX11.so.6: cannot open shared object file")',
            "ImportError The simulator needs the system library libX11, which is missing here: "
            "install it (Debian and Ubuntu: apt-get install libx11-6).",
        ),
        (
            'ModuleNotFoundError("No module named sapien", name="sapien")',
            f"ImportError The backend 'sim' needs sapien, which is missing: {install('server')}",
        ),
        ('ImportError("something else")', "ImportError something else"),
    ],
)
def test_what_is_missing_is_named_with_its_remedy(error: str, message: str) -> None:
    assert run(BROKEN.format(error=error)).stdout.strip() == message
