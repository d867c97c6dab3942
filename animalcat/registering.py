"""Makes `animalcat/Arena-v0` known to Gymnasium as soon as that is imported, and not before."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Final

_GYMNASIUM: Final = "gymnasium"


def register_with_gymnasium() -> None:
    """Register now if Gymnasium is loaded, else when it will be.

    To load it takes longer than all else that most commands need, and few of them play in it.
    """
    if _GYMNASIUM in sys.modules:
        _register()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _register() -> None:
    from animalcat.envs.register import register_environments

    register_environments()


class _Finder:
    """Finds Gymnasium as Python does, once, and registers when its code has run."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if fullname != _GYMNASIUM:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                _register()

            spec.loader.exec_module = execute_and_register
        return spec
